"""``qagate probe SPEC``: what a model's server takes, and its entry for a models file."""
