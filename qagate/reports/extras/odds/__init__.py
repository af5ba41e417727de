"""What a run would cost and what its gates would say, before it: ``--dry-run``."""
