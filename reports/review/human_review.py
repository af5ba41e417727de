"""Which answers of a run are worth a person's time, and what people decided on them."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cases.dataset import Slice
from cases.review.adjudications import DIGEST, is_label
from cases.review.issued import Asked
from cases.review.reviews import AGREED, CONFLICT, Review, Settled, settle
from cases.review.sheet import UNCLEAR, draw
from evaluators.core import NO, UNANSWERED, YES, Verdict
from evaluators.judge_spec import PanelSpec
from evaluators.judges.adjudicated import Adjudication, Adjudications, answer_digest
from evaluators.kinds import Kind
from evaluators.output import plural
from reports.run.clean import MASK
from reports.run.record import Record, in_order
from reports.run.report import Report

SAMPLE = 20
"""How many items are drawn beside those that stand out, unless another number is given."""

NEAR = 1
"""A rating is near the bar where one step less or more would change whether it passes."""

SOURCE = "adjudicated by people"
_FIRST = ("no_verdict", "judges_differ", "audit_differs", "flipped", "near_bar", "sample")
"""The reasons for which an answer is picked, those that matter most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """An answer that a person should judge, and why: keys of the form's ``reasons``.

    ``id`` names the item and this very answer to it; ``part`` is its slice, ``probability`` that of
    being picked.
    """

    id: str
    record: Record
    part: Slice
    reasons: tuple[str, ...]
    probability: float = 1.0

    @property
    def digest(self) -> str:
        """That of the answer (``answer_digest``)."""
        return self.id.rpartition("@")[2]

    @property
    def kind(self) -> Kind:
        """That of its slice."""
        return self.part.kind

    def upgrades(self, choices: Iterable[str]) -> tuple[str, ...]:
        """Return the choices that would make it pass; none where the judge did not let it fail."""
        case, part = self.record, self.part
        if case.outcome != "failed":
            return ()
        said = ((one, int(one) if one.isdigit() else None) for one in choices)
        verdicts = [
            (one, Verdict(grade=one if rating is None else None, rating=rating))
            for one, rating in said
        ]
        return tuple(
            one
            for one, verdict in verdicts
            if part.kind.passes(case, verdict, part.passing, part.pass_bar)
        )


def pick(report: Report, sample: int = SAMPLE, seed: int = 0) -> tuple[Pick, ...]:
    """Return the answers worth a person's time, each once, in the report's order.

    Those on which judges differ (a panel's members, or an audit's model and the rules), those that
    a judge gave no verdict on, those whose verdict the baseline's answer did not have, ratings near
    the pass bar, and ``sample`` others drawn by a hash of ``seed`` for audit. What a person has
    decided already is left out, and so are items that test the judge.
    """
    changes = report.comparison.changes if report.comparison else ()
    flips = {one.key for one in changes if one.flip in ("fixed", "broke")}
    found: dict[str, tuple[Record, Slice, list[str]]] = {}
    for id_, record, part in _answers(report):
        if record.adjudicated_by:
            continue
        _, _, reasons = found.setdefault(id_, (record, part, []))
        reasons += _reasons(record, part, report.judge, flipped=record.key in flips)
    others = [id_ for id_, (_, _, reasons) in found.items() if not reasons]
    others.sort(key=lambda id_: hashlib.sha256(f"review:{seed}:{id_}".encode()).digest())
    drawn = frozenset(others[:sample])
    return tuple(
        Pick(
            id=id_,
            record=record,
            part=part,
            reasons=tuple(dict.fromkeys(why)) or ("sample",),
            probability=1.0 if why else len(drawn) / len(others),
        )
        for id_, (record, part, why) in found.items()
        if why or id_ in drawn
    )


def pick_at_random(report: Report, sample: int, seed: int = 0) -> tuple[Pick, ...]:
    """Return ``sample`` answers, of each slice in proportion, drawn by a hash of ``seed``.

    Whether judges or people have decided on an answer already plays no part.
    """
    found = {id_: (record, part) for id_, record, part in _answers(report)}
    drawn = draw({id_: part.name for id_, (_, part) in found.items()}, sample, seed)
    return tuple(
        Pick(id=id_, record=record, part=part, reasons=("sample",))
        for id_, (record, part) in found.items()
        if id_ in drawn
    )


def _answers(report: Report) -> Iterator[tuple[str, Record, Slice]]:
    """Yield all answers that a person may judge, with their ids, in the report's order."""
    slices = {one.name: one for dataset in report.datasets for one in dataset.slices.values()}
    for record in in_order(report.records):
        part = slices[f"{record.dataset}:{record.language}"]
        if not part.kind.choices or record.answer is None:
            continue
        if MASK in record.answer:  # what was masked in the files cannot be told from another
            continue
        name = f"{record.dataset}-{record.language}-{record.id}"
        yield f"{name}@{answer_digest(record, record.answer)}", record, part


def _reasons(record: Record, part: Slice, judge: str, *, flipped: bool) -> Iterator[str]:
    if record.is_disputed:
        yield "judges_differ" if PanelSpec.parse(judge).is_panel else "audit_differs"
    if record.outcome == "error":  # there is an answer: it was the judge that failed
        yield "no_verdict"
    if flipped:
        yield "flipped"
    rating, bar = record.rating, part.pass_bar
    if part.kind.rated and rating is not None and bar - NEAR <= rating < bar + NEAR:
        yield "near_bar"


def at_most(picks: Sequence[Pick], most: int | None, seed: int = 0) -> tuple[Pick, ...]:
    """Return these picks, or the ``most`` that matter most, in their order.

    Of those picked for one reason a part is drawn by a hash of ``seed``; each has its probability.
    """
    room = len(picks) if most is None else most
    chosen: dict[str, float] = {}
    for reason in _FIRST:
        alike = [one for one in picks if min(one.reasons, key=_FIRST.index) == reason]
        alike.sort(key=lambda one: hashlib.sha256(f"limit:{seed}:{one.id}".encode()).digest())
        drawn = alike[: room - len(chosen)]
        chosen |= {one.id: one.probability * len(drawn) / len(alike) for one in drawn}
    return tuple(replace(one, probability=chosen[one.id]) for one in picks if one.id in chosen)


def reasons_of(picks: Sequence[Pick]) -> dict[str, int]:
    """Return how many answers were picked for each reason; one may have several."""
    return dict(Counter(reason for one in picks for reason in one.reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Verdicts that reviewers agree on; and in one line an item what else there is to say.

    ``overruled`` are those of them that are not the judge's; ``waiting`` need more reviewers.
    """

    adjudications: list[Adjudication] = field(default_factory=list)
    overruled: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)


def accept(
    reviews: Sequence[Review], date: str, items: Mapping[str, Asked], least: int | None = None
) -> Accepted:
    """Return the verdicts that reviewers agree on; ``date`` is the day of their acceptance.

    ``items`` says what was asked. ``least`` is how many have to agree; None is two where an answer
    passes that the judge let fail, and one elsewhere. Conflicts and verdicts of UNCLEAR decide
    nothing and are listed. A review that is not of ``python -m reports review`` is listed as
    undecided too.
    """
    found = Accepted()
    for one in settle(dict.fromkeys(review.item for review in reviews), reviews).values():
        item, _, digest = one.item.rpartition("@")
        if one.state == CONFLICT:
            said = "; ".join(f"{review.reviewer}: {review.verdict}" for review in one.reviews)
            found.conflicts.append(f"{item}: {said}")
        elif one.state == AGREED and item and DIGEST.fullmatch(digest) and is_label(one.verdict):
            _decide(found, one, date, items.get(one.item, Asked(choices=())), least)
        elif one.state == AGREED:
            what = f"{one.verdict!r} is no verdict on an answer"
            if one.verdict == UNCLEAR:
                what = f"unclear to {', '.join(one.names)}"
            found.undecided.append(f"{item or one.item}: {what}")
    return found


def _decide(found: Accepted, one: Settled, date: str, asked: Asked, least: int | None) -> None:
    """Add the verdict that reviewers agree on, unless more of them are needed for it."""
    item, _, digest = one.item.rpartition("@")
    names = ", ".join(one.names)
    change = f"{item}: {asked.judged or 'no verdict'} -> {one.verdict} ({names})"
    needed = least or (2 if one.verdict in asked.upgrades else 1)
    if len(one.names) < needed:
        found.waiting.append(f"{change}: {plural(needed, 'reviewer')} have to agree")
        return
    if asked.judged not in ("", one.verdict):
        found.overruled.append(change)
    found.adjudications.append(
        Adjudication(
            item=item,
            digest=digest,
            label=one.verdict,
            name=names,
            reason=" / ".join(" ".join(comment.split()) for comment in one.comments),
            date=date,
            about=asked.about,
        )
    )


def labelled(
    report: Report, adjudications: Adjudications, picks: Sequence[Pick] = ()
) -> dict[tuple[str, bool], list[dict[str, str]]]:
    """Return rows for judged datasets by language and whether they are ratings.

    One row an answer of the run that a person judged; readings of yes or no test no judge.
    ``picks`` are those of the form, with the same sample: a row says why its answer was picked, and
    with what probability, for answers that stand out are harder than those of the run.
    """
    by_digest = {one.digest: one for one in picks}
    found: dict[tuple[str, bool], dict[str, dict[str, str]]] = defaultdict(dict)
    for record in in_order(report.records):
        digest = answer_digest(record, record.answer or "")
        one = adjudications.get(digest)
        if one is None or record.answer is None or one.label in (YES, NO, UNANSWERED):
            continue
        context = {"context": record.context} if record.context else {}
        found[record.language, one.rating is not None][digest] = {
            "id": f"{record.dataset}-{record.id}-{digest[:8]}",
            "question": record.question,
            **context,
            "answer": record.expected,
            "predicted_answer": record.answer,
            "label": one.label,
            "label_source": SOURCE,
            "language": record.language,
            "adjudicated_by": one.name,
            **_why_picked(one, by_digest.get(digest)),
        }
    return {place: list(rows.values()) for place, rows in found.items()}


def _why_picked(one: Adjudication, picked: Pick | None) -> dict[str, str]:
    """Return why an answer was before a person: as the form has it, or as its audit kept it."""
    because, probability = one.picked, one.probability
    if picked:
        because, probability = ", ".join(picked.reasons), picked.probability
    found = {"picked_because": because, "picked_probability": f"{probability:.4g}"}
    return found if because else {}


def adjudication_notes(records: Sequence[Record]) -> list[str]:
    """Return, where people gave verdicts, how many and who."""
    given = [record for record in records if record.adjudicated_by]
    names = ", ".join(sorted({record.adjudicated_by for record in given}))
    return [f"{plural(len(given), 'verdict')} by people ({names})"] if given else []
