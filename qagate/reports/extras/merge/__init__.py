"""``qagate merge`` and ``qagate gate``: reports counted again from their records."""
