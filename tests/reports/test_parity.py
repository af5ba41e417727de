"""Claims about parity: the same facts in several languages."""

from dataclasses import replace

import pytest

from evaluators.statistics.paired import tango
from reports.compare.comparison import parity
from reports.evidence import LanguageGap, MissedFact
from reports.record import Record
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def gaps(**letters: str) -> tuple[LanguageGap, ...]:
    """Return the gaps of a run with a letter an item in each of these languages."""
    dataset = facts_dataset(*(graded_slice(language) for language in letters))
    records = [one for language, some in letters.items() for one in answered(some, language)]
    return run_of(records, dataset).parity


def test_the_gap_is_paired_by_fact() -> None:
    """Language - reference, with Tango's interval and McNemar's exact p."""
    (gap,) = gaps(en="cccccciicc", bg="ciiicccccc")
    assert (gap.dataset, gap.reference, gap.language) == ("facts", "en", "bg")
    assert gap.difference.value == pytest.approx(-0.1)
    assert (gap.difference.low, gap.difference.high) == tango(2, 3, 10)
    assert (gap.p_value, gap.ahead) == (1.0, 2)


def test_what_is_right_in_the_reference_alone_is_listed() -> None:
    """Facts with the keys of both records; a refusal is a lapse too."""
    (gap,) = gaps(en="ccci", bg="cinc")
    assert gap.lapses == (
        MissedFact(fact="F1", reference="facts-en-i1", other="facts-bg-i1"),
        MissedFact(fact="F2", reference="facts-en-i2", other="facts-bg-i2"),
    )


def test_the_first_declared_language_is_the_reference() -> None:
    """Whatever its name; every other language has a gap of its own."""
    found = gaps(bg="cc", en="ci", pl="ii")
    assert [(gap.reference, gap.language) for gap in found] == [("bg", "en"), ("bg", "pl")]


def test_ungraded_facts_pair_with_nothing() -> None:
    """An outage says nothing about a language."""
    (gap,) = gaps(en="cce", bg="eci")
    assert gap.difference.n == 1
    assert gaps(en="e", bg="c") == ()


def test_without_shared_facts_there_is_no_gap() -> None:
    """Other facts, no fact_id, or one language."""
    english, bulgarian = answered("c"), answered("c", "bg")
    other = [replace(one, metadata={"fact_id": "other"}) for one in bulgarian]
    assert tuple(parity(BOTH, {"en": english, "bg": other})) == ()
    plain = [replace(one, metadata={}) for one in bulgarian]
    assert tuple(parity(BOTH, {"en": english, "bg": plain})) == ()
    assert gaps(en="cc") == ()
    assert tuple(parity(BOTH, {})) == ()


def test_a_fact_that_is_asked_twice_in_a_language_pairs_with_nothing() -> None:
    """Which of the two would be the other language's is not known."""
    twice = [replace(one, metadata={"fact_id": "F0"}) for one in answered("cc")]
    assert tuple(parity(BOTH, {"en": twice, "bg": answered("c", "bg")})) == ()


def test_repeats_pair_by_their_number() -> None:
    """Three repeats of a fact are one fact to the exact test, and three pairs."""
    english = [one for n in (1, 2, 3) for one in repeat("cc", "en", n)]
    bulgarian = [one for n in (1, 2, 3) for one in repeat("ic", "bg", n)]
    (gap,) = parity(BOTH, {"en": english, "bg": bulgarian})
    assert (gap.difference.n, len(gap.lapses), gap.p_value) == (6, 3, 1.0)


def repeat(letters: str, language: str, number: int) -> list[Record]:
    """Return records of one repeat."""
    made = answered(letters, language, repeat=number)
    return [replace(one, key=f"{one.key}~r{number}") for one in made]
