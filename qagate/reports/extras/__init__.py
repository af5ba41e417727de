"""Rooms: commands and features of a run that are loaded when they are asked for."""
