"""Test runs of deepeval: its exported JSON, and the files that it keeps in ``.deepeval``."""

from collections import defaultdict
from collections.abc import Sequence

from evaluators.text import canonical, digest
from reports.imports import foreign
from reports.imports.foreign import Json, part

_SETTINGS = ("threshold", "strictMode", "evaluationModel")
"""What changes a metric's verdict."""


def read(found: Sequence[foreign.ResultFile], choice: foreign.Choice) -> foreign.ForeignRun:
    """Return the run. Raises UsageError."""
    data = found[0].data.get("testRunData") or found[0].data
    task = str(data.get("testFile") or data.get("identifier") or "deepeval")
    rows = [*(data.get("testCases") or ()), *(data.get("conversationalTestCases") or ())]
    settings: dict[str, set[str]] = defaultdict(set)
    for metric in (metric for row in rows for metric in row.get("metricsData") or ()):
        settings[metric["name"]].add(canonical([metric.get(name) for name in _SETTINGS]))
    own = [foreign.Scorer(name, " ".join(sorted(said))) for name, said in settings.items()]
    every = canonical(sorted([one.name, one.version] for one in own))
    return foreign.ForeignRun(
        tool="deepeval",
        model=str(part(data, "hyperparameters").get("model") or ""),
        samples=[_sample(task, row) for row in rows],
        scorers={task: [foreign.Scorer("success", every), *own]},
    )


def _sample(task: str, row: Json) -> foreign.ScoredSample:
    metrics = row.get("metricsData") or ()
    broken = [f"{one['name']}: {one['error']}" for one in metrics if one.get("error")]
    broken += [f"{one['name']}: skipped" for one in metrics if one.get("skipped")]
    error = "; ".join(broken) or ("" if metrics else "no metric was taken")
    scores = {one["name"]: one.get("score") for one in metrics if not one.get("error")}
    named = {"success": row.get("success"), **scores}
    said = {"user": "", "assistant": ""}  # of a conversation, each side's turns
    for turn in row.get("turns") or ():
        said[turn["role"]] += f"{turn.get('content') or ''}\n"
    asked = foreign.text_of(row.get("input") or row.get("scenario") or said["user"].strip())
    given = row.get("name") or ""
    return foreign.ScoredSample(
        task=task,
        id=given if given and not given.startswith("test_case_") else digest(asked)[:16],
        scores={} if error else {name: foreign.number(one) for name, one in named.items()},
        question=asked,
        expected=foreign.text_of(row.get("expectedOutput") or row.get("expectedOutcome")),
        answer=foreign.text_of(row.get("actualOutput")) or said["assistant"].strip() or None,
        error=error,
        reason=next((str(one["reason"]) for one in metrics if one.get("reason")), ""),
        metadata=part(row, "additionalMetadata"),
        seconds=float(row.get("runDuration") or 0),
        cost=row.get("evaluationCost"),
    )
