"""Judges measured on labelled answers, or attacked: runs over data sets made for that."""
