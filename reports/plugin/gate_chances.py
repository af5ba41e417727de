"""The chances of all gates together, for ``--dry-run``: what a model already known would come to.

Known is what the baseline's model did, or, without one, what recorded answers and replies in the
ledger give without a call.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from cases.dataset import Plan, PlannedItem
from evaluators.core import Outcome, UsageError
from evaluators.output import plural
from reports.gates.decide import SessionFacts, listed
from reports.gates.power import DISCORDANCES
from reports.judge.judge_errors import calibrations_in
from reports.plugin.options import RunOptions
from reports.run.baseline import Baseline, load_baseline
from reports.run.evidence import Calibration
from reports.run.record import Record, make_record
from reports.verdict.assemble import Facts
from reports.verdict.chances import (
    MARGIN,
    RUNS,
    SEED,
    Chances,
    Simulation,
    discordance_between,
    discordance_of_repeats,
)
from reports.verdict.counted_run import ReportInputs

LOSSES = {0.5: "worse by half the margin", 1.0: "worse by the margin", 2.0: "worse by two margins"}
SLOW = 2.0  # seconds from which on it is said how many it will take
EASY = 2000  # records up to which all runs are simulated; fewer of larger ones
FEWEST_RUNS = 40
_NAMED = 3  # gates named as most to blame

Known = Callable[[Sequence[str]], Mapping[str, Outcome]]
"""Return how planned items, by key, would end as far as that is known without a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discordance:
    """Which shares of items may differ between two runs of one model, and how that is known."""

    shares: tuple[float, ...]
    source: str


def discordance(report_dir: Path, baseline: Baseline | None) -> Discordance:
    """Return how many items differ: in the baseline's repeats, or to the last run in a folder."""
    if baseline and (share := discordance_of_repeats(baseline.records)) is not None:
        return Discordance(shares=(share,), source="as between repeats of the baseline")
    try:
        last = load_baseline(report_dir).records if baseline else ()
    except UsageError:  # none there, or not a whole one
        last = ()
    if baseline and (share := discordance_between(last, baseline.records)):
        text = f"as between the baseline and {report_dir}"
        return Discordance(shares=(share,), source=text)
    return Discordance(shares=DISCORDANCES, source="not known (a baseline with --repeats tells)")


Earlier = tuple[Baseline | None, Baseline | None]
"""The baseline and the anchor of a run."""


def chance_lines(
    options: RunOptions, plan: Plan, keys: Sequence[str], earlier: Earlier, known: Known
) -> Iterator[str]:
    """Yield how likely the run ends in which exit code, a line a model; each takes seconds."""
    baseline, _ = earlier
    items = [plan.items[key] for key in keys]
    if options.gates_off or not any(one.slice.kind.answered for one in items):
        return
    records = _records(items, baseline, known, " ".join(options.judges))
    graded = sum(one.is_graded for one in records)
    if 2 * graded < len(records):
        every = plural(len(records), "item")
        yield (
            f"chances of the gates: not known, as only {graded:,} of {every} have a verdict; give "
            "--baseline=RUN"
        )
        return
    names = {item.slice.name for item in items}
    facts = Facts(
        model=options.model,
        judge=" ".join(options.judges),
        session=SessionFacts(),
        provenance={},
        run={},
    )
    inputs = ReportInputs(
        # What the judge is like is only known where it was measured.
        datasets=tuple(replace(one, judge_unmeasured=True) for one in plan.datasets),
        records=records,
        whole=Counter(item.slice.name for item in plan.items.values()),
        samples=plan.samples,
        outside=tuple(_calibrations(baseline, names)),
    )
    simulation = Simulation(inputs, facts, *earlier)
    runs = max(FEWEST_RUNS, min(RUNS, RUNS * EASY // len(records)))
    yield from _lines(simulation, discordance(options.report_dir, baseline), runs)


def _records(
    items: Sequence[PlannedItem], baseline: Baseline | None, known: Known, judge: str
) -> tuple[Record, ...]:
    """Return a record of each item: the baseline's, else what is known of it, else ungraded."""
    before: dict[tuple[object, ...], Record] = {}
    for record in baseline.records if baseline else ():
        if record.is_graded:
            identity = record.dataset, record.language, record.id, record.digest
            before.setdefault(identity, record)
            before[*identity, record.repeat] = record
    same = bool(baseline and baseline.run.get("judge") == judge)
    usable = (item for item in items if same or item.slice.kind.answered)
    old = {item.key: _former(item, before) for item in usable}
    outcomes = known([item.key for item in items if not old.get(item.key)])
    return tuple(
        replace(
            one,
            key=item.key,
            row=item.case.row,
            repeat=item.repeat,
            judge=one.judge if same else judge,
        )
        if (one := old.get(item.key))
        else make_record(item, outcomes[item.key])
        for item in items
    )


def _former(item: PlannedItem, before: Mapping[tuple[object, ...], Record]) -> Record | None:
    case = item.case
    identity = case.dataset, case.language, case.id, case.digest
    return before.get((*identity, item.repeat)) or before.get(identity)


def _calibrations(baseline: Baseline | None, names: set[str]) -> Iterator[Calibration]:
    """Yield what the baseline's labelled items say of the judge, where this run has none."""
    for one in calibrations_in(baseline.run) if baseline else ():
        if f"{one.dataset}:{one.language}" not in names:
            yield replace(one, source="session")


def _lines(simulation: Simulation, differ: Discordance, runs: int) -> Iterator[str]:
    models = [(share, 0.0, "unchanged") for share in differ.shares]
    models += [(differ.shares[0], margins, text) for margins, text in LOSSES.items()]
    simulation.chances(*models[0][:2], runs=1)  # the first has all to prepare
    begun = perf_counter()
    simulation.chances(*models[0][:2], runs=2)
    seconds = (perf_counter() - begun) / 2 * runs * len(models)
    wait = f"; takes about {seconds:.0f} s" if seconds > SLOW else ""
    yield f"chances of all gates together, {runs} simulated runs a line (seed {SEED}){wait}"
    found: list[Chances] = []
    for share, margins, text in models:
        chances = simulation.chances(share, margins, runs)
        found.append(chances)
        codes = ", ".join(f"{code} with {chances.codes.get(code, 0.0):.2f}" for code in (0, 1, 6))
        yield f"    exit {codes}: {text}, {100 * share:.2g} % of items differ"
    blame = ", ".join(f"{name} ({share:.2f})" for name, share in found[0].blame[:_NAMED])
    yield f"    most often not PASS for the first of these: {blame or 'no gate'}"
    stuck = found[0].stuck
    for reason in dict.fromkeys(stuck.values()):
        names = listed([name for name, why in stuck.items() if why == reason])
        yield f"    INCONCLUSIVE whatever the answers: {names}; {reason}"
    error = max(chances.error for chances in found)
    yield (
        f"    standard error at most {error:.2f}; the share that differs is {differ.source}; items "
        "change one by one, linked ones too; the margin is that of a slice's or its data set's "
        f"drop gate, else {MARGIN:g}, in truth: the judge sees a share J of it; gates on seconds, "
        "tokens and cost are left out"
    )
