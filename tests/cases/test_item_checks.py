"""``check`` finds repeats, leaks, unstable ids, wrong letters, and texts in another language."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.check.checks import DATASET_CHECKS, SLICE_CHECKS, findings
from cases.check.item_checks import Subject, ids, rows_listed
from evaluators.core import Case
from evaluators.languages import known, language_of
from tests.support.hostile import HOSTILE
from tests.support.linting import dataset_of, found, from_file, item, said, slice_of, subject

EXAMPLES = yaml.safe_load(Path(__file__).with_name("item_checks.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "example"), [(name, one) for name, some in EXAMPLES.items() for one in some]
)
def test_a_check_finds_what_is_wrong_and_nothing_else(
    name: str, example: Mapping[str, Any]
) -> None:
    """Each example has just these findings, and their message says what to look at."""
    language, cases = example.get("lang", "en"), []
    for row, one in enumerate(example.get("items", [example]), 1):
        golds = one.get("gold", "x")
        fields = {key: one[key] for key in ("context", "recorded", "label") if key in one}
        golds = [golds] if isinstance(golds, str) else golds
        cases.append(item(row, one["q"], *golds, language=language, **fields))
    own = subject(*cases, language=language, kind=example.get("kind", "graded"))
    findings = list(SLICE_CHECKS[name](own))
    assert [f"{one.severity} {one.row}" for one in findings] == example.get("found", [])
    assert all(example.get("said", "") in one.message for one in findings)


def test_ids_that_change_with_the_content_are_told_where_others_do_not(tmp_path: Path) -> None:
    """A file without any id is a choice; one row without is a slip.

    Ids that are not plain ASCII become hashes; that is told once, and five rows at most are named.
    """
    mixed = from_file(tmp_path, "id,question,answer\na,Who?,x\n,What?,y\n")
    assert found(ids, mixed) == [("warning", 2)]
    assert not found(ids, from_file(tmp_path, "question,answer\nWho?,x\nWhat?,y\n"))
    odd = from_file(tmp_path, "id,question,answer\nok,Who?,x\nид-1,What?,y\na b,When?,z\n")
    assert found(ids, odd) == [("warning", 2)]
    assert "2 of 3 ids are replaced by hashes, such as 'ид-1', 'a b'" in said(ids, odd)
    assert rows_listed(range(1, 8)) == "1, 2, 3, 4, 5 and 2 more"


def test_every_language_entry_is_whole() -> None:
    """Frequent words are written in the language's own letters; regions share their language."""
    for code, entry in known().items():
        letters = set("".join(entry.stops)) - {"'"}
        assert letters <= (entry.letters or letters), code
        assert entry.expected <= entry.letters, code
        assert len(entry.stops) > 60, code
    assert language_of("en-GB") is language_of("en")
    assert language_of("be-tarask") is language_of("xx") is None


KINDS: tuple[str, ...] = ("graded", "rated", "yes_no", "judged")
LANGUAGES = ("en", "bg", "pl", "hu", "be", "zh")
TEXT = st.one_of(
    st.text(max_size=60),
    st.text('aаαIІ \u0301\u200b„“"«.,?сьцяня|\u2000\n', max_size=60),
    st.sampled_from(HOSTILE[:-3]),
)


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    kind, language = draw(st.sampled_from(KINDS)), draw(st.sampled_from(LANGUAGES))
    fields = st.sampled_from(("fact_id", "label_1", "difficulty", "twin", "story_id"))
    cases: list[Case] = []
    for row in range(1, draw(st.integers(1, 4)) + 1):
        golds = draw(st.lists(TEXT, min_size=1, max_size=2))
        metadata = draw(st.dictionaries(fields, TEXT, max_size=3))
        cases.append(item(row, draw(TEXT), *golds, context=draw(TEXT), metadata=metadata))
    own = slice_of(language, kind, by=("topic",))
    return Subject(slice_=own, cases=tuple(cases))


@pytest.mark.untraced
@settings(max_examples=150, deadline=None)
@given(subjects())
def test_no_text_makes_the_linter_fail(own: Subject) -> None:
    """Whatever stands in a file, every check ends, and every finding is one printable line."""
    for finding in (
        *findings(SLICE_CHECKS, own.slice_.path, own),
        *findings(DATASET_CHECKS, own.slice_.path, *dataset_of(own)),
    ):
        assert "\n" not in finding.line
        assert finding.line.startswith(f"{finding.file}: ")


def test_a_long_text_is_read_in_one_walk() -> None:
    """Towers of marks, endless words and unclosed quotes are checked in linear time."""
    for text in ("a" + "\u0301" * 20_000, "ж" * 50_000 + "  y", "(„" * 20_000, "a" + " " * 50_000):
        own = Subject(slice_=slice_of("be"), cases=(item(1, text, context=text),))
        assert len(findings(SLICE_CHECKS, own.slice_.path, own)) < 4
