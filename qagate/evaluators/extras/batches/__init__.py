"""Batches: many calls handed over at once, for half the price."""
