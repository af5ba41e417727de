"""What the figures of several runs show: names, texts and places, without markup.

There is a panel for each slice and each question: how the grades divide (``grade_panel``), how
scores are distributed (``score_panel``), how far each run is from the first
(``change_panel``), and how one model moves from night to night (``night_panel``). Places from the
left are per cents of a panel's width, so that a panel fits a phone and a slide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qagate.evaluators.output import plural, visible
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.extras.side_by_side.counting import (
    AskedAgain,
    ChangeSinceFirst,
    Finding,
    RunFigures,
    SideBySide,
    SliceOfRuns,
)
from qagate.reports.render import measure_words, views
from qagate.reports.render.names import ALL_LANGUAGES, language_name
from qagate.reports.render.pictures import Axis, Picture, Span, Tick
from qagate.reports.run import clean

LONGEST_NAME = 24
"""Characters of a run's name in a figure; the table has all of it."""
GRADE_ROW = 38
"""Pixels of a run in a panel of grades, as the ones below."""
SCORE_ROW = 150
CHANGE_ROW = 66
TITLE = 24
TICKS = 20
NIGHTS = 116
AGAIN_LINE = 18
FINDINGS: Mapping[Finding, str] = {
    "better": "better",
    "worse": "worse",
    "open": "no difference shown",
    "not comparable": "other judge",
}
STATES: Mapping[Finding, str] = {"better": "PASS", "worse": "FAIL"}
"""How a finding is drawn: a disc, a diamond; all others are a ring."""
GRADE_TONES = ("right", "silent", "wrong", "ungraded")


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRow:
    """The grades of one run as one bar."""

    name: str
    text: str
    segments: Sequence[tuple[str, str, int]]
    """Tone, word and count."""
    range: Span | None
    """Where the share of right answers may end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """The ratings or scores of one run as a histogram."""

    name: str
    text: str
    columns: Sequence[views.Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """How far one run is from the first."""

    name: str
    text: str
    state: str
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A figure of one slice."""

    title: str
    height: int
    """In pixels."""
    label: str
    """The figure in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradePanel(Panel):
    """How the grades of each run divide."""

    rows: Sequence[GradeRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePanel(Panel):
    """How the ratings or scores of each run are distributed."""

    rows: Sequence[ScoreRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePanel(Panel):
    """How far each run is from the first."""

    rows: Sequence[ChangeRow]
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPanel(Panel):
    """The share of right answers of one model, night after night."""

    marks: Sequence[tuple[float, ...]]
    first: str
    """The first night's figure, as ``last`` is the last one's."""
    last: str
    again: Sequence[str]
    """How many answers change when the model is asked again, in lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The panels of one data set on one question."""

    name: str
    """That of its file, without the ending."""
    kind: str
    """Which macro draws its panels."""
    panels: Sequence[Panel]
    legend: Sequence[tuple[str, str]]
    """Tone and word."""


def figures_of(runs: SideBySide) -> list[Figure]:
    """Return all figures: of each data set the grades, scores, changes and nights."""
    figures = []
    for dataset, slices in by_dataset(runs).items():
        figures.append(
            Figure(
                name=f"grades-{dataset}",
                kind="grades",
                panels=[grade_panel(part) for part in slices],
                legend=_legend(slices),
            )
        )
        scored = [part for part in slices if _has_scores(part)]
        if scored:
            figures.append(
                Figure(
                    name=f"scores-{dataset}",
                    kind="scores",
                    panels=[score_panel(part) for part in scored],
                    legend=(),
                )
            )
        compared = [part for part in slices if any(run.change for run in part.runs)]
        if compared:
            axis = change_axis(compared)
            figures.append(
                Figure(
                    name=f"changes-{dataset}",
                    kind="changes",
                    panels=[change_panel(part, axis) for part in compared],
                    legend=(),
                )
            )
        if runs.nights:
            figures.append(
                Figure(
                    name=f"nights-{dataset}",
                    kind="nights",
                    panels=[night_panel(part, runs.nights) for part in slices],
                    legend=(),
                )
            )
    return figures


def by_dataset(runs: SideBySide) -> dict[str, list[SliceOfRuns]]:
    """Return the slices of each data set."""
    datasets: dict[str, list[SliceOfRuns]] = {}
    for part in runs.slices:
        datasets.setdefault(part.name.partition(":")[0], []).append(part)
    return datasets


def title_of(slice_name: str) -> str:
    """Return what people call a slice in its data set's figure: ``Polish``."""
    language = slice_name.partition(":")[2]
    name = ALL_LANGUAGES if language == "*" else language_name(language)
    return name[:1].upper() + name[1:]


def short(name: str) -> str:
    """Return a run's name as a figure has room for it."""
    return clean.cut(visible(name), LONGEST_NAME)


def share_text(share: Estimate) -> str:
    """Return a share in per cent with its range, such as ``94.1% (91.0 to 96.2)``."""
    if share.value is None:
        return "–"
    text = measure_words.percent(share.value, 1)
    if share.interval is None:
        return text
    low, high = share.interval
    return f"{text} ({100 * low:.1f} to {100 * high:.1f})"


def change_text(change: ChangeSinceFirst) -> str:
    """Return a difference in points with its range, such as ``−23.8 (−28.1 to −19.6)``."""
    if change.difference.value is None:
        return "–"
    text = measure_words.points(change.difference.value)
    if change.difference.interval is None:
        return text
    low, high = map(measure_words.points, change.difference.interval)
    return f"{text} ({low} to {high})"


def mean_text(figures: RunFigures, *, is_rated: bool) -> str:
    """Return the mean rating or score with its range."""
    mean = figures.mean
    if mean.value is None or mean.interval is None:
        return "–"
    digits = 1 if is_rated else 2
    low, high = mean.interval
    return f"{mean.value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def segments_of(
    part: SliceOfRuns, figures: RunFigures
) -> Sequence[tuple[str, str, int]]:
    """Return tone, word and count of right, silent, wrong and unknown items."""
    right, silent, wrong = part.words
    segments = figures.segments
    counts = (segments.right, segments.silent, segments.wrong, segments.unknown)
    texts = (right, silent, wrong, "not known")
    return list(zip(GRADE_TONES, texts, counts, strict=True))


def grade_panel(part: SliceOfRuns) -> GradePanel:
    """Return how the grades of a slice divide, a bar a run."""
    rows = []
    for figures in part.runs:
        reach = None
        if figures.right.interval is not None:
            low, high = (100 * end for end in figures.right.interval)
            reach = Span(start=round(low, 2), width=round(high - low, 2))
        rows.append(
            GradeRow(
                name=short(figures.run),
                text=share_text(figures.right),
                segments=segments_of(part, figures),
                range=reach,
            )
        )
    title = title_of(part.name)
    parts = [f"{row.name} {row.text} {part.words[0]}" for row in rows]
    return GradePanel(
        title=title,
        height=TITLE + GRADE_ROW * len(rows),
        label=f"{title}: {'; '.join(parts)}",
        rows=rows,
    )


def _legend(slices: Sequence[SliceOfRuns]) -> list[tuple[str, str]]:
    """Return the tones that any bar of a data set has, with their words."""
    counts = dict.fromkeys(GRADE_TONES, 0)
    texts: dict[str, str] = {}
    for part in slices:
        for figures in part.runs:
            for tone, text, count in segments_of(part, figures):
                counts[tone] += count
                texts[tone] = text
    return [(tone, texts[tone]) for tone in GRADE_TONES if counts[tone]]


def _has_scores(part: SliceOfRuns) -> bool:
    return any(score.count for run in part.runs for score in run.scores.values())


def score_panel(part: SliceOfRuns) -> ScorePanel:
    """Return how ratings or scores are distributed, a histogram a run, on one scale."""
    texts = list(
        dict.fromkeys(text for figures in part.runs for text in figures.scores)
    )
    texts.sort(key=float)
    bins_of_runs = [_score_bins(figures, texts) for figures in part.runs]
    largest = _largest(bin_ for bins in bins_of_runs for bin_ in bins)
    rows = []
    for figures, bins in zip(part.runs, bins_of_runs, strict=True):
        rows.append(
            ScoreRow(
                name=short(figures.run),
                text=f"mean {mean_text(figures, is_rated=part.is_rated)}",
                columns=views.histogram(bins, largest),
            )
        )
    title = title_of(part.name)
    parts = [f"{row.name} {row.text}" for row in rows]
    return ScorePanel(
        title=title,
        height=TITLE + SCORE_ROW * len(rows),
        label=f"{title}: {'; '.join(parts)}",
        rows=rows,
    )


def _score_bins(figures: RunFigures, texts: Sequence[str]) -> list[views.Bin]:
    """Return a run's bins; a value that it never has is an empty one."""
    bins = []
    for text in texts:
        score = figures.scores.get(text)
        share = score.share if score else None
        bins.append(
            views.Bin(
                text=text,
                count=score.count if score else 0,
                tone="plain",
                size=(share.value if share else None) or 0.0,
                interval=share.interval if share else None,
            )
        )
    return bins


def _largest(bins: Iterable[views.Bin]) -> float:
    ends = [bin_.interval[1] if bin_.interval else bin_.size for bin_ in bins]
    return max(ends, default=1.0)


def change_axis(slices: Sequence[SliceOfRuns]) -> Axis:
    """Return the axis of all differences of a data set, with 0 on it."""
    ends = [0.0]
    for part in slices:
        for figures in part.runs:
            if figures.change and figures.change.difference.interval:
                ends += figures.change.difference.interval
    room = 0.06 * (max(ends) - min(ends) or 1.0)
    return Axis(
        start=min(ends) - room, end=max(ends) + room, is_change=True, is_share=True
    )


def change_panel(part: SliceOfRuns, axis: Axis) -> ChangePanel:
    """Return how far each run of a slice is from the first."""
    rows = []
    for figures in part.runs:
        change = figures.change
        if change is None or change.difference.value is None:
            continue
        band = None
        if change.difference.interval is not None:
            low, high = (axis.place(end) for end in change.difference.interval)
            band = Span(start=low, width=round(high - low, 2))
        finding = FINDINGS[change.finding]
        text = change_text(change)
        if change.finding != "open":
            text += f" {finding}"
        picture = Picture(
            beyond=(),
            limits=(),
            band=band,
            mark=axis.place(change.difference.value),
            old=axis.place(0.0),
            label=f"{short(figures.run)} {change_text(change)}, {finding}",
        )
        rows.append(
            ChangeRow(
                name=short(figures.run),
                text=text,
                state=STATES.get(change.finding, "open"),
                picture=picture,
            )
        )
    title = title_of(part.name)
    parts = [row.picture.label for row in rows]
    return ChangePanel(
        title=title,
        height=TITLE + CHANGE_ROW * len(rows) + TICKS,
        label=f"{title}: {'; '.join(parts)}",
        rows=rows,
        ticks=axis.round_ticks(),
    )


def night_panel(part: SliceOfRuns, nights: Sequence[str]) -> NightPanel:
    """Return how the share of right answers moved from night to night."""
    by_name = {figures.run: figures for figures in part.runs}
    shares = [by_name[night].right for night in nights]
    title = title_of(part.name)
    parts = [
        f"{night} {share_text(share)}"
        for night, share in zip(nights, shares, strict=True)
    ]
    again = again_lines(part.asked_again) if part.asked_again else []
    return NightPanel(
        title=title,
        height=TITLE + NIGHTS + AGAIN_LINE * len(again),
        label=f"{title}: {'; '.join([*parts, *again])}",
        marks=views.trend_marks(shares),
        first=share_text(shares[0]),
        last=share_text(shares[-1]),
        again=again,
    )


def again_lines(asked_again: AskedAgain) -> list[str]:
    """Return how many answers change when the same model is asked again, in short lines."""
    lines = [
        f"verdicts that change: {share_text(asked_again.verdicts)}",
        f"wordings that change: {share_text(asked_again.wordings)}",
    ]
    if asked_again.kept:
        lines.append(f"{plural(asked_again.kept, 'kept answer')}, not asked again")
    return lines
