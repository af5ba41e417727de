"""Public benchmarks and labelled sets in their official form: fetched, verified, put in place."""
