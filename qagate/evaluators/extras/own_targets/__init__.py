"""The calls of the user's own targets: services with an API of their own, and functions."""
