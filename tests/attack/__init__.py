"""Inputs that mean harm, by category: `python -m tests.attack`."""
