"""``qagate draw``: fresh questions from a table by a recipe."""
