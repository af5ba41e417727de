"""Reads each reply of a tested model once, before anybody else reads it."""
