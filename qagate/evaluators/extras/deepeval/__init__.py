"""Metrics of deepeval, measured beside the judge."""
