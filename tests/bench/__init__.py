"""Measured claims about speed: `python -m tests.bench` prints one row for each, and fails where a limit is broken."""
