"""Calls in batches, which providers work through within a day at half the price."""
