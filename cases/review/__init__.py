"""Review by people: a sheet of items goes out as a form and as CSV, and verdicts come back.

``write_sheet`` writes both files, ``assign`` says who is to see which items, ``read_sheets`` reads
what came back, ``agreement`` measures how far the reviewers agree, ``settle`` makes one outcome an
item of it. Reports and the dataset builder both use it.
"""
