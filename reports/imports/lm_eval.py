"""``samples_*.jsonl`` of lm-evaluation-harness (from 0.4.3), with their ``results_*.json``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evaluators.text import digest
from reports.imports import foreign
from reports.imports.foreign import Json, part

_NAME = re.compile(r"(samples|results)_(?:(?P<task>.+)_)?(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)")
_OWN = frozenset({"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"})
"""The keys of a row that are no metric, with those that end in ``_hash``."""


def read(found: Sequence[foreign.ResultFile], choice: foreign.Choice) -> foreign.ForeignRun:
    """Return the run that these files belong to. Raises UsageError."""
    home = found[0].path.parent
    times = {_part(one.path, "time") for one in found}
    if len(times) > 1:
        raise foreign.problem(home, f"holds {len(times)} runs; name one results_….json of them")
    time = times.pop()
    more = home.glob(f"*{time}*.json*") if time else ()
    here = {one: foreign.document(one) for one in more} | {one.path: one for one in found}
    known = [here[path] for path in sorted(here)]
    tasks = {_part(one.path, "task") or one.path.stem: one for one in known if "doc_id" in one.keys}
    if not tasks:
        what = "no samples_….jsonl with it; run lm_eval with --log_samples"
        raise foreign.problem(found[0].path, what)
    results: Json = next((one.data for one in known if "versions" in one.keys), {})
    planned = part(results, "n-samples").items()
    return foreign.ForeignRun(
        tool=f"lm-evaluation-harness {results.get('lm_eval_version') or ''}".strip(),
        model=str(results.get("model_name") or part(results, "config").get("model") or ""),
        samples=[one for task, file in tasks.items() for one in _samples(task, file)],
        scorers={task: _scorers(task, file.data, results) for task, file in tasks.items()},
        planned={task: int(counts["effective"]) for task, counts in planned},
    )


def _part(path: Path, name: str) -> str:
    match = _NAME.match(path.name)
    return (match[name] or "") if match else ""


def _metrics(row: Json) -> dict[str, str]:
    """Return the metrics of a row by name: as the harness writes them, with the filter if any."""
    own = row.get("metrics")  # since 0.4.5
    own = own or [key for key in row if key not in _OWN and not key.endswith("_hash")]
    chosen = row.get("filter", "none")
    return {one if chosen == "none" else f"{one},{chosen}": one for one in own}


def _scorers(task: str, rows: Sequence[Json], results: Json) -> list[foreign.Scorer]:
    up = part(part(results, "higher_is_better"), task)
    about = [part(results, name).get(task, "") for name in ("versions", "n-shot")]
    named = {name: metric for row in rows for name, metric in _metrics(row).items()}
    version = f"task {about[0]}, {about[1]}-shot, filter "
    return [
        foreign.Scorer(name, version + (name.partition(",")[2] or "none"), up.get(metric) is False)
        for name, metric in named.items()
    ]


def _samples(task: str, file: foreign.ResultFile) -> Iterator[foreign.ScoredSample]:
    """Yield the documents, each with the scores of all its filters. Raises UsageError."""
    docs: dict[str, dict[str, Json]] = {}
    for row in file.data:
        name, chosen = str(row["doc_id"]), row.get("filter", "none")
        if docs.setdefault(name, {}).setdefault(chosen, row) is not row:
            what = f"doc_id {name} stands twice; give the file of one run"
            raise foreign.problem(file.path, what)
    for name, filters in docs.items():
        first = next(iter(filters.values()))
        hashes = [first.get(key) for key in ("doc_hash", "prompt_hash", "target_hash")]
        asked = first.get("arguments")
        if isinstance(asked, Mapping):  # a list of lists before 0.4.3
            asked = [list(one.values()) for one in asked.values()]
        yield foreign.ScoredSample(
            task=task,
            id=name,
            scores={
                name: foreign.number(row.get(metric))
                for row in filters.values()
                for name, metric in _metrics(row).items()
            },
            question=foreign.text_of(asked[0][0] if asked and asked[0] else first.get("doc")),
            expected=foreign.text_of(first.get("target")),
            answer=foreign.text_of(first.get("filtered_resps")),
            content=digest(hashes) if any(hashes) else "",
            metadata=part(first, "doc"),
        )
