"""Retroactive advantage correction: delayed rewards, their kernels, queue, bias and claims."""
