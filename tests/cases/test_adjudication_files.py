"""``adjudications.yaml``: people's verdicts read back as written, and contradictions are said."""

from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.adjudication_files import (
    keep_first,
    load_adjudications,
    load_people,
    save_adjudications,
)
from qagate.evaluators.adjudications import Adjudication
from qagate.evaluators.core import UsageError

ZEROS = "0" * 32
ONES = "1" * 32
BORIS = Adjudication(item="b", digest=ZEROS, label="NO", name="No: 'x' # y")
LUCJA = Adjudication(
    item="a", digest=ONES, label="10", name="Ł\u200b", reason="- \n1", date="2026-11-21"
)
ENTRY = f"- {{item: a, digest: {ZEROS}, verdict: correct, name: A"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "adjudications.yaml"


def save(path: Path, *adjudications: Adjudication) -> str:
    """Write the file, and return its text."""
    save_adjudications({verdict.digest: verdict for verdict in adjudications}, path)
    return path.read_text(encoding="utf-8")


def test_a_file_reads_back_as_written_sorted_by_item(path: Path) -> None:
    save(path, BORIS, LUCJA)
    assert list(load_adjudications(path).values()) == [LUCJA, BORIS]


def test_what_was_read_is_written_as_it_was(path: Path) -> None:
    text = save(path, BORIS, replace(LUCJA, about=("question: q", "answer: a")))
    assert save(path, *load_adjudications(path).values()) == text


def test_how_a_pair_was_picked_is_kept(path: Path) -> None:
    audited = replace(BORIS, picked="for the audit", probability=0.5, pair="x|y")
    save(path, audited)
    assert load_adjudications(path) == {ZEROS: audited}


def test_an_empty_file_has_no_verdicts(path: Path) -> None:
    save(path)
    assert load_adjudications(path) == {}
    path.write_text("", encoding="utf-8")
    assert load_adjudications(path) == {}


def test_comments_above_an_entry_are_kept_whatever_they_hold(path: Path) -> None:
    about = ("question: Where is it? \\n- item: forged", "answer: \\u202e # not: [yaml")
    text = save(path, replace(BORIS, about=about), LUCJA)
    assert f"\n# {about[0]}\n# {about[1]}\n- item: b\n" in text
    assert load_adjudications(path)[ZEROS].about == about
    assert load_adjudications(path)[ONES].about == ()


def test_a_comment_that_was_taken_out_takes_no_other_with_it(path: Path) -> None:
    text = save(path, replace(BORIS, about=("question: q", "answer: a")))
    path.write_text(text.replace("# question: q\n", ""), encoding="utf-8")
    assert load_adjudications(path)[ZEROS].about == ("answer: a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", ":1: a YAML list of verdicts"),
        ("- a", ":1: a mapping of item, digest"),
        ("- {item: a}", ":1: key 'digest': missing"),
        (f"{ENTRY}, who: A}}\n", ":1: key 'who': not known"),
        (
            f"{ENTRY}}}\n".replace(ZEROS, "zz"),
            "digest: 32 hexadecimal digits are needed, not 'zz'",
        ),
        (
            f"{ENTRY}}}\n".replace("correct", "maybe"),
            "verdict: want CORRECT, INCORRECT",
        ),
        (f"{ENTRY}, date: [1]}}\n", "key 'date': text is needed, not a list"),
        (f"{ENTRY}}}\n{ENTRY}}}\n", ":2: digest 0{32} stands twice"),
    ],
)
def test_a_wrong_entry_is_named_by_file_line_and_key(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_adjudications(path)


def test_the_first_verdict_stands_until_somebody_takes_it_out() -> None:
    agreeing = replace(BORIS, name="Ana")
    opposing = replace(BORIS, name="Csilla", label="YES")
    kept, refused = keep_first([BORIS, agreeing, opposing])
    assert kept == [BORIS]
    assert refused == [
        "b: Csilla says YES, but No: 'x' # y said NO; take that entry out to decide anew"
    ]


def test_files_next_to_the_data_are_read_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(tmp_path / name, BORIS)
    save(tmp_path / "c", LUCJA)
    people = load_people([tmp_path / name for name in "abc"])
    assert people == {ZEROS: BORIS, ONES: LUCJA}


def test_files_next_to_the_data_must_agree(tmp_path: Path) -> None:
    save(tmp_path / "a.yaml", BORIS)
    save(tmp_path / "b.yaml", replace(BORIS, label="YES"))
    with pytest.raises(UsageError, match=r"b\.yaml: b: No: 'x' # y says YES, but"):
        load_people([tmp_path / "a.yaml", tmp_path / "b.yaml"])
