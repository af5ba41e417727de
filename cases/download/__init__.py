"""Public benchmarks in their official form: fetched, verified, put in place."""
