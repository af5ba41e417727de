"""``--dry-run``: what a run would ask and cost, and what its gates could tell."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cases.plan import Plan
from cases.tasks import make_tasks
from evaluators.ledger import Ledger
from evaluators.models.spec import Spec
from evaluators.runtime.budget import money
from evaluators.runtime.engine import Task
from evaluators.runtime.forecast import (
    BYTES_PER_TOKEN,
    REPLY_TOKENS,
    Call,
    Forecast,
    Kept,
    calls_ahead,
    foreseen,
)
from evaluators.runtime.prices import Pricing, pricing_of
from reports.gates.power import power_lines
from reports.plugin.book import SessionResults
from reports.plugin.calibrator import Calibrator, find_labelled, way_of
from reports.plugin.finish import read_baseline
from reports.plugin.options import Options
from reports.plugin.run_models import adjudications_of, connect_models
from reports.render.console import wrapped

EXTRAS = (
    "extra measures: as many calls as they usually take; what they ask hangs on the replies, and "
    "the steps of a geval_ metric are asked once for all items"
)


class DryRun:
    """Takes the controller's place in a dry run: no engine, no key, no file is written."""

    def __init__(self, options: Options, plan: Plan) -> None:
        read_baseline(options.baseline)
        parties = connect_models(options, needs_key=False)
        self._judge = parties.judges
        self._options = options
        self._plan = plan
        self._book = SessionResults(plan)
        kept = adjudications_of(options, plan)
        self._tasks = make_tasks(plan.items.values(), parties.model, parties.judges, kept)
        self._specs = {spec.text: spec for spec in parties.specs}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Show the plan in place of running the tests."""
        keys = self._book.select([item.nodeid for item in session.items])
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.section("qa plan: nothing is called")
            for line in self._lines(keys, session.config.rootpath):
                reporter.write_line(line)
        return True

    def _lines(self, keys: Sequence[str], root: Path) -> Iterator[str]:
        today = datetime.now(UTC).date()
        tariffs = {text: pricing_of(spec, today) for text, spec in self._specs.items()}
        items = Counter(self._plan.items[key].slice.name for key in keys)
        forecasts = self._forecasts([self._tasks[key] for key in keys], tariffs)
        for name, forecast in forecasts.items():
            yield from plan_lines(name, items[name], forecast)
        beside = self._beside(keys, root)
        judged = sum(self._forecasts(beside, tariffs).values(), Forecast())
        if beside:
            yield from plan_lines("calibration", len(beside), judged)
        if forecasts:
            yield from plan_lines("all", len(keys), sum(forecasts.values(), judged))
        extras = any(self._tasks[key].measurers for key in keys)
        notes = (EXTRAS,) if extras else ()
        for text in (*assumptions(self._specs, tariffs), *notes, *self._powers(keys)):
            yield from wrapped(text)

    def _beside(self, keys: Sequence[str], root: Path) -> list[Task]:
        """Return the labelled items that would measure the judge."""
        labelled = find_labelled(self._options, self._plan, root)
        calibrator = Calibrator.of(self._plan, labelled, way_of(self._options), self._judge)
        return [calibrator.tasks[key] for key in calibrator.select(keys)]

    def _forecasts(
        self, tasks: Sequence[Task], tariffs: Mapping[str, Pricing | None]
    ) -> dict[str, Forecast]:
        found: dict[str, Forecast] = {}
        with ExitStack() as stack:
            calls = asyncio.run(_calls(tasks, self._kept(stack)))
        for task, ahead in zip(tasks, calls, strict=True):
            name = f"{task.case.dataset}:{task.case.language}"
            found[name] = found.get(name, Forecast()) + foreseen(ahead, self._specs, tariffs)
        return found

    def _kept(self, stack: ExitStack) -> Kept:
        path = self._options.ledger
        if not (self._specs and path.is_file()):
            return lambda key: None
        return stack.enter_context(Ledger(path, read_only=True)).get

    def _powers(self, keys: Sequence[str]) -> Iterator[str]:
        planned = [self._plan.items[key] for key in keys]
        for dataset in () if self._options.gates_off else self._plan.datasets:
            ids = {
                (item.slice.language, item.case.id)
                for item in planned
                if item.slice.dataset == dataset.name
            }
            items = Counter(language for language, _ in sorted(ids))
            yield from power_lines(dataset, items, baseline=self._options.baseline is not None)


async def _calls(tasks: Sequence[Task], kept: Kept) -> list[list[Call]]:
    return [await calls_ahead(task, kept) for task in tasks]


def plan_lines(name: str, items: int, forecast: Forecast) -> Iterator[str]:
    """Yield a slice's items and calls, then what the calls that are not kept take."""
    yield f"{name:<20} {items:>6} items {forecast.calls:>6} calls"
    if not forecast.calls:
        return
    known = f"{forecast.kept:,} of them recorded (free)" if forecast.kept else "none recorded"
    tokens = f"about {forecast.tokens_in:,} tokens in, {forecast.tokens_out:,} out"
    cost = "cost unknown"
    if forecast.cost is not None and forecast.most is not None:
        cost = f"about {money(forecast.cost)}, at most {money(forecast.most)}"
    yield f"    {known}; {tokens}; {cost}"


def assumptions(specs: Mapping[str, Spec], tariffs: Mapping[str, Pricing | None]) -> Iterator[str]:
    """Yield what the estimate rests on, and whose price is not known."""
    if not specs:
        return
    yield (
        f"estimate: {BYTES_PER_TOKEN:g} bytes of text a token, {REPLY_TOKENS} tokens a reply, no "
        "retries; judge calls of answers not recorded yet: at most so many"
    )
    sources = [f"{text} from {tariff.source}" for text, tariff in tariffs.items() if tariff]
    if sources:
        yield f"prices: {', '.join(sources)}"
    unknown = [text for text, tariff in tariffs.items() if tariff is None]
    if unknown:
        yield f"price unknown: {', '.join(unknown)}; give prices in evaluators/models.yaml"
