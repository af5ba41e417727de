"""``qagate build`` with ``evaluate``, which compares models by their recorded runs."""
