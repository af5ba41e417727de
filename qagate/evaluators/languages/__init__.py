"""What is known of languages: scripts and frequent words, word lists, numbers, dates and units."""
