"""What the form of a tool needs beyond paths: a few lines each, named in its row of ``forms.yaml``.

No function here goes through the rows of a result, but where the tool says a thing of a task only
by them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import canonical, digest
from qagate.reports.extras.decide.containers import Json, ResultFile
from qagate.reports.extras.decide.foreign_run import StatedFigure
from qagate.reports.extras.decide.paths import field_path
from qagate.reports.extras.decide.scores import number

ReadBeside = Callable[[Path], ResultFile]
"""Reads another file of the same result."""
RawScores = Mapping[str, object]
"""Scores by name, as they stand in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One task of a result, or all of it: what stands above its rows, and the rows."""

    path: Path
    rows: Iterable[Json]
    head: Json = field(default_factory=dict)
    task: str = ""
    """Its name, where the head does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFunctions:
    """What a form needs beyond data. None where its paths are enough."""

    parts: Callable[[Sequence[ResultFile], ReadBeside], list[Part]] | None = None
    """Put the files of a result together."""
    scores: Callable[[Json], RawScores] | None = None
    faults: Callable[[Json], Mapping[str, str]] | None = None
    """Why scores of a row are missing, by name."""
    fault: Callable[[Json], str] | None = None
    """Why no score of a row counts; empty if they do."""
    values: Callable[[Part, Json], Mapping[str, object]] | None = None
    """What stands for roles of a row, where a path cannot say it."""
    slices: Callable[[Json], Json] | None = None
    main: Callable[[Part], tuple[str, ...]] | None = None
    """The score that the tool decides by, in each way it may be spelt; the first that is there."""
    planned: Callable[[Part], int] | None = None
    measured: Callable[[Part], Mapping[str, object]] | None = None
    stated: Callable[[Part], list[StatedFigure]] | None = None
    less: Callable[[Part], Mapping[str, bool | None]] | None = None
    """Of which scores less is better, and of which more, as the tool says it; None where it says
    both."""
    group: Callable[[Part], str] | None = None


def part_of(value: object, key: str) -> Json:
    """Return the mapping under a key; an empty one where there is none."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def mappings_in(value: object) -> list[Json]:
    """Return the mappings of a list; none of what is no list."""
    if not isinstance(value, list):
        return []
    return [element for element in value if isinstance(element, Mapping)]


# inspect_ai


def _inspect_main(part: Part) -> tuple[str, ...]:
    """Return the names of the score that the log's own figure is of; none if it may be several.

    Samples name it with its scorer, or alone where a task has one scorer.
    """
    results = part_of(part.head, "results")
    headline = part_of(results, "headline")
    if headline:
        scorer = str(headline.get("scorer", ""))
        score = str(headline.get("score", ""))
        return f"{scorer}/{score}", score
    scores = mappings_in(results.get("scores"))
    if len(scores) != 1:
        return ()
    scorer = str(scores[0].get("scorer"))
    score = str(scores[0].get("name"))
    return f"{scorer}/{score}", score


def _inspect_planned(part: Part) -> int:
    total = part_of(part.head, "results").get("total_samples")
    if isinstance(total, int):
        return total
    about = part_of(part.head, "eval")
    data = part_of(about, "dataset")
    items = len(data.get("sample_ids") or ()) or int(data.get("samples") or 0)
    return items * int(part_of(about, "config").get("epochs") or 1)


def _inspect_measured(part: Part) -> Mapping[str, object]:
    """Name the grader where it is the model under test: scorers by a model take it by default."""
    about = part_of(part.head, "eval")
    if "grader" in part_of(about, "model_roles"):
        return {}
    for scorer in mappings_in(about.get("scorers")):
        _, _, bare_name = str(scorer.get("name", "")).rpartition("/")
        names_model = part_of(scorer, "options").get("model")
        if bare_name.startswith("model_graded") and not names_model:
            return {"graders": f"the model itself, {about.get('model')}"}
    return {}


def _inspect_fault(row: Json) -> str:
    """Return why the last call of a model failed: a time-out in it leaves the sample scored."""
    calls = [
        event
        for event in mappings_in(row.get("events"))
        if event.get("event") == "model"
    ]
    error = calls[-1].get("error") if calls else None
    return f"the last call of a model failed: {error}" if error else ""


def _inspect_values(part: Part, row: Json) -> Mapping[str, object]:
    """Return the tokens of the model under test, without those of models that grade."""
    model = str(part_of(part.head, "eval").get("model", ""))
    usage = part_of(part_of(row, "model_usage"), model)
    return {"sent": usage.get("input_tokens"), "received": usage.get("output_tokens")}


_REDUCERS = re.compile(
    r"mean(_score)?|max(_score)?|median(_score)?|mode|(at_least|pass_at)_\d+"
)


def _inspect_stated(part: Part) -> list[StatedFigure]:
    """Return the figures of each score by one reducer: that of the headline, else the first."""
    results = part_of(part.head, "results")
    headline_reducer = part_of(results, "headline").get("reducer")
    figures = []
    seen = set[tuple[str, str]]()
    for score in mappings_in(results.get("scores")):
        name, scorer = str(score.get("name", "")), str(score.get("scorer", ""))
        if headline_reducer and score.get("reducer") not in (None, headline_reducer):
            continue
        if (scorer, name) in seen:
            continue
        seen.add((scorer, name))
        reducer = str(score.get("reducer") or "mean").removesuffix("_score")
        for metric, stated in part_of(score, "metrics").items():
            value = number(part_of({"stated": stated}, "stated").get("value"))
            if value is None or metric in ("stderr", "std", "var", "bootstrap_stderr"):
                continue
            is_known = metric in ("accuracy", "mean") and _REDUCERS.fullmatch(reducer)
            for spelling in (f"{scorer}/{name}", name):
                figures.append(
                    StatedFigure(
                        score=spelling,
                        text=f"{metric} of {name}",
                        value=value,
                        aggregation="mean" if is_known else metric,
                        reducer=reducer,
                    )
                )
    return figures


# lm-evaluation-harness

_HARNESS_FILE = re.compile(
    r"(samples|results)_(?:(?P<task>.+)_)?(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)"
)
_NO_METRIC = frozenset(
    {
        "doc_id",
        "doc",
        "target",
        "arguments",
        "resps",
        "filtered_resps",
        "filter",
        "metrics",
    }
)
"""The keys of a row that are no metric, with those that end in ``_hash``."""


def _harness_parts(documents: Sequence[ResultFile], read: ReadBeside) -> list[Part]:
    folder = documents[0].path.parent
    times = {_named_by_file(document.path, "time") for document in documents}
    if len(times) > 1:
        raise UsageError(
            f"{folder}: holds {len(times)} runs; name one samples_….jsonl of them"
        )
    time = times.pop()
    head: Json = {}
    for path in sorted(folder.glob(f"results_*{time}*.json")) if time else ():
        head = read(path).head
    tasks_of_results = list(part_of(head, "configs") or part_of(head, "versions"))
    parts = []
    for document in documents:
        task = _named_by_file(document.path, "task")
        if not task and len(tasks_of_results) == 1:
            task = tasks_of_results[0]
        if not task and not time:
            task = "" if len(documents) == 1 else document.path.stem
        parts.append(
            Part(
                path=document.path,
                rows=document.rows or (),
                head=head,
                task=task or "samples",
            )
        )
    return parts


def _named_by_file(path: Path, name: str) -> str:
    match = _HARNESS_FILE.match(path.name)
    return (match[name] or "").strip(".") if match else ""


def _harness_scores(row: Json) -> RawScores:
    """Return the metrics by name: as the harness writes them, with the filter if any."""
    metrics = row.get("metrics")  # since 0.4.5
    if not isinstance(metrics, list):
        metrics = [
            key for key in row if key not in _NO_METRIC and not key.endswith("_hash")
        ]
    chosen = str(row.get("filter", "none"))
    suffix = "" if chosen == "none" else f",{chosen}"
    return {f"{metric}{suffix}": row.get(metric) for metric in metrics}


def _harness_planned(part: Part) -> int:
    counts = part_of(part_of(part.head, "n-samples"), part.task)
    return int(counts.get("effective") or 0)


def _harness_config(part: Part) -> Json:
    return part_of(part_of(part.head, "configs"), part.task)


_HARNESS_SETTINGS = (
    *("doc_to_text", "doc_to_target", "doc_to_choice", "description", "fewshot_config"),
    *(
        "generation_kwargs",
        "filter_list",
        "metric_list",
        "repeats",
        "process_docs",
        "output_type",
    ),
)
"""What of a task's configuration changes its scores."""


def _harness_measured(part: Part) -> Mapping[str, object]:
    head, config = part.head, _harness_config(part)
    measured: dict[str, object] = {
        "task version": part_of(head, "versions").get(part.task),
        "shots": part_of(head, "n-shot").get(part.task),
        "system instruction": head.get("system_instruction"),
        "data": [
            config.get(key) for key in ("dataset_path", "dataset_name", "test_split")
        ],
    }
    measured["arguments"] = {
        key: config[key] for key in _HARNESS_SETTINGS if key in config
    }
    return measured if head else {}


def _harness_less(part: Part) -> Mapping[str, bool | None]:
    """Say which way is better where a figure is the mean of its samples.

    The direction is that of the figure: of lambada's perplexity the samples hold log-likelihoods.
    """
    up = part_of(part_of(part.head, "higher_is_better"), part.task)
    means = {name for name, how in _harness_aggregations(part).items() if how == "mean"}
    return {
        name: not better
        for name, better in up.items()
        if name in means and isinstance(better, bool)
    }


def _harness_aggregations(part: Part) -> dict[str, str]:
    metrics = mappings_in(_harness_config(part).get("metric_list"))
    return {
        str(one.get("metric")): str(one.get("aggregation", "mean")) for one in metrics
    }


def _harness_stated(part: Part) -> list[StatedFigure]:
    aggregations = _harness_aggregations(part)
    figures = []
    for key, value in part_of(part_of(part.head, "results"), part.task).items():
        metric, comma, chosen = key.partition(",")
        figure = number(value)
        if not comma or metric.endswith("_stderr") or figure is None:
            continue
        name = metric if chosen == "none" else key
        figures.append(
            StatedFigure(
                score=name,
                text=key,
                value=figure,
                aggregation=aggregations.get(
                    metric, "an aggregation that results do not name"
                ),
            )
        )
    return figures


def _harness_group(part: Part) -> str:
    for group, tasks in part_of(part.head, "group_subtasks").items():
        if isinstance(tasks, list) and part.task in tasks:
            return str(group)
    return ""


# promptfoo

_BY_ERROR = 2
"""The ``failureReason`` of a test that could not be run."""
_UNREADABLE_GRADER = (
    "output did not match expected format",
    "could not extract json",
    "no json found",
    "failed to parse",
    "model returned no",
    "api error",
)
"""How reasons begin where promptfoo's grader gave no grade, and set no mark of it."""


def _promptfoo_fault(row: Json) -> str:
    graded = part_of(row, "gradingResult")
    if row.get("failureReason") == _BY_ERROR or not graded:
        return str(row.get("error") or "not graded")
    for result in (graded, *mappings_in(graded.get("componentResults"))):
        reason = str(result.get("reason") or "")
        is_marked = part_of(result, "metadata").get("graderError")
        looks_broken = reason.casefold().lstrip().startswith(_UNREADABLE_GRADER)
        if is_marked or (looks_broken and result.get("pass") is not True):
            return f"the grader failed: {reason}"
    return ""


def _promptfoo_slices(row: Json) -> Json:
    test = part_of(row, "testCase")
    own = part_of(row, "metadata") or part_of(test, "metadata")
    variables = part_of(row, "vars") or part_of(test, "vars")
    return {**variables, **own, "test": test.get("description") or ""}


def _promptfoo_values(part: Part, row: Json) -> Mapping[str, object]:
    asserted = mappings_in(part_of(row, "testCase").get("assert"))
    values = [one.get("value") for one in asserted]
    return {"expected": values if values else ""}


def _promptfoo_stated(part: Part) -> list[StatedFigure]:
    """Return the count of right answers, which is over all providers, where there is one."""
    results = part_of(part.head, "results")
    providers = {
        canonical(row.get("provider")) for row in mappings_in(results.get("results"))
    }
    successes = number(part_of(results, "stats").get("successes"))
    if successes is None or len(providers) > 1:
        return []
    return [
        StatedFigure(
            score="pass", text="stats.successes", value=successes, aggregation="count"
        )
    ]


# deepeval

_SIDES_OF_A_CHAT = ("user", "assistant")


def _deepeval_scores(row: Json) -> RawScores:
    """Return the metrics by name, and ``success`` where each of them gave a score."""
    metrics = mappings_in(row.get("metricsData"))
    scores: dict[str, object] = {
        str(one.get("name")): one.get("score") for one in metrics
    }
    is_whole = bool(metrics) and not _deepeval_faults(row)
    return {"success": row.get("success") if is_whole else None, **scores}


def _deepeval_faults(row: Json) -> Mapping[str, str]:
    faults: dict[str, str] = {}
    for metric in mappings_in(row.get("metricsData")):
        name = str(metric.get("name"))
        if metric.get("error"):
            faults[name] = str(metric["error"])
        elif metric.get("skipped"):
            faults[name] = "skipped"
        elif number(metric.get("score")) is None:
            faults[name] = "the metric gave no score"
    if faults:
        faults["success"] = "; ".join(
            f"{name}: {fault}" for name, fault in faults.items()
        )
    elif not row.get("metricsData"):
        faults["success"] = "no metric was taken"
    return faults


def _deepeval_values(part: Part, row: Json) -> Mapping[str, object]:
    """Return what each side of a conversation said, and no id where the tool counts the cases."""
    texts: dict[str, object] = {}
    turns = mappings_in(row.get("turns"))
    if turns:
        spoken = defaultdict[str, list[str]](list)
        for turn in turns:
            spoken[str(turn.get("role"))].append(str(turn.get("content") or ""))
        user, assistant = ("\n".join(spoken[side]) for side in _SIDES_OF_A_CHAT)
        texts["question"] = row.get("input") or row.get("scenario") or user
        texts["answer"] = row.get("actualOutput") or assistant
        texts["content"] = digest([texts["question"], user])
    name = str(row.get("name") or "")
    if re.fullmatch(r"(conversational_)?test_case_\d+", name):
        texts["id"] = ""
    return texts


def _deepeval_less(part: Part) -> Mapping[str, bool | None]:
    """Say which way is better by the verdicts above and below each threshold."""
    rows = [row for row in part.rows if isinstance(row, Mapping)]
    found = defaultdict[str, set[bool]](set)
    for metric in (
        metric for row in rows for metric in mappings_in(row.get("metricsData"))
    ):
        score, bar = number(metric.get("score")), number(metric.get("threshold"))
        passed = metric.get("success")
        if isinstance(passed, bool) and score is not None and bar not in (None, score):
            found[str(metric.get("name"))].add((score < bar) == passed)
    return {
        name: sides.pop() if len(sides) == 1 else None for name, sides in found.items()
    }


def _deepeval_stated(part: Part) -> list[StatedFigure]:
    data = part_of(part.head, "testRunData") or part.head
    figures = []
    passed = number(data.get("testPassed"))
    if passed is not None:
        figures.append(
            StatedFigure(
                score="success", text="testPassed", value=passed, aggregation="count"
            )
        )
    for metric in mappings_in(data.get("metricsScores")):
        scores = [number(score) for score in metric.get("scores") or ()]
        known = [score for score in scores if score is not None]
        if known:
            name = str(metric.get("metric"))
            mean = sum(known) / len(known)
            figures.append(
                StatedFigure(score=name, text=f"metricsScores of {name}", value=mean)
            )
    return figures


# MLflow


def _mlflow_trace_scores(row: Json) -> RawScores:
    """Return the feedbacks of the last run that gave any, by name; the mean of several."""
    info = part_of(row, "info")
    return _feedbacks(mappings_in(info.get("assessments")))


def _feedbacks(assessments: Sequence[Json]) -> RawScores:
    valid = [
        one
        for one in assessments
        if one.get("valid") is not False and "feedback" in one
    ]
    runs = [
        part_of(one, "metadata").get("mlflow.assessment.sourceRunId") for one in valid
    ]
    values = defaultdict[str, list[object]](list)
    for one, run in zip(valid, runs, strict=True):
        if run == runs[-1]:
            values[str(one.get("assessment_name"))].append(
                part_of(one, "feedback").get("value")
            )
    return {name: _mean_or_only(given) for name, given in values.items()}


def _mean_or_only(values: Sequence[object]) -> object:
    if len(values) == 1:
        return values[0]
    numbers = [number(value) for value in values]
    known = [value for value in numbers if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _mlflow_frame_scores(row: Json) -> RawScores:
    """Return the columns ``NAME/value``, but for those that hold expectations."""
    golds = field_path("assessments[assessment_name].expectation.value").find(row)
    names_of_golds = {name for name, value in golds if value is not None}
    scores = {}
    for name, value in field_path("*/value").find(row):
        if name not in names_of_golds:
            scores[name] = value
    return scores


# azure-ai-evaluation


def _azure_stated(part: Part) -> list[StatedFigure]:
    figures = []
    for name, value in part_of(part.head, "metrics").items():
        figure = number(value)
        if figure is not None:
            figures.append(
                StatedFigure(score=name, text=f"metrics of {name}", value=figure)
            )
    return figures


# HELM

_ItemOfHelm = tuple[object, object, object]


def _helm_parts(documents: Sequence[ResultFile], read: ReadBeside) -> list[Part]:
    """Put what was asked and answered beside its scores, if HELM's file of it is there.

    It alone says which calls failed: in the file of scores their empty answers are wrong.
    """
    (document,) = documents
    head: Json = {}
    for path in sorted(document.path.parent.glob("scenario_state.json*"))[:1]:
        head = read(path).head
    states: dict[_ItemOfHelm, Json] = {}
    for state in mappings_in(head.get("request_states")):
        instance = part_of(state, "instance")
        item = _helm_item(instance, instance.get("id"), state)
        if item not in states or part_of(state, "result").get("error"):
            states[item] = state
    rows = []
    for row in document.rows or ():
        item = _helm_item(row, row.get("instance_id"), row)
        rows.append({**row, "state": states.get(item)})
    return [Part(path=document.path, rows=rows, head=head)]


def _helm_item(instance: Json, id_: object, trial: Json) -> _ItemOfHelm:
    """Return what names an item in both files."""
    perturbation = part_of(instance, "perturbation").get("name")
    return id_, trial.get("train_trial_index"), perturbation


NO_FUNCTIONS = FormFunctions()
FUNCTIONS: Mapping[str, FormFunctions] = {
    "inspect": FormFunctions(
        fault=_inspect_fault,
        values=_inspect_values,
        main=_inspect_main,
        planned=_inspect_planned,
        measured=_inspect_measured,
        stated=_inspect_stated,
    ),
    "lm_eval": FormFunctions(
        parts=_harness_parts,
        scores=_harness_scores,
        planned=_harness_planned,
        measured=_harness_measured,
        stated=_harness_stated,
        less=_harness_less,
        group=_harness_group,
    ),
    "promptfoo": FormFunctions(
        fault=_promptfoo_fault,
        slices=_promptfoo_slices,
        values=_promptfoo_values,
        stated=_promptfoo_stated,
    ),
    "deepeval": FormFunctions(
        scores=_deepeval_scores,
        faults=_deepeval_faults,
        values=_deepeval_values,
        stated=_deepeval_stated,
        less=_deepeval_less,
    ),
    "mlflow_trace": FormFunctions(scores=_mlflow_trace_scores),
    "mlflow_frame": FormFunctions(scores=_mlflow_frame_scores),
    "azure": FormFunctions(stated=_azure_stated),
    "helm": FormFunctions(parts=_helm_parts),
}
"""By the word in the row of a form."""


def functions_of(name: str) -> FormFunctions:
    """Return the functions of a form; none where its paths are enough."""
    return FUNCTIONS.get(name, NO_FUNCTIONS)


def measured_text(value: object) -> str:
    """Return what is said of how a task was measured as one text; empty for nothing."""
    if value is None or value in ("", [], {}):
        return ""
    return value if isinstance(value, str) else canonical(value)
