"""The rooms of the lexical judge: folding, matching, numbers, dates, doubts, and language data."""
