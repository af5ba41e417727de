"""Logs of inspect_ai, ``.eval`` and ``.json`` (log format version 2)."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from evaluators.text import canonical
from reports.imports.samples import (
    Choice,
    ForeignRun,
    Json,
    ResultFile,
    ScoredSample,
    Scorer,
    declines,
    member,
    number,
    only,
    problem,
    text_of,
)


def recognises(found: ResultFile) -> bool:
    """Return whether a file is such a log."""
    if isinstance(found.data, zipfile.ZipFile):
        return any(name.startswith(("samples/", "_journal/")) for name in found.data.namelist())
    return {"eval", "plan", "status"} <= found.keys


def read(found: Sequence[ResultFile], choice: Choice) -> ForeignRun:
    """Return the run of these logs, one a task. Raises UsageError."""
    heads = [_head(one) for one in found]
    named = [head["eval"].get("model", "") for head in heads]
    model = only(found[0].path, named, "model", choice.provider, "--new or --old MODEL")
    samples: list[ScoredSample] = []
    scorers: dict[str, Sequence[Scorer]] = {}
    planned: dict[str, int] = {}
    notes = []
    for one, head in zip(found, heads, strict=True):
        task, about = head["eval"].get("task", ""), head["eval"]
        if about.get("model", "") != model:
            continue
        if task in scorers:
            raise problem(one.path, f"a second log of task {task}; name one log")
        own = [_sample(task, row) for row in _rows(one, head)]
        samples += own
        scorers[task] = _scorers(head, own)
        planned[task] = _planned(about)
        if head.get("status") != "success":
            notes.append(f"{one.path}: the log's status is {head.get('status')}")
    version = heads[0]["eval"].get("packages", {}).get("inspect_ai", "")
    return ForeignRun(
        tool=f"inspect_ai {version}".strip(),
        model=model,
        samples=samples,
        scorers=scorers,
        planned=planned,
        notes=tuple(notes),
    )


def _head(found: ResultFile) -> Json:
    if not isinstance(found.data, zipfile.ZipFile):
        head: Json = found.data
        return head
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401, PLC0415  # teaches zipfile what inspect_ai writes
    names = found.data.namelist()
    if "header.json" in names:
        header: Json = member(found, "header.json")
        return header
    start = member(found, "_journal/start.json")  # a run that did not end has no header
    return {**start, "status": "cut short"}


def _rows(found: ResultFile, head: Json) -> Iterator[Json]:
    if isinstance(found.data, zipfile.ZipFile):
        names = (name for name in found.data.namelist() if name.startswith("samples/"))
        yield from (member(found, name) for name in names)
    else:
        yield from head.get("samples") or ()


def _planned(about: Json) -> int:
    data = about.get("dataset") or {}
    items = len(data.get("sample_ids") or ()) or int(data.get("samples") or 0)
    return items * int((about.get("config") or {}).get("epochs") or 1)


def _scorers(head: Json, samples: Sequence[ScoredSample]) -> Sequence[Scorer]:
    """Return the scorers, the one of the log's headline first."""
    about = head["eval"]
    declared = {one["name"]: one.get("options") for one in about.get("scorers") or ()}
    version = f"task {about.get('task_version', 0)}"
    results = head.get("results") or {}
    main = (results.get("headline") or {}).get("score", "")
    seen = dict.fromkeys(name for sample in samples for name in sample.scores)
    names = sorted(seen, key=lambda name: name != main)
    return [
        Scorer(name=name, version=f"{version} {canonical(declared.get(name.partition('/')[0]))}")
        for name in names
    ]


def _sample(task: str, row: Json) -> ScoredSample:
    scores, reasons, declined = {}, [], False
    for name, score in (row.get("scores") or {}).items():
        declined |= declines(score.get("value"))
        scores.update(_values(name, score.get("value")))
        reasons.append(str(score.get("explanation") or ""))
    output = row.get("output") or {}
    limit = (row.get("limit") or {}).get("type")
    error = (row.get("error") or {}).get("message") or (f"limit: {limit}" if limit else "")
    usage = (row.get("model_usage") or {}).values()
    return ScoredSample(
        task=task,
        id=str(row["id"]),
        repeat=int(row.get("epoch") or 1),
        scores={} if error else scores,
        question=text_of(row.get("input")),
        expected=text_of(row.get("target")),
        answer=_completion(output),
        declined=declined,
        error=str(error),
        reason=next(filter(None, reasons), ""),
        metadata=row.get("metadata") or {},
        seconds=float(row.get("total_time") or 0),
        tokens=(
            sum(int(one.get("input_tokens") or 0) for one in usage),
            sum(int(one.get("output_tokens") or 0) for one in usage),
        )
        if usage
        else None,
    )


def _completion(output: Json) -> str | None:
    choices = output.get("choices") or ()
    if "completion" in output:
        return str(output["completion"])
    return text_of((choices[0].get("message") or {}).get("content")) if choices else None


def _values(name: str, value: Any) -> dict[str, float | None]:
    """Return a score by its scorer's name, or several where one scorer gives a mapping."""
    if isinstance(value, dict):
        return {f"{name}/{key}": number(part) for key, part in value.items()}
    return {name: number(value)}
