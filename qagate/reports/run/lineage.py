"""The baselines before a run, each promoted beside the one before it, and what was retired since.

Whoever wants a model to pass could retire the items that it fails, promote a run of the old model
with these retired, and try again: beside the new baseline they would count no more. So a run
remembers the whole chain of baselines behind it. Earlier sets of answers of a model beside any of
them are tries, back to the last baseline that is this model's own. Items that were retired after
its first try count for it both ways, as if the baseline still had them. And the last line says how
many items are retired in all, and since which baseline.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qagate.cases.dataset import Dataset
from qagate.evaluators.models.versions import may_be_one_spec
from qagate.evaluators.output import plural
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.decisions import earlier_tries
from qagate.reports.run.provenance import sent_spec
from qagate.reports.run.record import Record
from qagate.reports.run.report import Decided, EarlierBaseline, SliceAnswers

Chain = Sequence[EarlierBaseline]
"""The baselines before a run, the last one first."""

RetiredIds = Mapping[str, tuple[str, ...]]
"""The ids of retired items, by the name of their slice."""


def chain_of(baseline: Baseline | None) -> tuple[EarlierBaseline, ...]:
    """Return the baselines before a run that is compared with this one."""
    if baseline is None:
        return ()
    report = baseline.report
    last = EarlierBaseline(
        name=Path(baseline.path).name,
        sha256=baseline.sha256,
        model=sent_spec(report.model, report.provenance),
        retired=retired_in(report.datasets),
        anyway=baseline.anyway,
    )
    before = report.decided.chain if report.decided else ()
    return (last, *before)


def retired_in(datasets: Iterable[Dataset]) -> dict[str, tuple[str, ...]]:
    """Return the items that data sets retire."""
    retired = {}
    for dataset in datasets:
        for slice_ in dataset.slices.values():
            if slice_.retired.ids:
                retired[slice_.name] = slice_.retired.ids
    return retired


def tried_beside(model: str, chain: Chain) -> tuple[EarlierBaseline, ...]:
    """Return the baselines beside which an earlier set of answers of this model is a try.

    They go back to the last one that is surely this model's own: with it, its earlier tries
    ended. Another name that may stand for the same model ends nothing.
    """
    tried = []
    for baseline in chain:
        tried.append(baseline)
        if baseline.model == model:
            break
    return tuple(tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedBefore:
    """What was decided before over the same data, as far as it may be a try of this model."""

    model: str
    """The SPEC of the model that is tried now, as ``sent_spec`` gives it."""
    chain: Chain
    known: tuple[Decided, ...]
    at_any_look: Collection[str]
    """The slices in which a set of answers that grows is no second one."""

    def tries(self, answers: Mapping[str, SliceAnswers]) -> dict[str, tuple[str, ...]]:
        """Return how the earlier sets of answers of each slice ended, oldest first."""
        baselines = []
        for baseline in tried_beside(self.model, self.chain):
            baselines.append(baseline.sha256)
        return earlier_tries(
            self.model, baselines, answers, self.known, self.at_any_look
        )

    @property
    def unsettled(self) -> RetiredIds:
        """What the baseline had retired only after this model's first try beside the chain."""
        return unsettled(self.model, self.chain, self.known)


def unsettled(model: str, chain: Chain, known: Iterable[Decided]) -> RetiredIds:
    """Return what the baseline had retired only after this model's first try beside the chain."""
    tried = tried_beside(model, chain)
    places = {baseline.sha256: place for place, baseline in enumerate(tried)}
    first_place: dict[str, int] = {}
    for decided in known:
        place = places.get(decided.baseline)
        if (
            place is None
            or not may_be_one_spec(decided.model, model)
            or decided.monitor
        ):
            continue
        for name in decided.answers:
            first_place[name] = max(place, first_place.get(name, 0))
    ids_of: dict[str, tuple[str, ...]] = {}
    for name, place in first_place.items():
        retired_then = tried[place].retired.get(name, ())
        retired_since = _retired_along(chain[:place], name).difference(retired_then)
        if retired_since:
            ids_of[name] = tuple(sorted(retired_since))
    return ids_of


def _retired_along(chain: Chain, name: str) -> set[str]:
    ids: set[str] = set()
    for baseline in chain:
        ids.update(baseline.retired.get(name, ()))
    return ids


def promoted_anyway(chain: Chain) -> Iterator[str]:
    """Yield which baselines of a chain may be none by themselves, and why they are all the same.

    The reason stays until a run is compared with a baseline that needs none: what was waived
    once is waived for all that was only compared with it.
    """
    for earlier in chain:
        if earlier.anyway:
            yield f"{earlier.name} was promoted anyway: {earlier.anyway}"


def retired_text(
    datasets: Iterable[Dataset], records: Iterable[Record], chain: Chain
) -> str:
    """Return how many items of these slices are retired, and since when; empty for none."""
    retired_now = retired_in(datasets)
    if not retired_now and not any(baseline.retired for baseline in chain):
        return ""
    items: dict[str, set[str]] = {}
    for record in records:
        name = f"{record.dataset}:{record.language}"
        items.setdefault(name, set()).add(record.id)
    count = 0
    since_the_first = 0
    for name, ids in items.items():
        retired = _retired_along(chain, name).union(retired_now.get(name, ()))
        ids.update(retired)
        count += len(retired)
        if chain:
            since_the_first += len(retired.difference(chain[-1].retired.get(name, ())))
    if not count:
        return ""
    whole = sum(len(ids) for ids in items.values())
    text = f"{count:,} of {plural(whole, 'item')} retired"
    if since_the_first:
        text += f", {since_the_first:,} since {chain[-1].name}"
    return text
