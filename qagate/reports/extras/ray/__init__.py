"""``qagate run --on ray``: shards of a run on a Ray cluster."""
