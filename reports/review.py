"""Which items of a run are worth a person's time, as a sheet; and what people said of them."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cases.tools.review.adjudications import DIGEST, is_label
from cases.tools.review.reviews import AGREED, CONFLICT, Review, Settled, settle
from cases.tools.review.sheet import UNCLEAR, Field, Sheet, SheetItem, choice_set
from evaluators.core import NO, UNANSWERED, YES, Kind
from evaluators.judges.adjudicated import Adjudication, Adjudications, answer_digest
from evaluators.judges.judge_spec import PanelSpec
from evaluators.output import plural
from reports.record import Record, in_order
from reports.render.clean import MASK
from reports.report import Report

SAMPLE = 20
"""How many items are drawn beside those that stand out, unless another number is given."""

NEAR = 1
"""A rating is near the bar where one step less or more would change whether it passes."""

SOURCE = "adjudicated by people"
_CHOICES: Mapping[Kind, str] = {"graded": "grade", "rated": "rating", "yes_no": "yes_no"}
_AT = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """An answer that a person should judge, and why: keys of the form's ``reasons``."""

    record: Record
    reasons: tuple[str, ...]

    @property
    def id(self) -> str:
        """What names the item and this very answer to it."""
        return _id(self.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What came of reviews: verdicts that stand, and in one line each those that do not."""

    adjudications: tuple[Adjudication, ...]
    conflicts: tuple[str, ...]
    undecided: tuple[str, ...]


def pick(report: Report, sample: int = SAMPLE, seed: int = 0) -> tuple[Pick, ...]:
    """Return the answers worth a person's time, each once, in the report's order.

    Those on which judges differ (a panel's members, or an audit's model and the rules), those that
    a judge gave no verdict on, those whose verdict the baseline's answer did not have, ratings near
    the pass bar, and ``sample`` others drawn by a hash of ``seed`` for audit. What a person has
    decided already is left out, and so are items that test the judge.
    """
    slices = {one.name: one for dataset in report.datasets for one in dataset.slices.values()}
    open_ = [
        record
        for record in in_order(report.records)
        if record.answer is not None
        and MASK not in record.answer  # what was masked in the files cannot be told from another
        and not record.adjudicated_by
        and slices[f"{record.dataset}:{record.language}"].kind in _CHOICES
    ]
    bars = {name: one.pass_bar for name, one in slices.items() if one.kind == "rated"}
    changes = report.comparison.changes if report.comparison else ()
    flips = {one.key for one in changes if one.flip in ("fixed", "broke")}
    found: dict[str, tuple[Record, dict[str, None]]] = {}
    for record in open_:
        why = [*_judges_differ(record, report.judge), *_no_verdict(record)]
        why += ["flipped"] if record.key in flips else []
        why += _near(record, bars)
        found.setdefault(_id(record), (record, {}))[1].update(dict.fromkeys(why))
    drawn = _drawn([id_ for id_, (_, why) in found.items() if not why], sample, seed)
    return tuple(
        Pick(record=record, reasons=tuple(why) or ("sample",))
        for id_, (record, why) in found.items()
        if why or id_ in drawn
    )


def _id(record: Record) -> str:
    name = f"{record.dataset}-{record.language}-{record.id}"
    return f"{name}{_AT}{answer_digest(record, record.answer or '')}"


def _judges_differ(record: Record, judge: str) -> list[str]:
    if len({vote.label for vote in record.votes if vote.label}) < 2:
        return []
    if PanelSpec.parse(judge).is_panel:
        return ["judges_differ"]
    return ["audit_differs"]


def _no_verdict(record: Record) -> list[str]:
    """Name what a person can mend: there is an answer, and the judge failed at it."""
    return ["no_verdict"] if record.outcome == "error" else []


def _near(record: Record, bars: Mapping[str, int]) -> list[str]:
    bar = bars.get(f"{record.dataset}:{record.language}")
    if bar is None or record.rating is None or not bar - NEAR <= record.rating < bar + NEAR:
        return []
    return ["near_bar"]


def _drawn(ids: Iterable[str], count: int, seed: int) -> frozenset[str]:
    ranked = sorted(ids, key=lambda id_: hashlib.sha256(f"review:{seed}:{id_}".encode()).digest())
    return frozenset(ranked[:count])


def sheet_of(picks: Sequence[Pick], report: Report, name: str = "review") -> Sheet:
    """Return the sheet of these answers. It does not show what the judge said: people come first.

    An item is shown with its question, context, expected answer and the answer to be judged.
    """
    kinds = {one.name: one.kind for data in report.datasets for one in data.slices.values()}
    return Sheet(
        name=name,
        items=tuple(_item(one, kinds) for one in picks),
        choices={choices: choice_set(choices) for choices in _CHOICES.values()},
    )


def _item(pick: Pick, kinds: Mapping[str, Kind]) -> SheetItem:
    record = pick.record
    kind = kinds[f"{record.dataset}:{record.language}"]
    texts = {"context": record.context, "question": record.question}
    # A yes/no answer is read for what it says; the gold would only lead astray.
    texts["expected"] = "" if kind == "yes_no" else record.expected
    shown = [Field(title=title, text=text) for title, text in texts.items() if text]
    return SheetItem(
        id=pick.id,
        language=record.language,
        fields=(*shown, Field(title="answer", text=record.answer or "")),
        choices=_CHOICES[kind],
        reasons=pick.reasons,
        group=f"{record.dataset}:{record.language}",
    )


def reasons_of(picks: Sequence[Pick]) -> dict[str, int]:
    """Return how many answers were picked for each reason; one may have several."""
    found: dict[str, int] = defaultdict(int)
    for one in picks:
        for reason in one.reasons:
            found[reason] += 1
    return dict(found)


def accept(reviews: Sequence[Review], date: str) -> Accepted:
    """Return the verdicts that reviewers agree on; ``date`` is the day of their acceptance.

    Conflicts and verdicts of UNCLEAR decide nothing and are listed. A review that is not of
    ``python -m reports review`` is listed as undecided too.
    """
    settled = settle(dict.fromkeys(one.item for one in reviews), reviews).values()
    agreed = [one for one in settled if one.state == AGREED]
    fit = [one for one in agreed if _is_fit(one)]
    return Accepted(
        adjudications=tuple(_adjudication(one, date) for one in fit),
        conflicts=tuple(_conflict(one) for one in settled if one.state == CONFLICT),
        undecided=tuple(_undecided(one) for one in agreed if one not in fit),
    )


def _is_fit(settled: Settled) -> bool:
    name, _, digest = settled.item.rpartition(_AT)
    return bool(name and DIGEST.fullmatch(digest)) and is_label(settled.verdict)


def _adjudication(settled: Settled, date: str) -> Adjudication:
    item, _, digest = settled.item.rpartition(_AT)
    return Adjudication(
        item=item,
        digest=digest,
        label=settled.verdict,
        name=", ".join(settled.names),
        reason=" / ".join(" ".join(comment.split()) for comment in settled.comments),
        date=date,
    )


def _conflict(settled: Settled) -> str:
    said = "; ".join(f"{one.reviewer}: {one.verdict}" for one in settled.reviews)
    return f"{settled.item.rpartition(_AT)[0]}: {said}"


def _undecided(settled: Settled) -> str:
    name = settled.item.rpartition(_AT)[0] or settled.item
    if settled.verdict == UNCLEAR:
        return f"{name}: unclear to {', '.join(settled.names)}"
    return f"{name}: {settled.verdict!r} is no verdict on an answer"


def labelled(
    report: Report, adjudications: Adjudications
) -> dict[tuple[str, bool], list[dict[str, str]]]:
    """Return rows for judged datasets by language and whether they are ratings.

    One row an answer of the run that a person judged; readings of yes or no test no judge.
    """
    found: dict[tuple[str, bool], dict[str, dict[str, str]]] = defaultdict(dict)
    for record in in_order(report.records):
        digest = answer_digest(record, record.answer or "")
        one = adjudications.get(digest)
        if one is None or record.answer is None or one.label in (YES, NO, UNANSWERED):
            continue
        found[record.language, one.rating is not None][digest] = _row(record, one)
    return {place: list(rows.values()) for place, rows in found.items()}


def _row(record: Record, one: Adjudication) -> dict[str, str]:
    context = {"context": record.context} if record.context else {}
    return {
        "id": f"{record.dataset}-{record.id}-{one.digest[:8]}",
        "question": record.question,
        **context,
        "answer": record.expected,
        "predicted_answer": record.answer or "",
        "label": one.label,
        "label_source": SOURCE,
        "language": record.language,
        "adjudicated_by": one.name,
    }


def adjudication_notes(records: Sequence[Record]) -> list[str]:
    """Return, where people gave verdicts, how many and who."""
    given = [record for record in records if record.adjudicated_by]
    names = ", ".join(sorted({record.adjudicated_by for record in given}))
    return [f"{plural(len(given), 'verdict')} by people ({names})"] if given else []
