"""Several runs over the same items, side by side."""
