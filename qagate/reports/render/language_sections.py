"""What the page shows of each language: its verdict, what it lost and won, and where.

The bar beside a baseline, the old grades and the old shares of each topic are of pairs alone:
questions that both runs have a grade for. What lacks one is a part of the bar of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qagate.evaluators.kinds import Kind
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.metrics import USAGE, columns
from qagate.reports.metrics.summary import NO_VALUE
from qagate.reports.render import measure_words, views, words, worst_first
from qagate.reports.render.names import Names
from qagate.reports.render.pictures import Axis, Picture, Span
from qagate.reports.run.evidence import Change, SliceComparison
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateState, Report, SliceSummary

MOST_VALUES = 30
"""Of a metadata field shown in a language, the worst ones; run.json has all."""
SHARES = (*measure_words.RIGHT, "agreement")
"""The metrics that are the share of items that pass, of each kind one."""
AXIS = Axis(start=-0.02, end=1.02, is_change=False, is_share=True)
"""From 0 to 100%, with room for the marks at both ends."""

VERDICTS: Mapping[GateState | None, str] = {
    "FAIL": "fails",
    "INCONCLUSIVE": "is undecided",
    "PASS": "holds",
    None: "has no gate of its own",
}
"""What follows the name of a language, by its worst verdict."""

Segment = tuple[str, str, int]
"""A part of a bar: its tone, its word, and its items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedPair:
    """An item that both runs have a grade for."""

    record: Record
    was_right: bool
    old_label: str
    """The old grade, or the old rating in digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGrades:
    """How the items of one run came out."""

    name: str
    segments: Sequence[Segment]
    counts: Sequence[int | None]
    """One for each column; None where it means nothing in this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grades:
    """The grades of the old run and of the new one, below each other."""

    columns: Sequence[str]
    rows: Sequence[RunGrades]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """The items with one value of a metadata field, such as one topic."""

    value: str
    asked: int
    """Pairs; without any, the graded items."""
    old: float | None
    """The share that was right; None without pairs."""
    new: float | None
    estimate: Estimate | None
    """The share that is right of all graded items of this value."""
    main: Estimate | None
    """The main figure of the kind, where that is not the share."""
    direction: str
    """``fell`` or ``rose`` if the interval of the new share lies wholly on one side of the old
    one; else empty."""
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A language by a metadata field, the worst value first."""

    title: str
    main: str
    """What the column of the main figure is called; empty where there is none."""
    rows: Sequence[ValueRow]
    more: int
    """How many values are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """How often each rating was given in one run."""

    title: str
    columns: Sequence[views.Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSection:
    """All that is shown of one language."""

    part: SliceSummary
    name: str
    state: GateState | None
    """The worst verdict on it; None where no gate is on it alone."""
    verdict: str
    """What follows the name: ``fails``."""
    figures: str
    """The shares of right answers, in a sentence."""
    range: str
    """The uncertainty of what this sentence says; empty where it has no interval."""
    segments: Sequence[Segment]
    grades: Grades | None
    """None without pairs: the bar says the same of a single run."""
    ratings: Sequence[Ratings]
    longest: Breakdown | None
    """That with the most values, which stands beside all else."""
    others: Sequence[Breakdown]
    is_compared: bool
    """Whether any question has a grade in both runs."""
    shown: Mapping[str, Estimate]
    """The metrics that matter most for its kind."""
    rest: Mapping[str, Estimate]
    """The other metrics; what answers took has a table of its own."""
    notes: Sequence[str]


def language_sections(report: Report) -> list[LanguageSection]:
    """Return a section for each slice, worst first; those that test the judge come last."""
    names = Names.of(report)
    states = worst_first.worst_states(report)
    pairs = _pairs_by_slice(report)
    compared = report.comparison.slices if report.comparison else ()
    comparisons = {part.name: part for part in compared if part.difference.n}
    bars = {
        slice_.name: slice_.pass_bar
        for dataset in report.datasets
        for slice_ in dataset.slices.values()
        if slice_.kind.rated
    }
    parts = worst_first.by_slice(report, report.slices)
    parts.sort(key=lambda part: not part.kind.answered)
    sections = []
    for part in parts:
        comparison = comparisons.get(part.name)
        of_part = pairs.get(part.name, []) if comparison else []
        shown, rest = _main_measures(part)
        breakdowns = _breakdowns(part, of_part)
        longest = max(
            breakdowns, key=lambda breakdown: len(breakdown.rows), default=None
        )
        state = states.get(part.name)
        sections.append(
            LanguageSection(
                part=part,
                name=names.of_slice(part.name),
                state=state,
                verdict=VERDICTS[state],
                figures=_figures(part, comparison),
                range=_range(part, comparison),
                segments=_segments(part, comparison),
                grades=_grades(part, of_part),
                ratings=_ratings(part, of_part, bars.get(part.name)),
                longest=longest,
                others=[each for each in breakdowns if each is not longest],
                is_compared=comparison is not None,
                shown=shown,
                rest=rest,
                notes=_notes(part, comparison, names),
            )
        )
    return sections


def _pairs_by_slice(report: Report) -> Mapping[str, list[GradedPair]]:
    pairs: dict[str, list[GradedPair]] = defaultdict(list)
    if report.comparison is None:
        return pairs
    changes = {change.key: change for change in report.comparison.changes}
    for record in report.records:
        pair = _pair(record, changes.get(record.key))
        if pair is not None:
            pairs[f"{record.dataset}:{record.language}"].append(pair)
    return pairs


def _pair(record: Record, change: Change | None) -> GradedPair | None:
    """Return a record with its old grade; without a change that is the one that it has now."""
    if not record.is_graded:
        return None
    is_right = record.outcome == "passed"
    if change is None:
        return GradedPair(record=record, was_right=is_right, old_label=record.result)
    if change.flip in ("new", "changed", "ungraded"):
        return None
    was_right = is_right if change.flip == "same" else change.flip == "broke"
    old_label = change.grade or ""
    if change.rating is not None:
        old_label = str(change.rating)
    return GradedPair(record=record, was_right=was_right, old_label=old_label)


def _share(estimates: Mapping[str, Estimate]) -> Estimate | None:
    """Return the share of items that pass."""
    for name in SHARES:
        if name in estimates:
            return estimates[name]
    return None


def _right_word(kind: Kind) -> str:
    if not kind.answered:
        return "judged as labelled"
    if kind.rated or kind.by_checks:
        return "passed"
    return "right"


def _figures(part: SliceSummary, comparison: SliceComparison | None) -> str:
    right = _right_word(part.kind)
    items = "question" if part.kind.answered else "answer"
    if comparison is not None:
        pairs = comparison.difference.n
        old, new = measure_words.percents(
            (comparison.both_right + comparison.broke) / pairs,
            (comparison.both_right + comparison.fixed) / pairs,
        )
        return f"{old} {right} before, {new} now, of {plural(pairs, items)}."
    share = _share(part.measures)
    if share is None or share.value is None:
        graded = part.counts.passed + part.counts.failed
        return f"{part.counts.passed:,} {right}, of {plural(graded, items)}."
    shown = measure_words.percent(share.value)
    return f"{shown} {right}, of {plural(share.n, items)}."


def _range(part: SliceSummary, comparison: SliceComparison | None) -> str:
    if comparison is not None:
        change = comparison.difference
        text = f"Change {measure_words.points(change.value or 0.0)} points"
        if change.interval is not None:
            low, high = map(measure_words.points, change.interval)
            text += f", 95% interval of the sample {low} to {high}"
        return f"{text}."
    share = _share(part.measures)
    if share is None or share.interval is None:
        return ""
    low, high = (measure_words.percent(end, 1) for end in share.interval)
    return f"95% interval of the sample {low} to {high}."


def _segments(
    part: SliceSummary, comparison: SliceComparison | None
) -> Sequence[Segment]:
    """Return what became of the items; without pairs, how they came out."""
    if comparison is None:
        return views.segments(part)
    unpaired = comparison.added + comparison.changed + comparison.repeats
    return [
        ("right", "right in both", comparison.both_right),
        ("wrong", "lost", comparison.broke),
        ("missed", "wrong in both", comparison.both_wrong),
        ("won", "won", comparison.fixed),
        ("ungraded", "ungraded", comparison.ungraded),
        ("stopped", "not in the old run", unpaired),
    ]


def _grades(part: SliceSummary, pairs: Sequence[GradedPair]) -> Grades | None:
    if not pairs:
        return None
    runs = {"Old": _old_segments(part, pairs), "New": views.segments(part)}
    columns: dict[str, None] = {}
    for segments in runs.values():
        columns |= dict.fromkeys(word for _, word, count in segments if count)
    rows = []
    for name, segments in runs.items():
        counts = {word: count for _, word, count in segments}
        rows.append(
            RunGrades(
                name=name,
                segments=segments,
                counts=[counts.get(column) for column in columns],
            )
        )
    return Grades(columns=list(columns), rows=rows)


def _old_segments(part: SliceSummary, pairs: Sequence[GradedPair]) -> list[Segment]:
    """Return how the pairs came out in the old run; of other items nothing is said."""
    silent = part.kind.silent
    right_word, wrong_word = part.kind.outcome_words
    counts: Counter[str] = Counter()
    for pair in pairs:
        if pair.was_right:
            counts["right"] += 1
        elif silent and pair.old_label == silent:
            counts["silent"] += 1
        else:
            counts["wrong"] += 1
    return [
        ("right", right_word, counts["right"]),
        ("silent", silent.lower().replace("_", " "), counts["silent"]),
        ("wrong", wrong_word, counts["wrong"]),
        ("ungraded", "not compared", part.counts.planned - len(pairs)),
    ]


def _ratings(
    part: SliceSummary, pairs: Sequence[GradedPair], bar: int | None
) -> list[Ratings]:
    if not part.kind.rated:
        return []
    runs = {}
    if pairs:
        old_labels = Counter(pair.old_label for pair in pairs)
        runs["old"] = views.rating_bins(old_labels, bar)
    runs["new"] = views.rating_bins(part.labels, bar)
    largest = max(bin_.size for bins in runs.values() for bin_ in bins)
    passing = f"; {bar} and above pass" if bar else ""
    return [
        Ratings(
            title=f"Ratings, {name}{passing}", columns=views.histogram(bins, largest)
        )
        for name, bins in runs.items()
    ]


def _main_measures(
    part: SliceSummary,
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Return the metrics that matter most for a kind, and the others."""
    names = [name for name in part.measures if name not in USAGE]
    shown = [name for name in columns(part.kind) if name in names] or names[:3]
    return (
        {name: part.measures[name] for name in shown},
        {name: part.measures[name] for name in names if name not in shown},
    )


def _breakdowns(part: SliceSummary, pairs: Sequence[GradedPair]) -> list[Breakdown]:
    main = next(iter(words.headline(part)), "")
    if main in SHARES:
        main = ""
    breakdowns = []
    for field, values in part.breakdowns.items():
        pairs_by_value: dict[str, list[GradedPair]] = defaultdict(list)
        for pair in pairs:
            value = str(pair.record.metadata.get(field, NO_VALUE))
            pairs_by_value[value].append(pair)
        rows = [
            _value_row(value, estimates, pairs_by_value[value], main)
            for value, estimates in values.items()
        ]
        rows.sort(key=_badness)
        breakdowns.append(
            Breakdown(
                title=f"By {field.replace('_', ' ')}",
                main=main,
                rows=rows[:MOST_VALUES],
                more=max(0, len(rows) - MOST_VALUES),
            )
        )
    return breakdowns


def _badness(row: ValueRow) -> tuple[float, float, str]:
    """Order values by what they lost, then by the share that is right."""
    new = 1.0 if row.new is None else row.new
    change = 0.0 if row.old is None else new - row.old
    return change, new, row.value


def _value_row(
    value: str,
    estimates: Mapping[str, Estimate],
    pairs: Sequence[GradedPair],
    main: str,
) -> ValueRow:
    estimate = _share(estimates)
    old = None
    new = estimate.value if estimate else None
    asked = estimate.n if estimate else 0
    if pairs:
        asked = len(pairs)
        old = sum(pair.was_right for pair in pairs) / asked
        new = sum(pair.record.outcome == "passed" for pair in pairs) / asked
    interval = estimate.interval if estimate else None
    band = None
    direction = ""
    if interval is not None:
        start, end = map(AXIS.place, interval)
        band = Span(start=start, width=round(end - start, 2))
        if old is not None and interval[1] < old:
            direction = "fell"
        elif old is not None and interval[0] > old:
            direction = "rose"
    return ValueRow(
        value=value,
        asked=asked,
        old=old,
        new=new,
        estimate=estimate,
        main=estimates.get(main),
        direction=direction,
        picture=Picture(
            beyond=[],
            limits=[],
            band=band,
            mark=None if new is None else AXIS.place(new),
            old=None if old is None else AXIS.place(old),
            label=f"{value}: {_label(old, new)}",
        ),
    )


def _label(old: float | None, new: float | None) -> str:
    if new is None:
        return "no share"
    if old is None:
        return f"{measure_words.percent(new)} right"
    before, now = measure_words.percents(old, new)
    return f"{before} right before, {now} now"


def _notes(
    part: SliceSummary, comparison: SliceComparison | None, names: Names
) -> list[str]:
    """Return what has to be known to read its figures."""
    notes = []
    if part.part:
        notes.append(f"Asked: {part.part}.")
    if part.obstacle:
        notes.append(f"Decides nothing: {part.obstacle}.")
    if comparison is not None and comparison.blocked:
        blocked = names.in_words(comparison.blocked)
        notes.append(f"{blocked}; the difference may be the judge's own.")
    if comparison is not None and comparison.removed:
        removed = plural(comparison.removed, "question")
        notes.append(f"{removed} of the old run not asked again.")
    if part.note:
        notes.append(part.note)
    return notes
