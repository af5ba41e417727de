"""``--until-decided``: asks items in a fixed order, and stops a slice once it is decided.

A slice is decided when all its gates are, by ``gates/sequential.py``; a gate that asks for all
items at once keeps its slice from being stopped.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from qagate.cases.dataset import SEQUENTIAL, Plan, PlannedItem, Slice
from qagate.evaluators.core import Outcome, UsageError
from qagate.evaluators.judges.rule_checks import rules_of
from qagate.evaluators.runtime.engine import stopped_outcome
from qagate.evaluators.statistics.betting import Evidence
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.extras.sequential.sequential import (
    SequentialGate,
    place_of,
    sequential_gates_of,
)
from qagate.reports.judge.rule_errors import rule_errors
from qagate.reports.plugin.calibrator import Calibrator
from qagate.reports.plugin.feature import Feature
from qagate.reports.plugin.options import RunOptions
from qagate.reports.plugin.run import EngineRun
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.decisions import at_any_look
from qagate.reports.run.known_decisions import known_here
from qagate.reports.run.lineage import TriedBefore, chain_of
from qagate.reports.run.provenance import sent_spec
from qagate.reports.run.record import Record, in_order, make_record
from qagate.reports.run.report import SliceAnswers
from qagate.reports.verdict.assemble import ReportInputs, count_run
from qagate.reports.verdict.pairing import paired_slices

UNTIL_DECIDED = "until-decided"
"""The name of the option."""
MIN_IN_HAND = 16  # items of a queue in hand at its beginning


class UntilDecided(Feature):
    """The feature of the plugin: a plan in a fixed order, and a run that may stop early."""

    def order(self, plan: Plan, options: RunOptions) -> Plan:
        """Return the plan in the order of asking. Raises UsageError where nothing can stop."""
        if options.gates_off:
            raise UsageError(
                f"--{UNTIL_DECIDED}: nothing is decided with --gates off; "
                "leave one of them out"
            )
        return in_sequence(plan, paired=bool(options.baseline or options.anchor))

    def prepare(self, run: EngineRun) -> None:
        """Let the run ask nothing that can change no gate any more."""
        # Items under way when a slice is decided are paid for: at most twice as many as calls.
        ahead = 2 * run.options.concurrency
        if run.options.replay:
            ahead = 1
        run.stopping = EarlyStopping(
            run.plan,
            run.calibrator,
            " ".join(run.options.judges),
            run.earlier,
            ahead,
            tried=_tried_before(run),
        )


def _tried_before(run: EngineRun) -> TriedBefore | None:
    """Return what may have been tried before beside the baseline; None where nothing was."""
    options = run.options
    baseline, _ = run.earlier
    if baseline is None or options.monitor:
        return None
    return TriedBefore(
        model=sent_spec(options.model, {"sent": run.sent}),
        chain=chain_of(baseline),
        known=known_here(options.here, options.report_dir, options.ledger),
        at_any_look=at_any_look(run.plan),
    )


def stoppable(plan: Plan, *, paired: bool) -> dict[str, str]:
    """Return each slice with sequential gates alone, and its queue: the data set if one pools."""
    found = {}
    for dataset in plan.datasets:
        pooled = any(paired and one.evidence == SEQUENTIAL for one in dataset.pooled)
        for one in dataset.slices.values():
            every = (*one.thresholds, *dataset.pooled)
            gates = [gate for gate in every if paired or not gate.paired]
            if gates and all(gate.evidence == SEQUENTIAL for gate in gates):
                found[one.name] = dataset.name if pooled else one.name
    return found


def in_sequence(plan: Plan, *, paired: bool) -> Plan:
    """Return the plan in the order of asking, what measures the judge first. Raises UsageError."""
    queues = stoppable(plan, paired=paired)
    if not any(item.slice.name in queues for item in plan.items.values()):
        without = "" if paired else " or give --baseline=RUN for those on a change"
        what = (
            "no slice has gates with `evidence: sequential` alone; declare them (drop: "
        )
        raise UsageError(
            f"--{UNTIL_DECIDED}: {what}{{max: 0.05, evidence: sequential}}){without}"
        )
    by_queue: dict[str, list[PlannedItem]] = defaultdict(list)
    for item in plan.items.values():
        by_queue[queues.get(item.slice.name, item.slice.name)].append(item)
    for queue in by_queue.values():
        if queue[0].slice.kind.answered:
            queue.sort(key=lambda one: (place_of(one.slice, one.case), one.repeat))
    ranked = [pair for queue in by_queue.values() for pair in enumerate(queue)]
    ranked.sort(key=lambda pair: (pair[1].slice.kind.answered, pair[0]))
    return replace(plan, items={item.key: item for _, item in ranked})


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A gate with the evidence of the units that have ended, as far as no earlier one is open."""

    gate: SequentialGate
    is_over: bool
    """Whether no further item changes it."""
    evidence: Evidence

    def hold_to(self, tries: Mapping[str, tuple[str, ...]]) -> None:
        """Let the gate know how the earlier sets of answers of its slices ended."""
        sides = []
        for side in self.gate.sides:
            if side.role == "baseline":
                sides.append(replace(side, tries=tries.get(side.slice_.name, ())))
            else:
                sides.append(side)
        self.gate = replace(self.gate, sides=tuple(sides))

    def advance(self, ended: Mapping[str, Record], rules: "RulesSoFar") -> None:
        """Take in the units that have ended since; what is not asked again has."""
        units, before = self.gate.units, len(self.evidence.sizes)
        known = before
        while known < len(units) and all(
            new.key in ended or new.outcome != "stopped" for _, _, new in units[known]
        ):
            self.evidence.add(self.gate.ends(units[known], ended))
            known += 1
        if known > before and not self.is_over and not self.gate.blocked:
            self.is_over = self._is_decided(ended, rules)

    def _is_decided(self, ended: Mapping[str, Record], rules: "RulesSoFar") -> bool:
        """Return whether the report would decide the gate by what has ended."""
        state, _ = self.gate.decided(self.evidence, ended)
        if state != "PASS" or not rules.are_checked:
            return state != "INCONCLUSIVE"
        slices = [side.slice_ for side in self.gate.sides]
        gate = self.gate.with_misread(rules.misread(slices, ended))
        state, _ = gate.decided(self.evidence, ended)
        return state != "INCONCLUSIVE"


@dataclass(slots=True, kw_only=True)
class RulesSoFar:
    """What a model has said until now of answers that rules before it settled."""

    judge: str
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def are_checked(self) -> bool:
        """Whether there are rules before a model."""
        return bool(rules_of(self.judge))

    def misread(
        self, slices: Sequence[Slice], ended: Mapping[str, Record]
    ) -> dict[str, Estimate]:
        """Return which share of the answers of each slice the rules may have misread.

        A check that is under way counts as a difference: nothing is decided before it is over.
        """
        records: dict[str, list[Record]] = defaultdict(list)
        for record in ended.values():
            records[f"{record.dataset}:{record.language}"].append(record)
        misread = {}
        for slice_ in slices:
            of_slice = records[slice_.name]
            errors = rule_errors(slice_, of_slice, self.judge, self.labels)
            misread[slice_.name] = errors.misread
        return misread


class EarlyStopping:
    """Says which items need no longer be asked.

    Nothing is decided before the judge is measured. Of items under way when a slice is decided at
    most an eighth of those before them (or 16), and ``ahead``, are paid for.
    """

    def __init__(
        self,
        plan: Plan,
        calibrator: Calibrator,
        judge: str,
        baselines: Sequence[Baseline | None],
        ahead: int,
        *,
        tried: TriedBefore | None = None,
    ) -> None:
        self._plan = plan
        self._judge = judge
        self._baselines = baselines
        self._ahead = ahead
        self._tried = tried
        self._asked: dict[str, Counter[str]] = defaultdict(Counter)
        """How many of the answers so far each run asked, by slice."""
        self._is_tried = False
        """Whether these answers are, so far, not the first of this model."""
        self._calibrator = copy(calibrator)  # with a selection of its own
        self._queue_of = stoppable(plan, paired=any(baselines))
        self._slices: list[Slice] = []
        """Those that may be stopped."""
        for dataset in plan.datasets:
            for slice_ in dataset.slices.values():
                if slice_.name in self._queue_of:
                    self._slices.append(slice_)
        self._decided: set[str] = set()
        self._outcomes: dict[str, Outcome] = {}
        self._ended: dict[str, Record] = {}
        self._rules = RulesSoFar(judge=judge)
        self._watched: list[_Watched] | None = None
        self.select(list(plan.items))

    def select(self, keys: Collection[str]) -> None:
        """Note which planned items are asked at all."""
        chosen = set(keys)
        self._selected = [
            item for key, item in self._plan.items.items() if key in chosen
        ]
        self._calibrator.select([item.key for item in self._selected])
        self._queues = defaultdict[str, list[str]](list)
        self._firsts = Counter[
            str
        ]()  # items of a queue, from its first on, that have all ended
        self._places: dict[str, int] = {}
        for item in (one for one in self._selected if one.slice.name in self._queue_of):
            queue = self._queues[self._queue_of[item.slice.name]]
            self._places[item.key] = len(queue)
            queue.append(item.key)

    def is_due(self, key: str) -> bool:
        """Return whether an item may be asked now, or must wait for earlier ones."""
        if key not in self._places:
            return True
        name = self._queue_of[self._plan.items[key].slice.name]
        queue, ended = self._queues[name], self._firsts[name]
        while ended < len(queue) and queue[ended] in self._ended:
            ended += 1
        self._firsts[name] = ended
        return self._places[key] < ended + min(
            self._ahead, max(MIN_IN_HAND, ended // 8)
        )

    def note_rule_check(self, key: str, label: str) -> None:
        """Note what the model says of an answer that rules before it settled."""
        self._rules.labels[key] = label

    def note(self, outcome: Outcome) -> Collection[str]:
        """Note an item's outcome; return the keys that need no longer be asked."""
        self._outcomes[outcome.key] = outcome
        item = self._plan.items.get(outcome.key)
        may_be_other_set = self._is_tried
        if item is not None:
            record = make_record(item, outcome)
            self._ended[item.key] = record
            may_be_other_set |= self._adds_run(item.slice.name, record)
        if self._watched is None:
            labelled = (
                one.key for one in self._selected if not one.slice.kind.answered
            )
            measured = self._calibrator.is_complete(self._outcomes)
            if not (measured and all(key in self._ended for key in labelled)):
                return ()
            self._watched = list(self._watch())
            may_be_other_set = True
        if may_be_other_set:
            self._hold_to_tries(self._watched)
        for one in self._watched:
            one.advance(self._ended, self._rules)
        unneeded: list[str] = []
        for slice_ in (one for one in self._slices if one.name not in self._decided):
            about = (
                (one, [side.slice_.name for side in one.gate.sides])
                for one in self._watched
            )
            own = [one for one, names in about if slice_.name in names]
            if own and all(one.is_over for one in own):  # it has just been decided
                self._decided.add(slice_.name)
                mine = (
                    one.key for one in self._selected if one.slice.name == slice_.name
                )
                unneeded += (key for key in mine if key not in self._ended)
        return unneeded

    def _adds_run(self, name: str, record: Record) -> bool:
        """Return whether an answer of a slice is the first that its run asked; count it."""
        if not record.asked_by:
            return False
        runs = self._asked[name]
        runs[record.asked_by] += 1
        return runs[record.asked_by] == 1

    def _hold_to_tries(self, watched: Iterable[_Watched]) -> None:
        """Hold gates to more where these answers are not the first of this model."""
        if self._tried is None:
            return
        answers = {}
        for slice_ in self._slices:
            answers[slice_.name] = SliceAnswers(
                prompt=slice_.prompt.version if slice_.prompt else "",
                asked=self._asked[slice_.name],
            )
        tries = self._tried.tries(answers)
        self._is_tried = any(tries.values())
        for gate in watched:
            gate.hold_to(tries)

    def _watch(self) -> Iterator[_Watched]:
        """Yield the report's gates with all unlabelled items open: the first may not be typical."""
        records = (
            make_record(one, stopped_outcome(one.key))
            if one.slice.kind.answered
            else self._ended[one.key]
            for one in self._selected
        )
        inputs = ReportInputs.of(
            self._plan,
            records,
            self._calibrator.records(self._outcomes),
            self._calibrator.datasets,
        )
        asked, samples = (
            Counter(one.slice.name for one in self._selected),
            self._plan.samples,
        )
        every = all(asked[name] == n and name not in samples for name, n in inputs.whole.items()
                    if asked[name])  # fmt: skip
        run = count_run(inputs, in_order(inputs.records), self._judge, for_gates=True)
        compared = [
            paired_slices(run, self._judge, baseline) for baseline in self._baselines
        ]
        for gate in sequential_gates_of(run, compared):
            evidence = Evidence(largest=max(map(len, gate.units), default=1))
            is_over = every and self._plan.shard is None and gate.hopeless
            yield _Watched(gate=gate, is_over=is_over, evidence=evidence)
