"""Two runs over the same items, or two languages over the same facts, pair by pair."""
