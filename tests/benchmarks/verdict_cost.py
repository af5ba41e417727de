"""What a verdict costs, in four ways: ``python -m tests.benchmarks.verdict_cost``.

Does the new model drop by more than the margin? *Fixed* asks all items of the new model and has a
model judge every answer; *cascade* has rules judge where they are sure; *sequential* stops as soon
as the gate is decided (``--until-decided``); *both* does both. The stated error is the same: a
model worse by just the margin passes with at most 2.5 %. The rules are taken to be right where they
are sure, and the judge to be right everywhere.

Calls and tokens of an item are the dry run's, over the bundled English questions and their recorded
answers; prices are those of the genai-prices package. Pairs are drawn here, each on its own: the
new model breaks an answer with one probability and mends it with another. Only the bets on them,
and the exact power of the fixed plan, are the product's.
"""

import asyncio
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

from cases.dataset import Plan, Selection
from cases.plan import make_plan
from cases.tasks import make_tasks
from evaluators.answerers import RECORDED
from evaluators.judges.forecast import Forecast, calls_ahead, make_forecast
from evaluators.output import markdown_table, say
from evaluators.runtime.prices import pricing_of
from evaluators.statistics.betting import ENOUGH, Observations, log_capital
from evaluators.statistics.paired import power, tango
from reports.plugin.early_stopping import FEWEST
from reports.plugin.options import read_options
from reports.plugin.run import connect_models

SEED = 20261122
MODEL, JUDGE = "openai:gpt-4.1", "anthropic:claude-opus-4-1"
DISCORDANCE = 0.1
PRICED_ON = date(2026, 11, 22)
WAYS = (
    ("fixed", False, False),
    ("cascade", False, True),
    ("sequential", True, False),
    ("both", True, True),
)
HEADER = ("way", "items", "calls", "tokens", "USD", "PASS, unchanged", "PASS, worse by the margin")
CASES = Path(__file__).parents[2] / "cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is compared: so many facts, each asked in so many languages, and the gate's margin.

    ``discordance`` is the share of pairs that differ, ``concurrency`` the calls in flight.
    """

    name: str
    facts: int
    languages: int
    margin: float
    discordance: float = DISCORDANCE
    concurrency: int = 16

    @property
    def items(self) -> int:
        """How many items a fixed plan asks."""
        return self.facts * self.languages


BUNDLED = Setting(name="bundled SimpleQA, pooled", facts=60, languages=4, margin=0.10)
WHOLE = Setting(name="4,326 items", facts=4326, languages=1, margin=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """How simulated runs ended: how many items each paid for, and whether it passed or failed."""

    paid: tuple[int, ...]
    passed: float
    failed: float

    @property
    def median(self) -> float:
        """The median of the items paid for."""
        return float(np.median(self.paid))


def simulate(setting: Setting, drop: float, runs: int) -> Ends:
    """Return how runs end that stop once they are decided, if the truth dropped by so much.

    What is in hand then is paid for as well. A FAIL is one beyond the margin (``fail: margin``).
    """
    random = np.random.default_rng(SEED)
    differ = setting.discordance
    chances = [(differ + drop) / 2, 1 - differ, (differ - drop) / 2]
    paid, states = [], []
    for _ in range(runs):
        changes = random.choice(
            [-1.0, 0.0, 1.0], p=chances, size=(setting.facts, setting.languages)
        )
        seen = Observations(
            totals=changes.sum(axis=1),
            sizes=np.full(setting.facts, float(setting.languages)),
            bound=1.0,
            largest=setting.languages,
        )
        capitals = (log_capital(seen, -setting.margin), log_capital(seen.mirrored, setting.margin))
        ends = [_first(one) for one in capitals]
        asked = min(min(ends) * setting.languages, setting.items)
        in_hand = min(2 * setting.concurrency, max(FEWEST, asked // 8))
        paid.append(min(asked + in_hand, setting.items))
        states.append(math.isfinite(min(ends)) and ("PASS" if ends[0] < ends[1] else "FAIL"))
    return Ends(
        paid=tuple(map(int, paid)),
        passed=states.count("PASS") / runs,
        failed=states.count("FAIL") / runs,
    )


def _first(capital: npt.NDArray[np.float64]) -> float:
    enough = capital >= math.log(ENOUGH)
    return float(enough.argmax()) + 1 if enough.any() else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
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


class _Nothing:
    """pytest's config with no option given."""

    def getoption(self, name: str) -> None:
        return None


def price_of_items() -> Price:
    """Return what the bundled English questions take, by the dry run's own forecast."""
    plan = make_plan([CASES / "simpleqa" / "dataset.yaml"], Selection(languages=("en",)))
    return Price(
        items=len(plan.items),
        answers=_forecast(plan, MODEL, "lexical"),
        judge=_forecast(plan, RECORDED, JUDGE),
        cascade=_forecast(plan, RECORDED, f"lexical+{JUDGE}"),
    )


def _forecast(plan: Plan, model: str, judge: str) -> Forecast:
    blank = read_options(cast("pytest.Config", _Nothing()), Path())
    connected = connect_models(replace(blank, model=model, judges=(judge,)), needs_key=False)
    tasks = make_tasks(plan.items.values(), connected.model, connected.judges)
    prices = {text: pricing_of(spec, PRICED_ON) for text, spec in connected.specs.items()}
    calls = [
        call for task in tasks.values() for call in asyncio.run(calls_ahead(task, lambda key: None))
    ]
    return make_forecast(calls, connected.specs, prices, set())


def table(setting: Setting, price: Price, runs: int) -> list[str]:
    """Return the lines of a table: what a verdict takes in each of the four ways."""
    unchanged = simulate(setting, 0.0, runs)
    worse = simulate(setting, setting.margin, runs)
    exact = [
        power(setting.items, -setting.margin, DISCORDANCE),
        # At the margin itself: how likely the interval lies above it, by chance.
        _wrong(setting),
    ]
    rows = []
    for name, sequential, cascade in WAYS:
        items = float(np.mean(unchanged.paid)) if sequential else setting.items
        calls, tokens, cost = price.of(items, cascade=cascade)
        chances = [unchanged.passed, worse.passed] if sequential else exact
        shown = (f"{items:,.0f}", f"{calls:,}", f"{tokens:,}", f"{cost:,.2f}")
        rows.append((name, *shown, *(f"{one:.3f}" for one in chances)))
    return markdown_table(HEADER, rows)


def _wrong(setting: Setting, runs: int = 4000) -> float:
    """Return how often a fixed plan passes a model that is worse by the margin, simulated."""
    random = np.random.default_rng(SEED)
    chances = [(DISCORDANCE + setting.margin) / 2, (DISCORDANCE - setting.margin) / 2]
    counts = random.multinomial(setting.items, [*chances, 1 - sum(chances)], size=runs)
    ends = [tango(int(fixed), int(broke), setting.items) for broke, fixed, _ in counts]
    return sum(end is not None and end[0] > -setting.margin for end in ends) / runs


def main(arguments: Sequence[str]) -> int:
    """Print the tables and the bars; the first argument is the number of simulated runs."""
    runs = int(arguments[0]) if arguments else 2000
    price = price_of_items()
    say(
        sys.stdout,
        f"{runs:,} runs, seed {SEED}; {DISCORDANCE:.0%} of pairs differ; model {MODEL}, judge "
        f"{JUDGE}, prices of {PRICED_ON}; rules settle "
        f"{1 - price.cascade.calls / price.judge.calls:.0%} of the answers",
    )
    for setting in (BUNDLED, WHOLE):
        say(sys.stdout, "", f"{setting.name}, margin {setting.margin:g}", "")
        say(sys.stdout, *table(setting, price, runs))
    unchanged, worse = (simulate(WHOLE, drop, runs) for drop in (0.0, WHOLE.margin))
    many = simulate(replace(WHOLE, concurrency=128), 0.0, runs)
    clearly = simulate(replace(WHOLE, discordance=0.2), 0.15, runs)
    say(
        sys.stdout,
        "",
        f"unchanged: a median of {unchanged.median:,.0f} items paid for, "
        f"{many.median:,.0f} with 128 calls in flight",
        f"worse by the margin: ever passes {worse.passed:.4f}",
        f"worse by 0.15: a median of {clearly.median:,.0f} items, FAIL {clearly.failed:.3f}",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
