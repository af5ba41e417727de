"""What was decided before over the same data: by which answers, beside which baseline, and how.

Two questions are answered from it. How many sets of answers did this model give to these items
beside this baseline and those before it, of which one may pass by chance? And may a run serve as a
baseline: was its decision 0 beside the baseline before it, or, without one, the first that there
was?

A set of answers of a slice is named by the runs that asked them; recorded answers by their texts.
The same answers read again, whole or in part, are the same set. Beside a baseline only answers
that can be compared name it: whoever corrects an item draws its answer anew, but no gate gains by
it, as an edited item counts at its worst.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qagate.cases.dataset import SEQUENTIAL, Plan
from qagate.evaluators.models.versions import may_be_one_spec
from qagate.evaluators.text import digest
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.json_data import inner
from qagate.reports.run.partners import EarlierRecords, is_edited
from qagate.reports.run.record import Record, by_slice
from qagate.reports.run.report import Decided, Report, SliceAnswers

PASSED = 0
FAILED = 1
INCONCLUSIVE = 6
RECORDED_KEPT = 256
"""Hashes of recorded answers that name their set; more of them would tell no more sets apart."""
HASH_LENGTH = 12
ENDS: Mapping[int, str] = {
    PASSED: "PASS",
    FAILED: "FAIL",
    INCONCLUSIVE: "INCONCLUSIVE",
}
"""How a decision ended, by its exit code; runs with other codes decided nothing."""


def answers_of(
    records: Iterable[Record],
    provenance: Mapping[str, object],
    baseline: Baseline | None = None,
) -> dict[str, SliceAnswers]:
    """Return what names the answers of each slice beside a baseline, by the slice's name."""
    answers: dict[str, SliceAnswers] = {}
    for name, records_of_slice in by_slice(records).items():
        prompt = inner(provenance, "slices", name).get("prompt", "")
        compared = records_of_slice
        if baseline is not None and name in baseline.slices:
            compared = _comparable(records_of_slice, baseline.slices[name])
        asked = Counter(record.asked_by for record in compared if record.asked_by)
        answers[name] = SliceAnswers(
            prompt=str(prompt),
            asked=dict(sorted(asked.items())),
            recorded=() if asked else _hashes_of(compared),
        )
    return answers


def _comparable(
    records: Sequence[Record], earlier: Sequence[Record]
) -> tuple[Record, ...]:
    """Return the records of items that the earlier run has, and that ask the same there."""
    earlier_records = EarlierRecords.of(earlier)
    comparable = []
    for record in records:
        partner = earlier_records.partner(record, record.repeat)
        if partner is not None and not is_edited(record, partner):
            comparable.append(record)
    return tuple(comparable)


def _hashes_of(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the smallest hashes of recorded answers, RECORDED_KEPT at most."""
    hashes = set()
    for record in records:
        if record.answer is not None:
            text = digest([record.id, record.repeat, record.answer])
            hashes.add(text[:HASH_LENGTH])
    return tuple(sorted(hashes)[:RECORDED_KEPT])


def earlier_tries(
    model: str,
    baselines: Collection[str],
    answers: Mapping[str, SliceAnswers],
    known: Iterable[Decided],
    at_any_look: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Return how the earlier sets of answers of each slice ended, oldest first.

    They are those of the same model and answer prompt beside one of these baselines, which are
    named by the checksums of their records. Nightly runs (``--monitor``) are no tries. Nor is a
    set to which answers were only added, in slices whose gates may be decided ``at_any_look``.
    """
    tries = {}
    decisions = sorted(known, key=lambda decided: decided.at)
    for name, own in answers.items():
        ends: dict[tuple[str, ...], str] = {}
        for decided in decisions:
            is_beside = decided.baseline in baselines
            is_alike = is_beside and may_be_one_spec(decided.model, model)
            if not is_alike or decided.monitor or decided.code not in ENDS:
                continue
            earlier = decided.answers.get(name)
            if earlier is None or earlier.prompt != own.prompt:
                continue
            is_same_set = is_part_of(own, earlier) or is_part_of_file(earlier, own)
            if name in at_any_look and is_extended(earlier, own):
                is_same_set = True
            if not is_same_set:
                ends[(*earlier.asked, *earlier.recorded)] = ENDS[decided.code]
        tries[name] = tuple(ends.values())
    return tries


def uncounted_tries(baseline: Baseline, in_ledger: Iterable[Decided]) -> str:
    """Return that earlier sets of answers may not be counted, and why; empty where all are.

    A ledger that was begun after the baseline's run, or that is another one, does not know what
    was tried beside it.
    """
    decided = baseline.report.decided
    if decided is None or not decided.run:
        return ""
    if any(known.run == decided.run for known in in_ledger):
        return ""
    return (
        f"earlier sets of answers of this model may not be counted: the ledger knows no run of "
        f"{baseline.path}; keep one ledger for all runs of a release"
    )


def is_part_of(answers: SliceAnswers, other: SliceAnswers) -> bool:
    """Return whether a set of answers is the same as another one, or a part of it.

    Of recorded answers the hashes are compared as far as the other set keeps them.
    """
    hashes = answers.recorded
    if len(other.recorded) == RECORDED_KEPT:
        hashes = tuple(text for text in hashes if text <= other.recorded[-1])
    return answers.asked.keys() <= other.asked.keys() and set(hashes) <= set(
        other.recorded
    )


def is_part_of_file(answers: SliceAnswers, other: SliceAnswers) -> bool:
    """Return whether recorded answers are a part of others: a file that was read whole since.

    Nothing is drawn anew by it. A run that was stopped has read a part, for instance.
    """
    return not (answers.asked or other.asked) and is_part_of(answers, other)


def is_extended(answers: SliceAnswers, other: SliceAnswers) -> bool:
    """Return whether another set keeps all of these answers, so that none was drawn anew."""
    if not answers.asked:
        return False
    return all(other.asked.get(run, 0) >= count for run, count in answers.asked.items())


def at_any_look(plan: Plan) -> set[str]:
    """Return the slices whose gates on a change all hold however often one looks.

    A set of answers that grows is no second chance there. A sample is left out: a larger one
    puts new items between those that were looked at.
    """
    names = set()
    for dataset in plan.datasets:
        for slice_ in dataset.slices.values():
            gates = (*slice_.thresholds, *dataset.pooled)
            evidence = {gate.evidence for gate in gates if gate.paired}
            if evidence == {SEQUENTIAL} and slice_.name not in plan.samples:
                names.add(slice_.name)
    return names


def why_no_baseline(report: Report, known: Iterable[Decided]) -> str:
    """Return why a run may not serve as a baseline; empty where it may.

    It may where its decision was 0 beside a baseline, or where it was the first decision of 0
    over these data without one. A run that was kept with ``--anyway`` is not asked about.
    """
    decided = report.decided
    if decided is None or decided.gates_off:
        return "its gates were off, so it decided nothing"
    if decided.monitor:
        return "it was a run with --monitor, which is never a baseline"
    if report.shards is not None and report.shards.missing:
        return "it is a part of a run, and decided nothing; merge all shards, and keep that"
    if decided.code != PASSED:
        return f"its own decision was {report.verdict}, exit {decided.code}"
    if decided.baseline:
        return ""
    for earlier in known:
        is_earlier = earlier.at < decided.at and earlier.run != decided.run
        is_pass = earlier.code == PASSED and not (earlier.monitor or earlier.gates_off)
        shared = earlier.answers.keys() & decided.answers.keys()
        if is_earlier and is_pass and shared:
            return (
                f"it passed without a baseline, and a run of {min(shared)} passed before it; "
                "compare it with that one"
            )
    return ""


@dataclass(slots=True)
class Known:
    """The decisions that ledger and folders know, each once."""

    by_run: dict[tuple[str, float], Decided] = field(default_factory=dict)

    def add(self, decided: Decided | None) -> None:
        """Take in a decision, unless it is known."""
        if decided is not None:
            self.by_run.setdefault((decided.run, decided.at), decided)

    @property
    def decisions(self) -> tuple[Decided, ...]:
        """All decisions, oldest first."""
        return tuple(sorted(self.by_run.values(), key=lambda decided: decided.at))


def spread(tries: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the most tries of any slice of a data set, by the data set's name."""
    most: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for name, ends in tries.items():
        dataset, _, _ = name.rpartition(":")
        if len(ends) > len(most[dataset]):
            most[dataset] = ends
    return dict(most)
