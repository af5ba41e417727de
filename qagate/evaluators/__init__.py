"""How an answer is judged: models, judges, replies, the ledger and the engine that fills it."""
