"""The final choice: exact balance in every source and split, by seed."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cases.tools.builder.freeze import balanced
from cases.tools.builder.work_folder import Item
from tests.support.building import make_item

SPLITS = {"train": 0.8, "dev": 0.1, "test": 0.1}


def made(answers: list[tuple[str, str]]) -> list[Item]:
    """Return an item for each source and answer."""
    items = []
    for number, (group, answer) in enumerate(answers):
        item = make_item(number, answer=answer)
        items.append(replace(item, origin=replace(item.origin, group=group)))
    return items


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["YES", "NO"])), max_size=60),
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_every_source_and_split_is_half_and_half(
    answers: list[tuple[str, str]], size: int, seed: int
) -> None:
    """As many yes as no, never more than wanted, none lost; what can be taken is taken."""
    items = made(answers)
    chosen = balanced(items, {"a": size, "b": size}, SPLITS, seed)
    assert [item.id for item in chosen] == [item.id for item in items]
    assert balanced(items, {"a": size, "b": size}, SPLITS, seed) == chosen
    kept = Counter(
        (item.origin.group, item.split, item.answer) for item in chosen if item.state == "kept"
    )
    for group in "ab":
        for split in SPLITS:
            assert kept[group, split, "YES"] == kept[group, split, "NO"]
        had = Counter(answer for one, answer in answers if one == group)
        got = sum(count for (one, _, _), count in kept.items() if one == group)
        assert got == 2 * min(had["YES"], had["NO"], size // 2)
    assert all(item.reason in ("balance", "surplus") for item in chosen if item.state == "dropped")


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 120), st.integers(1, 120))
def test_splits_have_their_shares(first: int, second: int) -> None:
    """Over all sources together no split is off its share by more than a pair or so."""
    answers = [("a", word) for word in ("YES", "NO") for _ in range(first)]
    answers += [("b", word) for word in ("YES", "NO") for _ in range(second)]
    chosen = balanced(made(answers), {"a": 1000, "b": 1000}, SPLITS, 1)
    total = first + second
    for split, share in SPLITS.items():
        pairs = sum(item.split == split for item in chosen) / 2
        assert abs(pairs - share * total) < 1.5


def test_reviewed_items_are_taken_first() -> None:
    """Where some are too many, those that a person saw stay."""
    items = made([("a", "YES")] * 6 + [("a", "NO")] * 2)
    said = {"said": [{"reviewer": "x", "verdict": "YES", "edited": "", "comment": ""}]}
    items[4] = replace(items[4], review=said)
    items[5] = replace(items[5], review=said)
    chosen = balanced(items, {"a": 100}, {}, 1)
    kept = {item.id for item in chosen if item.state == "kept" and item.answer == "YES"}
    assert kept == {items[4].id, items[5].id}
    reasons = Counter(item.reason for item in chosen if item.state == "dropped")
    assert reasons == {"balance": 4}


def test_one_article_stands_once() -> None:
    """Two items of one address could come into two splits; the second goes."""
    items = made([("a", "YES"), ("b", "YES"), ("a", "NO"), ("b", "NO")])
    items = [replace(one, origin=replace(one.origin, url="https://x")) for one in items[:2]] + [
        *items[2:]
    ]
    chosen = balanced(items, {"a": 10, "b": 10}, {}, 1)
    assert chosen[1].reason == "same_article"
    assert Counter(item.state for item in chosen) == {"kept": 2, "dropped": 2}
