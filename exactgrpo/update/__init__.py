"""The finite-budget group-relative policy update."""
