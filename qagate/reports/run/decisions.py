"""What was decided before over the same data: by which answers, beside which baseline, and how.

Two questions are answered from it. How many sets of answers did this model give to these items
beside this baseline and those before it, of which one may pass by chance? And may a run serve as a
baseline: was its decision 0 beside the baseline before it, or, without one, the first that there
was?

A set of answers of a slice is named by the runs that asked them; recorded answers by their text.
The same answers read again, whole or in part, are the same set.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qagate.evaluators.models.versions import may_be_one_spec
from qagate.evaluators.text import digest
from qagate.reports.run.json_data import inner
from qagate.reports.run.record import Record, by_slice
from qagate.reports.run.report import Decided, Report, SliceAnswers

PASSED = 0
FAILED = 1
INCONCLUSIVE = 6
ENDS: Mapping[int, str] = {
    PASSED: "PASS",
    FAILED: "FAIL",
    INCONCLUSIVE: "INCONCLUSIVE",
}
"""How a decision ended, by its exit code; runs with other codes decided nothing."""


def answers_of(
    records: Iterable[Record], provenance: Mapping[str, object]
) -> dict[str, SliceAnswers]:
    """Return what names the answers of each slice, by its name."""
    answers: dict[str, SliceAnswers] = {}
    for name, records_of_slice in by_slice(records).items():
        prompt = inner(provenance, "slices", name).get("prompt", "")
        answers[name] = SliceAnswers(
            prompt=str(prompt), name=_set_name(records_of_slice)
        )
    return answers


def _set_name(records: Sequence[Record]) -> str:
    """Return the ids of the runs that asked these answers, or a hash of recorded ones."""
    runs = {record.asked_by for record in records if record.asked_by}
    if runs:
        return " ".join(sorted(runs))
    texts = []
    for record in records:
        texts.append([record.id, record.repeat, record.answer])
    return digest(sorted(texts, key=str))


def earlier_tries(
    model: str,
    baselines: Collection[str],
    answers: Mapping[str, SliceAnswers],
    known: Iterable[Decided],
) -> dict[str, tuple[str, ...]]:
    """Return how the earlier sets of answers of each slice ended, oldest first.

    They are those of the same model and answer prompt beside one of these baselines, which are
    named by the checksums of their records. Nightly runs (``--monitor``) are no tries.
    """
    tries = {}
    decisions = sorted(known, key=lambda decided: decided.at)
    for name, own in answers.items():
        ends: dict[str, str] = {}
        for decided in decisions:
            is_beside = decided.baseline in baselines
            is_alike = is_beside and may_be_one_spec(decided.model, model)
            if not is_alike or decided.monitor or decided.code not in ENDS:
                continue
            earlier = decided.answers.get(name)
            if earlier is None or earlier.prompt != own.prompt:
                continue
            if not is_part_of(own.name, earlier.name):
                ends[earlier.name] = ENDS[decided.code]
        tries[name] = tuple(ends.values())
    return tries


def is_part_of(name: str, other: str) -> bool:
    """Return whether a set of answers is the same as another one, or a part of it."""
    return set(name.split()) <= set(other.split())


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
