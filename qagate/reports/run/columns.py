"""The pairs of a slice as columns of numbers: of which kind both records of a pair are.

Thousands of records differ in a few things that any share of them asks for: the grade, what they
were to be, how they ended. Records that are alike in all of these are one *kind*, and each question
is asked of a kind once. What is counted of pairs, by cluster, is then arithmetic on columns.

A simulated run has the same pairs, but each new record counts as another one, its *donor*. So it is
counted by the very functions that count a run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import overload

from qagate.cases.dataset import Slice
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.statistics.intervals import Places
from qagate.reports.run.record import Record

UNKNOWN = -1
"""The result of a record that has none, in a column of results: 1 counts, 0 does not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KindColumn:
    """Some records, each as the place of its kind."""

    kinds: Sequence[Record]
    """One record of each kind."""
    places: Places

    def asked(self, question: Callable[[Record], bool | None]) -> Places:
        """Return the answer of each record: 1, 0, or ``UNKNOWN`` for None."""
        answers = []
        for record in self.kinds:
            answer = question(record)
            answers.append(UNKNOWN if answer is None else int(answer))
        return self.valued(answers)

    @cached_property
    def counted(self) -> Sequence[tuple[Record, int]]:
        """The kinds that occur, and how often each does."""
        import numpy as np

        counts = np.bincount(self.places, minlength=len(self.kinds)).tolist()
        pairs = zip(self.kinds, counts, strict=True)
        return [(record, count) for record, count in pairs if count]

    def valued(self, values: Sequence[int]) -> Places:
        """Return the value of each record; ``values`` are those of the kinds."""
        import numpy as np

        found: Places = np.array(values, dtype=np.int64)[self.places]
        return found

    def at(self, places: Places) -> KindColumn:
        """Return the records at these places alone."""
        return KindColumn(kinds=self.kinds, places=self.places[places])


def column_of(records: Sequence[Record], slice_: Slice) -> KindColumn:
    """Return records of a slice as a column."""
    import numpy as np

    kinds: dict[Hashable, int] = {}
    first: list[Record] = []
    places = []
    for record in records:
        kind = _kind_of(record, slice_)
        place = kinds.get(kind)
        if place is None:
            place = kinds[kind] = len(first)
            first.append(record)
        places.append(place)
    return KindColumn(kinds=first, places=np.array(places, dtype=np.int64))


def _kind_of(record: Record, slice_: Slice) -> Hashable:
    """Return all that shares, and what grades are worth, ask of a record."""
    return (
        slice_.kind.gold_label(record.label, record.expected),
        record.label is None,
        record.outcome,
        record.grade,
        record.rating,
        record.score,
        record.answer_state,
        bool(record.adjudicated_by),
        tuple(record.measures.items()),
    )


def graded_like(record: Record, donor: Record) -> Record:
    """Return a record with the grade of another one, and all that goes with it."""
    return replace(
        record,
        outcome=donor.outcome,
        grade=donor.grade,
        rating=donor.rating,
        score=donor.score,
        error="",
        measures=donor.measures,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """The cluster of each pair of a slice; equal to no other object, so that it may be a key."""

    names: Sequence[Cluster]


class DrawnRecords(Sequence[Record]):
    """The records of a slice in a simulated run: counted as columns, and made only if asked for."""

    def __init__(
        self, records: Sequence[Record], donors: Places, columns: RecordColumns
    ) -> None:
        self._records = records
        self._donors = donors
        self.columns = RecordColumns(
            column=columns.column.at(donors), clusters=columns.clusters
        )

    @cached_property
    def _made(self) -> Sequence[Record]:
        made = []
        for place, donor in enumerate(self._donors.tolist()):
            record = self._records[place]
            if donor != place:
                record = graded_like(record, self._records[donor])
            made.append(record)
        return made

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        """Return a record as it is drawn, or some."""
        return self._made[index]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordColumns:
    """The records of a slice as a column, with the cluster of each."""

    column: KindColumn
    clusters: Clusters


def columns_of(records: Sequence[Record], slice_: Slice) -> RecordColumns:
    """Return records of a slice as columns; drawn ones have them."""
    if isinstance(records, DrawnRecords):
        return records.columns
    return RecordColumns(
        column=column_of(records, slice_),
        clusters=Clusters(names=[slice_.cluster_of(record) for record in records]),
    )


def counted_kinds(records: Sequence[Record]) -> Sequence[tuple[Record, int]]:
    """Return records with how often each stands for one: drawn ones by kind, others one by one."""
    if isinstance(records, DrawnRecords):
        return records.columns.column.counted
    return [(record, 1) for record in records]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairColumns:
    """The pairs of a slice that are not retired, and the new records of all its pairs."""

    kept: Places
    """The places of the pairs that are not retired, among all pairs."""
    old: KindColumn
    """The earlier records of these pairs."""
    new: KindColumn
    """The new records of all pairs."""
    clusters: Clusters
    extra_names: Sequence[str]
    """The extra metrics that new records have."""


@lru_cache(256)  # simulated runs ask for the same slices again and again
def numbered(*slices: Clusters) -> Places:
    """Return the numbers of the clusters of all pairs of these slices, from 0."""
    import numpy as np

    numbers: dict[Cluster, int] = {}
    found = []
    for clusters in slices:
        for name in clusters.names:
            found.append(numbers.setdefault(name, len(numbers)))
    return np.array(found, dtype=np.int64)
