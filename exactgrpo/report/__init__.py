"""Runs as people and programs read them: JSON data and tables."""
