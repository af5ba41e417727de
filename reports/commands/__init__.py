"""The commands of ``python -m reports``: a thin edge over pure functions, one module each."""
