"""The exit code of a session, and the one line that explains it, from its gates and facts.

The first row that ``_outside`` and then ``_by_gates`` yield decides. A gate that pools languages
does not count as a slice's own: it may pass while one language fails. A labelled slice whose judge
reaches the floor needs no gate. ERROR and MISSING items do not change exit 0: a gate that passes
has already counted them as failures.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from qagate.cases.dataset import Dataset, Shards, Slice, Threshold
from qagate.cases.thresholds import ranges_of
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.metrics import DROP, RATE, RISE
from qagate.evaluators.statistics.paired import smallest_n
from qagate.evaluators.text import first_of
from qagate.reports.run.report import (
    Decision,
    GateResult,
    SessionStatus,
    SliceSummary,
)

OK, FAILED, INTERRUPTED, INTERNAL, USAGE, NOTHING, INCONCLUSIVE = range(7)
NO_GATE, NO_BASELINE, NO_CHANGE_GATE = "NO GATE", "NO BASELINE", "NO drop OR rise GATE"
NOTHING_GRADED = "NOTHING GRADED"
MERGE = "a shard decides nothing: qagate merge decides over all of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts(SessionStatus):
    """All that happened in the session, apart from the gates. Counts are of items."""

    selected: int = 0
    """Planned items."""
    misses: int = 0
    """Items graded as failed."""
    ungated: tuple[str, ...] = ()
    """The slices without a gate of their own."""
    unpaired: tuple[str, ...] = ()
    """The slices that are compared with an earlier run, and have no gate on the difference."""
    unmet: tuple[str, ...] = ()
    """The data sets that require a baseline, where there is none."""
    lost: tuple[str, ...] = ()
    """What each slice lost that is shown to be worse than in an earlier run."""
    cautions: tuple[str, ...] = ()
    """What else a reader of the verdict has to know: gates without a baseline, or made laxer."""
    placeholder_judge: bool = False
    """Whether rules graded recorded answers, in place of a model."""
    ungraded: int = 0
    """Items without a grade: ERROR or MISSING."""
    stopped: int = 0
    """Items that were not asked, as every gate was decided before."""
    gates_off: bool = False
    shards: Shards | None = None
    """The shards that the items come from; None where none is missing."""
    doubts: tuple[str, ...] = ()
    """What keeps the whole run from passing, in words: parts of the baseline that it lacks, answers
    of two versions."""
    one_shard: bool = False
    """Whether the user asked for one shard only, and so for no decision."""

    @property
    def graded(self) -> int:
        """The number of items with a grade."""
        return self.selected - self.ungraded - self.stopped

    @property
    def unexplained(self) -> bool:
        """Whether pytest reports a failure that none of the counts explains."""
        counted = self.misses + self.failures + self.ungraded
        return self.pytest_code in (FAILED, INTERRUPTED) and not counted

    def end(self) -> SessionStatus:
        """Return the facts that deciding again, from the report alone, needs."""
        failures = self.failures
        if self.unexplained:
            failures += 1
        return SessionStatus(
            pytest_code=self.pytest_code,
            failures=failures,
            interrupted=self.interrupted,
            cause=self.cause,
            left=self.left,
            left_out=self.left_out,
            notes=self.notes,
        )


CodeAndLine = tuple[int, str]


def decide(gates: Sequence[GateResult], facts: SessionFacts) -> Decision:
    """Return the exit code of a session and its line; with ``--gates off`` gates decide nothing."""
    remarks: list[str] = []
    code_and_line = next(_outside(facts), None)
    if code_and_line is None:
        code_and_line = next(_by_gates(gates, facts))
        remarks = _remarks(code_and_line[0], facts)
    code, line = code_and_line
    clauses = [line, *remarks, facts.left]
    whole_line = "; ".join(clause for clause in clauses if clause)
    return Decision(gates=tuple(gates), code=code, line=whole_line)


def _remarks(code: int, facts: SessionFacts) -> list[str]:
    """Return what a reader must know beside what the gates say; nothing of a part of a run."""
    if facts.shards or code == USAGE:
        return []
    if not facts.lost:
        return list(facts.cautions)
    losses = first_of(facts.lost)
    if code == OK:
        losses = f"but {losses}"
    return [losses, *facts.cautions]


def _outside(facts: SessionFacts) -> Iterator[CodeAndLine]:
    """Yield what decides without the gates; the first counts."""
    code = facts.pytest_code
    if code in (INTERNAL, USAGE):
        what = "an internal error" if code == INTERNAL else "a usage error"
        yield code, f"pytest ended with {what}: exit {code}"
    if facts.interrupted:
        kept = (
            f"{facts.graded:,} of {facts.selected:,} answered and kept, no gate decides"
        )
        again = "run the same command again for the rest"
        yield INTERRUPTED, f"INTERRUPTED: exit {INTERRUPTED}; {kept}; {again}"
    if facts.gates_off and facts.left and code == OK:
        yield INCONCLUSIVE, f"gates off: exit {INCONCLUSIVE}"
    if facts.gates_off:
        yield code, f"gates off: exit {code}, as pytest has it"
    if not facts.selected and facts.shards is None:
        yield code, f"no item selected: exit {code}"
    if code not in (OK, FAILED, INTERRUPTED):
        yield code, f"exit {code}, as pytest or a plugin has it"


def _by_gates(
    gates: Sequence[GateResult], facts: SessionFacts
) -> Iterator[CodeAndLine]:
    """Yield what the gates and the items say; the first counts."""
    failed, unclear = (
        [one for one in gates if one.state == s] for s in ("FAIL", "INCONCLUSIVE")
    )
    word, n = ("INCONCLUSIVE", len(unclear)) if unclear else ("PASS", len(gates))
    counts = f"GATES {word} ({n} of {len(gates)})" if gates else "NO GATES"
    others = facts.failures + facts.unexplained
    also = f"; {plural(others, 'failure')} that no item accounts for" if others else ""
    if failed:
        share = f"{len(failed)} of {len(gates)} failed"
        yield FAILED, f"GATES FAIL ({share}): exit {FAILED}; {_names(failed)}{also}"
    if others:
        yield FAILED, f"{counts}: exit {FAILED}{also}"
    if not facts.graded:
        yield from _nothing_graded(facts)
    if facts.shards:
        yield _of_shards(facts, facts.shards)
    if facts.doubts:
        head = f"INCONCLUSIVE: exit {INCONCLUSIVE}; {'; '.join(facts.doubts)}"
        yield INCONCLUSIVE, f"{head}; {counts} apart from that"
    if unclear:
        yield INCONCLUSIVE, f"{counts}: exit {INCONCLUSIVE}; {_names(unclear)}"
    if not gates:
        selected = plural(facts.selected, "item")
        yield (
            INCONCLUSIVE,
            f"NO GATES: exit {INCONCLUSIVE}; {selected} selected, no gate decides",
        )
    for head, names, tail in (
        (NO_GATE, facts.ungated, f"{counts} elsewhere"),
        (
            NO_BASELINE,
            facts.unmet,
            "baseline: required says that one decides; give --baseline",
        ),
        (
            NO_CHANGE_GATE,
            facts.unpaired,
            "nothing holds what changed since the baseline",
        ),
    ):
        if names:
            yield (
                INCONCLUSIVE,
                f"{head} for {first_of(names)}: exit {INCONCLUSIVE}; {tail}",
            )
    counted = (
        (facts.misses, "item", "missed, as the gates allow"),
        (facts.ungraded, "ungraded item", "would not change it"),
        (facts.stopped, "item", "not asked, as it was decided before"),
    )
    clauses = [f"; {plural(n, noun)} {text}" for n, noun, text in counted if n]
    placeholder = "; a placeholder judge graded: this tests the setup, not a model"
    clauses.append(placeholder if facts.placeholder_judge else "")
    yield OK, f"{counts}: exit {OK}{''.join(clauses)}"


def _nothing_graded(facts: SessionFacts) -> Iterator[CodeAndLine]:
    if facts.cause:
        yield USAGE, f"{NOTHING_GRADED}: exit {USAGE}; {facts.cause}"
    elif facts.ungraded and not facts.shards:
        yield (
            INCONCLUSIVE,
            f"{NOTHING_GRADED}: exit {INCONCLUSIVE}; the warnings say why",
        )


def _of_shards(facts: SessionFacts, shards: Shards) -> CodeAndLine:
    """Return what a part says: the only shard present, or which are missing of several."""
    if len(shards.held) == 1:
        name = f"SHARD {shards.held[0]} of {shards.of}"
    else:
        noun = "SHARDS" if len(shards.missing) > 1 else "SHARD"
        numbers = first_of([str(number) for number in shards.missing])
        name = f"{noun} {numbers} of {shards.of} MISSING"
    graded = f"{facts.graded:,} of {plural(facts.selected, 'item')} graded"
    code = OK if facts.one_shard and not facts.ungraded else INCONCLUSIVE
    return code, f"{name}: exit {code}; {graded}; {MERGE}"


def _names(gates: Sequence[GateResult]) -> str:
    ways = (f" ({gate.remedy})" if gate.remedy else "" for gate in gates)
    named = zip(gates, ways, strict=True)
    return first_of([f"{gate.slice} {gate.name}{way}" for gate, way in named])


CEILING = 0.9
"""The share of its range above which the lower end of a metric has no room left to gain."""
FEW_ITEMS = 20
"""The fewest items of a gate on the estimate: with fewer, a 95 % interval spans 0.4 and more."""
WIDE = 0.25
"""The share of its range by which a lower end may be above its bar before the bar says little."""

Clusters = Mapping[str, AbstractSet[Cluster]]
"""The clusters of a data set's items by language: the number of independent items."""


def scoped_gates(
    dataset: Dataset, clusters: Clusters
) -> Iterator[tuple[str, int, tuple[Threshold, ...]]]:
    """Yield each slice's and at last the pool's name, number of independent items, and gates."""
    for language, own in clusters.items():
        slice_ = dataset.slices[language]
        yield slice_.name, len(own), slice_.thresholds
    yield (
        f"{dataset.name}:*",
        len(set[Cluster]().union(*clusters.values())),
        dataset.pooled,
    )


def margin_warnings(dataset: Dataset, clusters: Clusters) -> Iterator[str]:
    """Yield a warning for each paired gate that can never pass with so few items."""
    every = (
        (name, n, bar)
        for name, n, bars in scoped_gates(dataset, clusters)
        for bar in bars
    )
    for name, count, bar in every:
        margin = bar.max or 0.0
        decides = bar.of_share and bar.evidence == "confident" and 0 < margin < 1
        if decides and count < (fewest := smallest_n(margin)):
            yield (
                f"{name}: a {bar.measure} of {margin:g} can never be excluded with "
                f"{plural(count, 'independent item')}; it takes {fewest:,} even if none changes"
            )


def small_notes(
    gates: Sequence[GateResult], independent: Mapping[str, int]
) -> Iterator[str]:
    """Yield which slices have too few independent items for a gate on the estimate alone."""
    own = (
        one for one in gates if one.estimate.n and one.threshold.evidence == "estimate"
    )
    sizes = ((one.slice, independent.get(one.slice, one.estimate.n)) for one in own)
    if found := dict.fromkeys(f"{name} ({n})" for name, n in sizes if n < FEW_ITEMS):
        yield (
            f"few items: {', '.join(found)}: their gates go by the estimate alone, which chance "
            "moves widely; add items, or write `evidence: confident`"
        )


def ceiling_notes(
    gates: Sequence[GateResult], slices: Mapping[str, Slice]
) -> Iterator[str]:
    """Yield the bars that a large loss would still pass, where no paired gate looks for one."""
    watched = {gate.slice for gate in gates if gate.threshold.paired}
    found: dict[str, list[str]] = defaultdict(list)
    for gate in gates:
        bar, interval, slice_ = (
            gate.threshold,
            gate.estimate.interval,
            slices.get(gate.slice),
        )
        is_watched = (
            bar.paired or bar.of_usage or watched & {gate.slice, f"{gate.dataset}:*"}
        )
        if slice_ is None or interval is None or is_watched or gate.state != "PASS":
            continue
        ranges = ranges_of(slice_)
        low, high = ranges.get(bar.measure, RATE)
        changes = (
            (DROP, "fall", bar.min, interval[0] - low, (bar.min or 0.0) - low),
            (RISE, "rise", bar.max, high - interval[1], high - (bar.max or 0.0)),
        )
        for gate_name, change, limit, shown, required in (
            changes if DROP in ranges else ()
        ):
            loose = shown > CEILING * (high - low) or shown - required > WIDE * (
                high - low
            )
            if limit is not None and loose:
                still = f"a {change} to {limit:g} would still pass this bar"
                paired = any(one.paired for one in slice_.thresholds)
                advice = (
                    "give --baseline"
                    if paired
                    else f"set `{gate_name}` with a baseline"
                )
                seen = f"{bar.measure} {gate.estimate.value or 0.0:.3f}"
                found[f"{seen}: {still}; {advice}"].append(gate.slice)
    for note, names in found.items():
        yield f"{', '.join(names)} {note}"


def settled_notes(
    slices: Iterable[SliceSummary], gates: Sequence[GateResult]
) -> Iterator[str]:
    """Yield how much was asked of each slice that was stopped early, and why."""
    for summary in slices:
        counts = summary.counts
        if not counts.stopped:
            continue
        asked = f"{counts.planned - counts.stopped:,} of {counts.planned:,} items"
        open_gate = _open_gate(summary, gates)
        if open_gate is None:
            yield (
                f"{summary.name}: settled after {asked}, and the others were not asked; all its "
                "figures, parity too, are over these and lean to the side of the verdict"
            )
        else:
            yield (
                f"{summary.name}: stopped after {asked}, as no further item could decide "
                f"{open_gate.name} {open_gate.bar}: {open_gate.reason}"
            )


def _open_gate(summary: SliceSummary, gates: Sequence[GateResult]) -> GateResult | None:
    """Return the first INCONCLUSIVE gate of a slice, its own or a pooled one."""
    for gate in gates:
        is_of_slice = gate.dataset == summary.dataset and gate.language in (
            "",
            summary.language,
        )
        if is_of_slice and gate.state == "INCONCLUSIVE":
            return gate
    return None
