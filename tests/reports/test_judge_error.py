"""Claims about drop gates on a judge's scale: how often they are wrong, and what that costs."""

import numpy as np
import pytest

from tests.benchmarks.judge_error import BORROWED, LABELS, SEED, Situation, pass_rates


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("quality", [0.75, 0.9, 1.0])
def test_a_model_worse_by_the_margin_rarely_passes(quality: float, labels: tuple[int, int]) -> None:
    """At most 3 % (and two of the simulation's standard errors), whatever the judge."""
    random = np.random.default_rng(SEED)
    for n, margin in ((240, 0.05), (1000, 0.10), (4326, 0.05)):
        one = Situation(quality=quality, n=n, margin=margin, labels=labels, drop=margin)
        wrong, _ = pass_rates(one, 4000, random)
        assert wrong <= 0.03 + 2 * (0.03 * 0.97 / 4000) ** 0.5


def test_a_language_that_borrows_labels_excuses_no_judge() -> None:
    """Few labels of its own, and a judge that errs less in other languages: 3 % all the same."""
    random = np.random.default_rng(SEED)
    for quality, others, labels in BORROWED:
        one = Situation(quality=quality, n=1000, margin=0.1, labels=labels, drop=0.1, others=others)
        wrong, _ = pass_rates(one, 1000, random)
        assert wrong <= 0.03 + 2 * (0.03 * 0.97 / 1000) ** 0.5


def test_without_j_more_items_make_a_poor_judge_worse() -> None:
    """A judge right in 9 of 10 answers lets a model pass that is worse by the margin."""
    random = np.random.default_rng(SEED)
    plain = [
        pass_rates(
            Situation(quality=0.9, n=n, margin=0.05, labels=(99, 99), drop=0.05), 4000, random
        )
        for n in (240, 1000, 4326)
    ]
    assert plain[0][1] < plain[1][1] < plain[2][1]
    assert plain[2][1] > 0.2
    assert max(wrong for wrong, _ in plain) < 0.03


def test_an_unchanged_model_passes_less_often_on_a_judges_scale() -> None:
    """What J costs: the more, the worse the judge and the fewer the labels."""
    random = np.random.default_rng(SEED)
    found = [
        pass_rates(Situation(quality=quality, n=1000, margin=0.05, labels=labels), 4000, random)
        for quality, labels in ((0.8, (27, 40)), (0.8, (300, 300)), (0.95, (300, 300)))
    ]
    scaled = [one for one, _ in found]
    assert scaled == sorted(scaled)
    assert all(one < plain for one, plain in found)
