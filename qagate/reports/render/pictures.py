"""Where things stand in a drawn gate: the limit, the band, the new model and the old one.

Places are per cents of the width, so that a picture is as wide as its column and its marks keep
their size. Grey is what may not be; the band is that of the gate, which obeys its verdict.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qagate.reports.render import measure_words
from qagate.reports.render.language_rows import LanguageRow

MARGIN = 0.06
"""Of the width, left free at both ends."""
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MOST_TICKS = 4
NEAREST_TICKS = 18
"""Per cents of the width between two figures, so that they do not touch."""
RATINGS = (1.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of the width."""

    start: float
    width: float

    @property
    def end(self) -> float:
        """Where it ends."""
        return round(self.start + self.width, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A figure below the axis."""

    place: float
    text: str
    is_limit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One gate, drawn."""

    beyond: Sequence[Span]
    """What may not be."""
    limits: Sequence[float]
    band: Span | None
    mark: float | None
    """The new model."""
    old: float | None
    """The old model; of a change, no change."""
    label: str
    """The picture in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The values at both ends of pictures that stand below each other."""

    start: float
    end: float
    is_change: bool
    is_share: bool

    @classmethod
    def of(cls, rows: Sequence[LanguageRow]) -> "Axis":
        """Return an axis on which all these rows have their place."""
        threshold = rows[0].gate.threshold
        is_share = measure_words.is_share(threshold)
        values = [value for row in rows for value in _values(row)]
        if threshold.paired:
            values.append(0.0)
        elif is_share:
            values += [0.0, 1.0]
        elif threshold.measure == "mean_rating":
            values += RATINGS
        else:
            values.append(0.0)
        low, high = min(values), max(values)
        room = MARGIN * (high - low or 1.0)
        if is_share and not threshold.paired:
            room = 0.02
        return cls(
            start=low - room,
            end=high + room,
            is_change=threshold.paired,
            is_share=is_share,
        )

    def place(self, value: float) -> float:
        """Return where a value stands, from 0 to 100."""
        share = (value - self.start) / (self.end - self.start)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def ticks(self, rows: Sequence[LanguageRow]) -> list[Tick]:
        """Return the figures below the pictures: the limit, and round ones beside it."""
        limits = {end for row in rows for end in row.limit if math.isfinite(end)}
        ticks = [
            Tick(place=self.place(limit), text=self._text(limit), is_limit=True)
            for limit in sorted(limits)
        ]
        return self.round_ticks(ticks)

    def round_ticks(self, limits: Sequence[Tick] = ()) -> list[Tick]:
        """Return these limits, and round figures apart from them and from each other."""
        ticks = list(limits)
        for value in self._round_values():
            place = self.place(value)
            if all(abs(place - tick.place) > NEAREST_TICKS for tick in ticks):
                ticks.append(Tick(place=place, text=self._text(value)))
        return sorted(ticks, key=lambda tick: tick.place)

    def _round_values(self) -> Iterable[float]:
        width = self.end - self.start
        scale = 1.0 if self.is_share else 10 ** math.floor(math.log10(width or 1.0))
        step = scale
        for candidate in STEPS:
            if width / (candidate * scale) <= MOST_TICKS:
                step = candidate * scale
                break
        first = math.ceil(self.start / step)
        last = math.floor(self.end / step)
        return [number * step for number in range(first, last + 1)]

    def _text(self, value: float) -> str:
        if not self.is_share:
            return f"{value:.3g}".replace("-", measure_words.MINUS)
        if self.is_change:
            shown = f"{100 * value:+.3g}" if abs(value) > 1e-9 else "0"
            return shown.replace("-", measure_words.MINUS)
        return f"{100 * value:.3g}%"


def _values(row: LanguageRow) -> list[float]:
    values = [end for end in row.limit if math.isfinite(end)]
    values += row.band or ()
    if row.value is not None:
        values.append(row.value)
    if row.old is not None and not row.gate.threshold.paired:
        values.append(row.old)
    return [value for value in values if math.isfinite(value)]


def draw(row: LanguageRow, axis: Axis) -> Picture:
    """Return the picture of a row."""
    low, high = row.limit
    beyond = []
    limits = []
    if math.isfinite(low):
        limits.append(axis.place(low))
        beyond.append(Span(start=0.0, width=axis.place(low)))
    if math.isfinite(high):
        place = axis.place(high)
        limits.append(place)
        beyond.append(Span(start=place, width=round(100 - place, 2)))
    old = None
    if axis.is_change:
        old = axis.place(0.0)
    elif row.old is not None:
        old = axis.place(row.old)
    return Picture(
        beyond=beyond,
        limits=limits,
        band=_band(row, axis),
        mark=None if row.value is None else axis.place(row.value),
        old=old,
        label=_label(row, axis),
    )


def _band(row: LanguageRow, axis: Axis) -> Span | None:
    if row.band is None:
        return None
    start, end = (axis.place(value) for value in row.band)
    return Span(start=start, width=round(end - start, 2))


def _label(row: LanguageRow, axis: Axis) -> str:
    """Return the picture in words, for who cannot see it."""

    def shown(value: float) -> str:
        if axis.is_share and axis.is_change:
            return measure_words.points(value)
        return measure_words.figures(row.gate.threshold, value)[0]

    parts = [f"{row.name} {row.verdict}"]
    if row.value is not None:
        parts.append(shown(row.value))
    if row.band is not None:
        parts.append(f"may be {shown(row.band[0])} to {shown(row.band[1])}")
    limits = [shown(end) for end in row.limit if math.isfinite(end)]
    parts.append(f"limit {' and '.join(limits)}")
    return ", ".join(parts)
