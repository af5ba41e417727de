"""How good the judge is: measured on labelled answers, and its errors in a run."""
