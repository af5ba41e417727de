"""Claims about pairing two runs item by item."""

from collections import Counter
from dataclasses import replace

from evaluators.core import CORRECT
from reports.compare.pairs import PairedSlice, pair_records, paired_difference
from tests.support.made_records import graded, make_record, make_slice


def test_unchanged_items_pair_in_any_order() -> None:
    """By dataset, language, id and repeat; the pairs keep the new run's order."""
    new = graded(2, 1)
    pairing = pair_records(new, list(reversed(graded(2, 1))))
    assert [p.new for p in pairing.pairs] == new
    assert all(p.new.id == p.old.id for p in pairing.pairs)
    assert (pairing.lone, pairing.removed) == ({}, 0)


def test_every_item_without_a_partner_is_counted_by_its_reason() -> None:
    """Added, removed, changed data, ungraded before: four counts, and none of them in a pair."""
    new = [make_record(n, grade=CORRECT) for n in (1, 2, 3, 4)]
    old = [
        make_record(1, grade=CORRECT),
        make_record(2, grade=CORRECT, digest="other"),
        make_record(3, outcome="error"),
        make_record(9, grade=CORRECT),
    ]
    pairing = pair_records(new, old)
    assert [p.new.id for p in pairing.pairs] == ["i1"]
    assert Counter(pairing.lone.values()) == {"added": 1, "changed": 1, "ungraded": 1}
    assert pairing.lone["d-bg-i2"] == "changed"
    assert pairing.removed == 1
    assert len(pairing.lone) == 3


def test_other_slices_of_the_old_run_are_not_missed() -> None:
    """A run of one language does not "remove" the others; repeats and languages do not mix."""
    new = [make_record(1, grade=CORRECT)]
    old = [replace(new[0], language="pl"), replace(new[0], repeat=2)]
    pairing = pair_records(new, old)
    assert (pairing.pairs, pairing.removed) == ((), 1)
    assert Counter(pairing.lone.values()) == {"added": 1}


def test_fixed_and_broke_are_the_pairs_that_changed_sides() -> None:
    """A new item without a grade is neither."""
    new = [make_record(n, outcome=o) for n, o in enumerate(["passed", "failed", "passed", "error"])]
    old = [
        make_record(n, outcome=o) for n, o in enumerate(["failed", "passed", "passed", "passed"])
    ]
    side = PairedSlice(slice_=make_slice(), pairing=pair_records(new, old))
    found = paired_difference([side])
    assert (found.n, found.fixed, found.broke) == (3, 1, 1)


def test_a_rating_counts_by_the_bar_that_is_given() -> None:
    """The old run's own bar does not decide a comparison; without one its outcome does."""
    record = make_record(1, rating=7, outcome="failed")
    assert record.passes(bar=6) is True
    assert record.passes(bar=8) is False
    assert record.passes() is False
    assert make_record(1, outcome="missing").passes(bar=6) is None
