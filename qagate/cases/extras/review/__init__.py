"""Review of items and answers by people: the form, and what comes back."""
