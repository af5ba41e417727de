"""Ids, digests and samples are the same in every process."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cases.loading import GOOD_ID, case_digest, given_id, unique
from cases.plan import sample
from evaluators.core import Case
from tests.support.loading import line, loaded


def test_ids_are_given_or_hashed(tmp_path: Path) -> None:
    """A given id stays where it is ASCII and short; a path or a word in Cyrillic is hashed."""
    text = "\n".join(
        line(id=given, question=str(given)) for given in ("a.b-c_1", 7, "..\\..\\x", "я")
    )
    ids = [case.id for case in loaded(tmp_path, text, "jsonl")]
    assert ids[:2] == ["a.b-c_1", "7"]
    assert ids[2:] == [given_id("..\\..\\x"), given_id("я")]
    assert all(GOOD_ID.fullmatch(id_) for id_ in ids)


def test_ids_do_not_depend_on_order_or_recorded_answers(tmp_path: Path) -> None:
    """The same item has the same id and digest wherever it stands and whatever was answered."""
    one = loaded(tmp_path, "Question,Answers,Predicted answers\nq,a,x\nr,b,y\n")
    two = loaded(tmp_path, "Predicted answers,Answers,Question\nz,b,r\n,a,q\n")
    assert {(case.id, case.digest) for case in one} == {(case.id, case.digest) for case in two}


def test_digest_covers_what_changes_the_result() -> None:
    """Each part that may change an item's result changes its digest."""
    digests = {
        case_digest("q", "c", ("a",)),
        case_digest("Q", "c", ("a",)),
        case_digest("q", "C", ("a",)),
        case_digest("q", "c", ("a", "b")),
        case_digest("q", "c", ("a",), "YES"),
        case_digest("q", "c", ("a",), None, ""),
        case_digest("q", "c", ("a",), None, "p"),
    }
    assert len(digests) == 7


@given(st.lists(st.sampled_from(["a", "a-2", "a-3", "b" * 64, "b"]), max_size=12))
def test_ids_are_unique_and_well_formed(ids: list[str]) -> None:
    """Equal ids are told apart without touching one that the file gives."""
    found = list(unique(ids))
    assert len(set(found)) == len(ids)
    assert all(GOOD_ID.fullmatch(id_) for id_ in found)
    first = [found[ids.index(id_)] for id_ in dict.fromkeys(ids)]
    assert first == list(dict.fromkeys(ids))


def case(id_: str) -> Case:
    return Case(id=id_, dataset="d", language="en", row=1, question="q", golds=("a",))


@given(st.integers(0, 40), st.integers(0, 5))
def test_sample_is_the_same_in_every_order(limit: int, seed: int) -> None:
    """The choice depends on ids and seed alone, and the file's order is kept."""
    cases = [case(str(n)) for n in range(30)]
    chosen = sample(cases, limit, seed)
    assert len(chosen) == min(limit, 30)
    assert chosen == [item for item in cases if item in chosen]
    assert {c.id for c in sample(cases[::-1], limit, seed)} == {c.id for c in chosen}


def test_sample_without_limit_and_by_seed() -> None:
    """No limit keeps everything; another seed chooses others; the choice never changes."""
    cases = [case(str(n)) for n in range(30)]
    assert sample(cases, None, 0) == cases
    assert [c.id for c in sample(cases, 4, 0)] != [c.id for c in sample(cases, 4, 1)]
    assert [c.id for c in sample(cases, 4, 0)] == ["15", "18", "20", "25"]
