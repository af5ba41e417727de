"""``qagate new`` and ``qagate schema``: the files of a first data set, and help in editing them."""
