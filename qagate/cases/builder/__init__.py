"""Making a BoolQ-type dataset from articles, step by step, with models and people."""
