"""Review by people: sheets go out as a form and as CSV, and verdicts and ratings come back."""
