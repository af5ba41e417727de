"""Files become rows and cases: every layout and format; a wrong file is one line."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qagate.cases.config import load_dataset, load_gates, with_gates
from qagate.cases.loading import GOOD_ID, case_digest, given_id, load_cases, unique
from qagate.cases.plan import sample
from qagate.cases.rows import check_gold, with_tolerance
from qagate.cases.tables import Table, read_csv, read_json, read_table
from qagate.evaluators.core import UsageError
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.kinds import FALSE_PREMISE
from qagate.evaluators.languages.word_lists import tables
from tests.support.declaring import GRADED, line, loaded, made
from tests.support.scripted import make_case
from tests.support.tables import tabled

SHARED = Path(__file__).parents[3] / "shared"

ESCAPED = "metadata,problem,answer\n{'a': '\\d'},q,a\n  ,r,b\n"


@tabled("text", "form", "expected")
def test_fields_are_kept(
    tmp_path: Path, text: str, form: str, expected: dict[str, object]
) -> None:
    """The layouts of SimpleQA, rated and judged files; JSON keeps types, and answers are text.
    Numbers become numbers where that loses nothing; an object's or a literal's entries are
    metadata, and an odd backslash is text. ``answer`` and ``answers`` are the accepted forms. A
    recorded answer is exact: a lone surrogate and nothing are answers, null is none."""
    case, *_ = loaded(tmp_path, text, *form.split())
    found = {name: getattr(case, name) for name in expected}
    assert [*found.pop("golds", ())] == expected.pop("golds", [])
    assert found == expected


def test_layouts_of_files(tmp_path: Path) -> None:
    """SimpleQA's columns with aliases; a fact's id names its item; judged labels in any writing."""
    text = "fact_id,Question,Answers,Aliases,Predicted Answers\nf1,q?, a ,b | c | ,\nf2,r?,d,,p\n"
    first, second = loaded(tmp_path, text)
    assert (first.row, first.question, first.golds) == (1, "q?", (" a ", "b", "c"))
    assert (first.expected, first.recorded, second.recorded) == (" a ", "", "p")
    assert (first.metadata, first.label) == ({"fact_id": "f1"}, None)
    assert loaded(tmp_path, ESCAPED)[1].metadata == {}, "an empty cell is no metadata"
    head = "id,fact_id,question,answer\n"
    rows = ",canetti-birthplace,a?,x\n,twice,b?,x\n,twice,c?,x\n,not/safe,d?,x\nown,fact,e?,x\n"
    cases = loaded(tmp_path, head + rows)
    assert [cases[0].id, cases[4].id] == ["canetti-birthplace", "own"]
    assert [case.id for case in cases[1:4]] == [case.digest[:12] for case in cases[1:4]]
    head = "question,answer,predicted_answer,label,label_source,label_1,label_2\n"
    rows = "q,a,p,correct,human,A,\nq,a,,not attempted,human,C,b\n"
    first, second = loaded(tmp_path, head + rows, kind="judged")
    assert (first.label, second.label) == ("CORRECT", "NOT_ATTEMPTED")
    assert first.metadata == {"label_source": "human", "label_1": "CORRECT"}
    assert second.metadata["label_2"] == "INCORRECT"
    assert second.recorded == ""
    assert first.id != second.id


def test_the_field_of_dependent_items(tmp_path: Path) -> None:
    """A misspelt ``cluster:`` would let every item count as independent; one value is enough. A
    public file of yes/no items has no column of twins, and needs none: passages join them."""
    path = tmp_path / "items.csv"
    path.write_text("question,answer,story\na,b,\nc,d,one\n", encoding="utf-8")
    slice_ = replace(made(path, "graded"), cluster="story")
    assert len(load_cases(slice_)) == 2
    with pytest.raises(
        UsageError, match=r"no item has a field 'storey'.*name one.*\('story'\)"
    ):
        load_cases(replace(slice_, cluster="storey"))
    with pytest.raises(
        UsageError, match=r"a field 'storey', which 'by:'.*name one.*\('story'\)"
    ):
        load_cases(replace(slice_, by=("part", "storey")))
    path.write_text(
        "passage,question,answer\np,a?,yes\np,b?,no\nq,c?,no\n", encoding="utf-8"
    )
    slice_ = replace(made(path, "yes_no", "Yes", "No"), cluster="twin")
    first, second, third = (slice_.cluster_of(case) for case in load_cases(slice_))
    assert first == second != third


@pytest.mark.parametrize("gold", ["", " ", "\u200b", "\u2800 \u200b"])
def test_a_blank_gold_is_refused_with_file_and_row(tmp_path: Path, gold: str) -> None:
    """A gold that shows nothing is none, no matter its characters (R11, F20)."""
    with pytest.raises(UsageError, match=r"csv:3: row 2, column 'answer': empty"):
        loaded(tmp_path, f"metadata,problem,answer\n{{}},q?,NA\n{{}},r?,{gold}\n")


@pytest.mark.parametrize(
    "word", ["NA", "None", "null", "nan", "007", "1e5", "No", "2024-12-31"]
)
def test_answers_are_text_in_every_format(tmp_path: Path, word: str) -> None:
    """No reader turns an answer into anything else."""
    assert loaded(tmp_path, f"Question,Answers\nq?,{word}\n")[0].golds == (word,)
    assert loaded(tmp_path, line(answer=word), "jsonl")[0].golds == (word,)
    if word != "null":  # in YAML a bare null is no value; in quotes it is text
        text = f"- {{question: q, context: c, expected: {word}}}\n"
        assert loaded(tmp_path, text, "yaml", "rated")[0].golds == (word,)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Так", "YES"),
        ("не", "NO"),
        (" YES ", "YES"),
        ("Nem", "NO"),
        (True, "YES"),
        (False, "NO"),
    ],
)
def test_yes_no_layout(tmp_path: Path, answer: object, label: str) -> None:
    """paragraph or passage, question, answer; a label in any case, or true and false."""
    item = {"passage": "p", "question": "q", "answer": answer}
    (case,) = loaded(tmp_path, json.dumps([item]), "json", "yes_no")
    assert (case.context, case.label) == ("p", label)
    assert case.golds == (str(answer).lower() if isinstance(answer, bool) else answer,)


def test_own_words_for_yes_and_no(tmp_path: Path) -> None:
    """A slice's own words count like the known ones."""
    path = tmp_path / "a.csv"
    path.write_text("passage,question,answer\np,q,Ano\np,r,ne\n", encoding="utf-8")
    assert [case.label for case in load_cases(made(path, "yes_no", "ano", "ne"))] == [
        "YES",
        "NO",
    ]
    path.write_text("passage,question,answer\np,q,x\n", encoding="utf-8")
    with pytest.raises(UsageError, match="want 'ano' or 'ne', got 'x'"):
        load_cases(made(path, "yes_no", "ano", "ne"))


def test_same_question_twice(tmp_path: Path) -> None:
    """Equal or overlapping golds, other contexts, and other ids or row numbers are no conflict."""
    same = "Question,Answers\nq,Lake A\nq,lake  a\n"
    ids = ["", "-2", "-3"]
    first, second = loaded(tmp_path, same)
    assert first.id != second.id
    stem = loaded(tmp_path, "Question,Answers\nq,a\n")[0].id
    three = loaded(tmp_path, "Question,Answers\nq,a\nq,a\nq,a\n")
    assert [case.id for case in three] == [stem + end for end in ids]
    for text in (
        "id,Question,Answers\n1,q,a\n2,q,b\n",
        "x_row,Question,Answers\n1,q,a\n2,q,b\n",
    ):
        assert len(loaded(tmp_path, text)) == 2
    contexts = "context,Question,Answers\nc,q,a\nd,q,b\n"
    assert len(loaded(tmp_path, contexts)) == 2


@tabled("name", "kind", "count")
def test_real_files(name: str, kind: str, count: int) -> None:
    """Published files load whole, with ids that are unique and ASCII."""
    path = SHARED / "data" / name
    if not path.is_file():
        pytest.skip("the shared data is not here")
    cases = load_cases(made(path, kind))
    assert len(cases) == len({c.id for c in cases}) == count
    assert all(GOOD_ID.fullmatch(c.id) for c in cases)


def test_ids_are_given_or_hashed(tmp_path: Path) -> None:
    """Short ASCII stays, a path is hashed; order and recorded answers change nothing."""
    text = "\n".join(
        line(id=given, question=str(given))
        for given in ("a.b-c_1", 7, "..\\..\\x", "я")
    )
    ids = [case.id for case in loaded(tmp_path, text, "jsonl")]
    assert ids[:2] == ["a.b-c_1", "7"]
    assert ids[2:] == [given_id("..\\..\\x"), given_id("я")]
    assert all(GOOD_ID.fullmatch(id_) for id_ in ids)
    one = loaded(tmp_path, "Question,Answers,Predicted answers\nq,a,x\nr,b,y\n")
    two = loaded(tmp_path, "Predicted answers,Answers,Question\nz,b,r\n,a,q\n")
    assert {(case.id, case.digest) for case in one} == {
        (case.id, case.digest) for case in two
    }


def test_digest_covers_what_changes_the_result() -> None:
    """Each part that may change an item's result changes its digest."""
    texts = [
        ("q", "c", ("a",)),
        ("Q", "c", ("a",)),
        ("q", "C", ("a",)),
        ("q", "c", ("a", "b")),
    ]
    more = [("YES",), (None, ""), (None, "p")]
    digests = {case_digest(*given) for given in texts}
    assert len(digests | {case_digest("q", "c", ("a",), *given) for given in more}) == 7


@given(st.lists(st.sampled_from(["a", "a-2", "a-3", "b" * 64, "b"]), max_size=12))
def test_ids_are_unique_and_well_formed(ids: list[str]) -> None:
    """Equal ids are told apart without touching one that the file gives."""
    found = list(unique(ids))
    assert len(set(found)) == len(ids)
    assert all(GOOD_ID.fullmatch(id_) for id_ in found)
    assert [found[ids.index(id_)] for id_ in dict.fromkeys(ids)] == list(
        dict.fromkeys(ids)
    )


@given(st.integers(0, 40), st.integers(0, 5))
def test_sample_is_the_same_in_every_order(limit: int, seed: int) -> None:
    """The choice depends on ids and seed alone, and the file's order is kept."""
    cases = [make_case(id=str(n)) for n in range(30)]
    chosen = sample(cases, limit, seed)
    assert len(chosen) == min(limit, 30)
    assert chosen == [item for item in cases if item in chosen]
    assert {c.id for c in sample(cases[::-1], limit, seed)} == {c.id for c in chosen}


def test_sample_without_limit_and_by_seed() -> None:
    """No limit keeps everything; another seed chooses others; the choice never changes."""
    cases = [make_case(id=str(n)) for n in range(30)]
    assert sample(cases, None, 0) == cases
    assert [c.id for c in sample(cases, 4, 0)] != [c.id for c in sample(cases, 4, 1)]
    assert [c.id for c in sample(cases, 4, 0)] == ["15", "18", "20", "25"]


@tabled("language", "gold", "tolerance", "range_")
def test_a_tolerance_becomes_a_range(
    language: str, gold: str, tolerance: str, range_: str
) -> None:
    """The range is exact, in the gold's unit and the language's decimal mark; a point is one."""
    assert with_tolerance(gold, tolerance, language) == range_
    premise = f"{FALSE_PREMISE}it has none"
    for one in (range_, "5..5", "-7..-3 °C", "Wait... what", "False premise", premise):
        check_gold(one, language)


@given(
    gold=st.decimals(min_value=1, max_value=99999, places=2),
    tolerance=st.decimals(min_value=Decimal("0.01"), max_value=999, places=2),
    language=st.sampled_from(["en", "bg", "pl", "hu", "be"]),
)
def test_ranges_are_exact(gold: Decimal, tolerance: Decimal, language: str) -> None:
    """Both ends are what a pupil would work out, however the language writes decimals."""
    mark = tables(language).decimal
    written = [str(number).replace(".", mark) for number in (gold, tolerance)]
    range_ = with_tolerance(f"{written[0]} m", written[1], language)
    check_gold(range_, language)
    low, high = range_.removesuffix(" m").replace(mark, ".").split("..")
    assert (Decimal(low), Decimal(high)) == (gold - tolerance, gold + tolerance)


def test_the_loader_adds_the_range_to_the_accepted_forms(tmp_path: Path) -> None:
    """Judges see it with the others, items without a tolerance keep their digest."""
    head = "Question,Answers,Aliases,tolerance\n"
    plain, widened = loaded(
        tmp_path, f"{head}q,5 m,five metres,\nr,5 m,five metres,1\n"
    )
    assert plain.golds == ("5 m", "five metres")
    assert widened.golds == ("5 m", "five metres", "4..6 m")
    assert loaded(tmp_path, line(answer="5 m", tolerance=2), "jsonl")[0].golds == (
        "5 m",
        "3..7 m",
    )
    without = loaded(tmp_path, "Question,Answers,Aliases\nq,5 m,five metres\n")
    assert without[0].digest == plain.digest


def test_the_lexical_judge_reads_ranges(tmp_path: Path) -> None:
    """A number within the tolerance is right, the ends included, and one beyond it is wrong."""
    (case,) = loaded(
        tmp_path, 'Question,Answers,tolerance\nHow high is it?,"2,925 m",5 m\n'
    )
    found = [
        grade(case, answer).grade for answer in ("2928 m", "2,930 metres", "2931 m")
    ]
    assert found == ["CORRECT", "CORRECT", "INCORRECT"]


HERE = Path("data.csv")
CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12
)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(table: Table) -> list[dict[str, object]]:
    return [dict(record.values) for record in table.records]


def refusal(folder: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        read_table(write(folder, name, content))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_columns_are_found_whatever_their_case_and_spaces(tmp_path: Path) -> None:
    """Names are compared without case and outer spaces, and shown as the file spells them. A byte
    order mark is no part of the first name. CR alone ends lines, as in old spreadsheets."""
    for text in ("\ufeffquestion,answer\nQ,A\n", "question,answer\rQ,A\rQ2,A2"):
        table = read_table(write(tmp_path, "a.csv", text))
        assert list(table.names) == ["question", "answer"]
        assert rows(table)[0] == {"question": "Q", "answer": "A"}
    assert len(table.records) == 2
    table = read_table(
        write(tmp_path, "a.csv", " ANSWERS ,Predicted Answers\r\nA,P\r\n")
    )
    assert rows(table) == [{"answers": "A", "predicted_answers": "P"}]
    assert table.names == {
        "answers": "ANSWERS",
        "predicted_answers": "Predicted Answers",
    }


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_file_of_a_spreadsheet_with_decimal_commas_is_read(
    tmp_path: Path, mark: str
) -> None:
    """Semicolons or tabs in the header separate all rows; a comma is text then."""
    path = tmp_path / "excel.csv"
    rows = [
        ["Question", "Answers"],
        ["How long, in m?", "1,5"],
        [f"a{mark}b", 'He said "x"'],
    ]
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    assert [list(row.values.values()) for row in read_table(path).records] == rows[1:]


def test_rows_know_their_lines(tmp_path: Path) -> None:
    """Records and physical lines differ; JSON lines part at line feeds; depth is real nesting."""
    table = read_table(write(tmp_path, "a.csv", 'q,a\nQ1,"x\ny"\n\nQ2,A2\n'))
    assert [(record.row, record.line) for record in table.records] == [(1, 2), (2, 5)]
    assert table.records[0].values["a"] == "x\ny"
    text = '{"q": "a\u2028b\u2029c\u0085d"}\r\n\r\n{"q": "e"}'
    table = read_table(write(tmp_path, "a.jsonl", text))
    assert [(record.row, record.line) for record in table.records] == [(1, 1), (2, 3)]
    assert table.records[0].values["q"] == "a\u2028b\u2029c\u0085d"
    brackets = json.dumps({"q": "[" * 200, "list": [[], {}] * 30})
    assert len(read_table(write(tmp_path, "a.jsonl", brackets)).records) == 1
    table = read_table(
        write(tmp_path, "a.json", ' [\n{"q": "a"},\n\n {"q":\n"b"} ] \n')
    )
    assert [(record.row, record.line) for record in table.records] == [(1, 2), (2, 4)]
    text = "- id: 2024_7108\n  expected: off\n\n- {id: 007, expected: 2024-12-31}\n"
    table = read_table(write(tmp_path, "a.yaml", text))
    ids = {"2024_7108": "off", "007": "2024-12-31"}
    assert rows(table) == [{"id": one, "expected": said} for one, said in ids.items()]
    assert [(record.row, record.line) for record in table.records] == [(1, 1), (2, 4)]


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_csv_round_trip(cells: list[tuple[str, str]]) -> None:
    """What the csv module writes is read back unchanged, line breaks and quotes included.

    Rows at the end that hold nothing are no rows: the last one holds something.
    """
    cells = [*cells, ("the", "end")]
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["q", "a"])
    writer.writerows(cells)
    assert [
        (row["q"], row["a"]) for row in rows(read_csv(HERE, out.getvalue()))
    ] == cells


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=8,
)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_json_round_trip(values: list[object]) -> None:
    """Values are read back unchanged from a list and from lines alike."""
    objects = [{"v": value} for value in values]
    as_list = read_json(HERE, json.dumps(objects, indent=1))
    as_lines = read_json(
        HERE.with_suffix(".jsonl"), "\n".join(json.dumps(item) for item in objects)
    )
    assert rows(as_list) == rows(as_lines) == objects


@pytest.mark.parametrize("name", ["a.txt", "a.csv.gz", "a.xlsx", "a"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    """The format is known by the suffix, and the message lists those read; a folder is no file."""
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        read_table(tmp_path / "x.jsonl")
    assert ".csv, .jsonl, .json, .yaml, .yml" in refusal(tmp_path, name, "q,a\nx,y\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=40))
def test_any_bytes_are_rows_or_a_usage_problem(tmp_path: Path, content: bytes) -> None:
    """No file content makes the reader raise anything but a UsageError."""
    for name in ("a.csv", "a.jsonl", "a.json", "a.yaml"):
        try:
            read_table(write(tmp_path, name, content))
        except UsageError:
            continue


MB = 1024 * 1024
LONG = "a value may have 1,048,576 characters; shorten it or drop the row"
TABLE = Path(__file__).with_name("wrong_files.yaml")
SIMPLE = "metadata,problem,answer\n"
MADE = [  # longer than a table holds
    ("graded.csv", SIMPLE + '"' + "[" * 9000 + '",q,a\n', "not a Python literal"),
    ("graded.csv", SIMPLE + '"' + "-" * 9000 + '1",q,a\n', "not a Python literal"),
    (
        "graded.csv",
        SIMPLE + "\"{'a': '" + "x" * 200_000 + "'}\",q,a\n",
        "200,009 characters; at m",
    ),
    (
        "graded.jsonl",
        '{"q": ' + "[" * 60 + "]" * 60 + "}",
        "nested deeper than 40 levels",
    ),
    (
        "graded.jsonl",
        '{"q": ' + "[" * 100_000,
        "row 1: not valid JSON: nested deeper than 40",
    ),
    ("graded.json", "[" * 100_000, "row 1: not valid JSON: nested deeper"),
    (
        "graded.csv",
        "question,answer\nq?," + "x" * (MB + 2),
        f"row 1: not valid CSV: {LONG}",
    ),
    (
        "graded.json",
        '[{"question": "' + "x" * (MB + 1) + '"}]',
        f"1: 1,048,577 characters; {LONG}",
    ),
    (
        "graded.jsonl",
        '{"answers": ["' + "x" * MB + '", "' + "y" * MB + '"]}',
        "2,097,152 charac",
    ),
]


def wrong_files() -> Iterator[Any]:
    table = cast("dict[str, Any]", yaml.safe_load(TABLE.read_text(encoding="utf-8")))
    texts = table.pop("texts")
    listed = [(group, *row) for group, rows in table.items() for row in rows]
    for number, (group, text, said) in enumerate([*listed, *MADE]):
        whole = re.sub("<([A-Z]+)>", lambda name: texts[name[1]], text)
        yield pytest.param(group, whole, said, id=f"{group}-{number}")


def read_gates(path: Path) -> None:
    gates = load_gates(path)
    dataset = path.with_name("dataset.yaml")
    dataset.write_text(GRADED, encoding="utf-8")
    with_gates(load_dataset(dataset), gates)


READERS: dict[str, Callable[[Path], object]] = {
    "dataset.yaml": load_dataset,
    "gates.yaml": read_gates,
}


@pytest.mark.parametrize(("group", "text", "said"), list(wrong_files()))
def test_a_wrong_file_is_one_line(
    tmp_path: Path, group: str, text: str, said: str
) -> None:
    """The line names file and fault and shows no secret; values of any format are bounded (S13)."""
    path = tmp_path / "facts" / group
    path.parent.mkdir()
    path.write_bytes(text.encode())
    kind = group.partition(".")[0]
    read = READERS.get(group) or (lambda file: load_cases(made(file, kind)))
    with pytest.raises(UsageError) as caught:
        read(path)
    message = str(caught.value)
    assert f"{path}" in message
    assert said in message
    assert "\n" not in message
    assert "sk-test" not in message
