"""The plan of an audit: which pairs of answers people look at, and with what probability.

The plan is written with the first form and stays beside the file of people's verdicts: whoever
counts these verdicts needs the probabilities by which their answers were drawn.
"""

from pathlib import Path

from qagate.evaluators.output import write_texts
from qagate.evaluators.typed_data import encode, read_file
from qagate.reports.run.evidence import AuditPlan, PlannedPair
from qagate.reports.run.json_data import dump

PLAN_SUFFIX = ".plan.json"
"""In place of the suffix of the file of verdicts."""


def load_plan(people: Path) -> AuditPlan:
    """Return the plan that belongs to a file of verdicts; empty where no form was made with it."""
    path = people.with_suffix(PLAN_SUFFIX)
    if not path.exists():
        return {}
    plan: AuditPlan = read_file(
        path, dict[str, PlannedPair], "put back the file that review wrote"
    )
    return plan


def save_plan(plan: AuditPlan, people: Path) -> None:
    """Write the plan next to the verdicts, a line a pair."""
    rows = []
    for key, pair in sorted(plan.items()):
        rows.append(f" {dump(key)}: {dump(encode(pair))}")
    text = "{\n" + ",\n".join(rows) + "\n}\n"
    write_texts([(people.with_suffix(PLAN_SUFFIX), text)], to_commit=True)
