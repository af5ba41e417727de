"""Judges that combine others: a panel, rules before a model, checks before a judge."""
