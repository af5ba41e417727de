"""Judges: whatever turns an answer into a verdict, one kind a module."""
