"""Tools for data sets: look them over, fetch public ones, have them reviewed, build new ones."""
