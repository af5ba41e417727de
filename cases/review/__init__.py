"""Review by people: sheets go out as a form and as CSV, and verdicts and ratings come back.

``issue`` writes a sheet's files, ``read_sheets`` reads what came back, ``settle`` makes one outcome
of an item, ``agreement`` measures how far reviewers agree. Reports and the dataset builder use it.
"""
