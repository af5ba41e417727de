"""``--dry-run``: the calls and the cost of a run, and how its gates may end.

The run is planned as usual, and then forecast in place of being made. Nothing is asked and
nothing is written: it needs no key, and reads from the ledger what is there already.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pytest

from qagate.cases.dataset import Dataset, Plan, clusters_in
from qagate.evaluators.core import Outcome
from qagate.evaluators.judges.rule_checks import checks_in_part
from qagate.evaluators.models.pricing import Pricing
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.number_text import money, part_of_cost
from qagate.evaluators.output import plural
from qagate.evaluators.runtime import forecast as costs
from qagate.evaluators.runtime.budget import VERDICT_TOKENS
from qagate.evaluators.runtime.forecast import Forecast, KeptReplies
from qagate.evaluators.runtime.task import Task
from qagate.reports.extras.odds import odds as chances
from qagate.reports.extras.odds.kept_replies import KeptElsewhere, Work
from qagate.reports.extras.sequential.early_stopping import UNTIL_DECIDED, stoppable
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.gates.notes import Clusters
from qagate.reports.judge.labels import LabelSet, label_sets_in
from qagate.reports.plugin.collected import check_collected
from qagate.reports.plugin.feature import Feature
from qagate.reports.plugin.options import RunOptions
from qagate.reports.plugin.run import EngineRun
from qagate.reports.plugin.session_results import SessionResults
from qagate.reports.render.console import wrapped
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import Record
from qagate.reports.verdict.assemble import Facts, ReportInputs

T = TypeVar("T")
ExpectedShares = list[tuple[float, dict[str, float]]]
"""Shares of pairs that may differ, each with the share of items asked of each slice."""

EXTRAS = (
    "extra metrics: as many calls as they usually take; what they ask depends on the replies, and "
    "the steps of a geval_ metric are asked once for all items"
)
BATCHED = (
    f"in batches the most counts {VERDICT_TOKENS} tokens a verdict, unless max_tokens in the "
    "models file says otherwise"
)


class DryRun(Feature):
    """The feature of the plugin: shows the plan of a run in place of making it."""

    is_rehearsal = True

    def __init__(self) -> None:
        self._preview: RunPreview | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the run in this one process: there is nothing to distribute."""
        config.option.numprocesses = None
        config.option.tx = []
        config.option.dist = "no"

    def rehearse(self, options: RunOptions, plan: Plan, root: Path) -> None:
        """Prepare the forecast of this run. Raises UsageError as the run would."""
        self._preview = RunPreview(options, plan, root)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Show the plan instead of running the tests."""
        if self._preview is None:
            return None
        keys = self._preview.select(session)
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.section("qa plan: nothing is called")
            for line in self._preview.lines(keys):
                reporter.write_line(line)
                reporter.flush()
        return True


class RunPreview:
    """What a run would ask, what that would cost, and how its gates may end."""

    def __init__(self, options: RunOptions, plan: Plan, root: Path) -> None:
        # A limit on the cost needs prices, and a dry run does not.
        unlimited = replace(options, max_cost=None)
        run = EngineRun(unlimited, plan, root, calling=False)
        self._options = options
        self._plan = plan
        self._tasks = run.tasks
        self._specs = run.connected.specs
        self._calibrator = run.calibrator
        self._judge_replies = run.judge_replies
        self._baseline, self._anchor = run.earlier
        self._is_paired = any(run.earlier)
        self._prefixes: costs.Prefixes | None = None if options.batch else set()
        """What calls before have put into the provider's cache; None where nothing is cached."""
        self._calls_of_items: dict[str, list[costs.Call]] = {}
        """The calls of each item that was looked at, by its key."""
        self._prices: dict[str, Pricing | None] = {}
        for text, pricing in run.pricing.items():
            self._prices[text] = None
            if pricing is not None:
                self._prices[text] = pricing.of_calls(batch=options.batch)

    def select(self, session: pytest.Session) -> tuple[str, ...]:
        """Return the keys of the items whose tests were collected. Raises UsageError for none."""
        results = SessionResults(self._plan)
        keys = results.planned_among(item.nodeid for item in session.items)
        check_collected(session.config, self._plan, keys)
        return keys

    def lines(self, keys: Sequence[str]) -> Iterator[str]:
        """Yield what is shown of a run over these items: slices, notes, odds, totals."""
        items = Counter(self._plan.items[key].slice.name for key in keys)
        forecasts = self._forecasts([self._tasks[key] for key in keys])
        stops_early = UNTIL_DECIDED in self._options.features
        shares = self._expected_shares(keys) if stops_early else []
        for name, forecast in forecasts.items():
            yield from plan_lines(name, items[name], forecast)
            if shares and name in shares[0][1]:
                yield sequence_line(items, {name: forecast}, shares, Forecast())
        labelled = self._calibrator.select(keys)
        judged = sum(
            self._forecasts([self._calibrator.tasks[key] for key in labelled]).values(),
            Forecast(),
        )
        if labelled:
            yield from plan_lines("calibration", len(labelled), judged)
        readings, anew = self._reading_forecasts(keys)
        for role, forecast in readings.items():
            yield from plan_lines(f"{role}'s answers", forecast.calls, forecast)
            judged += forecast
        canaries = self._canary_forecast(keys, labelled)
        if canaries.calls:
            yield from plan_lines("canaries", canaries.calls, canaries)
            judged += canaries
        checks = self._rule_check_forecast(keys)
        if checks.calls:
            yield from plan_lines("checks of rules", checks.calls, checks)
            judged += checks
        for line in self._judged_anew(anew):
            yield from wrapped(line)
        whole = sum(forecasts.values(), judged)
        if forecasts:
            yield from plan_lines("all", len(keys), whole)
            if shares:
                yield sequence_line(items, forecasts, shares, judged)
        for note in self._notes(keys):
            yield from wrapped(note)
        odds = list(self._odds(keys))
        if len(odds) > 1:  # the totals say a single line themselves
            for line in odds:
                yield from wrapped(line)
        yield from totals(whole, odds)

    def _notes(self, keys: Sequence[str]) -> Iterator[str]:
        yield from assumptions(self._specs, self._prices)
        if any(self._tasks[key].metric_runners for key in keys):
            yield EXTRAS
        if self._options.batch:
            yield BATCHED
        yield from self._calibrator.distrusted()
        yield from self._powers(keys)

    # Calls and cost

    def _forecasts(self, tasks: Sequence[Task]) -> dict[str, Forecast]:
        """Return the forecast of these tasks by slice."""

        async def all_calls(kept: KeptReplies) -> list[list[costs.Call]]:
            return [await costs.calls_ahead(task, kept) for task in tasks]

        forecasts: dict[str, Forecast] = {}
        for task, calls in zip(tasks, self._kept(all_calls), strict=True):
            self._calls_of_items[task.key] = calls
            name = f"{task.case.dataset}:{task.case.language}"
            forecast = self._forecast(calls)
            forecasts[name] = forecasts.get(name, Forecast()) + forecast
        return forecasts

    def _reading_forecasts(
        self, keys: Sequence[str]
    ) -> tuple[dict[str, Forecast], Counter[tuple[str, str]]]:
        """Return what it takes to read earlier runs' answers, by role.

        The second is how many are judged anew, by role and slice. The calls of the items have been
        looked at before (``_forecasts``).
        """
        with_readings = [key for key in keys if self._tasks[key].readings]

        async def all_calls(kept: KeptReplies) -> list[dict[str, list[costs.Call]]]:
            calls = []
            for key in with_readings:
                calls_of_item = self._calls_of_items[key]
                calls.append(
                    await costs.reading_calls(self._tasks[key], kept, calls_of_item)
                )
            return calls

        forecasts: dict[str, Forecast] = {}
        anew: Counter[tuple[str, str]] = Counter()
        calls_of_items = self._kept(all_calls) if with_readings else []
        for key, by_name in zip(with_readings, calls_of_items, strict=True):
            for name, calls in by_name.items():
                role, _, _ = name.partition(":")
                forecast = self._forecast(calls)
                forecasts[role] = forecasts.get(role, Forecast()) + forecast
                if forecast.kept < forecast.calls:
                    anew[role, self._plan.items[key].slice.name] += 1
        return forecasts, anew

    def _canary_forecast(
        self, keys: Sequence[str], labelled: Sequence[str]
    ) -> Forecast:
        """Return what it takes to ask kept grades anew."""
        tasks = [self._tasks[key] for key in keys]
        tasks += [self._calibrator.tasks[key] for key in labelled]

        async def calls(kept: KeptReplies) -> list[costs.Call]:
            return await costs.canary_calls(tasks, kept)

        return self._forecast(self._kept(calls))

    def _rule_check_forecast(self, keys: Sequence[str]) -> Forecast:
        """Return what it takes to check rules before a model."""
        tasks = [self._tasks[key] for key in keys]
        shard = self._plan.shard
        most = checks_in_part(1 if shard is None else shard.of)

        async def calls(kept: KeptReplies) -> list[costs.Call]:
            return await costs.rule_check_calls(tasks, kept, most)

        return self._forecast(self._kept(calls))

    def _forecast(self, calls: Sequence[costs.Call]) -> Forecast:
        return costs.make_forecast(calls, self._specs, self._prices, self._prefixes)

    def _kept(self, work: Work[T]) -> T:
        """Return the result of ``work``, which is given the kept replies."""
        if not self._specs:
            return asyncio.run(work(costs.NOTHING_KEPT))
        elsewhere = KeptElsewhere(
            self._options.ledger, self._judge_replies, self._options.fresh
        )
        return elsewhere.do(work)

    def _judged_anew(self, anew: Counter[tuple[str, str]]) -> Iterator[str]:
        """Yield why earlier runs' answers are judged anew, one line a run and cause."""
        for earlier in (self._baseline, self._anchor):
            if earlier is None:
                continue
            causes: Counter[str] = Counter()
            for (role, slice_name), count in anew.items():
                if role == earlier.role:
                    causes[self._why_anew(earlier, slice_name)] += count
            for why, count in causes.items():
                yield costs.judged_anew(count, Path(earlier.path).name, why)

    def _why_anew(self, earlier: Baseline, slice_name: str) -> str:
        rubric_then = ""
        for dataset in earlier.report.datasets:
            for slice_ in dataset.slices.values():
                if slice_.name == slice_name and slice_.rubric is not None:
                    rubric_then = slice_.rubric.version
        rubric_now = ""
        for item in self._plan.items.values():
            if item.slice.name == slice_name and item.slice.rubric is not None:
                rubric_now = item.slice.rubric.version
                break
        then = costs.GradedBy(judge=earlier.report.judge, rubric=rubric_then)
        now = costs.GradedBy(
            judge=" ".join(self._options.judges),
            rubric=rubric_now,
            fresh=self._options.fresh,
        )
        return costs.why_anew(then, now)

    # Gates

    def _clusters(self, keys: Sequence[str]) -> Iterator[tuple[Dataset, Clusters]]:
        """Yield each data set with the independent units of its selected items."""
        selected = [self._plan.items[key] for key in keys]
        for dataset in self._plan.datasets:
            pairs = []
            for item in selected:
                if item.slice.dataset == dataset.name:
                    pairs.append((item.slice, item.case))
            yield dataset, clusters_in(pairs)

    def _expected_shares(self, keys: Sequence[str]) -> ExpectedShares:
        """Return how much of each slice that can stop early is asked if nothing has changed."""
        queues = stoppable(self._plan, paired=self._is_paired)
        if not queues:
            return []
        sets = label_sets_in(self._baseline.report) if self._baseline else []
        discordances, _ = chances.known_discordance(self._baseline)
        expected: ExpectedShares = []
        for discordance in discordances:
            shares: dict[str, float] = {}
            for dataset, clusters in self._clusters(keys):
                shares |= chances.expected_shares(
                    dataset,
                    clusters,
                    baseline=self._is_paired,
                    discordance=discordance,
                    sets=sets,
                )
            of_queues = {
                name: share for name, share in shares.items() if name in queues
            }
            expected.append((discordance, of_queues))
        return expected

    def _powers(self, keys: Sequence[str]) -> Iterator[str]:
        """Yield what each gate on a change can show, gates of the same power on one line."""
        if self._options.gates_off:
            return
        discordances, _ = chances.known_discordance(self._baseline)
        gates_by_power: dict[str, list[str]] = {}
        for dataset, clusters in self._clusters(keys):
            lines = chances.power_lines(
                dataset,
                clusters,
                baseline=self._is_paired,
                discordances=discordances,
                sets=self._label_sets,
            )
            for line in lines:
                gate, _, power = line.partition(": ")
                gates_by_power.setdefault(power, []).append(gate)
        for power, gates in gates_by_power.items():
            yield f"{', '.join(gates)}: {power}"

    @cached_property
    def _label_sets(self) -> list[LabelSet]:
        """Return the labels as the earlier run's judge graded them, else as one without errors."""
        sets = label_sets_in(self._baseline.report) if self._baseline else []
        return sets or self._calibrator.sets_without_errors()

    def _odds(self, keys: Sequence[str]) -> Iterator[str]:
        """Yield how often simulated runs end with each exit code, if enough is known."""
        items = [self._plan.items[key] for key in keys]
        are_answered = any(item.slice.kind.answered for item in items)
        if self._options.gates_off or not are_answered:
            return
        judge = " ".join(self._options.judges)
        records = chances.known_records(
            items, self._baseline, self._known_outcomes, judge
        )
        graded = sum(record.is_graded for record in records)
        if 2 * graded < len(records):
            share = f"{graded:,} of {plural(len(records), 'item')}"
            yield (
                f"odds of the gates: not known, as only {share} have a verdict; "
                "give --baseline=RUN"
            )
            return
        facts = Facts(
            model=self._options.model,
            judge=judge,
            session=SessionFacts(),
            provenance={},
            run={},
        )
        simulation = chances.Simulation(
            self._simulated_inputs(records), facts, self._baseline, self._anchor
        )
        yield from simulation.lines(*chances.known_discordance(self._baseline))

    def _known_outcomes(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """Return how these items end by the replies that the ledger has."""

        async def outcomes(kept: KeptReplies) -> dict[str, Outcome]:
            by_key = {}
            for key in keys:
                by_key[key] = await costs.known_outcome(self._tasks[key], kept)
            return by_key

        return self._kept(outcomes)

    def _simulated_inputs(self, records: Sequence[Record]) -> ReportInputs:
        """Return what the simulated runs are counted from.

        The judge's errors are known only where it was measured: here by labelled items of
        the run, else by the baseline. A shard foretells its own end, as if it were whole.
        """
        datasets = []
        for dataset in self._plan.datasets:
            datasets.append(replace(dataset, judge_unmeasured=True))
        plan = replace(self._plan, datasets=tuple(datasets), shard=None)
        if self._baseline is None:
            return ReportInputs.of(plan, records)
        report = self._baseline.report
        label_datasets = list(report.label_datasets)
        labels = list(report.labels)
        names_here = {dataset.name for dataset in plan.datasets}
        for dataset in report.datasets:
            if dataset.kind.answered or dataset.name in names_here:
                continue
            label_datasets.append(dataset)
            labels += [
                record for record in report.records if record.dataset == dataset.name
            ]
        return ReportInputs.of(plan, records, tuple(labels), tuple(label_datasets))


def plan_lines(name: str, items: int, forecast: Forecast) -> Iterator[str]:
    """Yield a slice's items and calls, then tokens and cost of the calls not recorded yet."""
    yield f"{name:<20} {items:>6} items {forecast.calls:>6} calls"
    if not forecast.calls:
        return
    recorded = "none recorded"
    if forecast.kept:
        recorded = f"{forecast.kept:,} of them recorded (free)"
    tokens = f"about {forecast.tokens_in:,} tokens in, {forecast.tokens_out:,} out"
    cost, cached, most = forecast.cost, forecast.cached, forecast.most
    if cost is None or cached is None or most is None:
        yield f"    {recorded}; {tokens}; cost {part_of_cost(forecast.known)}"
        return
    yield f"    {recorded}; {tokens}; about {money(cost)}, at most {money(most)}"
    if money(cached) != money(cost):
        yield f"    with caching expected {money(cached)}"


def totals(whole: Forecast, odds: Sequence[str]) -> Iterator[str]:
    """Yield the last three lines: calls, USD, and of the odds those for an unchanged model."""
    yield f"calls: {whole.calls - whole.kept:,} to make, {whole.kept:,} recorded"
    yield f"USD: {_total_cost(whole)}"
    line = _odds_if_unchanged(odds).strip().removeprefix("odds of the gates: ")
    codes, _, model = line.partition(": ")
    if model:
        yield f"odds: {codes} ({model})"
    else:
        yield f"odds: {codes}"


def _total_cost(whole: Forecast) -> str:
    if whole.cost is None or whole.most is None:
        return "unknown, for want of a price"
    with_cache = ""
    if whole.cached is not None and whole.cached != whole.cost:
        with_cache = f", {money(whole.cached)} with the provider's cache"
    return f"about {money(whole.cost)}{with_cache}, at most {money(whole.most)}"


def _odds_if_unchanged(odds: Sequence[str]) -> str:
    """Return the line of the odds that is about an unchanged model: the second, or the only."""
    if not odds:
        return "no gate decides"
    if len(odds) == 1:
        return odds[0]
    return odds[1]


def sequence_line(
    items: Counter[str],
    forecasts: Mapping[str, Forecast],
    shares: ExpectedShares,
    fixed: Forecast,
) -> str:
    """Return items and cost of slices that stop early, and of all; ``fixed`` calls come on top."""
    is_unpriced = fixed.cost is None
    for forecast in forecasts.values():
        is_unpriced = is_unpriced or forecast.cost is None

    def asked_and_paid(share_of: Mapping[str, float]) -> tuple[str, str]:
        """Return items and cost where such shares of the slices are asked, of others all."""
        asked = 0.0
        paid = 0.0
        for name, forecast in forecasts.items():
            share = share_of.get(name, 1.0)
            asked += share * items[name]
            paid += share * forecast.known
        paid += fixed.known
        return f"{asked:,.0f}", part_of_cost(paid) if is_unpriced else money(paid)

    discordances = []
    all_asked = []
    all_paid = []
    for discordance, share_of in shares:
        asked, paid = asked_and_paid(share_of)
        discordances.append(f"{100 * discordance:.2g}")
        all_asked.append(asked)
        all_paid.append(paid)
    whole_asked, whole_paid = asked_and_paid({})
    return (
        f"    until decided, if unchanged and {chances.either(discordances)} % differ: "
        f"about {chances.either(all_asked)} items, "
        f"{chances.either(dict.fromkeys(all_paid))}; all: {whole_asked}, {whole_paid}"
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
    sources = []
    unknown = []
    for text, pricing in prices.items():
        if pricing is None:
            unknown.append(text)
        else:
            sources.append(f"{text} from {pricing.source}")
    if sources:
        yield f"prices: {', '.join(sources)}"
    if unknown:
        yield (
            f"price unknown: {', '.join(unknown)}; "
            "give prices in a models file (--models)"
        )
