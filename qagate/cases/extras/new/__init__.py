"""``qagate new``: the files of a data set of your own, which run as they are."""
