"""Rooms: commands that make, check and review data sets."""
