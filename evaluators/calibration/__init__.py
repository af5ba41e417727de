"""Measuring a judge against labels that people gave."""
