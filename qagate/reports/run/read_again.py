"""How commands that ask nothing get the reading of an earlier run: from the runs that made it.

They count again what the runs read of both sides. Where a run is to be compared with another
baseline than its own, nobody has read that one's answers: nothing paired is decided.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from qagate.reports.run.baseline import Baseline
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report


def as_read_by(earlier: Baseline, reports: Sequence[Report]) -> Baseline:
    """Return an earlier run with the reading that these runs, parts of one, made of it."""
    readings = []
    for report in reports:
        comparison, reading = report.comparison, report.reading
        if earlier.role == "anchor":
            comparison, reading = report.since_anchor, report.anchor_reading
        if comparison is None or comparison.sha256 != earlier.sha256:
            return replace(earlier, reading=_unread(earlier, reports))
        if reading is not None:
            readings.append(reading)
    if not readings:  # results of another tool, whose grades are all there is
        return earlier
    return replace(earlier, reading=_together(readings))


def _together(readings: Sequence[Reading]) -> Reading:
    """Return the readings of all parts as one, each record once."""
    lacking: dict[str, str] = {}
    for reading in readings:
        lacking |= reading.lacking
    return Reading(
        old=_once(record for reading in readings for record in reading.old),
        old_then=_once(record for reading in readings for record in reading.old_then),
        new_then=_once(record for reading in readings for record in reading.new_then),
        lacking=lacking,
    )


def _once(records: Iterable[Record]) -> tuple[Record, ...]:
    by_key: dict[str, Record] = {}
    for record in records:
        by_key.setdefault(record.key, record)
    return tuple(by_key.values())


def _unread(earlier: Baseline, reports: Iterable[Report]) -> Reading:
    """Return the reading of a run whose answers nobody has read."""
    why = (
        f"the answers of this {earlier.role} were not read in the run; give the run's own "
        f"command --{earlier.role}={earlier.path}: it asks only for the grades that are lacking"
    )
    names = {summary.name for report in reports for summary in report.slices}
    return Reading(lacking=dict.fromkeys(sorted(names), why))
