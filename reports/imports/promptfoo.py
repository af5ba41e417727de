"""``results.json`` of promptfoo: versions 2 and 3 of its output."""

from collections.abc import Sequence

from evaluators.text import digest
from reports.imports.samples import (
    Choice,
    ForeignRun,
    Json,
    ResultFile,
    ScoredSample,
    Scorer,
    number,
    only,
    problem,
    text_of,
)

PASS = "pass"
_BY_ERROR = 2
"""The ``failureReason`` of a test that could not be run."""


def recognises(found: ResultFile) -> bool:
    """Return whether a file is such an output."""
    results = found.data.get("results") if isinstance(found.data, dict) else None
    return isinstance(results, dict) and isinstance(results.get("results"), list)


def read(found: Sequence[ResultFile], choice: Choice) -> ForeignRun:
    """Return the results of one provider. Raises UsageError."""
    path, data = found[0].path, found[0].data
    if len(found) > 1:
        raise problem(path.parent, "holds several results of promptfoo; name one file")
    rows = data["results"]["results"]
    names = [_provider(row) for row in rows]
    option = "which with --new or --old PROVIDER"
    model = only(path, names, "provider", choice.provider, option)
    own = [row for row, name in zip(rows, names, strict=True) if name == model]
    labels = {_label(row) for row in own}
    task = str((data.get("config") or {}).get("description") or "promptfoo")
    samples = [_sample(task, row, _label(row) if len(labels) > 1 else "") for row in own]
    scorers = dict.fromkeys((PASS, *(name for one in samples for name in one.scores)))
    version = str((data.get("metadata") or {}).get("promptfooVersion") or "")
    return ForeignRun(
        tool=f"promptfoo {version}".strip(),
        model=model,
        samples=samples,
        scorers={task: [Scorer(name=name) for name in scorers]},
    )


def _provider(row: Json) -> str:
    provider = row.get("provider") or {}
    if isinstance(provider, str):
        return provider
    return str(provider.get("label") or provider.get("id") or "")


def _label(row: Json) -> str:
    return str((row.get("prompt") or {}).get("label") or "")


def _sample(task: str, row: Json, prompt: str) -> ScoredSample:
    """Return the result of one test; ``prompt`` tells several prompts of one test apart."""
    test = row.get("testCase") or {}
    variables = row.get("vars") or test.get("vars") or {}
    response, graded = row.get("response") or {}, row.get("gradingResult")
    failed = response.get("error") or row.get("failureReason") == _BY_ERROR or not graded
    error = str(response.get("error") or row.get("error") or "not graded") if failed else ""
    usage = response.get("tokenUsage") or {}
    named = {name: number(value) for name, value in (row.get("namedScores") or {}).items()}
    scores = {PASS: number(row.get("success")), "score": number(row.get("score")), **named}
    output = response.get("output")
    asserted = test.get("assert") or ()
    return ScoredSample(
        task=task,
        id=digest([test.get("description") or "", variables, prompt])[:16],
        scores={} if error else scores,
        question=text_of((row.get("prompt") or {}).get("raw")),
        expected=text_of([one.get("value") for one in asserted]) if asserted else "",
        content=digest([variables, asserted]),
        answer=None if output is None else text_of(output),
        error=error,
        reason=str((graded or {}).get("reason") or ""),
        metadata={
            **variables,
            **(row.get("metadata") or test.get("metadata") or {}),
            "test": test.get("description") or "",
        },
        seconds=float(row.get("latencyMs") or 0) / 1000,
        cost=row.get("cost"),
        tokens=(int(usage.get("prompt") or 0), int(usage.get("completion") or 0))
        if usage
        else None,
    )
