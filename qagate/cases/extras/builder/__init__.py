"""``qagate build``: a BoolQ-type data set from articles, with models and people."""
