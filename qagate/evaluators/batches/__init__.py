"""Calls in batches, which providers work through within a day a wave at half the price."""
