"""What people decide about answers: which ones to look at, and what they said."""
