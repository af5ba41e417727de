"""What a verdict costs, in four ways: ``python -m tests.benchmarks.verdict_cost``.

Does the new model drop by more than the margin? *Fixed* asks all items of the new model and has a
model judge every answer; *cascade* has rules judge where they are sure; *sequential* stops as soon
as the gate is decided (``--until-decided``); *both* does both. The stated error is the same: a
model worse by just the margin passes with at most 2.5 %. The rules are taken to be right where they
are sure, and the judge to be right everywhere.

Calls and tokens of an item are the dry run's, over the bundled English questions and their recorded
answers; prices are those of the genai-prices package. Pairs and bets are those of ``bets``; the
exact power of the fixed plan is the product's.
"""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qagate.cases.dataset import Plan, Selection
from qagate.cases.plan import make_plan
from qagate.cases.tasks import make_tasks
from qagate.evaluators.core import RECORDED
from qagate.evaluators.models.pricing import pricing_of
from qagate.evaluators.output import markdown_table
from qagate.evaluators.runtime.forecast import (
    NOTHING_KEPT,
    Forecast,
    calls_ahead,
    make_forecast,
)
from qagate.evaluators.statistics.paired import power
from qagate.reports.extras.sequential.early_stopping import MIN_IN_HAND
from qagate.reports.plugin.options import read_options
from qagate.reports.plugin.run_models import connect_models
from tests.benchmarks.bets import Found, Setting, crossings
from tests.benchmarks.common import ROOT, SEED, show

MODEL, JUDGE = "openai:gpt-4.1", "anthropic:claude-opus-4-1"
PRICED_ON = date(2026, 11, 22)
WAYS = (
    ("fixed", False, False),
    ("cascade", False, True),
    ("sequential", True, False),
    ("both", True, True),
)
HEADER = (
    "way",
    "items",
    "calls",
    "tokens",
    "USD",
    "PASS, unchanged",
    "PASS, worse by the margin",
)
WHOLE = Setting(items=4326, margin=0.05, differ=0.1)


def simulate(setting: Setting, drop: float, runs: int, concurrency: int = 16) -> Found:
    """Return how runs end that stop once they are decided, if the truth dropped by so much. What is
    in hand then is paid for as well; ``median`` is of all items paid for. A FAIL is one beyond the
    margin (``fail: margin``)."""
    passing, failing = crossings(setting, drop, runs)
    asked = np.minimum(np.minimum(passing, failing), setting.items)
    in_hand = np.minimum(2 * concurrency, np.maximum(MIN_IN_HAND, asked // 8))
    paid = np.minimum(asked + in_hand, setting.items)
    passed, failed = (
        float(np.mean(one)) for one in (passing < failing, failing < passing)
    )
    return Found(passed, failed, float(np.median(paid)), float(paid.mean()))


class Price(NamedTuple):
    """What so many ``items`` take: the answers, a judge's call for each, or only where it must."""

    items: int
    answers: Forecast
    judge: Forecast
    cascade: Forecast

    def of(self, items: float, *, cascade: bool) -> tuple[int, int, float]:
        """Return calls, tokens and USD of so many items."""
        both = self.answers + (self.cascade if cascade else self.judge)
        times = items / self.items
        tokens = times * (both.tokens_in + both.tokens_out)
        return round(times * both.calls), round(tokens), times * (both.cost or math.nan)


def price_of_items() -> Price:
    """Return what the bundled English questions take, by the dry run's own forecast."""
    plan = make_plan(
        [ROOT / "cases" / "simpleqa" / "dataset.yaml"], Selection(languages=("en",))
    )
    return Price(
        items=len(plan.items),
        answers=_forecast(plan, MODEL, "lexical"),
        judge=_forecast(plan, RECORDED, JUDGE),
        cascade=_forecast(plan, RECORDED, f"lexical+{JUDGE}"),
    )


def _forecast(plan: Plan, model: str, judge: str) -> Forecast:
    blank = read_options(lambda name: None, Path())
    connected = connect_models(
        replace(blank, model=model, judges=(judge,)), needs_key=False
    )
    tasks = make_tasks(plan.items.values(), connected.model, connected.judges)
    prices = {
        text: pricing_of(spec, PRICED_ON) for text, spec in connected.specs.items()
    }
    calls = [
        call
        for task in tasks.values()
        for call in asyncio.run(calls_ahead(task, NOTHING_KEPT))
    ]
    return make_forecast(calls, connected.specs, prices, set())


def table(setting: Setting, price: Price, runs: int) -> list[str]:
    """Return the lines of a table: what a verdict takes in each of the four ways."""
    unchanged, worse = (simulate(setting, drop, runs) for drop in (0.0, setting.margin))
    drops = (0.0, setting.margin)
    exact = [
        power(setting.items, -setting.margin, setting.differ, -drop) for drop in drops
    ]
    rows = []
    for name, sequential, cascade in WAYS:
        items = unchanged.mean if sequential else setting.items
        calls, tokens, cost = price.of(items, cascade=cascade)
        chances = [unchanged.passed, worse.passed] if sequential else exact
        shown = (f"{items:,.0f}", f"{calls:,}", f"{tokens:,}", f"{cost:,.2f}")
        rows.append((name, *shown, *(f"{one:.3f}" for one in chances)))
    return markdown_table(HEADER, rows)


def lines(runs: int) -> Iterator[str]:
    """Yield the table and the bars."""
    price = price_of_items()
    unchanged, worse = (simulate(WHOLE, drop, runs) for drop in (0.0, WHOLE.margin))
    many = simulate(WHOLE, 0.0, runs, concurrency=128)
    clearly = simulate(replace(WHOLE, differ=0.2), 0.15, runs)
    settled = 1 - price.cascade.calls / price.judge.calls
    named = f"{WHOLE}; model {MODEL}, judge {JUDGE}, prices of {PRICED_ON}"
    yield f"{runs:,} runs, seed {SEED}: {named}; rules settle {settled:.0%} of the answers"
    yield from ("", *table(WHOLE, price, runs), "")
    early = f"{many.median:,.0f} with 128 calls in flight"
    yield f"unchanged: a median of {unchanged.median:,.0f} items paid for, {early}"
    yield f"worse by the margin: ever passes {worse.passed:.4f}"
    yield f"worse by 0.15: a median of {clearly.median:,.0f} items, FAIL {clearly.failed:.3f}"


if __name__ == "__main__":
    show(lines, 2000)
