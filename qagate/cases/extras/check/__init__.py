"""``qagate check``: what is wrong with a data set although it can be loaded."""
