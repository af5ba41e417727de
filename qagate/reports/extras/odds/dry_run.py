"""``--dry-run``: the calls and the cost of a run, and how its gates may end."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from qagate.cases.dataset import Dataset, Plan, clusters_in
from qagate.evaluators.core import Outcome, Reply
from qagate.evaluators.judges import forecast as costs
from qagate.evaluators.judges.forecast import Forecast, Kept
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.sqlite import exists
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.output import plural
from qagate.evaluators.runtime.budget import (
    VERDICT_TOKENS,
    Pricing,
    money,
    part_of_cost,
)
from qagate.evaluators.runtime.engine import Task
from qagate.evaluators.text import fresh_key
from qagate.reports.extras.odds import odds as chances
from qagate.reports.extras.sequential.early_stopping import stoppable
from qagate.reports.gates.decide import Clusters, SessionFacts
from qagate.reports.judge.judging import calibrations_in
from qagate.reports.plugin.collected import check_collected
from qagate.reports.plugin.options import RunOptions
from qagate.reports.plugin.run import EngineRun
from qagate.reports.plugin.session_results import SessionResults
from qagate.reports.render.console import wrapped
from qagate.reports.verdict.assemble import Facts, ReportInputs

T = TypeVar("T")
Shares = list[tuple[float, dict[str, float]]]
"""Shares of pairs that may differ, each with the share of items asked of each slice."""

REPLIES_PER_QUERY = 1_000
EXTRAS = (
    "extra metrics: as many calls as they usually take; what they ask depends on the replies, and "
    "the steps of a geval_ metric are asked once for all items"
)
BATCHED = (
    f"in batches the most counts {VERDICT_TOKENS} tokens a verdict, unless max_tokens in the "
    "models file says otherwise"
)


class DryRun:
    """Replaces the controller in a dry run: no engine, no key, no file is written."""

    def __init__(self, options: RunOptions, plan: Plan, root: Path) -> None:
        # A limit needs prices, and a dry run does not.
        self._run = run = EngineRun(
            replace(options, max_cost=None), plan, root, calling=False
        )
        self._options, self._plan = options, plan
        self._tasks, self._specs = run.tasks, run.connected.specs
        self._earlier = self._baseline, _ = run.earlier
        self._prefixes: costs.Prefixes | None = None if options.batch else set()
        prices = run.pricing.items()
        self._prices = {
            text: one and one.of_calls(batch=options.batch) for text, one in prices
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Show the plan instead of running the tests."""
        results = SessionResults(self._plan)
        keys = results.planned_among(item.nodeid for item in session.items)
        check_collected(session.config, self._plan, keys)
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.section("qa plan: nothing is called")
            for line in self._lines(keys):
                reporter.write_line(line)
                reporter.flush()
        return True

    def _lines(self, keys: Sequence[str]) -> Iterator[str]:
        items = Counter(self._plan.items[key].slice.name for key in keys)
        forecasts = self._forecasts([self._tasks[key] for key in keys])
        shares = self._shares(keys) if self._options.until_decided else []
        for name, forecast in forecasts.items():
            yield from plan_lines(name, items[name], forecast)
            if shares and name in shares[0][1]:
                yield sequence_line(items, {name: forecast}, shares, Forecast())
        calibrator = self._run.calibrator
        labels = [calibrator.tasks[key] for key in calibrator.select(keys)]
        judged = sum(self._forecasts(labels).values(), Forecast())
        if labels:
            yield from plan_lines("calibration", len(labels), judged)
        if forecasts:
            yield from plan_lines("all", len(keys), sum(forecasts.values(), judged))
            if shares:
                yield sequence_line(items, forecasts, shares, judged)
        notes = [EXTRAS] if any(self._tasks[key].metric_runners for key in keys) else []
        notes += [BATCHED] if self._options.batch else []
        notes += [*calibrator.distrusted(), *self._powers(keys)]
        for text in (*assumptions(self._specs, self._prices), *notes):
            yield from wrapped(text)
        odds = list(self._odds(keys))
        for text in odds[1:] and odds:  # the totals say one alone
            yield from wrapped(text)
        yield from totals(sum(forecasts.values(), judged), odds)

    def _forecasts(self, tasks: Sequence[Task]) -> dict[str, Forecast]:
        async def calls(recorded: Kept) -> list[list[costs.Call]]:
            return [await costs.calls_ahead(task, recorded) for task in tasks]

        found: dict[str, Forecast] = {}
        for task, ahead in zip(tasks, self._with_ledger(calls), strict=True):
            name = f"{task.case.dataset}:{task.case.language}"
            forecast = costs.make_forecast(
                ahead, self._specs, self._prices, self._prefixes
            )
            found[name] = found.get(name, Forecast()) + forecast
        return found

    def _with_ledger(self, work: Callable[[Kept], Coroutine[Any, Any, T]]) -> T:
        """Return the result of ``work``, repeated until a remote ledger has given all replies."""
        place, name = self._options.ledger, self._options.fresh
        if not (self._specs and exists(place)):
            return asyncio.run(work(lambda key: None))
        with Ledger(place, read_only=True) as ledger:
            if ledger.store.near:
                return asyncio.run(work(lambda key: ledger.get(fresh_key(key, name))))
            found: dict[str, Reply] = {}
            wanted: list[str] = []

            def look(key: str) -> Reply | None:
                wanted.extend({fresh_key(key, name)} - found.keys())
                return found.get(fresh_key(key, name))

            while True:
                wanted.clear()
                result, before = asyncio.run(work(look)), len(found)
                for start in range(0, len(wanted), REPLIES_PER_QUERY):
                    found |= ledger.replies(wanted[start : start + REPLIES_PER_QUERY])
                if len(found) == before:
                    return result

    def _shares(self, keys: Sequence[str]) -> Shares:
        paired, earlier = any(self._earlier), self._baseline
        queues, found = stoppable(self._plan, paired=paired), Shares()
        known = tuple(calibrations_in(earlier))
        for differ in chances.known_discordance(earlier)[0] if queues else ():
            shares = dict[str, float]()
            for dataset, clusters in self._clusters(keys):
                shares |= chances.expected_shares(
                    dataset,
                    clusters,
                    baseline=paired,
                    discordance=differ,
                    calibrations=known,
                )
            found.append(
                (differ, {name: one for name, one in shares.items() if name in queues})
            )
        return found

    def _clusters(self, keys: Sequence[str]) -> Iterator[tuple[Dataset, Clusters]]:
        planned = [self._plan.items[key] for key in keys]
        for dataset in self._plan.datasets:
            own = (item for item in planned if item.slice.dataset == dataset.name)
            yield dataset, clusters_in((item.slice, item.case) for item in own)

    def _powers(self, keys: Sequence[str]) -> Iterator[str]:
        shares, _ = chances.known_discordance(self._baseline)
        earlier = any(self._earlier)
        alike: dict[str, list[str]] = {}
        for dataset, clusters in (
            () if self._options.gates_off else self._clusters(keys)
        ):
            lines = chances.power_lines(
                dataset, clusters, baseline=earlier, discordances=shares
            )
            for line in lines:
                gate, _, power = line.partition(": ")
                alike.setdefault(power, []).append(gate)
        yield from (f"{', '.join(gates)}: {power}" for power, gates in alike.items())

    def _odds(self, keys: Sequence[str]) -> Iterator[str]:
        items = [self._plan.items[key] for key in keys]
        if self._options.gates_off or not any(one.slice.kind.answered for one in items):
            return

        async def outcomes(wanted: Sequence[str], recorded: Kept) -> dict[str, Outcome]:
            tasks = (self._tasks[key] for key in wanted)
            return {
                task.key: await costs.known_outcome(task, recorded) for task in tasks
            }

        def known(wanted: Sequence[str]) -> dict[str, Outcome]:
            return self._with_ledger(partial(outcomes, wanted))

        judge = " ".join(self._options.judges)
        records = chances.known_records(items, self._baseline, known, judge)
        graded = sum(one.is_graded for one in records)
        if 2 * graded < len(records):
            of = f"{graded:,} of {plural(len(records), 'item')}"
            yield f"odds of the gates: not known, as only {of} have a verdict; give --baseline=RUN"
            return
        known_here = {item.slice.name for item in items}
        elsewhere = (
            replace(one, source="session")
            for one in calibrations_in(self._baseline)
            if f"{one.dataset}:{one.language}" not in known_here
        )
        # The judge's errors are known only where it was measured; a shard foretells its own end.
        datasets = tuple(
            replace(one, judge_unmeasured=True) for one in self._plan.datasets
        )
        alone = replace(self._plan, datasets=datasets, shard=None)
        inputs = ReportInputs.of(alone, records, tuple(elsewhere))
        facts = Facts(
            model=self._options.model,
            judge=judge,
            session=SessionFacts(),
            provenance={},
            run={},
        )
        simulation = chances.Simulation(inputs, facts, *self._earlier)
        yield from simulation.lines(*chances.known_discordance(self._baseline))


def plan_lines(name: str, items: int, forecast: Forecast) -> Iterator[str]:
    """Yield a slice's items and calls, then tokens and cost of the calls not recorded yet."""
    yield f"{name:<20} {items:>6} items {forecast.calls:>6} calls"
    if not forecast.calls:
        return
    known = (
        f"{forecast.kept:,} of them recorded (free)"
        if forecast.kept
        else "none recorded"
    )
    tokens = f"about {forecast.tokens_in:,} tokens in, {forecast.tokens_out:,} out"
    if None in (forecast.cost, forecast.cached, forecast.most):
        yield f"    {known}; {tokens}; cost {part_of_cost(forecast.known)}"
        return
    ways = (forecast.cost, forecast.cached, forecast.most)
    plain, cached, most = (money(one or 0.0) for one in ways)
    yield f"    {known}; {tokens}; about {plain}, at most {most}"
    if cached != plain:
        yield f"    with caching expected {cached}"


def totals(whole: Forecast, odds: Sequence[str]) -> Iterator[str]:
    """Yield the last three lines: calls, USD, and of the odds those for an unchanged model."""
    yield f"calls: {whole.calls - whole.kept:,} to make, {whole.kept:,} recorded"
    if whole.cost is None or whole.most is None:
        yield "USD: unknown, for want of a price"
    else:
        cached = whole.cached not in (None, whole.cost)
        less = (
            f", {money(whole.cached or 0.0)} with the provider's cache"
            if cached
            else ""
        )
        yield f"USD: about {money(whole.cost)}{less}, at most {money(whole.most)}"
    said = (
        [*odds[1:2], *odds[:1], "no gate decides"][0]
        .strip()
        .removeprefix("odds of the gates: ")
    )
    codes, _, model = said.partition(": ")
    yield f"odds: {codes} ({model})" if model else f"odds: {codes}"


def sequence_line(
    items: Counter[str], forecasts: dict[str, Forecast], shares: Shares, fixed: Forecast
) -> str:
    """Return items and cost of slices that stop early, and of all; ``fixed`` calls come on top."""
    unpriced = None in (fixed.cost, *(one.cost for one in forecasts.values()))
    asked, paid = [], []
    for _, parts in (*shares, (0.0, {})):
        asked.append(
            f"{sum(parts.get(name, 1.0) * items[name] for name in forecasts):,.0f}"
        )
        known = fixed.known
        known += sum(
            parts.get(name, 1.0) * one.known for name, one in forecasts.items()
        )
        paid.append(part_of_cost(known) if unpriced else money(known))
    whole, less = (
        f"{asked.pop()}, {paid.pop()}",
        f", {chances.either(dict.fromkeys(paid))}",
    )
    differ = chances.either(f"{100 * share:.2g}" for share, _ in shares)
    return (
        f"    until decided, if unchanged and {differ} % differ: about {chances.either(asked)} "
        f"items{less}; all: {whole}"
    )


def assumptions(
    specs: Mapping[str, Spec], prices: Mapping[str, Pricing | None]
) -> Iterator[str]:
    """Yield the assumptions of the estimate, the sources of prices, and unknown prices."""
    if not specs:
        return
    yield (
        f"estimate: {costs.BYTES_PER_TOKEN:g} bytes of text a token, {costs.REPLY_TOKENS} tokens a "
        "reply, no retries; judge calls of answers not recorded yet: an upper bound; with caching: "
        f"one call writes a rubric of {costs.CACHEABLE_TOKENS:,} tokens and more to the provider's "
        "cache, the others read it"
    )
    if sources := [f"{text} from {one.source}" for text, one in prices.items() if one]:
        yield f"prices: {', '.join(sources)}"
    if unknown := [text for text, pricing in prices.items() if pricing is None]:
        yield f"price unknown: {', '.join(unknown)}; give prices in a models file (--models)"
