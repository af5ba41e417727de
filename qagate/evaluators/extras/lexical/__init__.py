"""The offline judge: rules that compare an answer with the golds word by word."""
