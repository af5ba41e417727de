"""A slice counted: its metrics, and what they are worth against their bars."""
