"""Several runs over the same items: what each got right, and how it differs from the first.

The items of a slice are those of the first run that asked it. What another run lacks of them
stays an item: one that was left out, has no grade or has other data is unknown, and counts as
wrong. The range of each figure holds those for unknown items all right, all wrong and left out,
so nobody gains by leaving items out. Each run's own grades are read. Where another judge or
rubric gave them, a difference is shown, but nothing is called better or worse.

Nothing here decides anything: gates do (``qagate/reports/gates``). Begin with ``count_runs``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from qagate.cases.dataset import Slice
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.count_table import RATINGS
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    Interval,
    clustered_rate,
    wilson,
)
from qagate.evaluators.statistics.metrics import clustered_mean
from qagate.evaluators.statistics.paired import holm
from qagate.reports.compare.shares import TREATMENTS, share_difference
from qagate.reports.compare.sides import PairedSlice, passes
from qagate.reports.compare.states import Pair, pair_records
from qagate.reports.render import words
from qagate.reports.render.first_screen import plain_model
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.changes import changed_judge, changed_requests

SHOWN_BELOW = 0.05
"""The p-value, adjusted by Holm over the whole table, below which a difference is shown."""

Finding = Literal["better", "worse", "open", "not comparable"]
"""``open``: no difference is shown; ``not comparable``: other grades than the first run's."""

Outcomes = Sequence[tuple[Cluster, bool | None]]
"""Whether each item counts, with its cluster; None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class NamedRun:
    """A run as figures and tables call it."""

    name: str
    """The model's name; with that of the folder, where several runs have one model."""
    run: Baseline

    @property
    def is_monitor(self) -> bool:
        """Whether it asked the baseline's own model again (``--monitor``)."""
        decided = self.run.report.decided
        return decided is not None and decided.monitor

    @property
    def started(self) -> str:
        """When it began, as ISO 8601; empty where that is not known."""
        return str(self.run.report.run.get("started", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedShare:
    """How many items have one grade, rating or score."""

    count: int
    share: Estimate
    """Of all items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """How the items of a run came out; the five numbers sum to the items."""

    right: int
    silent: int
    """Answers that say nothing, of kinds that know such answers."""
    wrong: int
    ungraded: int
    """Asked, and without a grade."""
    lacking: int
    """Not asked, or with other data than the first run's."""

    @property
    def unknown(self) -> int:
        """The items that count as wrong because nobody knows."""
        return self.ungraded + self.lacking


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSinceFirst:
    """How far the share of right answers differs from the first run's, over the same items."""

    difference: Estimate
    """This run - the first; what is not known counts as a loss."""
    p_value: float
    """McNemar's exact one, of the worst treatment of unknown items."""
    adjusted: float = 1.0
    """The same, adjusted by Holm over all differences of the table."""
    caution: str = ""
    """Why the difference may be the judge's own; empty where it is not."""

    @property
    def finding(self) -> Finding:
        """What the difference shows."""
        if self.caution:
            return "not comparable"
        if self.adjusted >= SHOWN_BELOW or self.difference.value is None:
            return "open"
        return "better" if self.difference.value > 0 else "worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """One run in one slice, or in all languages of a data set together."""

    run: str
    items: int
    segments: Segments
    right: Estimate
    grades: Mapping[str, CountedShare]
    """By grade, in the order of the rubric; empty where items are rated."""
    scores: Mapping[str, CountedShare]
    """By rating from 1 to 10, or by score of the rubric; empty where there are none."""
    mean: Estimate
    """Of ratings or scores; undefined where there are none."""
    change: ChangeSinceFirst | None
    """None for the first run, and where the first run did not ask the slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """How many answers of a slice change when the same model is asked once more."""

    verdicts: Estimate
    """The share of items that are right in one run and not in the next."""
    wordings: Estimate
    """The share of items whose answer has other words."""
    kept: int
    """Answers that the later run did not ask anew: they say nothing of this, and are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceOfRuns:
    """All runs in one slice, or in all languages of a data set together."""

    name: str
    """Dataset and language, as reports show them; ``simpleqa:*`` for all together."""
    words: tuple[str, str, str]
    """What its kind calls right, silent and wrong items."""
    is_rated: bool
    runs: Sequence[RunFigures]
    asked_again: AskedAgain | None
    """None without runs that were made with ``--monitor``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Several runs, counted over the same items."""

    runs: Sequence[NamedRun]
    """As they were given."""
    slices: Sequence[SliceOfRuns]
    """All languages of a data set together come first."""
    nights: Sequence[str]
    """The runs of a model that was asked again and again, oldest first; empty without any."""
    notes: Sequence[str]
    """What counts at its worst, or is in no figure, in sentences."""

    @property
    def first(self) -> str:
        """The name of the run that all others are compared with."""
        return self.runs[0].name


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """The slices that are counted together, as each run has them."""

    name: str
    slices: Sequence[Slice]
    sides: Mapping[str, Sequence[PairedSlice]]
    """By the name of the run: a side for each slice."""
    cautions: Mapping[str, str]
    is_of_first: bool
    """Whether the first run asked all its slices."""


def count_runs(runs: Sequence[Baseline]) -> SideBySide:
    """Return these runs side by side, each compared with the first.

    Raises UsageError where another run shares no item with the first.
    """
    named = named_runs(runs)
    sides = _all_sides(named)
    scopes = list(_scopes(named, sides))
    _check_shared_items(named, scopes)
    nights = _nights(named)
    slices = [_slice_of_runs(scope, named, nights) for scope in scopes]
    return SideBySide(
        runs=named,
        slices=_with_holm(slices),
        nights=nights,
        notes=list(_notes(named, scopes)),
    )


def named_runs(runs: Sequence[Baseline]) -> list[NamedRun]:
    """Return the runs with names that tell them apart."""
    models = [plain_model(words.model(run.report)) for run in runs]
    times = Counter(models)
    names: list[str] = []
    for run, model in zip(runs, models, strict=True):
        name = model
        if times[model] > 1:
            name = f"{_folder_name(run.path)} ({model})"
        if name in names:
            name = f"{name} {len(names) + 1}"
        names.append(name)
    return [NamedRun(name=name, run=run) for name, run in zip(names, runs, strict=True)]


def _folder_name(path: str) -> str:
    folder = Path(path)
    return folder.parent.name if folder.suffix == ".json" else folder.name


def _all_sides(named: Sequence[NamedRun]) -> Mapping[str, Mapping[str, PairedSlice]]:
    """Return each slice of each run beside the first run that has it.

    By the name of the slice, in the order of the data set, then by that of the run.
    """
    sides: dict[str, dict[str, PairedSlice]] = {}
    for reference in named:
        for dataset in reference.run.report.datasets:
            for slice_ in dataset.slices.values():
                if slice_.name in reference.run.slices and slice_.name not in sides:
                    sides[slice_.name] = _sides_of(slice_, reference, named)
    return sides


def _sides_of(
    slice_: Slice, reference: NamedRun, named: Sequence[NamedRun]
) -> dict[str, PairedSlice]:
    """Return a slice of each run beside the run whose items it has, by the run's name."""
    old = reference.run.slices[slice_.name]
    sides = {}
    for run in named:
        new = run.run.slices.get(slice_.name, ())
        pairing = pair_records(new, old, by_digest=True)
        sides[run.name] = PairedSlice(slice_=slice_, pairing=pairing)
    return sides


def _declared(run: Baseline, name: str) -> Slice | None:
    """Return a slice as a run declared it; None where that is not known."""
    dataset_name, _, language = name.partition(":")
    for dataset in run.report.datasets:
        if dataset.name == dataset_name:
            return dataset.slices.get(language)
    return None


def _scopes(
    named: Sequence[NamedRun], sides: Mapping[str, Mapping[str, PairedSlice]]
) -> Iterator[_Scope]:
    """Yield the slices of each data set: all of it together, if it has several, then each."""
    by_dataset: dict[str, list[str]] = defaultdict(list)
    for name in sides:
        by_dataset[name.partition(":")[0]].append(name)
    for dataset, names in by_dataset.items():
        if len(names) > 1:
            yield _scope(f"{dataset}:*", names, named, sides)
        for name in names:
            yield _scope(name, [name], named, sides)


def _scope(
    scope_name: str,
    names: Sequence[str],
    named: Sequence[NamedRun],
    sides: Mapping[str, Mapping[str, PairedSlice]],
) -> _Scope:
    first, *others = named
    sides_of_runs = {}
    for run in named:
        sides_of_runs[run.name] = [sides[name][run.name] for name in names]
    cautions = {}
    for run in others:
        reasons = [_caution(run, first, name) for name in names]
        cautions[run.name] = next(filter(None, reasons), "")
    return _Scope(
        name=scope_name,
        slices=[sides[name][first.name].slice_ for name in names],
        sides=sides_of_runs,
        cautions=cautions,
        is_of_first=all(name in first.run.slices for name in names),
    )


def _caution(run: NamedRun, first: NamedRun, name: str) -> str:
    """Return why a run's grades in a slice may differ from the first's by the judge alone."""
    slice_ = _declared(run.run, name)
    if slice_ is None or name not in first.run.slices:
        return ""
    report = run.run.report
    new = run.run.slices.get(name, ())
    old = first.run.slices[name]
    changed = changed_judge(slice_, new, old, first.run, report.judge)
    if changed:
        return changed
    return changed_requests(slice_, first.run, report.judge, report.provenance)


def _check_shared_items(named: Sequence[NamedRun], scopes: Sequence[_Scope]) -> None:
    """Raise UsageError for a run that has no item in common with the first."""
    for run in named[1:]:
        shared = 0
        for scope in scopes:
            for side in scope.sides[run.name]:
                if side.slice_.name in named[0].run.slices:
                    shared += len(side.pairs) - side.count("absent")
        if not shared:
            raise UsageError(
                f"{named[0].run.path} and {run.run.path} have no item in common; "
                "compare runs of one dataset"
            )


# What each run got right


def _slice_of_runs(
    scope: _Scope, named: Sequence[NamedRun], nights: Sequence[str]
) -> SliceOfRuns:
    kind = scope.slices[0].kind
    right, wrong = kind.outcome_words
    silent = kind.silent.lower().replace("_", " ")
    asked_again = None
    if nights:
        asked_again = _asked_again([scope.sides[night] for night in nights])
    return SliceOfRuns(
        name=scope.name,
        words=(right, silent, wrong),
        is_rated=kind.rated,
        runs=[_figures(scope, run.name, named[0].name) for run in named],
        asked_again=asked_again,
    )


def _figures(scope: _Scope, run: str, first: str) -> RunFigures:
    items = _Items(sides=scope.sides[run])
    change = None
    if run != first and scope.is_of_first:
        change = _change(scope.sides[run], scope.cautions[run])
    return RunFigures(
        run=run,
        items=len(items.pairs),
        segments=items.segments(),
        right=worst_share(items.outcomes),
        grades=items.grades(),
        scores=items.scores(),
        mean=items.mean(),
        change=change,
    )


@dataclass(frozen=True, kw_only=True)
class _Items:
    """The items of one run in a scope, each with its cluster."""

    sides: Sequence[PairedSlice]

    @cached_property
    def pairs(self) -> Sequence[tuple[Cluster, Pair]]:
        """Every item of the first run that asked it."""
        return [
            (side.cluster_of(pair), pair) for side in self.sides for pair in side.pairs
        ]

    @cached_property
    def outcomes(self) -> Outcomes:
        """Whether each item is right."""
        return [
            (side.cluster_of(pair), passes(side, pair.new))
            for side in self.sides
            for pair in side.pairs
        ]

    @property
    def is_rated(self) -> bool:
        """Whether verdicts are ratings."""
        return self.sides[0].slice_.kind.rated

    def segments(self) -> Segments:
        """Return how the items came out."""
        silent_grade = self.sides[0].slice_.kind.silent
        right = silent = wrong = ungraded = lacking = 0
        for (_, pair), (_, is_right) in zip(self.pairs, self.outcomes, strict=True):
            if pair.state in ("absent", "edited"):
                lacking += 1
            elif is_right is None:
                ungraded += 1
            elif is_right:
                right += 1
            elif silent_grade and pair.new.grade == silent_grade:
                silent += 1
            else:
                wrong += 1
        return Segments(
            right=right,
            silent=silent,
            wrong=wrong,
            ungraded=ungraded,
            lacking=lacking,
        )

    def grades(self) -> Mapping[str, CountedShare]:
        """Return the share of each grade."""
        if self.is_rated:
            return {}
        given = Counter(pair.new.grade for _, pair in self.pairs if pair.new.grade)
        labels = [label for label in self.sides[0].slice_.labels if label in given]
        labels += sorted(set(given) - set(labels))
        results = [(cluster, pair.new.grade) for cluster, pair in self.pairs]
        return _shares_of(results, labels)

    def scores(self) -> Mapping[str, CountedShare]:
        """Return the share of each rating from 1 to 10, or of each score that was given."""
        results = [(cluster, _score_text(pair)) for cluster, pair in self.pairs]
        labels = list(RATINGS)
        if not self.is_rated:
            given = {text for _, text in results if text is not None}
            labels = sorted(given, key=float)
        return _shares_of(results, labels)

    def mean(self) -> Estimate:
        """Return the mean rating, or the mean score; unknown ones count as the lowest."""
        has_scores = any(_score(pair) is not None for _, pair in self.pairs)
        if not self.is_rated and not has_scores:
            return UNDEFINED
        lowest, highest = (1.0, 10.0) if self.is_rated else (0.0, 1.0)
        estimates = []
        for unknown in (0.0, 1.0, None):
            clusters: dict[Cluster, list[float]] = defaultdict(list)
            for cluster, pair in self.pairs:
                score = _score(pair)
                place = unknown
                if score is not None:
                    place = (score - lowest) / (highest - lowest)
                if place is not None:
                    clusters[cluster].append(place)
            estimates.append(clustered_mean(list(clusters.values())))
        low, high = _hull(estimate.interval for estimate in estimates) or (0.0, 1.0)

        def scaled(place: float) -> float:
            return lowest + place * (highest - lowest)

        return Estimate.of(
            scaled(estimates[0].value or 0.0),
            (scaled(low), scaled(high)),
            len(self.pairs),
        )


def _score(pair: Pair) -> float | None:
    """Return the rating of an item, or the score of its grade; None where there is neither."""
    if pair.new.rating is not None:
        return float(pair.new.rating)
    return pair.new.score


def _score_text(pair: Pair) -> str | None:
    score = _score(pair)
    return None if score is None else f"{score:g}"


def _shares_of(
    results: Sequence[tuple[Cluster, str | None]], labels: Sequence[str]
) -> dict[str, CountedShare]:
    """Return how many items have each label; an unknown item may have any."""
    shares = {}
    for label in labels:
        outcomes = [
            (cluster, None if result is None else result == label)
            for cluster, result in results
        ]
        shares[label] = CountedShare(
            count=sum(result == label for _, result in results),
            share=worst_share(outcomes),
        )
    return shares


def worst_share(outcomes: Outcomes, *, unknown_counts: bool = False) -> Estimate:
    """Return the share of items that count, with a 95 % interval.

    An unknown item counts, or does not, by ``unknown_counts``. The interval holds those with
    unknown items all counted, none counted, and left out.
    """
    if not outcomes:
        return UNDEFINED
    counted = sum(
        unknown_counts if counts is None else counts for _, counts in outcomes
    )
    intervals = []
    for unknown in (True, False, None):
        known = []
        for cluster, counts in outcomes:
            treated = unknown if counts is None else counts
            if treated is not None:
                known.append((cluster, treated))
        intervals.append(_share_interval(known))
    return Estimate.of(counted / len(outcomes), _hull(intervals), len(outcomes))


def _share_interval(outcomes: Sequence[tuple[Cluster, bool]]) -> Interval | None:
    """Return Wilson's interval, over clusters where items share any."""
    sums: dict[Cluster, list[int]] = defaultdict(lambda: [0, 0])
    for cluster, counts in outcomes:
        sums[cluster][0] += counts
        sums[cluster][1] += 1
    if len(sums) == len(outcomes):
        hits = sum(counts for _, counts in outcomes)
        return wilson(float(hits), float(len(outcomes)))
    import numpy as np

    table = np.array(list(sums.values()), dtype=np.float64)
    return clustered_rate(table[:, 0], table[:, 1], np.ones(len(table)))


def _hull(intervals: Iterable[Interval | None]) -> Interval | None:
    """Return the range that holds all these; None where there is none."""
    known = [interval for interval in intervals if interval is not None]
    if not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


# How a run differs from the first


def _change(sides: Sequence[PairedSlice], caution: str) -> ChangeSinceFirst | None:
    """Return the difference to the first run, under the worst treatment of unknown items."""
    as_losses = share_difference(sides, treatment="as losses")
    if not as_losses.n:
        return None
    treated = [
        difference
        for difference in (share_difference(sides, passes, way) for way in TREATMENTS)
        if difference.n
    ]
    signs = {difference.value > 0 for difference in treated}
    p_value = 1.0
    if len(signs) == 1:
        p_value = max(difference.p_value for difference in treated)
    return ChangeSinceFirst(
        difference=Estimate.of(
            as_losses.value,
            _hull(difference.interval for difference in treated),
            int(as_losses.n),
        ),
        p_value=p_value,
        caution=caution,
    )


def _with_holm(slices: Sequence[SliceOfRuns]) -> list[SliceOfRuns]:
    """Return the slices with p-values adjusted over all differences of the table."""
    changes = [run.change for part in slices for run in part.runs if run.change]
    adjusted = iter(holm([change.p_value for change in changes]))
    adjusted_slices = []
    for part in slices:
        runs = []
        for run in part.runs:
            change = run.change
            if change is not None:
                change = replace(change, adjusted=next(adjusted))
            runs.append(replace(run, change=change))
        adjusted_slices.append(replace(part, runs=runs))
    return adjusted_slices


# The same model, asked again and again


def _nights(named: Sequence[NamedRun]) -> list[str]:
    """Return the runs with ``--monitor`` and the baseline that they ask again, oldest first.

    Where several models are monitored, these are the runs of the one that has most.
    """
    by_baseline: dict[str, list[NamedRun]] = defaultdict(list)
    for run in named:
        decided = run.run.report.decided
        if run.is_monitor and decided is not None:
            by_baseline[decided.baseline].append(run)
    if not by_baseline:
        return []
    sha256, monitored = max(by_baseline.items(), key=lambda entry: len(entry[1]))
    baseline = [run for run in named if run.run.sha256 == sha256]
    nights = sorted([*baseline, *monitored], key=lambda run: run.started)
    return [run.name for run in nights]


def _asked_again(nights: Sequence[Sequence[PairedSlice]]) -> AskedAgain:
    """Return how many answers change from each night to the next, in one scope."""
    verdicts: list[tuple[Cluster, bool | None]] = []
    wordings: list[tuple[Cluster, bool | None]] = []
    kept = 0
    by_night = [_by_item(sides) for sides in nights]
    for before, after in pairwise(by_night):
        for key, (cluster, old, was_right) in before.items():
            _, new, is_right = after[key]
            if was_right is None or is_right is None:
                verdicts.append((cluster, None))
                wordings.append((cluster, None))
            elif old.new.asked_by == new.new.asked_by:
                kept += 1
            else:
                verdicts.append((cluster, was_right != is_right))
                wordings.append((cluster, _words_of(old) != _words_of(new)))
    return AskedAgain(
        verdicts=worst_share(verdicts, unknown_counts=True),
        wordings=worst_share(wordings, unknown_counts=True),
        kept=kept,
    )


def _by_item(
    sides: Sequence[PairedSlice],
) -> Mapping[str, tuple[Cluster, Pair, bool | None]]:
    """Return the items of a run by the key that the first run gives them."""
    items = {}
    for side in sides:
        for pair in side.pairs:
            is_right = passes(side, pair.new)
            items[pair.old.key] = (side.cluster_of(pair), pair, is_right)
    return items


def _words_of(pair: Pair) -> str:
    return (pair.new.as_it_came or "").strip()


# What is said beside the figures


def _notes(named: Sequence[NamedRun], scopes: Sequence[_Scope]) -> Iterator[str]:
    first = named[0]
    slices = [scope for scope in scopes if not scope.name.endswith(":*")]
    for run in named:
        if not run.run.report.complete:
            yield f"{run.name} was cut short."
    for scope in slices:
        if not scope.is_of_first:
            yield f"{first.name} did not ask {scope.name}: nothing is compared with it there."
    for run in named:
        sides = [scope.sides[run.name][0] for scope in slices]
        yield from _unknown_notes(run, sides)
        yield from _added_notes(run, sides)
        yield from _bar_notes(run, sides)
        cautions: dict[str, list[str]] = defaultdict(list)
        for scope in slices:
            cautions[scope.cautions.get(run.name, "")].append(scope.name)
        for reason, names in cautions.items():
            if reason:
                yield (
                    f"{run.name} in {', '.join(names)}: {reason}; the difference may be the "
                    "judge's own, and is called neither better nor worse."
                )


def _unknown_notes(run: NamedRun, sides: Sequence[PairedSlice]) -> Iterator[str]:
    """Yield what counts at its worst in a run."""
    states = {
        "not asked": [side.count("absent") for side in sides],
        "with another question, context or gold": [
            side.count("edited") for side in sides
        ],
        "without a grade": [
            sum(
                pair.state not in ("absent", "edited") and not pair.new.is_graded
                for pair in side.pairs
            )
            for side in sides
        ],
    }
    for state, counts in states.items():
        if any(counts):
            yield (
                f"{run.name}: {plural(sum(counts), 'item')} {state} ({_by_slice(sides, counts)}); "
                "counted as wrong, and the ranges reach from all wrong to all right."
            )


def _added_notes(run: NamedRun, sides: Sequence[PairedSlice]) -> Iterator[str]:
    """Yield which items of a run are in no figure."""
    counts = [len(side.added) for side in sides]
    if any(counts):
        yield (
            f"{run.name}: {plural(sum(counts), 'item')} that the first run does not have "
            f"({_by_slice(sides, counts)}), in no figure."
        )


def _bar_notes(run: NamedRun, sides: Sequence[PairedSlice]) -> Iterator[str]:
    """Yield where a run's ratings are read by another bar than its own."""
    for side in sides:
        own = _declared(run.run, side.slice_.name)
        if side.bar is not None and own is not None and own.pass_bar != side.bar:
            yield (
                f"{run.name} in {side.slice_.name}: its pass_bar {own.pass_bar} is read as "
                f"{side.bar} here."
            )


def _by_slice(sides: Sequence[PairedSlice], counts: Sequence[int]) -> str:
    """Return ``20 in simpleqa:be, 21 in simpleqa:hu``."""
    parts = [
        f"{count:,} in {side.slice_.name}"
        for side, count in zip(sides, counts, strict=True)
        if count
    ]
    return ", ".join(parts)
