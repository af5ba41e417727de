"""Files of labelled answers: which columns hold what, and public sets brought to the one form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qagate.cases.config import load_dataset
from qagate.cases.dataset import Slice
from qagate.cases.extras.download import public_files
from qagate.cases.labels import LabelReading, Scale
from qagate.cases.loading import load_cases
from qagate.cases.tables import read_csv, read_json
from qagate.evaluators.core import Case, UsageError
from tests.support.declaring import declared, refusal
from tests.support.downloading import BEM, EVOUNA, MOHLER, NQ301
from tests.support.tables import tabled

JUDGED = Path(__file__).parents[2] / "cases" / "judges"
GRADES = load_dataset(JUDGED / "dataset.yaml").slices["en"]
RATINGS = load_dataset(JUDGED / "judges_eba" / "dataset.yaml").slices["en"]


def read(
    folder: Path,
    name: str,
    text: str | bytes,
    slice_: Slice = GRADES,
    **reading: object,
) -> list[Case]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    made = LabelReading(**reading)  # type: ignore[arg-type]
    return load_cases(replace(slice_, path=path, label_reading=made))


def jsonl(*rows: Mapping[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def row(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {
        "question": "q?",
        "gold": "g",
        "predicted": "p",
        "label": "A",
    }
    return {**base, **changes}


def labels(found: list[Case]) -> list[str | None]:
    return [case.label for case in found]


@tabled("name", "text")
def test_columns_are_found_by_name(tmp_path: Path, name: str, text: str) -> None:
    """Any order, letter case and usual name; with a column ``gold``, ``answer`` is judged."""
    (case,) = read(tmp_path, name, text)
    assert (case.question, case.golds, case.recorded) == ("2+2?", ("4",), "four")
    assert (case.label, case.language) == ("CORRECT", "en")


def test_usual_columns_and_ids(tmp_path: Path) -> None:
    """Other columns are metadata; an id of several answers is the question's."""
    text = "question,answer,predicted_answer,label,expected,kind\nq?,007, NA ,yes,x,y\n"
    (case,) = read(tmp_path, "a.csv", text)
    assert (case.golds, case.recorded, case.label) == (("007",), " NA ", "CORRECT")
    assert dict(case.metadata) == {"expected": "x", "kind": "y"}
    found = read(tmp_path, "a.jsonl", jsonl(row(id="q1"), row(id="q1", predicted="x")))
    assert len({case.id for case in found}) == 2
    assert read(tmp_path, "b.jsonl", jsonl(row(id="q1"), row(id="q2")))[0].id == "q1"


def test_rows_of_another_language_are_another_slices(tmp_path: Path) -> None:
    """Aliases, tolerance and context are read; rows that name no language are in the given one."""
    text = jsonl(
        row(gold="2,925 m", aliases="2.9 km", tolerance="5 m", language="EN", context="c"),
        row(language="bg"), row(language=""),
    )  # fmt: skip
    first, second = read(tmp_path, "a.jsonl", text, language="en")
    assert (first.golds, first.context) == (("2,925 m", "2.9 km", "2920..2930 m"), "c")
    assert second.row == 3
    (only,) = read(
        tmp_path, "a.jsonl", text, replace(GRADES, language="bg"), language="en"
    )
    assert only.row == 2


def test_labels_that_tell_only_right_from_wrong_are_two_way(tmp_path: Path) -> None:
    """yes/no labels say nothing of NOT_ATTEMPTED; three grades do, unless asked otherwise."""
    two = jsonl(row(label=True), row(label=False), row(label="C"))
    three = jsonl(row(label="A"), row(label="not attempted"))
    assert labels(read(tmp_path, "a.jsonl", two)) == [
        "CORRECT",
        "NOT_CORRECT",
        "NOT_CORRECT",
    ]
    assert labels(read(tmp_path, "b.jsonl", three)) == ["CORRECT", "NOT_ATTEMPTED"]
    assert labels(read(tmp_path, "b.jsonl", three, two_way=True)) == [
        "CORRECT",
        "NOT_CORRECT",
    ]


def test_ratings_are_put_on_the_judges_scale(tmp_path: Path) -> None:
    """By a straight line, also backwards; never outside of the scale; columns have any name."""
    text = jsonl(row(label=0), row(label=2.5), row(label="5"))
    found = read(tmp_path, "a.jsonl", text, RATINGS, scale=Scale.parse("0:5"))
    assert labels(found) == ["1", "6", "10"]
    assert Scale(5, 0).to_judges_scale("0") == 10
    text = jsonl(row(me=3, other=5, both=4))
    (case,) = read(
        tmp_path, "a.jsonl", text, RATINGS, column="both", raters=("me", "Other")
    )
    assert case.label == "4"
    assert (case.metadata["label_1"], case.metadata["label_2"]) == ("3", "5")
    text = jsonl(row(label=7), row(label=11))
    with pytest.raises(
        UsageError, match="row 2, column 'label': 11 is outside the scale 1:10"
    ):
        read(tmp_path, "a.jsonl", text, RATINGS)


def test_raters_have_a_column_each_and_agree_by_majority_or_mean(
    tmp_path: Path,
) -> None:
    """Without a label of its own a tie is none; a rater may have skipped a row."""
    head = "question,gold,predicted,label_10,label_2,label_1\n"
    text = head + "q?,g,p,A,A,B\nq?,g,p,,A,B\nq?,g,p,,,C\n"
    found = read(tmp_path, "a.csv", text)
    assert labels(found) == ["CORRECT", None, "NOT_ATTEMPTED"]
    assert dict(found[0].metadata) == {
        "label_1": "INCORRECT", "label_2": "CORRECT", "label_3": "CORRECT"}  # fmt: skip
    assert dict(found[2].metadata) == {"label_1": "NOT_ATTEMPTED"}
    (rated,) = read(tmp_path, "b.csv", head + "q?,g,p,7,8,8\n", RATINGS)
    assert rated.label == "8"


@tabled("name", "text", "message")
def test_a_wrong_file_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    """One line that says where and what, in the words of the file's own header."""
    with pytest.raises(UsageError, match=message) as caught:
        read(tmp_path, name, text)
    assert "\n" not in str(caught.value)


def test_a_data_set_says_how_its_labels_are_read(tmp_path: Path) -> None:
    """``labels:`` of kind judged has columns, scale and the rest; a scale is two numbers."""
    head = "kind: judged\nrubric: eba\nlabels: {column: me, raters: [a, b], scale: '0:5'}\n"
    one = declared(tmp_path, head + "languages: {en: {file: en.csv}}\n").slices["en"]
    assert one.label_reading == LabelReading(
        column="me", raters=("a", "b"), scale=Scale(0, 5)
    )
    wrong = head.replace("0:5", "5") + "languages: {en: {file: en.csv}}\n"
    assert "want WORST:BEST" in refusal(tmp_path, wrong)
    graded = "kind: graded\nlabels: {}\nlanguages: {en: {file: en.csv}}\n"
    assert "only for kind judged" in refusal(tmp_path, graded)
    for scale in ("5", "1:1", "a:b", "1:2:3", "1e3:5", ""):
        with pytest.raises(ValueError, match="want WORST:BEST"):
            Scale.parse(scale)


SETS = public_files.load_labelled_sets()
SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


def put(folder: Path, **bodies: bytes) -> Path:
    """Write official files by the name of their set; ``golds`` is that of nq301."""
    for name, body in bodies.items():
        one = SETS["nq301" if name == "golds" else name.replace("_", "-")]
        file = one.golds if name == "golds" and one.golds else one
        (folder / file.file).write_bytes(body)
    return folder


def formed(name: str, folder: Path) -> list[dict[str, object]]:
    public_files.bring_to_form(SETS[name], folder)
    text = SETS[name].path(folder).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_each_system_of_evouna_is_an_answer(tmp_path: Path) -> None:
    """Golds are split, improper questions and what has no answer or label are counted."""
    rows = formed("evouna-nq", put(tmp_path, evouna_nq=EVOUNA))
    assert [row["predicted_answer"] for row in rows] == [
        "Oslo",
        "It is Bergen.",
        "Kristiania",
    ]
    assert [row["label"] for row in rows] == ["true", "false", "true"]
    assert rows[0]["gold"] == ["Oslo", "Kristiania"]
    assert rows[0]["label_source"] == "people (evouna-nq)"
    _, left_out = public_files.bring_to_form(SETS["evouna-nq"], tmp_path)
    assert left_out == {"no answer": 1, "no label": 1, "improper true": 5}


def test_golds_of_nq301_come_from_the_other_file(tmp_path: Path) -> None:
    """They are joined by the question; quotes are text in one file and not in the other."""
    rows = formed("nq301", put(tmp_path, nq301=NQ301, golds=BEM))
    assert [row["predicted_answer"] for row in rows] == [
        '"Lone" Pine',
        "the moon",
        "in Ohio",
    ]
    assert rows[0]["gold"] == ["Lone Pine, California", "California"]
    assert [(row["label"], row["label_1"], row["label_2"]) for row in rows] == [
        ("Yes", "Yes", "No"), ("No", "No", "No"), ("No", "No", "")]  # fmt: skip
    assert public_files.bring_to_form(SETS["nq301"], tmp_path)[1] == {"no gold": 1}


def test_ratings_of_mohler_keep_their_scale(tmp_path: Path) -> None:
    """Two people's scores and their mean; answers that a spreadsheet broke are left out."""
    rows = formed("mohler", put(tmp_path, mohler=MOHLER))
    assert [(row["label"], row["label_1"], row["label_2"]) for row in rows] == [
        ("3.5", "4", "3")
    ]
    left_out = {"student_answer #NAME?": 1}
    assert public_files.bring_to_form(SETS["mohler"], tmp_path)[1] == left_out
    reading = LabelReading(scale=Scale.parse(SETS["mohler"].scale), language="en")
    slice_ = replace(RATINGS, path=SETS["mohler"].path(tmp_path), label_reading=reading)
    (case,) = load_cases(slice_)
    assert (case.label, case.metadata["label_1"], case.metadata["label_2"]) == (
        "7",
        "8",
        "6",
    )


@tabled("name", "old", "new", "message")
def test_another_shape(
    tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    """The message names file, row and column, and nothing is written."""
    body = {"evouna-nq": EVOUNA, "mohler": MOHLER}[name].replace(
        old.encode(), new.encode()
    )
    folder = put(tmp_path, **{name.replace("-", "_"): body})
    with pytest.raises(UsageError, match=message):
        public_files.bring_to_form(SETS[name], folder)
    assert not SETS[name].path(folder).exists()


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)
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
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(items=st.lists(ITEM, max_size=6))
def test_every_answer_is_used_or_counted(
    tmp_path: Path, items: Sequence[object]
) -> None:
    """No answer vanishes, none lacks label or gold, and ``calibrate`` reads the same labels."""
    folder = put(tmp_path, evouna_nq=json.dumps([FIRST, *items]).encode())
    rows, left_out = public_files.bring_to_form(SETS["evouna-nq"], folder)
    assert len(rows) + sum(left_out.values()) == len(SYSTEMS) * (1 + len(items))
    assert all(row["gold"] and row["label"] in ("true", "false") for row in rows)
    read = load_cases(replace(GRADES, path=SETS["evouna-nq"].path(folder)))
    assert [case.label == "CORRECT" for case in read] == [
        row["label"] == "true" for row in rows
    ]
    assert [case.recorded for case in read] == [row["predicted_answer"] for row in rows]


@given(
    st.text(st.characters(blacklist_characters="\t\n\r\0", blacklist_categories=["Cs"]))
)
def test_a_quote_in_a_literal_table_is_text(cell: str) -> None:
    """Any cell without a tab or line end comes back as it stands."""
    table = read_csv(Path("t.tsv"), f"a\tb\n{cell}\tx\n", "\t", literal=True)
    assert table.records[0].values == {"a": cell, "b": "x"}


def test_a_set_of_ones_own_is_an_entry() -> None:
    """Another set is data: its columns, its separator, a label a column."""
    one: public_files.LabelledSet = replace(
        SETS["evouna-nq"], name="own", question="Q", gold="G", separator=";",
        answers={"A": "L"}, leave_out={}, raters=(),
    )  # fmt: skip
    table = read_json(
        Path("own.json"), '[{"Q": "q?", "G": "x; y", "A": "x", "L": "right"}]'
    )
    ((row,), _) = public_files.labelled_rows(one, table)
    assert (row["gold"], row["label"]) == (["x", "y"], "right")
