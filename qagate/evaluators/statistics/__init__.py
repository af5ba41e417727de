"""Intervals, agreement and paired differences, 95 % throughout: what is undefined is None."""
