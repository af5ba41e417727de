"""What is wrong with a dataset although it can be loaded: repeats, leaks, letters, gaps."""
