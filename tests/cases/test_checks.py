"""The linter as a whole: it never fails on a text, and it is silent about good files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.check.checks import check_dataset, check_slice
from cases.check.findings import Subject
from evaluators.core import Case
from tests.support.hostile import HOSTILE
from tests.support.linting import dataset_of, item, slice_of

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
    for finding in check_slice(own) + check_dataset(*dataset_of(own)):
        assert "\n" not in finding.line
        assert finding.line.startswith(f"{finding.file}: ")


def test_a_long_text_is_read_in_one_walk() -> None:
    """Towers of marks, endless words and unclosed quotes are checked in linear time."""
    for text in ("a" + "\u0301" * 20_000, "ж" * 50_000 + "  y", "(„" * 20_000, "a" + " " * 50_000):
        own = Subject(slice_=slice_of("be"), cases=(item(1, text, context=text),))
        assert len(check_slice(own)) < 4
