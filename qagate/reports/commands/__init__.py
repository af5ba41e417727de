"""The commands of ``qagate``: a thin edge over pure functions, one module each."""
