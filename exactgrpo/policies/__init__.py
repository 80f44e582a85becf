"""Finite supports, differentiable policy families and their open parameter domains."""
