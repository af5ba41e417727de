"""``samples_*.jsonl`` of lm-evaluation-harness, with their ``results_*.json``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evaluators.text import digest
from reports.imports.samples import (
    Choice,
    ForeignRun,
    Json,
    ResultFile,
    ScoredSample,
    Scorer,
    document,
    number,
    problem,
    text_of,
)

_NAME = re.compile(
    r"(?P<kind>samples|results)_(?:(?P<task>.+)_)?(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)"
)


def recognises(found: ResultFile) -> bool:
    """Return whether a file is one of the two."""
    return {"doc_id", "doc"} <= found.keys or {"results", "versions", "configs"} <= found.keys


def read(found: Sequence[ResultFile], choice: Choice) -> ForeignRun:
    """Return the run that these files belong to. Raises UsageError."""
    first = found[0].path
    times = {_part(one.path, "time") for one in found}
    if len(times) > 1:
        raise problem(first.parent, f"holds {len(times)} runs; name one results_….json of them")
    results, tasks = _files(found, times.pop())
    model = str(results.get("model_name") or (results.get("config") or {}).get("model") or "")
    samples, scorers = [], {}
    for task, rows in tasks.items():
        scorers[task] = _scorers(task, rows, results)
        samples += list(_samples(task, rows))
    planned = {
        task: int(counts["effective"])
        for task, counts in (results.get("n-samples") or {}).items()
        if task in tasks
    }
    version = f"lm-evaluation-harness {results.get('lm_eval_version') or ''}".strip()
    return ForeignRun(tool=version, model=model, samples=samples, scorers=scorers, planned=planned)


def _part(path: Path, name: str) -> str:
    match = _NAME.match(path.name)
    return match[name] or "" if match else ""


def _files(found: Sequence[ResultFile], time: str) -> tuple[Json, Mapping[str, Sequence[Json]]]:
    """Return the results, and the rows of every task of this time."""
    first = found[0].path
    here = {one.path: one for one in found}
    if time:
        for path in sorted(first.parent.glob(f"*{time}*.json*")):
            here.setdefault(path, document(path))
    tasks = {
        _part(one.path, "task") or one.path.stem: one.data
        for one in here.values()
        if "doc_id" in one.keys
    }
    if not tasks:
        raise problem(first, "no samples_….jsonl with it; run lm_eval with --log_samples")
    results = [one.data for one in here.values() if "versions" in one.keys]
    return (results[0] if results else {}), tasks


def _scorers(task: str, rows: Sequence[Json], results: Json) -> list[Scorer]:
    up = (results.get("higher_is_better") or {}).get(task) or {}
    version = (results.get("versions") or {}).get(task, "")
    shots = (results.get("n-shot") or {}).get(task, "")
    filters = dict.fromkeys(str(row.get("filter", "none")) for row in rows)
    names = dict.fromkeys(name for row in rows for name in row.get("metrics") or ())
    return [
        Scorer(
            name=_name(metric, one),
            version=f"task {version}, {shots}-shot, filter {one}",
            lower_is_better=up.get(metric) is False,
        )
        for one in filters
        for metric in names
    ]


def _name(metric: str, chosen: str) -> str:
    """Return a metric as the harness writes it: with its filter, unless there is none."""
    return metric if chosen == "none" else f"{metric},{chosen}"


def _samples(task: str, rows: Sequence[Json]) -> Iterator[ScoredSample]:
    """Yield the documents, each with the scores of all its filters."""
    by_doc: dict[str, list[Json]] = {}
    for row in rows:
        by_doc.setdefault(str(row["doc_id"]), []).append(row)
    for name, own in by_doc.items():
        first = own[0]
        scores = {
            _name(metric, str(row.get("filter", "none"))): number(row.get(metric))
            for row in own
            for metric in row.get("metrics") or ()
        }
        hashes = [first.get(key) for key in ("doc_hash", "prompt_hash", "target_hash")]
        doc = first.get("doc")
        yield ScoredSample(
            task=task,
            id=name,
            scores=scores,
            question=_question(first),
            expected=text_of(first.get("target")),
            answer=text_of(first.get("filtered_resps")),
            content=digest(hashes) if any(hashes) else "",
            metadata=doc if isinstance(doc, dict) else {},
        )


def _question(row: Json) -> str:
    arguments = row.get("arguments")
    if isinstance(arguments, Mapping):  # since 0.4.4; a list of lists before
        arguments = [list(one.values()) for one in arguments.values()]
    return text_of(arguments[0][0]) if arguments and arguments[0] else text_of(row.get("doc"))
