"""``qagate merge``: the runs of CI shards counted as one run."""
