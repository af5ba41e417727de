"""The labelled answers that measure the judge of a slice, and what they say of its errors.

Labels of one's own come first: all labelled sets of a language and rubric together. A class with
fewer than ``ENOUGH_OF_A_CLASS`` of them borrows the bundled labels of that class.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from qagate.cases.dataset import Dataset, Slice
from qagate.cases.labels import CONSTRUCTED
from qagate.cases.plan import ENOUGH_OF_A_CLASS
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.drawn_labels import Stratum, drawn_row
from qagate.evaluators.statistics.misclassification import (
    ClassRow,
    Confusion,
    LabelCounts,
    borrowed,
    class_row,
    correlations_of,
)
from qagate.reports.judge.classes import (
    Classes,
    LabelledAnswer,
    classes_of,
    count_labels,
    is_drawn,
    strata_of,
)
from qagate.reports.run.record import Record, by_slice
from qagate.reports.run.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet:
    """One language of a labelled data set, as the judge graded it."""

    slice_: Slice
    records: tuple[Record, ...]

    def measures(self, slice_: Slice) -> bool:
        """Return whether its labels say how the judge of a slice errs: same language and rubric."""
        labels = self.slice_
        if labels.attacks or labels.language != slice_.language:
            return False
        if labels.measures not in ("", slice_.dataset):
            return False
        if labels.rubric is None or slice_.rubric is None:
            return False
        if labels.rates != slice_.kind.rated:
            return False
        if labels.rates and labels.pass_bar != slice_.pass_bar:
            return False
        return labels.rubric.version == slice_.rubric.version


def label_sets(
    slices: Iterable[Slice],
    records: Mapping[str, Sequence[Record]],
    labels: Iterable[Record] = (),
    label_datasets: Iterable[Dataset] = (),
) -> list[LabelSet]:
    """Return the labelled sets of a run: those judged beside its items, then those among them.

    ``records`` are the items by slice, ``labels`` the labelled answers beside them, which are of
    the ``label_datasets``.
    """
    beside = by_slice(labels)
    sets = []
    for dataset in label_datasets:
        for slice_ in dataset.slices.values():
            if slice_.name in beside:
                sets.append(LabelSet(slice_=slice_, records=beside[slice_.name]))
    for slice_ in slices:
        if slice_.kind.answered or slice_.name in beside:
            continue
        if slice_.name in records:
            sets.append(LabelSet(slice_=slice_, records=tuple(records[slice_.name])))
    return sets


def label_sets_in(report: Report) -> list[LabelSet]:
    """Return the labelled sets of an earlier run."""
    slices = [
        slice_ for dataset in report.datasets for slice_ in dataset.slices.values()
    ]
    return label_sets(
        slices, by_slice(report.records), report.labels, report.label_datasets
    )


@dataclass(frozen=True, kw_only=True)
class Labels:
    """All labelled answers that measure the judge of one slice."""

    slice_: Slice
    own: tuple[LabelledAnswer, ...] = ()
    """Labelled answers of the user's."""
    bundled: tuple[LabelledAnswer, ...] = ()
    """Labelled answers that come with this package."""

    @classmethod
    def of(cls, slice_: Slice, sets: Iterable[LabelSet]) -> "Labels":
        """Return the labels of these sets that measure a slice."""
        own: list[LabelledAnswer] = []
        bundled: list[LabelledAnswer] = []
        for labels in sets:
            if not labels.measures(slice_):
                continue
            answers = bundled if labels.slice_.bundled else own
            for record in labels.records:
                if record.label is not None:
                    answers.append((labels.slice_, record))
        return cls(slice_=slice_, own=tuple(own), bundled=tuple(bundled))

    @classmethod
    def alone(cls, labels: LabelSet) -> "Labels":
        """Return one set as if it were one's own, whatever it measures."""
        answers = [
            (labels.slice_, record)
            for record in labels.records
            if record.label is not None
        ]
        return cls(slice_=labels.slice_, own=tuple(answers))

    def __bool__(self) -> bool:
        """Return whether there is any label."""
        return bool(self.own or self.bundled)

    @cached_property
    def classes(self) -> Classes:
        """The classes that the labels can tell apart."""
        return classes_of(self.slice_, (*self.own, *self.bundled))

    @cached_property
    def own_counts(self) -> LabelCounts:
        """The user's own labels, counted."""
        return count_labels(self.slice_, self.own, self.classes)

    @cached_property
    def bundled_counts(self) -> LabelCounts:
        """The bundled labels, counted."""
        return count_labels(self.slice_, self.bundled, self.classes)

    @cached_property
    def _rows(self) -> dict[tuple[str, frozenset[str]], ClassRow | None]:
        return {}

    @cached_property
    def _confusions(
        self,
    ) -> dict[tuple[frozenset[str], tuple[tuple[str, str], ...]], Confusion]:
        return {}

    def row(self, name: str, inner: frozenset[str]) -> ClassRow | None:
        """Return how the judge grades a class by its own labels, with borrowed ones if few."""
        key = name, inner
        if key not in self._rows:
            self._rows[key] = self._read_row(name, inner)
        return self._rows[key]

    def _read_row(self, name: str, inner: frozenset[str]) -> ClassRow | None:
        own, is_enough = self._own_row(name, inner)
        if is_enough:
            return own
        lent = class_row(self.bundled_counts, name, inner)
        if own is None:
            return lent
        if lent is None:
            return own
        return borrowed(own, lent, self._columns(name, inner))

    def _own_row(
        self, name: str, inner: frozenset[str]
    ) -> tuple[ClassRow | None, bool]:
        """Return how the judge grades a class by own labels, and whether there are enough.

        Labels that were drawn by a grade are enough if they show as much as ``ENOUGH_OF_A_CLASS``
        others would. Where there are both kinds the fewer lean on the more.
        """
        others = class_row(self._counts_of_others, name, inner)
        drawn = drawn_row(self._strata, name, self.classes.names, inner)
        if drawn is None:
            is_enough = others is not None and others.labels >= ENOUGH_OF_A_CLASS
            return others, is_enough
        if others is None:
            return drawn, drawn.size >= ENOUGH_OF_A_CLASS
        fewer, more = sorted((others, drawn), key=lambda row: row.size)
        both = borrowed(fewer, more, self._columns(name, inner))
        both = replace(both, labels=fewer.labels + more.labels)
        return both, both.size >= ENOUGH_OF_A_CLASS

    def _columns(self, name: str, inner: frozenset[str]) -> list[int]:
        """Return the places of the grades on a class's side of the border."""
        columns = []
        for place, grade in enumerate(self.classes.names):
            if (grade in inner) is (name in inner):
                columns.append(place)
        return columns

    @cached_property
    def _strata(self) -> list[Stratum]:
        return strata_of(self.slice_, self.drawn, self.classes)

    @cached_property
    def _counts_of_others(self) -> LabelCounts:
        """The user's own labels without those that were drawn, counted."""
        if not self.drawn:
            return self.own_counts
        return count_labels(self.slice_, self.not_drawn, self.classes)

    @cached_property
    def drawn(self) -> list[LabelledAnswer]:
        """Own labels of answers that were drawn by what a judge said of them."""
        return [answer for answer in self.own if is_drawn(answer)]

    @cached_property
    def not_drawn(self) -> list[LabelledAnswer]:
        """Own labels of any other answers."""
        return [answer for answer in self.own if not is_drawn(answer)]

    def can_borrow(self, name: str) -> bool:
        """Return whether there are bundled labels of a class."""
        return self.bundled_counts.labels(name) > 0

    def confusion(
        self, inner: frozenset[str], merged: Mapping[str, str] | None = None
    ) -> Confusion:
        """Return the judge's confusion, which has a row for every class that is not ``merged``.

        ``merged`` classes count as another class on the same side of the border.
        """
        merged = merged or {}
        key = inner, tuple(merged.items())
        if key not in self._confusions:
            self._confusions[key] = self._confusion(inner, merged)
        return self._confusions[key]

    def _confusion(self, inner: frozenset[str], merged: Mapping[str, str]) -> Confusion:
        names = [name for name in self.classes.names if name not in merged]
        rows = []
        for name in names:
            row = self.row(name, inner)
            assert row is not None
            rows.append(_folded(row, self.classes.names, names, merged))
        counts = self.own_counts if self.own else self.bundled_counts
        return Confusion(
            classes=tuple(names),
            inner=inner,
            rows=tuple(rows),
            correlations=correlations_of(counts, inner),
            folds={**self.classes.folds, **merged},
        )

    @property
    def constructed(self) -> int:
        """How many labels are of answers that were written to test the judge."""
        return sum(
            CONSTRUCTED in str(record.metadata.get("label_source", ""))
            for _, record in (*self.own, *self.bundled)
        )

    @property
    def basis(self) -> str:
        """Which labels there are, in words."""
        if not self.own:
            return f"by {plural(len(self.bundled), 'bundled label')}"
        own = f"by {plural(len(self.own), 'label')} of your own"
        if self.bundled:
            return f"{own} and {len(self.bundled):,} bundled ones"
        return own


def _folded(
    row: ClassRow, names: Sequence[str], kept: Sequence[str], merged: Mapping[str, str]
) -> ClassRow:
    """Return a row in which grades of merged classes count as those of the class they join."""
    shares = dict.fromkeys(kept, 0.0)
    for name, share in zip(names, row.shares, strict=True):
        shares[merged.get(name, name)] += share
    return ClassRow(
        shares=tuple(shares[name] for name in kept),
        labels=row.labels,
        size=row.size,
        freedom=row.freedom,
    )
