"""Reads a reply strictly: one reading is left, or it is Invalid. Nothing here raises."""
