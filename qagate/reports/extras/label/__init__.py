"""Answers of a run that people label, so that they measure its judge."""
