"""Exact real numbers: rationals, roots, logarithms and exponentials with proved comparisons."""
