"""pass@k and pass^k of a slice whose items were asked several times."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cases.dataset import Slice
from evaluators.kinds import Cluster
from evaluators.statistics.intervals import Estimate
from evaluators.statistics.sample import ALL, ANY, chance, clustered_mean, is_repeated, tries_of
from reports.run.record import Record


def gated_repeats(slice_: Slice) -> tuple[str, ...]:
    """Return the measures of repeats that a slice's gates name."""
    return tuple(one.measure for one in slice_.thresholds if is_repeated(one.measure))


def repeat_estimates(
    records: Sequence[Record], slice_: Slice, *, shown: bool = True
) -> dict[str, Estimate]:
    """Return what repeats say, over the graded tries: of all repeats, and what gates name.

    ``shown`` False leaves out what no gate names. A k beyond the repeats that were asked for is
    not measured.
    """
    most = max((record.repeat for record in records), default=1) if slice_.kind.answered else 1
    own = (f"{ANY}{most}", f"{ALL}{most}") if shown and most > 1 else ()
    names = [name for name in (*own, *gated_repeats(slice_)) if tries_of(name) <= most]
    return {name: repeat_estimate(records, slice_, name) for name in dict.fromkeys(names)}


def repeat_estimate(
    records: Iterable[Record], slice_: Slice, name: str, fill: bool | None = None
) -> Estimate:
    """Return one measure, its interval clustered as the slice is.

    ``fill`` says how all ungraded tries are taken to have ended; None leaves them out, and with
    them an item that has fewer than k others.
    """
    tries: dict[tuple[Cluster, str], list[bool]] = defaultdict(list)
    for record in records:
        ended = record.outcome == "passed" if record.is_graded else fill
        own = tries[slice_.cluster_of(record), record.id]
        if ended is not None:
            own.append(ended)
    clusters: dict[Cluster, list[float]] = defaultdict(list)
    for (cluster, _), passed in tries.items():
        value = chance(name, len(passed), sum(passed))
        if value is not None:
            clusters[cluster].append(value)
    return clustered_mean(list(clusters.values()))
