"""``qagate.load``: a run as frames for a notebook."""
