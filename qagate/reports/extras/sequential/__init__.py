"""Gates that decide early, audits of pairs, and the people who judge them."""
