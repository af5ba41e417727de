"""The labelled set that ``qagate label`` writes, in the folder of the data set that it is about.

The set of ``reg`` is the folder ``reg/reg_labels``: a ``dataset.yaml`` of kind ``judged`` and a
file ``LANGUAGE.jsonl`` with a row for each answer. It has no tests. A run over ``reg`` finds it
there, and its labels measure the judge.

A row has the columns of any labelled set, and says how its answer was drawn: ``drawn_grade`` is
what the judge said of it then (a grade, or a band of ratings), ``drawn_share`` the share of that
among all graded answers, ``drawn_from`` the runs that gave the answer. ``raters`` are the names of
those whose labels stand in ``label_1``, ``label_2`` and so on.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qagate.cases.config import DEFAULT, PLACE, load_dataset
from qagate.cases.dataset import DATASET_FILE, Dataset, Slice
from qagate.cases.label_columns import agreed
from qagate.cases.labels import DRAWN_FROM, DRAWN_GRADE, DRAWN_SHARE
from qagate.cases.loading import load_cases
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import FACT
from qagate.evaluators.output import write_texts
from qagate.evaluators.reading import (
    load_settings,
    parse_json,
    problem,
    read_text,
)
from qagate.reports.extras.label.drawing import LabelAnswer
from qagate.reports.judge.labels import LabelSet

HEAD = """\
# Written by `qagate label`: answers that people labelled. They measure the judge of {name}.
"""
WAIVED = (
    "check: {waive: {gates: these labels measure a judge, "
    "balance: drawn by the grades of a judge}}\n"
)
"""What `qagate check` would say of a set that is no test, and was drawn."""
FLOOR_OF_GRADES = "{agreement: 0.9}"
FLOOR_OF_RATINGS = "{pass_agreement: 0.9}"
"""Most ratings are drawn near the bar, where correlations say little: sides of the bar count."""
COPIED_KEYS = (
    "rubric",
    "rubric_language",
    "function_description",
    "choice_scores",
    "pass_bar",
)
"""The settings of a data set that its labelled set has to share, or its judge would be another."""
LabelRow = dict[str, object]
"""A row of the file, by column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplesLabels:
    """What people said of one answer."""

    answer: LabelAnswer
    runs: tuple[str, ...]
    """The ids of the runs that gave this answer."""
    share: float
    """The share of its stratum among all graded answers of the slice, 0 to 1."""
    by_rater: Mapping[str, str]
    """Grade or rating, by who gave it."""


def folder_of_labels(dataset: Dataset) -> Path:
    """Return where the labels of a data set are, unless another place is given."""
    return dataset.folder / f"{dataset.name}_labels"


def file_of_labels(folder: Path, language: str) -> Path:
    """Return the file of one language's labels."""
    return folder / f"{language}.jsonl"


def load_label_rows(path: Path) -> list[LabelRow]:
    """Return the rows of a file of labels; none where there is no file. Raises UsageError."""
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise problem(path, number, f"not JSON: {error}; mend the line") from None
        if not isinstance(row, dict):
            raise problem(path, number, "no row of labels; take the line out")
        rows.append(row)
    return rows


def labels_in(rows: Sequence[LabelRow]) -> dict[str, str]:
    """Return the label of each row with an id and a label."""
    return {
        str(row["id"]): str(row["label"])
        for row in rows
        if "id" in row and row.get("label") not in (None, "")
    }


def with_labels(
    rows: Sequence[LabelRow], labels: Sequence[PeoplesLabels]
) -> list[LabelRow]:
    """Return the rows of a file with these labels: new ones, and new raters of those it has."""
    raters = _raters_in(rows)
    for labelled in labels:
        raters += [name for name in labelled.by_rater if name not in raters]
    by_id: dict[str, LabelRow] = {}
    untouched = []
    for row in rows:
        if "id" in row:
            by_id[str(row["id"])] = row
        else:
            untouched.append(row)  # somebody's own
    for labelled in labels:
        row_id = labelled.answer.row_id
        earlier = by_id.get(row_id, {})
        by_rater = {**_by_rater(earlier), **labelled.by_rater}
        by_id[row_id] = _row(labelled, by_rater, raters)
    return [*untouched, *by_id.values()]


def _raters_in(rows: Sequence[LabelRow]) -> list[str]:
    raters: list[str] = []
    for row in rows:
        raters += [name for name in _names(row) if name not in raters]
    return raters


def _names(row: LabelRow) -> list[str]:
    names = row.get("raters")
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str)]


def _by_rater(row: LabelRow) -> dict[str, str]:
    """Return what each rater said in a row of the file."""
    labels = {}
    for number, name in enumerate(_names(row), start=1):
        label = row.get(f"label_{number}")
        if isinstance(label, str) and label:
            labels[name] = label
    return labels


def _row(
    labelled: PeoplesLabels, by_rater: Mapping[str, str], raters: Sequence[str]
) -> LabelRow:
    answer = labelled.answer
    record = answer.record
    golds = record.golds or (record.expected,)
    row: LabelRow = {"id": answer.row_id, "question": record.question}
    if record.context:
        row["context"] = record.context
    row["answer"] = golds[0]
    if len(golds) > 1:
        row["aliases"] = list(golds[1:])
    row["predicted_answer"] = record.answer
    row["label"] = agreed_label(list(by_rater.values()))
    for number, name in enumerate(raters, start=1):
        if name in by_rater:
            row[f"label_{number}"] = by_rater[name]
    row["raters"] = list(raters)
    row["label_source"] = "people"
    row["item"] = f"{record.dataset}-{record.language}-{record.id}"
    row[DRAWN_GRADE] = answer.stratum
    row[DRAWN_SHARE] = round(labelled.share, 6)
    row[DRAWN_FROM] = " ".join(labelled.runs)
    for name in {FACT, answer.slice_.cluster} - {""}:
        if name in record.metadata:
            row[name] = record.metadata[name]
    return row


def agreed_label(labels: Sequence[str]) -> str:
    """Return what most people say, the mean of ratings, or TIED."""
    if all(label.isdigit() for label in labels):
        return str(round(float(agreed([float(label) for label in labels]))))
    return str(agreed(labels))


def write_labels(
    folder: Path, dataset: Dataset, slice_: Slice, rows: Sequence[LabelRow]
) -> Path:
    """Write the labels of a slice and list its language; return the file.

    Raises UsageError where the labels would not measure the judge of the slice.
    """
    path = file_of_labels(folder, slice_.language)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    declaration = folder / DATASET_FILE
    texts = [(path, "".join(f"{line}\n" for line in lines))]
    declared = _declaration(declaration, dataset, slice_)
    if declared:
        texts.append((declaration, declared))
    write_texts(texts, to_commit=True)
    _check_measures(declaration, slice_)
    return path


def _declaration(path: Path, dataset: Dataset, slice_: Slice) -> str:
    """Return the text of ``dataset.yaml`` with this language; empty where it has it already."""
    entry = f"  {slice_.language}: {_language_entry(path.parent, dataset, slice_)}\n"
    if not path.exists():
        floor = FLOOR_OF_RATINGS if slice_.kind.rated else FLOOR_OF_GRADES
        text = f"{HEAD.format(name=dataset.name)}kind: judged\nfloor: {floor}\n{WAIVED}"
        if slice_.cluster:
            text += f"cluster: {slice_.cluster}\n"
        return f"{text}languages:\n{entry}"
    text = read_text(path)
    if slice_.language in load_settings(path).part("languages").values:
        return ""
    if not text.startswith(HEAD.partition(":")[0]):
        raise UsageError(
            f"{path}: not written by `qagate label`; list the language there yourself "
            f"({entry.strip()}), or give another folder (--to)"
        )
    return text.rstrip("\n") + "\n" + entry


def _language_entry(folder: Path, dataset: Dataset, slice_: Slice) -> str:
    """Return the settings of a language, as one line of YAML."""
    source = load_settings(dataset.folder / DATASET_FILE)
    languages = source.part("languages")
    own = languages.part(slice_.language)
    if slice_.language not in languages.values:
        own = languages.part(DEFAULT)
    settings: dict[str, object] = {"file": file_of_labels(folder, slice_.language).name}
    for key in COPIED_KEYS:
        for place in (own, source):
            if key in place.values:
                settings[key] = place.values[key]
                break
    if "rubric_language" not in settings and slice_.rubric is not None:
        settings["rubric_language"] = slice_.rubric.language
    settings["rubric"] = _rubric_from(folder, dataset, str(settings["rubric"]))
    entries = [
        f"{key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in settings.items()
    ]
    return f"{{{', '.join(entries)}}}"


def _rubric_from(folder: Path, dataset: Dataset, name: str) -> str:
    """Return the rubric that a data set names, as seen from the folder of its labels."""
    is_path = "/" in name or Path(name).suffix in (".yaml", ".yml", ".txt")
    if not is_path:
        if not any(dataset.folder.glob(f"{name}.*.yaml")):
            return name  # a bundled one
        name = f"{name}.{PLACE}.yaml"
    return os.path.relpath(dataset.folder / name, folder)


def _check_measures(declaration: Path, slice_: Slice) -> None:
    """Raise UsageError if the labels do not say how the judge of a slice errs."""
    labels = load_dataset(declaration).slices[slice_.language]
    load_cases(labels)
    if LabelSet(slice_=labels, records=()).measures(slice_):
        return
    raise UsageError(
        f"{declaration}: its labels in {slice_.language} are kept, but they do not measure the "
        f"judge of {slice_.name}: rubric or pass bar differ; make {', '.join(COPIED_KEYS)} "
        "there the same as in the data set"
    )


def find_datasets(names: Collection[str], files: Sequence[Path]) -> dict[str, Dataset]:
    """Return the data sets of these names that ``dataset.yaml`` files declare."""
    datasets = {}
    for file in files:
        name = file.resolve().parent.name
        if name in names and name not in datasets:
            datasets[name] = load_dataset(file)
    return datasets
