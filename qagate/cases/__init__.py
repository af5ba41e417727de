"""What is asked: datasets, their files and their thresholds."""
