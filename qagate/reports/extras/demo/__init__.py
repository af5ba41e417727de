"""``qagate demo``: a first verdict, offline."""
