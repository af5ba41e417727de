"""The machinery of a run: which call goes when, within which limits, and what came back."""
