"""Intervals, agreement and paired differences: pure functions, 95 % throughout.

An undefined figure is None, never 0 and never NaN. numpy is imported inside
the functions, so that a process which computes nothing does not pay for them.
"""
