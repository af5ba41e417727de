"""Judges, which turn an answer into a verdict; one module for each kind."""
