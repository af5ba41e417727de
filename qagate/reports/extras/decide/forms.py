"""Which form a result of another tool has, found by its content, and how each form is read.

inspect_ai: logs (format version 2). lm-evaluation-harness: from 0.4.3, ``samples_*.jsonl`` with
``results_*.json``. promptfoo: output versions 2 and 3. deepeval: exported JSON, or ``.deepeval``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from qagate.cases.tables import Table, TableRow, normal, read_table
from qagate.evaluators.bounded_reading import Archive, ReadingBudget
from qagate.evaluators.text import canonical, digest, shown
from qagate.reports.doors import FOREIGN_RESULTS, load_foreign_reader
from qagate.reports.extras.decide import foreign
from qagate.reports.extras.decide.foreign import (
    Choice,
    Json,
    ResultFile,
    ScoredSample,
    Scorer,
    part,
    problem,
)
from qagate.reports.run.report_folder import RUN_FILE

ROLES: Mapping[str, str] = {
    "id": "which item it is, the same in both files",
    "score": "a number, or a word: correct, incorrect, not_attempted, pass, fail, true, false",
    "task": "a data set of its own (default: the whole file is one)",
    "repeat": "which time the item was asked, from 1",
    "question": "what was asked; where it changed, the pair is left out",
    "expected": "the expected answer, likewise",
    "answer": "what the model said",
    "error": "why there is no score; a row with one is ungraded, never 0",
    "reason": "why it has this score",
}
"""What a column of a table may hold; ``--column ROLE=NAME`` says which one does."""
_SCORES = (
    "score",
    "grade",
    "verdict",
    "passed",
)  # not ``label``, which may be the gold
_SUFFIXES = (".eval", ".json", ".jsonl", ".csv")
_HARNESS = re.compile(
    r"(samples|results)_(?:(?P<task>.+)_)?(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)"
)
_OWN = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
)
"""The keys of the harness's rows that are no metric, with those that end in ``_hash``."""
_MORE_IS_BETTER = ("acc", "acc_norm", "exact_match", "em", "f1", "pass@1")
"""The metrics of the harness of which it is plain; of others ``higher_is_better`` has to say so."""
_UNCLEAR = (
    "no results_….json there says if less is better; add one, or say --scale WORST:BEST"
)
_BY_ERROR = 2  # the ``failureReason`` of promptfoo's tests that could not be run
_DEEPEVAL_SETTINGS = ("threshold", "strictMode", "evaluationModel")
"""What changes a metric's verdict."""
_CONTRADICTORY = (
    "some `success` is above the threshold, some below it; say --scale WORST:BEST"
)


def load(path: Path, word: str, choice: Choice) -> foreign.ForeignRun:
    """Return the run in a file or folder, of form ``word``; empty finds it. Raises UsageError."""
    if path.name == RUN_FILE or (path / RUN_FILE).is_file():
        raise problem(
            path, "a run of qagate itself; say `qagate gate RUN --baseline OLD`"
        )
    files = [path]
    if path.is_dir():
        every = sorted(path.rglob("*"))
        files = [one for one in every if one.suffix in _SUFFIXES and one.is_file()]
    if not files:
        raise problem(path, f"no file ending in {', '.join(_SUFFIXES)} there")
    budget = ReadingBudget()
    documents = [foreign.document(file, budget) for file in files]
    forms = [(_forms(one), one) for one in documents]
    for name in FOREIGN_RESULTS:
        own = [one for some, one in forms if name in some]
        if not own or word not in ("", name) or (name == "table" and path.is_dir()):
            continue
        if len(own) > 1 and name not in ("inspect", "lm_eval"):  # which write several
            raise problem(path, f"holds several results of {name}; name one file")
        _check_choice(path, name, choice)
        try:
            run = load_foreign_reader(name)(own, choice)
        except MemoryError:
            raise problem(path, "too large for the memory; give a part of it") from None
        except (
            KeyError,
            TypeError,
            AttributeError,
            ValueError,
            IndexError,
            ArithmeticError,
            RecursionError,
        ) as error:
            what = f"not as {name} writes it ({type(error).__name__}: {error})"
            raise problem(
                path, f"{what:.200}; give the file whole, or as a table"
            ) from None
        if not run.samples:
            raise problem(path, "holds no sample; write the log with its samples")
        return run
    wanted = (
        f"a result of {word}"
        if word
        else f"a result of any of {', '.join(FOREIGN_RESULTS)}"
    )
    raise problem(path, f"not {wanted}; say what it is with --from")


def _check_choice(path: Path, form: str, choice: Choice) -> None:
    if choice.provider and form not in ("inspect", "promptfoo"):
        raise problem(
            path, f"--new and --old do nothing for a result of {form}; leave them out"
        )
    if choice.columns and form != "table":
        raise problem(
            path, f"--column does nothing for a result of {form}; leave it out"
        )


def _forms(found: ResultFile) -> set[str]:
    data, keys = found.data, found.keys
    names = data.names if isinstance(data, Archive) else ()
    signs = {
        "inspect": {"eval", "plan", "status"} <= keys
        or any(name.startswith(("samples/", "_journal/")) for name in names),
        "lm_eval": {"doc_id", "doc"} <= keys
        or {"results", "versions", "configs"} <= keys,
        "promptfoo": isinstance(data, dict)
        and isinstance(part(data, "results").get("results"), list),
        "deepeval": bool(keys & {"testCases", "testRunData"}),
        "table": data is None or isinstance(data, list),
    }
    return {name for name, holds in signs.items() if holds}


def read_inspect(found: Sequence[ResultFile], choice: Choice) -> foreign.ForeignRun:
    """Return the run in logs of inspect_ai."""
    logs = [_log(one) for one in found]
    named = [head["eval"].get("model", "") for head, _ in logs]
    model = foreign.only(found[0].path, named, "model", choice)
    samples: list[ScoredSample] = []
    scorers, planned = {}, {}
    notes: tuple[str, ...] = ()
    for one, (head, rows), name in zip(found, logs, named, strict=True):
        about, task = head["eval"], head["eval"].get("task", "")
        if name != model:
            continue
        if task in scorers:
            raise problem(one.path, f"a second log of task {task}; name one log")
        own = [_inspect_sample(task, row, model) for row in rows]
        samples += own
        main = part(part(head, "results"), "headline").get("score", "")
        options = {
            one["name"]: one.get("options") for one in about.get("scorers") or ()
        }
        version = f"task {about.get('task_version', 0)}"
        names = dict.fromkeys(name for sample in own for name in sample.scores)
        scorers[task] = [
            Scorer(
                name=name,
                version=f"{version} {canonical(options.get(name.split('/')[0]))}",
            )
            for name in sorted(names, key=lambda name: name != main)
        ]
        data, epochs = part(about, "dataset"), part(about, "config").get("epochs")
        items = len(data.get("sample_ids") or ()) or int(data.get("samples") or 0)
        planned[task] = items * int(epochs or 1)
        if head.get("status") != "success":
            notes += (f"{one.path}: the log's status is {head.get('status')}",)
    tool = f"inspect_ai {part(logs[0][0]['eval'], 'packages').get('inspect_ai', '')}".strip()
    return foreign.ForeignRun(
        tool=tool,
        model=model,
        samples=samples,
        scorers=scorers,
        planned=planned,
        notes=notes,
    )


def _log(found: ResultFile) -> tuple[Json, Iterable[Json]]:
    """Return the head of a log and its samples, which an archive yields one by one."""
    if isinstance(found.data, Mapping):
        return found.data, found.data.get("samples") or ()
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401, PLC0415  # teaches zipfile what inspect_ai writes
    archive: Archive = found.data
    rows = (archive.read(name) for name in archive.names if name.startswith("samples/"))
    if "header.json" in archive.names:
        return archive.read("header.json"), rows
    # a run that did not end has no header
    start = archive.read("_journal/start.json")
    return {**start, "status": "cut short"}, rows


def _inspect_sample(task: str, row: Json, model: str) -> ScoredSample:
    given = {name: score.get("value") for name, score in part(row, "scores").items()}
    reasons = (score.get("explanation") for score in part(row, "scores").values())
    scores = {}
    for name, value in given.items():
        for key, one in (value if isinstance(value, dict) else {"": value}).items():
            scores[f"{name}/{key}" if key else name] = foreign.number(one)
    output, limit = part(row, "output"), part(row, "limit").get("type")
    error = part(row, "error").get("message") or (f"limit: {limit}" if limit else "")
    used = part(
        part(row, "model_usage"), model
    )  # without the tokens of models that grade
    sums = [int(used.get(f"{way}_tokens") or 0) for way in ("input", "output")]
    return ScoredSample(
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
        seconds=float(
            row.get("working_time") or 0
        ),  # waiting for limits and retries is no work
        tokens=(sums[0], sums[1]) if used else None,
    )


def read_harness(found: Sequence[ResultFile], choice: Choice) -> foreign.ForeignRun:
    """Return the run in samples of lm-evaluation-harness."""
    home = found[0].path.parent
    times = {_named(one.path, "time") for one in found}
    if len(times) > 1:
        raise problem(home, f"holds {len(times)} runs; name one results_….json of them")
    time = times.pop()
    more = home.glob(f"*{time}*.json*") if time else ()
    budget = found[0].budget
    here = {one: foreign.document(one, budget) for one in more} | {
        one.path: one for one in found
    }
    known = [here[path] for path in sorted(here)]
    tasks = {
        _named(one.path, "task") or one.path.stem: one
        for one in known
        if "doc_id" in one.keys
    }
    if not tasks:
        raise problem(
            found[0].path, "no samples_….jsonl with it; run lm_eval with --log_samples"
        )
    results: Json = next((one.data for one in known if "versions" in one.keys), {})
    planned = part(results, "n-samples").items()
    return foreign.ForeignRun(
        tool=f"lm-evaluation-harness {results.get('lm_eval_version') or ''}".strip(),
        model=str(
            results.get("model_name") or part(results, "config").get("model") or ""
        ),
        samples=[
            one for task, file in tasks.items() for one in _harness_samples(task, file)
        ],
        scorers={
            task: list(_scorers(task, file.data, results))
            for task, file in tasks.items()
        },
        planned={task: int(counts["effective"]) for task, counts in planned},
    )


def _named(path: Path, name: str) -> str:
    match = _HARNESS.match(path.name)
    return (match[name] or "") if match else ""


def _metrics(row: Json) -> dict[str, str]:
    """Return the metrics of a row by name: as the harness writes them, with the filter if any."""
    own = row.get("metrics")  # since 0.4.5
    own = own or [key for key in row if key not in _OWN and not key.endswith("_hash")]
    chosen = row.get("filter", "none")
    return {one if chosen == "none" else f"{one},{chosen}": one for one in own}


def _scorers(task: str, rows: Sequence[Json], results: Json) -> Iterator[Scorer]:
    up = part(part(results, "higher_is_better"), task)
    version, shots = (
        part(results, name).get(task, "") for name in ("versions", "n-shot")
    )
    named = {name: metric for row in rows for name, metric in _metrics(row).items()}
    for name, metric in named.items():
        chosen = name.partition(",")[2] or "none"
        how = f"task {version}, {shots}-shot, filter {chosen}"
        better = up.get(metric, metric in _MORE_IS_BETTER or None)
        known = isinstance(better, bool)
        yield Scorer(
            name, how, not better if known else None, "" if known else _UNCLEAR
        )


def _harness_samples(task: str, file: ResultFile) -> Iterator[ScoredSample]:
    """Yield the documents, each with the scores of all its filters."""
    docs: dict[str, dict[str, Json]] = {}
    for row in file.data:
        name, chosen = str(row["doc_id"]), row.get("filter", "none")
        if docs.setdefault(name, {}).setdefault(chosen, row) is not row:
            raise problem(
                file.path, f"doc_id {name} stands twice; give the file of one run"
            )
    for name, filters in docs.items():
        first = next(iter(filters.values()))
        hashes = [first.get(key) for key in ("doc_hash", "prompt_hash", "target_hash")]
        asked = first.get("arguments")
        if isinstance(asked, Mapping):  # a list of lists before 0.4.3
            asked = [list(one.values()) for one in asked.values()]
        metrics = (
            (row, pair) for row in filters.values() for pair in _metrics(row).items()
        )
        yield ScoredSample(
            task=task,
            id=name,
            scores={
                name: foreign.number(row.get(metric)) for row, (name, metric) in metrics
            },
            question=foreign.text_of(
                asked[0][0] if asked and asked[0] else first.get("doc")
            ),
            expected=foreign.text_of(first.get("target")),
            answer=foreign.text_of(first.get("filtered_resps")),
            content=digest(hashes) if any(hashes) else "",
            metadata=part(first, "doc"),
        )


def read_promptfoo(found: Sequence[ResultFile], choice: Choice) -> foreign.ForeignRun:
    """Return the run in the output of promptfoo."""
    path, data = found[0].path, found[0].data
    rows = data["results"]["results"]
    model = foreign.only(path, map(_provider, rows), "provider", choice)
    prompts = [str(part(row, "prompt").get("label") or "") for row in rows]
    own = [
        pair for pair in zip(rows, prompts, strict=True) if _provider(pair[0]) == model
    ]
    several = len({prompt for _, prompt in own}) > 1
    task = str(part(data, "config").get("description") or "promptfoo")
    samples = [
        _promptfoo_sample(task, row, prompt if several else "") for row, prompt in own
    ]
    names = dict.fromkeys(("pass", *(name for one in samples for name in one.scores)))
    tool = f"promptfoo {part(data, 'metadata').get('promptfooVersion') or ''}".strip()
    scorers = {task: [Scorer(name=name) for name in names]}
    return foreign.ForeignRun(tool=tool, model=model, samples=samples, scorers=scorers)


def _provider(row: Json) -> str:
    named = part(row, "provider")
    return str(named.get("label") or named.get("id") or row.get("provider") or "")


def _promptfoo_sample(task: str, row: Json, prompt: str) -> ScoredSample:
    """Return the result of one test; ``prompt`` tells several prompts of one test apart."""
    test, response, graded = (
        part(row, key) for key in ("testCase", "response", "gradingResult")
    )
    variables = row.get("vars") or part(test, "vars")
    failed = (
        response.get("error") or row.get("failureReason") == _BY_ERROR or not graded
    )
    usage, output = part(response, "tokenUsage"), response.get("output")
    sums = [int(usage.get(name) or 0) for name in ("prompt", "completion")]
    asserted = test.get("assert") or ()
    about = test.get("description") or ""
    named = {
        "pass": row.get("success"),
        "score": row.get("score"),
        **part(row, "namedScores"),
    }
    return ScoredSample(
        task=task,
        id=digest([about, variables, prompt])[:16],
        scores={}
        if failed
        else {name: foreign.number(one) for name, one in named.items()},
        question=foreign.text_of(part(row, "prompt").get("raw")),
        expected=foreign.text_of([one.get("value") for one in asserted])
        if asserted
        else "",
        content=digest([variables, asserted]),
        answer=None if output is None else foreign.text_of(output),
        error=str(response.get("error") or row.get("error") or "not graded")
        if failed
        else "",
        reason=str(graded.get("reason") or ""),
        metadata={
            **variables,
            **(part(row, "metadata") or part(test, "metadata")),
            "test": about,
        },
        seconds=float(row.get("latencyMs") or 0) / 1000,
        cost=foreign.number(row.get("cost")),
        tokens=(sums[0], sums[1]) if {"prompt", "completion"} <= usage.keys() else None,
    )


def read_deepeval(found: Sequence[ResultFile], choice: Choice) -> foreign.ForeignRun:
    """Return the test run of deepeval."""
    data = found[0].data.get("testRunData") or found[0].data
    task = str(data.get("testFile") or data.get("identifier") or "deepeval")
    rows = [
        *(data.get("testCases") or ()),
        *(data.get("conversationalTestCases") or ()),
    ]
    taken: dict[str, list[Json]] = defaultdict(list)
    for metric in (metric for row in rows for metric in row.get("metricsData") or ()):
        taken[metric["name"]].append(metric)
    own = [_deepeval_scorer(name, metrics) for name, metrics in taken.items()]
    every = canonical(sorted([one.name, one.version] for one in own))
    return foreign.ForeignRun(
        tool="deepeval",
        model=str(part(data, "hyperparameters").get("model") or ""),
        samples=[_deepeval_sample(task, row) for row in rows],
        scorers={task: [Scorer("success", every), *own]},
    )


def _deepeval_scorer(name: str, metrics: Sequence[Json]) -> Scorer:
    """Return a metric; its verdicts above and below the threshold say whether less is better."""
    said = {
        (score < bar) == one["success"]
        for one in metrics
        if isinstance(one.get("success"), bool)
        and (score := foreign.number(one.get("score"))) is not None
        and (bar := foreign.number(one.get("threshold"))) not in (None, score)
    }
    settings = {
        canonical([one.get(key) for key in _DEEPEVAL_SETTINGS]) for one in metrics
    }
    unclear, less = (
        (_CONTRADICTORY, None) if len(said) > 1 else ("", max(said, default=None))
    )
    return Scorer(name, " ".join(sorted(settings)), less, unclear)


def _deepeval_sample(task: str, row: Json) -> ScoredSample:
    metrics = row.get("metricsData") or ()
    broken = [f"{one['name']}: {one['error']}" for one in metrics if one.get("error")]
    broken += [f"{one['name']}: skipped" for one in metrics if one.get("skipped")]
    error = "; ".join(broken) or ("" if metrics else "no metric was taken")
    scores = {one["name"]: one.get("score") for one in metrics if not one.get("error")}
    named = {"success": row.get("success"), **scores}
    said = {"user": "", "assistant": ""}  # of a conversation, each side's turns
    for turn in row.get("turns") or ():
        said[turn["role"]] += f"{turn.get('content') or ''}\n"
    asked = foreign.text_of(
        row.get("input") or row.get("scenario") or said["user"].strip()
    )
    given = row.get("name") or ""
    return ScoredSample(
        task=task,
        id=given
        if given and not given.startswith("test_case_")
        else digest(asked)[:16],
        scores={}
        if error
        else {name: foreign.number(one) for name, one in named.items()},
        question=asked,
        expected=foreign.text_of(
            row.get("expectedOutput") or row.get("expectedOutcome")
        ),
        answer=foreign.text_of(row.get("actualOutput"))
        or said["assistant"].strip()
        or None,
        error=error,
        reason=next((str(one["reason"]) for one in metrics if one.get("reason")), ""),
        metadata=part(row, "additionalMetadata"),
        seconds=float(row.get("runDuration") or 0),
        cost=foreign.number(row.get("evaluationCost")),
    )


def read_rows(found: Sequence[ResultFile], choice: Choice) -> foreign.ForeignRun:
    """Return the run in a table of any tool, a row for each answer."""
    table = read_table(found[0].path)
    columns = {
        **{role: role for role in ROLES},
        "score": next((one for one in _SCORES if one in table.names), "score"),
        **{role: normal(name) for role, name in choice.columns.items()},
    }
    for role in ("id", "score"):
        if columns[role] not in table.names:
            what = f"no column {columns[role]!r}; say --column {role}=NAME"
            raise problem(table.path, f"{what}, of {', '.join(table.names.values())}")
    samples = [_table_sample(table, row, columns) for row in table.records]
    named = choice.columns.items()
    lacks = tuple(
        f"{role}={name}" for role, name in named if columns[role] not in table.names
    )
    by = "" if columns["score"] == "score" else f"column {columns['score']}"
    scorers = {sample.task: [Scorer(name="score", version=by)] for sample in samples}
    return foreign.ForeignRun(
        tool="table", model="", samples=samples, scorers=scorers, lacks=lacks,
        notes=tuple(f"--column {one}: {table.path} has no such column" for one in lacks),
    )  # fmt: skip


def _table_sample(
    table: Table, row: TableRow, columns: Mapping[str, str]
) -> ScoredSample:
    cell = {
        role: foreign.text_of(row.values.get(name)).strip()
        for role, name in columns.items()
    }
    score = foreign.number(row.values.get(columns["score"]))
    if score is None and not cell["error"]:
        what = f"{shown(cell['score'])} is no score; give a number, or fill the column 'error'"
        raise table.problem(row, columns["score"], what)
    return ScoredSample(
        task=cell["task"] or "table",
        id=cell["id"],
        repeat=int(cell["repeat"]) if cell["repeat"].isdigit() else 1,
        scores={} if cell["error"] else {"score": score},
        question=cell["question"],
        expected=cell["expected"],
        answer=cell["answer"] or None,
        reason=cell["reason"],
        error=cell["error"],
        declined=cell["score"].casefold() in foreign.DECLINED,
        metadata={
            key: one for key, one in row.values.items() if key not in columns.values()
        },
    )
