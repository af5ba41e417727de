"""Reads a reply strictly: one reading is left, or it is Invalid. Nothing here raises."""

from evaluators.replies.readers import (
    Invalid,
    read_grade,
    read_rating,
    read_reason,
    read_scores,
    read_yes_no,
)

__all__ = ["Invalid", "read_grade", "read_rating", "read_reason", "read_scores", "read_yes_no"]
