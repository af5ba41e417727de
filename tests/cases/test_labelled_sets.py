"""Public sets that people labelled: from each publisher's columns to the one form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.config import load_dataset
from cases.download.labelled_sets import (
    LabelledSet,
    bring_to_form,
    labelled_rows,
    load_labelled_sets,
)
from cases.download.public_files import check_address
from cases.labels import LabelReading, Scale
from cases.loading import load_cases
from cases.tables import read_csv, read_json
from evaluators.core import UsageError
from tests.support.downloading import BEM, EVOUNA, MOHLER, NQ301

SETS = load_labelled_sets()
JUDGED = Path(__file__).parents[2] / "cases" / "judges"
GRADES = load_dataset(JUDGED / "dataset.yaml").slices["en"]
RATINGS = load_dataset(JUDGED / "judges_eba" / "dataset.yaml").slices["en"]
SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


def put(folder: Path, **bodies: bytes) -> Path:
    """Write official files by the name of their set; ``golds`` is that of nq301."""
    for name, body in bodies.items():
        one = SETS["nq301" if name == "golds" else name.replace("_", "-")]
        file = one.golds if name == "golds" and one.golds else one
        (folder / file.file).write_bytes(body)
    return folder


def formed(name: str, folder: Path) -> list[dict[str, object]]:
    bring_to_form(SETS[name], folder)
    text = SETS[name].path(folder).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_table_says_of_each_set_where_it_is_and_whose() -> None:
    """Addresses are https and pinned to a commit, files do not collide, licences are named."""
    files = [file for one in SETS.values() for file in (one, one.golds) if file]
    assert set(SETS) == {"evouna-nq", "evouna-tq", "nq301", "mohler"}
    assert len({file.file for file in files}) == len(files)
    for file in files:
        check_address(file.url)
        assert file.url.startswith("https://")
        assert any(len(part) == 40 for part in file.url.split("/"))
        assert file.licence
        assert file.hint
    for one in SETS.values():
        columns = {one.question, *one.answers, *one.answers.values(), *one.raters}
        assert {*one.answers.values(), *one.raters} <= columns
        Scale.parse(one.scale or "0:1")


def test_each_system_of_evouna_is_an_answer(tmp_path: Path) -> None:
    """Golds are split, improper questions and what has no answer or label are counted."""
    rows = formed("evouna-nq", put(tmp_path, evouna_nq=EVOUNA))
    assert [row["predicted_answer"] for row in rows] == ["Oslo", "It is Bergen.", "Kristiania"]
    assert [row["label"] for row in rows] == ["true", "false", "true"]
    assert rows[0]["gold"] == ["Oslo", "Kristiania"]
    assert rows[0]["label_source"] == "people (evouna-nq)"
    found = bring_to_form(SETS["evouna-nq"], tmp_path)
    assert found.left_out == {"no answer": 1, "no label": 1, "improper true": 5}
    said = "3 answers to 1 question; left out: 1 for no answer, 1 for no label, 5 for improper true"
    assert found.summary == said


def test_golds_of_nq301_come_from_the_other_file(tmp_path: Path) -> None:
    """They are joined by the question; quotes are text in one file and not in the other."""
    rows = formed("nq301", put(tmp_path, nq301=NQ301, golds=BEM))
    assert [row["predicted_answer"] for row in rows] == ['"Lone" Pine', "the moon", "in Ohio"]
    assert rows[0]["gold"] == ["Lone Pine, California", "California"]
    assert [(row["label"], row["label_1"], row["label_2"]) for row in rows] == [
        ("Yes", "Yes", "No"), ("No", "No", "No"), ("No", "No", "")]  # fmt: skip
    assert bring_to_form(SETS["nq301"], tmp_path).left_out == {"no gold": 1}


def test_ratings_of_mohler_keep_their_scale(tmp_path: Path) -> None:
    """Two people's scores and their mean; answers that a spreadsheet broke are left out."""
    rows = formed("mohler", put(tmp_path, mohler=MOHLER))
    assert [(row["label"], row["label_1"], row["label_2"]) for row in rows] == [("3.5", "4", "3")]
    assert bring_to_form(SETS["mohler"], tmp_path).left_out == {"student_answer #NAME?": 1}
    reading = LabelReading(scale=Scale.parse(SETS["mohler"].scale), language="en")
    slice_ = replace(RATINGS, path=SETS["mohler"].path(tmp_path), label_reading=reading)
    (case,) = load_cases(slice_)
    assert (case.label, case.metadata["label_1"], case.metadata["label_2"]) == ("7", "8", "6")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("evouna-nq", b"golden_answer", b"gold", r"NQ\.json:1: no column 'golden_answer'; found"),
        ("evouna-nq", b"false", b'"maybe"', r"column 'judge_gpt35': want .*got 'maybe'"),
        ("evouna-nq", b'"Oslo/Kristiania"', b"[1]", "column 'golden_answer': want text"),
        ("evouna-nq", b'"improper": false', b'"improper": true', "no labelled answer in it"),
        ("evouna-nq", b"]", b"", "is the file cut"),
        ("mohler", b",3.5\n", b",9\n", "column 'score_avg': 9 is outside the scale 0:5"),
        ("mohler", b",3.5\n", b"\n", "7 cells for 8 columns"),
    ],
)
def test_a_file_of_another_shape_is_told(
    tmp_path: Path, name: str, old: bytes, new: bytes, message: str
) -> None:
    """The message names file, row and column, and nothing is written."""
    body = {"evouna-nq": EVOUNA, "mohler": MOHLER}[name]
    folder = put(tmp_path, **{name.replace("-", "_"): body.replace(old, new)})
    with pytest.raises(UsageError, match=message):
        bring_to_form(SETS[name], folder)
    assert not SETS[name].path(folder).exists()


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
ANSWER = st.none() | TEXT
LABEL = st.sampled_from([True, False, None, "nan", "", " "])
ITEM = st.fixed_dictionaries(
    {
        "question": TEXT,
        "golden_answer": st.text("ab/ ", max_size=6),
        "improper": st.booleans(),
        **{f"answer_{name}": ANSWER for name in SYSTEMS},
        **{f"judge_{name}": LABEL for name in SYSTEMS},
    }
)
FIRST: Mapping[str, object] = {
    "question": "first", "golden_answer": "a", "improper": False,
    **{f"answer_{name}": "a" for name in SYSTEMS}, **{f"judge_{name}": True for name in SYSTEMS},
}  # fmt: skip


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(items=st.lists(ITEM, max_size=6))
def test_every_answer_is_used_or_counted(tmp_path: Path, items: Sequence[object]) -> None:
    """Whatever a file holds: no answer vanishes, none without a label or gold is used, and
    ``calibrate`` reads the result with the labels that stood there."""
    folder = put(tmp_path, evouna_nq=json.dumps([FIRST, *items]).encode())
    found = bring_to_form(SETS["evouna-nq"], folder)
    assert len(found.rows) + sum(found.left_out.values()) == len(SYSTEMS) * (1 + len(items))
    assert all(row["gold"] and row["label"] in ("true", "false") for row in found.rows)
    read = load_cases(replace(GRADES, path=SETS["evouna-nq"].path(folder)))
    assert [case.label == "CORRECT" for case in read] == [
        row["label"] == "true" for row in found.rows
    ]
    assert [case.recorded for case in read] == [row["predicted_answer"] for row in found.rows]


@given(st.text(st.characters(blacklist_characters="\t\n\r\0", blacklist_categories=["Cs"])))
def test_a_quote_in_a_literal_table_is_text(cell: str) -> None:
    """Any cell without a tab or line end comes back as it stands."""
    table = read_csv(Path("t.tsv"), f"a\tb\n{cell}\tx\n", "\t", literal=True)
    assert table.records[0].values == {"a": cell, "b": "x"}


def test_a_set_of_ones_own_is_an_entry() -> None:
    """Another set is data: its columns, its separator, a label a column."""
    one: LabelledSet = replace(
        SETS["evouna-nq"], name="own", question="Q", gold="G", separator=";",
        answers={"A": "L"}, leave_out={}, raters=(),
    )  # fmt: skip
    table = read_json(Path("own.json"), '[{"Q": "q?", "G": "x; y", "A": "x", "L": "right"}]')
    (row,) = labelled_rows(one, table).rows
    assert (row["gold"], row["label"]) == (["x", "y"], "right")
