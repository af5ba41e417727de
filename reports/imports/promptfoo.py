"""``results.json`` of promptfoo: versions 2 and 3 of its output."""

from collections.abc import Sequence

from evaluators.text import digest
from reports.imports import foreign
from reports.imports.foreign import Json, part

_BY_ERROR = 2
"""The ``failureReason`` of a test that could not be run."""


def read(found: Sequence[foreign.ResultFile], choice: foreign.Choice) -> foreign.ForeignRun:
    """Return the results of one provider. Raises UsageError."""
    path, data = found[0].path, found[0].data
    rows = data["results"]["results"]
    model = foreign.only(path, map(_provider, rows), "provider", choice)
    prompts = [str(part(row, "prompt").get("label") or "") for row in rows]
    own = [pair for pair in zip(rows, prompts, strict=True) if _provider(pair[0]) == model]
    several = len({prompt for _, prompt in own}) > 1
    task = str(part(data, "config").get("description") or "promptfoo")
    samples = [_sample(task, row, prompt if several else "") for row, prompt in own]
    names = dict.fromkeys(("pass", *(name for one in samples for name in one.scores)))
    return foreign.ForeignRun(
        tool=f"promptfoo {part(data, 'metadata').get('promptfooVersion') or ''}".strip(),
        model=model,
        samples=samples,
        scorers={task: [foreign.Scorer(name=name) for name in names]},
    )


def _provider(row: Json) -> str:
    named = part(row, "provider")
    return str(named.get("label") or named.get("id") or row.get("provider") or "")


def _sample(task: str, row: Json, prompt: str) -> foreign.ScoredSample:
    """Return the result of one test; ``prompt`` tells several prompts of one test apart."""
    test, response, graded = (part(row, key) for key in ("testCase", "response", "gradingResult"))
    variables = row.get("vars") or part(test, "vars")
    failed = response.get("error") or row.get("failureReason") == _BY_ERROR or not graded
    usage, output = part(response, "tokenUsage"), response.get("output")
    sums = [int(usage.get(name) or 0) for name in ("prompt", "completion")]
    asserted = test.get("assert") or ()
    about = test.get("description") or ""
    named = {"pass": row.get("success"), "score": row.get("score"), **part(row, "namedScores")}
    return foreign.ScoredSample(
        task=task,
        id=digest([about, variables, prompt])[:16],
        scores={} if failed else {name: foreign.number(one) for name, one in named.items()},
        question=foreign.text_of(part(row, "prompt").get("raw")),
        expected=foreign.text_of([one.get("value") for one in asserted]) if asserted else "",
        content=digest([variables, asserted]),
        answer=None if output is None else foreign.text_of(output),
        error=str(response.get("error") or row.get("error") or "not graded") if failed else "",
        reason=str(graded.get("reason") or ""),
        metadata={**variables, **(part(row, "metadata") or part(test, "metadata")), "test": about},
        seconds=float(row.get("latencyMs") or 0) / 1000,
        cost=row.get("cost"),
        tokens=(sums[0], sums[1]) if usage else None,
    )
