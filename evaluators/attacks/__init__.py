"""Answers that attack a judge, and odd right answers that it must keep."""
