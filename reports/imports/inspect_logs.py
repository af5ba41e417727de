"""Logs of inspect_ai, ``.eval`` and ``.json`` (log format version 2)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from evaluators.text import canonical
from reports.imports import foreign
from reports.imports.foreign import Json, part


def read(found: Sequence[foreign.ResultFile], choice: foreign.Choice) -> foreign.ForeignRun:
    """Return the run of these logs, one a task. Raises UsageError."""
    logs = [_log(one) for one in found]
    named = [head["eval"].get("model", "") for head, _ in logs]
    model = foreign.only(found[0].path, named, "model", choice)
    samples: list[foreign.ScoredSample] = []
    scorers, planned, notes = {}, {}, []
    for one, (head, rows), name in zip(found, logs, named, strict=True):
        task = head["eval"].get("task", "")
        if name != model:
            continue
        if task in scorers:
            raise foreign.problem(one.path, f"a second log of task {task}; name one log")
        own = [_sample(task, row) for row in rows]
        samples += own
        scorers[task] = _scorers(head, own)
        data, epochs = part(head["eval"], "dataset"), part(head["eval"], "config").get("epochs")
        items = len(data.get("sample_ids") or ()) or int(data.get("samples") or 0)
        planned[task] = items * int(epochs or 1)
        if head.get("status") != "success":
            notes.append(f"{one.path}: the log's status is {head.get('status')}")
    return foreign.ForeignRun(
        tool=f"inspect_ai {part(logs[0][0]['eval'], 'packages').get('inspect_ai', '')}".strip(),
        model=model,
        samples=samples,
        scorers=scorers,
        planned=planned,
        notes=tuple(notes),
    )


def _log(found: foreign.ResultFile) -> tuple[Json, Iterable[Json]]:
    """Return the head of a log and its samples, which an archive yields one by one."""
    if isinstance(found.data, Mapping):
        return found.data, found.data.get("samples") or ()
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401, PLC0415  # teaches zipfile what inspect_ai writes
    names = found.data.namelist()
    rows = (foreign.member(found, name) for name in names if name.startswith("samples/"))
    if "header.json" in names:
        return foreign.member(found, "header.json"), rows
    start = foreign.member(found, "_journal/start.json")  # a run that did not end has no header
    return {**start, "status": "cut short"}, rows


def _scorers(head: Json, samples: Sequence[foreign.ScoredSample]) -> list[foreign.Scorer]:
    """Return the scorers, the one of the log's headline first."""
    about = head["eval"]
    options = {one["name"]: one.get("options") for one in about.get("scorers") or ()}
    main = part(part(head, "results"), "headline").get("score", "")
    names = dict.fromkeys(name for sample in samples for name in sample.scores)
    task = f"task {about.get('task_version', 0)}"
    return [
        foreign.Scorer(name=name, version=f"{task} {canonical(options.get(name.split('/')[0]))}")
        for name in sorted(names, key=lambda name: name != main)
    ]


def _sample(task: str, row: Json) -> foreign.ScoredSample:
    given = {name: score.get("value") for name, score in part(row, "scores").items()}
    reasons = (score.get("explanation") for score in part(row, "scores").values())
    scores = {
        f"{name}/{key}" if key else name: foreign.number(one)
        for name, value in given.items()
        for key, one in (value if isinstance(value, dict) else {"": value}).items()
    }
    output, limit = part(row, "output"), part(row, "limit").get("type")
    error = part(row, "error").get("message") or (f"limit: {limit}" if limit else "")
    used = part(row, "model_usage").values()
    sums = [sum(int(one.get(f"{way}_tokens") or 0) for one in used) for way in ("input", "output")]
    return foreign.ScoredSample(
        task=task,
        id=str(row["id"]),
        repeat=int(row.get("epoch") or 1),
        scores={} if error else scores,
        question=foreign.text_of(row.get("input")),
        expected=foreign.text_of(row.get("target")),
        answer=str(output["completion"]) if "completion" in output else None,
        declined=any(str(one).casefold() in foreign.DECLINED for one in given.values()),
        error=str(error),
        reason=next((str(one) for one in reasons if one), ""),
        metadata=part(row, "metadata"),
        seconds=float(row.get("total_time") or 0),
        tokens=(sums[0], sums[1]) if used else None,
    )
