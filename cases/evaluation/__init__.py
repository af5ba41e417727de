"""Models compared on one yes/no dataset: a table of measures, and the items that most of them miss.

Models take part through the report folder of a run, or through a file of predictions.
"""

from cases.evaluation.answers import Data, Entrant, entrants, read_data
from cases.evaluation.misses import Facet, facets_of
from cases.evaluation.render import csv_table, json_table, markdown, sheet
from cases.evaluation.scores import Estimate, scores
from cases.evaluation.standing import ModelScores, standings

__all__ = [
    "Data",
    "Entrant",
    "Estimate",
    "Facet",
    "ModelScores",
    "csv_table",
    "entrants",
    "facets_of",
    "json_table",
    "markdown",
    "read_data",
    "scores",
    "sheet",
    "standings",
]
