"""Grades that came with their answers, in the result of another tool, and how they were measured.

Nothing can be judged anew there, so two runs are comparable only if both were measured alike.
Each run's provenance says, by slice, how: grader, threshold, arguments … They are compared field
by field. What both leave unsaid is equal; what one alone says is a difference. A difference can be
accepted on the command line, for one run, by its field and its new value.

A slice may also have doubts of its own: a figure that its tool states, and its samples do not give.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qagate.evaluators.text import one_line
from qagate.reports.run.accepted import Accepted
from qagate.reports.run.json_data import inner
from qagate.reports.run.report import Obstacle

MEASURED = "measured"
"""What a provenance has of each slice of a result of another tool: field → what is said."""
DOUBTS = "doubts"
"""What a provenance has against slices of such a result: slice → why nothing can be decided."""
MAX_SHOWN = 80
"""Characters of a value in a message."""
NOT_SAID = "not said"

Provenance = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOtherwise:
    """One field in which two runs were measured otherwise."""

    field: str
    new: str
    old: str

    @property
    def text(self) -> str:
        """The difference in words, with what accepts it."""
        new = one_line(self.new or NOT_SAID, MAX_SHOWN)
        old = one_line(self.old or NOT_SAID, MAX_SHOWN)
        return f"{self.field} {Obstacle.CHANGED} from {old} to {new}"

    @property
    def to_accept(self) -> str:
        """The option that accepts it."""
        return f"--accept-changed '{self.field}={one_line(self.new or NOT_SAID, MAX_SHOWN)}'"

    def is_accepted(self, accepted: Accepted) -> bool:
        """Return whether the user named this field with its new value."""
        wanted = accepted.measured.get(self.field)
        return wanted in (
            self.new or NOT_SAID,
            one_line(self.new or NOT_SAID, MAX_SHOWN),
        )


def is_foreign(provenance: Provenance) -> bool:
    """Return whether a run is the result of another tool."""
    return MEASURED in provenance


def differences(
    new: Mapping[str, object], old: Mapping[str, object]
) -> Iterator[MeasuredOtherwise]:
    """Yield the fields of which the two sides say another thing, in the order of their names."""
    for field in sorted(new.keys() | old.keys()):
        value_new, value_old = str(new.get(field, "")), str(old.get(field, ""))
        if value_new != value_old:
            yield MeasuredOtherwise(field=field, new=value_new, old=value_old)


def obstacle_of(
    slice_name: str, new: Provenance, old: Provenance, accepted: Accepted
) -> str:
    """Return why two results of another tool say nothing of a slice; empty if they do."""
    for provenance in (new, old):
        doubt = inner(provenance, DOUBTS).get(slice_name)
        if doubt:
            return str(doubt)
    open_differences = [
        difference
        for difference in differences(
            inner(new, MEASURED, slice_name), inner(old, MEASURED, slice_name)
        )
        if not difference.is_accepted(accepted)
    ]
    if not open_differences:
        return ""
    texts = "; ".join(difference.text for difference in open_differences)
    options = " ".join(difference.to_accept for difference in open_differences)
    return f"measured otherwise: {texts}; measure both alike, or {options}"
