"""A run as data: its records, its report, and both as files."""
