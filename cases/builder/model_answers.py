"""What each model answered to the items of a yes/no dataset, and how well, with intervals.

Answers come from a run's records or a file of predictions. Both are read strictly: an id that the
data does not have, a repeated one, or one that is missing is an error that names its row.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.dataset import Slice
from cases.loading import given_id, load_cases
from cases.tables import Table, TableRow, read_table
from evaluators.core import NO, UNANSWERED, YES, Case, UsageError
from evaluators.kinds import YES_NO, Cluster
from evaluators.reading import parse_json, problem, read_text
from evaluators.replies import Invalid, read_yes_no
from evaluators.statistics.count_table import CountTable, count_patterns
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.metrics import ANSWERS
from evaluators.statistics.sample import Sample
from evaluators.text import shown

RUN, RECORDS = "run.json", "records.jsonl"
NEEDED = ("id", "grade", "label", "outcome")
LENGTHS = (300, 600)
"""Ends of the classes of length, in characters of the passage."""

Answers = Mapping[str, str | None]
"""YES, NO or UNANSWERED by item; None where a call failed, which is neither right nor wrong."""
Facet = Callable[[Case], str]
"""Puts an item into one of a few classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNoData:
    """The items to be answered, by id, in their order, and the language's two words."""

    path: Path
    language: str
    cases: Mapping[str, Case]
    words: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """One model with what it answered."""

    name: str
    answers: Answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """One model's measures, and its accuracy (``kinds``) by facet and by the facet's value.

    ``ungraded`` items ended in an error; they are in no figure.
    """

    name: str
    measures: Mapping[str, Estimate]
    kinds: Mapping[str, Mapping[str, Estimate]]
    ungraded: int


def read_data(path: Path, language: str, words: Mapping[str, str]) -> YesNoData:
    """Return a dataset's items. ``words`` maps YES and NO to the language's.

    Raises UsageError naming file, row and column for anything that is not as it must be.
    """
    slice_ = Slice(
        dataset="boolq", language=language, kind=YES_NO, path=path, yes=words[YES], no=words[NO]
    )
    cases = {case.id: case for case in load_cases(slice_)}
    return YesNoData(path=path, language=language, cases=cases, words=words)


def read_models(
    data: YesNoData,
    runs: Sequence[tuple[str, Path]],
    predictions: Sequence[tuple[str, Path]],
    *,
    allow_missing: bool,
) -> list[ModelAnswers]:
    """Return all models in the order given. Raises UsageError where two have one name.

    Where ``allow_missing``, items that a model has no answer to count as unanswered.
    """
    names = Counter(name for name, _ in (*runs, *predictions))
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"build: two models are named {shown(twice)}; give each a name of its own")
    models = []
    given = [(_read_run, *one) for one in runs] + [(_read_predictions, *one) for one in predictions]
    for read, name, path in given:
        file, answers = read(path, data)
        missing = [id_ for id_ in data.cases if id_ not in answers]
        if missing and (not allow_missing or not answers):
            raise UsageError(
                f"{file}: {len(missing)} of {len(data.cases)} items of {data.path} have no answer, "
                f"the first is {shown(missing[0])}; give --allow-missing to count them as "
                "unanswered"
            )
        whole = {id_: answers.get(id_, UNANSWERED) for id_ in data.cases}  # in the data's order
        models.append(ModelAnswers(name=name, answers=whole))
    return models


def _read_run(path: Path, data: YesNoData) -> tuple[Path, Answers]:
    """Return the answers of a run, given its report folder, or a file in it.

    Records of other languages and datasets are passed over. Raises UsageError naming file and
    line for a record that is not of this data.
    """
    folder = path.parent if path.name == RUN else path
    file = folder / RECORDS if folder.is_dir() else path
    rows = [(line, row) for line, row in _records(file) if row.get("language") == data.language]
    ours = {row.get("dataset") for _, row in rows if row.get("id") in data.cases}
    answers: dict[str, str | None] = {}
    for line, row in rows:
        if row.get("dataset") not in ours:
            continue
        id_, outcome, grade = str(row["id"]), row["outcome"], row["grade"]
        case = data.cases.get(id_)
        if case is None:
            raise problem(file, line, f"{shown(id_)} is no id of {data.path}")
        if row["label"] != case.label or row.get("digest", case.digest) != case.digest:
            what = f"{shown(id_)} was another item in that run; give a run over {data.path}"
            raise problem(file, line, what)
        if id_ in answers:
            what = f"{shown(id_)} has a record before; give a run without --repeats"
            raise problem(file, line, what)
        failed = outcome in ("error", "missing")
        if not failed and (
            outcome not in ("passed", "failed") or grade not in (YES, NO, UNANSWERED)
        ):
            what = f"outcome {outcome!r:.40} with grade {grade!r:.40} is none of a yes/no run"
            raise problem(file, line, what)
        answers[id_] = None if failed else str(grade)
    return file, answers


def _records(file: Path) -> list[tuple[int, dict[str, object]]]:
    rows = []
    for line, text in enumerate(read_text(file).split("\n"), 1):
        if not text.strip():
            continue
        try:
            row = parse_json(text)
        except ValueError as error:
            raise problem(file, line, f"{error}; give the records of a whole run") from None
        if (
            not isinstance(row, dict)
            or not all(key in row for key in NEEDED)
            or not all(isinstance(row.get(key, ""), str) for key in ("id", "dataset", "language"))
        ):
            what = f"not a record ({', '.join(NEEDED)}); give a report folder or its {RECORDS}"
            raise problem(file, line, what)
        rows.append((line, row))
    return rows


def _read_predictions(path: Path, data: YesNoData) -> tuple[Path, Answers]:
    """Return the answers of a CSV, JSON or JSONL file with the columns ``id`` and ``answer``.

    An answer is read by the rule that reads a model's; null and an empty one are unanswered.
    Raises UsageError naming file and row for an id that is unknown or repeated, and where no
    answer at all can be read.
    """
    table = read_table(path)
    answers: dict[str, str | None] = {}
    for record in table.records:
        id_ = given_id(_text(table, record, "id"))
        if id_ not in data.cases:
            raise table.problem(record, "id", f"{shown(id_)} is no id of {data.path}")
        if id_ in answers:
            raise table.problem(record, "id", f"{shown(id_)} stands twice; keep one")
        answers[id_] = _answer(table, record, data.words)
    if answers and set(answers.values()) == {UNANSWERED}:
        first = table.records[0]
        what = f"no answer is read as {data.words[YES]} or {data.words[NO]}; write these words"
        raise table.problem(first, "answer", what)
    return path, answers


def _text(table: Table, record: TableRow, column: str) -> str:
    value = record.values.get(column)
    if not isinstance(value, str) or not value.strip():
        raise table.problem(record, column, f"text is needed, not {shown(value)}")
    return value.strip()


def _answer(table: Table, record: TableRow, words: Mapping[str, str]) -> str:
    if "answer" not in record.values:
        raise table.problem(record, "answer", "missing; give id and answer")
    value = record.values["answer"]
    if isinstance(value, bool):
        return YES if value else NO
    if value is None or value == "":
        return UNANSWERED
    found = read_yes_no(_text(table, record, "answer"), "stop", (words[YES],), (words[NO],))
    return UNANSWERED if isinstance(found, Invalid) else found


def facets_of(type_of: Callable[[str], str]) -> dict[str, Facet]:
    """Return the classes to look at: source, length of the passage, and type of the question."""
    return {
        "source": lambda case: str(case.metadata.get("source") or "not stated"),
        "length": lambda case: _length(len(case.context)),
        "question_type": lambda case: type_of(case.question),
    }


def _length(count: int) -> str:
    low = 0
    for end in LENGTHS:
        if count <= end:
            return f"{low} to {end} characters"
        low = end + 1
    return f"{low} characters and more"


def score_models(
    data: YesNoData, models: Sequence[ModelAnswers], facets: Mapping[str, Facet]
) -> list[ModelScores]:
    """Return the scores of the models, in their order."""
    classes: dict[str, dict[str, list[str]]] = {}
    for name, facet in facets.items():
        found: dict[str, list[str]] = defaultdict(list)
        for id_, case in data.cases.items():
            found[facet(case)].append(id_)
        classes[name] = dict(sorted(found.items()))
    table = []
    for model in models:
        answers = {
            id_: (data.cases[id_], answer)
            for id_, answer in model.answers.items()
            if answer is not None
        }
        kinds = {
            name: {
                value: scores(answers[id_] for id_ in ids if id_ in answers)["accuracy"]
                for value, ids in values.items()
            }
            for name, values in classes.items()
        }
        table.append(
            ModelScores(
                name=model.name,
                measures=scores(answers.values()),
                kinds=kinds,
                ungraded=len(model.answers) - len(answers),
            )
        )
    return table


def scores(answers: Iterable[tuple[Case, str]]) -> dict[str, Estimate]:
    """Return each measure of cases with label YES or NO and their answer (or UNANSWERED).

    An unanswered item is wrong: a false negative where the gold is yes, no prediction where it is
    no. The questions on one passage count together.
    """
    clusters: dict[Cluster, list[tuple[int, int]]] = defaultdict(list)
    for case, answer in answers:
        cell = (YES, NO).index(str(case.label)), ANSWERS.index(answer)
        clusters[YES_NO.cluster_of(case)].append(cell)
    counts, items = count_patterns(clusters.values(), (2, len(ANSWERS)))
    return Sample(
        kind=YES_NO,
        patterns=CountTable(counts=counts, golds=(YES, NO), outcomes=ANSWERS),
        items=items,
        clustered=any(len(cells) > 1 for cells in clusters.values()),
    ).estimates()
