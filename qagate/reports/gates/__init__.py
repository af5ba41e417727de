"""Gates: whether a run may ship, from its metrics, its comparison and how its session ended."""
