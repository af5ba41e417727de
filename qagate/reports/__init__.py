"""What a run showed: records, metrics, gates, and the files and plugin that show them."""
