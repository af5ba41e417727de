"""What came of it: records, measures, gates, and the files and plugin that show them."""
