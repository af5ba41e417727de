"""Records whose text needs no cleaning are written faster, and not otherwise."""

import sys
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.core import Vote
from reports.render import csv_files, html
from reports.run import clean, run_json
from reports.run.clean import find_plain
from reports.run.record import Record
from tests.support.hostile import HOSTILE
from tests.support.samples import hostile, record, report

KEY = "sk-" + "a1" * 20
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([*HOSTILE, KEY, "=1+1", "a\r\nb", "-----BEGIN PRIVATE KEY-----", "x" * 17_000]),
)
METADATA = st.dictionaries(TEXTS, st.one_of(TEXTS, st.lists(TEXTS, max_size=2), st.floats()))


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Draw a record with any text where a model, a judge or a data file could put it."""
    return record(
        question=draw(TEXTS),
        answer=draw(st.none() | TEXTS),
        reason=draw(TEXTS),
        metadata=draw(METADATA),
        cost=draw(st.none() | st.floats()),
        votes=draw(st.just(()) | st.tuples(st.builds(Vote, judge=TEXTS, grade=TEXTS, error=TEXTS))),
    )


@settings(deadline=None)
@given(records())
def test_every_file_is_what_cleaning_each_text_makes_it(item: Record) -> None:
    """Looking at all texts of a record at once changes no byte of a report."""
    made = report((item,))
    for render in (run_json.records, csv_files.results, html.render):
        assert "".join(render(made)) == "".join(render(made, ()))


def test_hostile_records_are_not_plain() -> None:
    """A key or a hidden character anywhere, in votes and metadata as well, is found."""
    clear = record(1)
    dirty = (
        record(2, answer=KEY),
        record(3, reason="a\u200bb"),
        record(4, votes=(Vote(judge="openai:a", grade="CORRECT", rating=1, reason=KEY),)),
        record(5, metadata={"deep": [{"er": KEY}]}),
        record(6, measures={KEY: 0.5}),
    )
    assert find_plain((clear, *dirty)) == {clear.key}
    assert find_plain(hostile()) < {one.key for one in hostile()}


def test_no_formula_starts_with_a_letter_or_digit() -> None:
    """What NFKC makes of any alphanumeric character is no sign that a spreadsheet obeys."""
    every = filter(str.isalnum, map(chr, range(sys.maxunicode + 1)))
    assert not [one for one in every if unicodedata.normalize("NFKC", one)[:1] in tuple("=+-@")]
    assert clean.plain_cell("3 = 3") == "3 = 3"
