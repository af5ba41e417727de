"""Results of other tools, read as runs of this one: ``qagate decide``."""
