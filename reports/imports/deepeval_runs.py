"""Test runs of deepeval: its exported JSON, and the files that it keeps in ``.deepeval``."""

from collections.abc import Sequence

from evaluators.text import canonical, digest
from reports.imports.samples import (
    Choice,
    ForeignRun,
    Json,
    ResultFile,
    ScoredSample,
    Scorer,
    number,
    problem,
    text_of,
)

SUCCESS = "success"
_CASES = ("testCases", "conversationalTestCases")
_SETTINGS = ("threshold", "strictMode", "evaluationModel")
"""What changes a metric's verdict."""


def recognises(found: ResultFile) -> bool:
    """Return whether a file is such a run."""
    return bool(found.keys & {"testCases", "testRunData"})


def read(found: Sequence[ResultFile], choice: Choice) -> ForeignRun:
    """Return the run. Raises UsageError."""
    if len(found) > 1:
        raise problem(found[0].path.parent, "holds several test runs of deepeval; name one file")
    data = found[0].data.get("testRunData") or found[0].data
    task = str(data.get("testFile") or data.get("identifier") or "deepeval")
    rows = [row for name in _CASES for row in data.get(name) or ()]
    settings: dict[str, dict[str, None]] = {}
    for metric in (metric for row in rows for metric in row.get("metricsData") or ()):
        said = canonical([metric.get(name) for name in _SETTINGS])
        settings.setdefault(metric["name"], {})[said] = None
    every = canonical(sorted((name, sorted(said)) for name, said in settings.items()))
    own = [Scorer(name=name, version=" ".join(sorted(said))) for name, said in settings.items()]
    about = data.get("hyperparameters") or {}
    return ForeignRun(
        tool="deepeval",
        model=str(about.get("model") or "") if isinstance(about, dict) else "",
        samples=[_sample(task, row) for row in rows],
        scorers={task: [Scorer(name=SUCCESS, version=every), *own]},
    )


def _sample(task: str, row: Json) -> ScoredSample:
    metrics = row.get("metricsData") or ()
    broken = [f"{one['name']}: {one['error']}" for one in metrics if one.get("error")]
    skipped = [one["name"] for one in metrics if one.get("skipped")]
    error = "; ".join((*broken, *(f"{name}: skipped" for name in skipped)))
    scores = {one["name"]: number(one.get("score")) for one in metrics if not one.get("error")}
    asked, expected = text_of(row.get("input")), text_of(row.get("expectedOutput"))
    given = row.get("name") or ""
    return ScoredSample(
        task=task,
        id=given if given and not given.startswith("test_case_") else digest(asked)[:16],
        scores={} if error or not metrics else {SUCCESS: number(row.get("success")), **scores},
        question=asked,
        expected=expected,
        answer=text_of(row.get("actualOutput")) or None,
        error=error or ("" if metrics else "no metric was taken"),
        reason=next((str(one["reason"]) for one in metrics if one.get("reason")), ""),
        metadata=row.get("additionalMetadata") or {},
        seconds=float(row.get("runDuration") or 0),
        cost=row.get("evaluationCost"),
    )
