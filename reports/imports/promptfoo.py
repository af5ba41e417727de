"""``results.json`` of promptfoo: versions 2 and 3 of its output."""

from collections.abc import Sequence

from evaluators.text import digest
from reports.imports import foreign
from reports.imports.foreign import Json, part

_PASS = "pass"
_BY_ERROR = 2
"""The ``failureReason`` of a test that could not be run."""


def recognises(found: foreign.ResultFile) -> bool:
    """Return whether a file is such an output."""
    return isinstance(found.data, dict) and isinstance(
        part(found.data, "results").get("results"), list
    )


def read(found: Sequence[foreign.ResultFile], choice: foreign.Choice) -> foreign.ForeignRun:
    """Return the results of one provider. Raises UsageError."""
    path, data = foreign.single(found, "results of promptfoo")
    rows = data["results"]["results"]
    option = "which with --new or --old PROVIDER"
    model = foreign.only(path, map(_provider, rows), "provider", choice.provider, option)
    own = [row for row in rows if _provider(row) == model]
    several = len({_prompt(row) for row in own}) > 1
    task = str(part(data, "config").get("description") or "promptfoo")
    samples = [_sample(task, row, _prompt(row) if several else "") for row in own]
    names = dict.fromkeys((_PASS, *(name for one in samples for name in one.scores)))
    return foreign.ForeignRun(
        tool=f"promptfoo {part(data, 'metadata').get('promptfooVersion') or ''}".strip(),
        model=model,
        samples=samples,
        scorers={task: [foreign.Scorer(name=name) for name in names]},
    )


def _provider(row: Json) -> str:
    provider = row.get("provider")
    if isinstance(provider, str):
        return provider
    return str(part(row, "provider").get("label") or part(row, "provider").get("id") or "")


def _prompt(row: Json) -> str:
    return str(part(row, "prompt").get("label") or "")


def _sample(task: str, row: Json, prompt: str) -> foreign.ScoredSample:
    """Return the result of one test; ``prompt`` tells several prompts of one test apart."""
    test, response, graded = (part(row, key) for key in ("testCase", "response", "gradingResult"))
    variables = row.get("vars") or part(test, "vars")
    failed = response.get("error") or row.get("failureReason") == _BY_ERROR or not graded
    usage, output = part(response, "tokenUsage"), response.get("output")
    asserted = test.get("assert") or ()
    about = test.get("description") or ""
    named = {_PASS: row.get("success"), "score": row.get("score"), **part(row, "namedScores")}
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
        tokens=(int(usage.get("prompt") or 0), int(usage.get("completion") or 0))
        if usage
        else None,
    )
