"""Which answers of a run people look at, the sheets of them, and what they decided or rated."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from qagate.cases.adjudication_files import ABOUT
from qagate.cases.dataset import Slice
from qagate.cases.extras.review.reviews import (
    Asked,
    IssuedItem,
    Review,
    issue,
    settle,
)
from qagate.cases.extras.review.sheet import (
    UNCLEAR,
    Question,
    Sheet,
    SheetItem,
    draw,
    verdict_question,
)
from qagate.evaluators.adjudications import (
    Adjudication,
    answer_digest,
    verdict_of,
)
from qagate.evaluators.core import UsageError, parse_judges
from qagate.evaluators.output import markdown_table, plural, write_texts
from qagate.evaluators.reading import problem, read_text
from qagate.evaluators.rubric import RUBRICS, load_rubric
from qagate.evaluators.statistics.agreement import agreement_among
from qagate.evaluators.statistics.count_table import (
    CountTable,
    count_patterns,
    mean_interval,
)
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.ratios import mean_rating
from qagate.evaluators.typed_data import decode_text
from qagate.reports.run import clean
from qagate.reports.run.record import Record, in_order
from qagate.reports.run.report import Report
from qagate.reports.run.sent_calls import calls_of
from qagate.reports.run.transcripts import Source, keys_of

SAMPLE_SIZE = 20  # answers drawn in addition to those that stand out, by default
NEAR = 1  # a rating is near the bar if this step changes whether it passes
REASONS = (
    "no_verdict",
    "judges_differ",
    "audit_differs",
    "flipped",
    "near_bar",
    "sample",
)
"""Why an answer is picked, the most important reason first."""
SAMPLED = REASONS[-1:]
_SEARCHED = 50  # answers whose calls are searched for a rubric
_COMMENT = 300  # characters of a question or an answer in a comment


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """An answer that a person should judge."""

    record: Record
    part: Slice
    reasons: tuple[str, ...] = ()
    """Some of ``REASONS``."""
    probability: float = 1.0
    """The probability of being picked."""
    pair: str = ""
    """What two answers to one item share that are judged together."""

    @property
    def digest(self) -> str:
        """The digest of the answer (``answer_digest``)."""
        return answer_digest(self.record, self.record.answer or "")

    @property
    def id(self) -> str:
        """The item, ``@``, and the digest of this answer to it."""
        one = self.record
        return f"{one.dataset}-{one.language}-{one.id}@{self.digest}"

    @property
    def upgrades(self) -> tuple[str, ...]:
        """The verdicts that would make it pass; none unless the judge failed it."""
        part, failed = self.part, self.record.outcome == "failed"
        return tuple(
            label
            for label in (verdict_question(part.kind.choices).keys if failed else ())
            if part.kind.passes(
                self.record, verdict_of(label), part.passing, part.pass_bar
            )
        )


def pick(report: Report, sample: int = SAMPLE_SIZE, seed: int = 0) -> tuple[Pick, ...]:
    """Return the answers that deserve a person's time, each once, in the report's order.

    Those of ``REASONS``, with ``sample`` others drawn by a hash of ``seed``; none that a person has
    decided already, and no items that test the judge.
    """
    changes = report.comparison.changes if report.comparison else ()
    flips = {one.key for one in changes if one.flip in ("fixed", "broke")}
    found: dict[str, Pick] = {}
    for one in _answers(report):
        if not one.record.adjudicated_by:
            known = found.setdefault(one.id, one)
            more = _reasons(
                one.record, one.part, report.judge, flipped=one.record.key in flips
            )
            found[one.id] = replace(
                known, reasons=tuple(dict.fromkeys((*known.reasons, *more)))
            )
    others = [one.id for one in found.values() if not one.reasons]
    others.sort(
        key=lambda id_: hashlib.sha256(f"review:{seed}:{id_}".encode()).digest()
    )
    drawn = others[:sample]
    share = len(drawn) / max(1, len(others))
    found |= {
        id_: replace(found[id_], reasons=SAMPLED, probability=share) for id_ in drawn
    }
    return tuple(one for one in found.values() if one.reasons)


def pick_at_random(report: Report, sample: int, seed: int = 0) -> tuple[Pick, ...]:
    """Return ``sample`` answers by a hash of ``seed``, in proportion from each slice."""
    found = {one.id: replace(one, reasons=SAMPLED) for one in _answers(report)}
    drawn = draw({id_: one.part.name for id_, one in found.items()}, sample, seed)
    return tuple(one for id_, one in found.items() if id_ in drawn)


def _answers(report: Report) -> Iterator[Pick]:
    slices = {
        one.name: one for dataset in report.datasets for one in dataset.slices.values()
    }
    for record in in_order(report.records):
        part = slices[f"{record.dataset}:{record.language}"]
        # A masked answer cannot be told from another masked one.
        if (
            part.kind.choices
            and record.answer is not None
            and clean.MASK not in record.answer
        ):
            yield Pick(record=record, part=part)


def _reasons(
    record: Record, part: Slice, judge: str, *, flipped: bool
) -> Iterator[str]:
    if record.is_disputed:
        yield (
            "judges_differ"
            if parse_judges(judge.split(" ")).is_panel
            else "audit_differs"
        )
    if record.outcome == "error":  # there is an answer: it was the judge that failed
        yield "no_verdict"
    if flipped:
        yield "flipped"
    rating, bar = record.rating, part.pass_bar
    if part.kind.rated and rating is not None and bar - NEAR <= rating < bar + NEAR:
        yield "near_bar"


def at_most(picks: Sequence[Pick], most: int | None, seed: int = 0) -> tuple[Pick, ...]:
    """Return the ``most`` important picks, in order, each with its probability by ``seed``."""
    room = len(picks) if most is None else most
    chosen: dict[str, float] = {}
    for reason in REASONS:
        alike = [one for one in picks if min(one.reasons, key=REASONS.index) == reason]
        alike.sort(
            key=lambda one: hashlib.sha256(f"limit:{seed}:{one.id}".encode()).digest()
        )
        drawn = alike[: room - len(chosen)]
        chosen |= {one.id: one.probability * len(drawn) / len(alike) for one in drawn}
    return tuple(
        replace(one, probability=chosen[one.id]) for one in picks if one.id in chosen
    )


def issue_picks(
    folder: Path,
    picks: Sequence[Pick],
    transcripts: Source | None = None,
    criteria: tuple[Question, ...] = (),
    run: str = "",
) -> tuple[Path, ...]:
    """Write a sheet that asks for a verdict on each answer, or its ratings; return the paths."""
    rubrics = {} if criteria else rubric_texts(picks, transcripts)
    items, asked = [], {}
    for one in picks:
        rubric = rubrics.get(one.part.rubric.version, "") if one.part.rubric else ""
        questions = criteria or (verdict_question(one.part.kind.choices),)
        items.append(item := sheet_item(one, questions, rubric))
        texts = (one.record.question, one.record.answer or "")
        about = tuple(
            f"{name}: {clean.cut(clean.line(text), _COMMENT)}"
            for name, text in zip(ABOUT, texts, strict=True)
        )
        for id_, asks in item.asked:
            plain, part = IssuedItem(choices=tuple(asks.keys)), one.part.name
            asked[id_] = (
                replace(
                    plain, criterion=asks.name, question=asks.text, part=part, run=run
                )
                if criteria
                else replace(
                    plain, judged=one.record.result, upgrades=one.upgrades, about=about
                )
            )
    name = (
        "criteria"
        if criteria
        else ("audit" if any(one.pair for one in picks) else "review")
    )
    return issue(Sheet(name=name, items=tuple(items)), asked, folder)


def sheet_item(
    one: Pick, questions: tuple[Question, ...], rubric: str = ""
) -> SheetItem:
    """Return an answer as people see it: no verdict of the judge, nor why it was picked."""
    record = one.record
    texts = {"context": record.context, "question": record.question}
    # A yes/no answer is read for what it says; the gold would only mislead.
    texts["expected"] = "" if one.part.kind.words else record.expected
    shown = {title: text for title, text in texts.items() if text}
    return SheetItem(
        id=one.id,
        language=record.language,
        fields={**shown, "answer": record.answer or ""},
        questions=questions,
        rubric=rubric,
        pair=one.pair,
    )


def rubric_texts(picks: Sequence[Pick], transcripts: Source | None) -> dict[str, str]:
    """Return what judges were told, by rubric version: a file still of it, or what was sent."""
    keys = keys_of(one.record for one in picks[:_SEARCHED])
    calls = calls_of(transcripts, keys).values() if transcripts else ()
    asked = [call.request for call in calls if call.request and call.request.messages]
    found = {one.version: one.messages[0].content for one in asked}
    versions = {one.part.rubric.version for one in picks if one.part.rubric}
    for path in RUBRICS.glob("*.yaml"):
        if any(version.startswith(f"{path.stem}@") for version in versions):
            rubric = load_rubric(path)
            found[rubric.version] = rubric.system or rubric.user
    return {version: found[version] for version in versions if found.get(version)}


OVERRULED, WAITING = "overrules the judge", "waits for another reviewer"
CONFLICTING, UNDECIDED = "conflict, for a third person", "undecided"


def accept(
    reviews: Sequence[Review], date: str, items: Asked, least: int | None = None
) -> tuple[list[Adjudication], dict[str, list[str]]]:
    """Return the verdicts that reviewers agree on, and lines about others and overruled judges.

    ``date`` is the day of acceptance, ``items`` says what was asked. ``least`` is how many must
    agree; None means two if an answer passes that the judge failed, else one. Conflicts and
    verdicts of UNCLEAR decide nothing.
    """
    found = list[Adjudication]()
    told: dict[str, list[str]] = {
        OVERRULED: [],
        WAITING: [],
        CONFLICTING: [],
        UNDECIDED: [],
    }
    for id_, one in settle(
        dict.fromkeys(review.item for review in reviews), reviews
    ).items():
        item, _, digest = id_.rpartition("@")
        asked, names = items[id_], ", ".join(review.reviewer for review in one.agreed)
        change = f"{item}: {asked.judged or 'no verdict'} -> {one.verdict} ({names})"
        needed = least or (2 if one.verdict in asked.upgrades else 1)
        if not one.verdict:
            said = "; ".join(
                f"{review.reviewer}: {review.verdict}" for review in one.reviews
            )
            told[CONFLICTING] += [f"{item}: {said}"] if said else []
        elif one.verdict == UNCLEAR:
            told[UNDECIDED].append(f"{item}: unclear to {names}")
        elif asked.criterion:
            told[UNDECIDED].append(
                f"{item}: {one.verdict!r} is no verdict on an answer"
            )
        elif len(one.agreed) < needed:
            told[WAITING].append(f"{change}: {plural(needed, 'reviewer')} must agree")
        else:
            told[OVERRULED] += [change] if asked.judged not in ("", one.verdict) else []
            comments = (" ".join(review.comment.split()) for review in one.agreed)
            reason = " / ".join(dict.fromkeys(filter(None, comments)))
            verdict = Adjudication(
                item=item, digest=digest, label=one.verdict, name=names
            )
            found.append(replace(verdict, reason=reason, date=date, about=asked.about))
    return found, told


RATINGS = "criteria-ratings.jsonl"
WHOLE = "all"
_QUESTION = 32_000  # characters of a criterion's question
_HEADER = (
    *("criterion", "slice", "scale", "answers", "ratings", "raters", "mean [95 %]"),
    *("each point, from the lowest", "alpha [95 %]", "kappa of two [95 %]"),
)


@dataclass(frozen=True, slots=True)
class Rating:
    """What one person said of one answer by one criterion. Raises ValueError off the scale."""

    run: str
    item: str
    digest: str
    """The digest of the answer (``answer_digest``)."""
    part: str
    """The slice."""
    criterion: str
    question: str
    lowest: int
    highest: int
    rating: int
    rater: str
    comment: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        if not self.lowest <= self.rating <= self.highest:
            raise ValueError(
                f"rating {self.rating} is outside {self.lowest} to {self.highest}"
            )


def ratings_of(
    reviews: Iterable[Review], items: Asked, date: str
) -> tuple[list[Rating], list[str]]:
    """Return the ratings, and lines about what each person rated, and said without a rating."""
    asked: dict[str, set[str]] = defaultdict(set)
    for id_, issued in items.items():
        if issued.criterion:
            asked[id_.removesuffix(f"#{issued.criterion}")].add(issued.criterion)
    given: dict[str, dict[str, list[Review]]] = defaultdict(lambda: defaultdict(list))
    for one in reviews:
        answer = one.item.removesuffix(f"#{items[one.item].criterion}")
        given[one.reviewer][answer].append(one)
    found, lines = list[Rating](), list[str]()
    for name, answers in given.items():
        in_full, incomplete, unrated = 0, list[str](), list[str]()
        for answer, own in answers.items():
            item, _, digest = answer.rpartition("@")
            comment = clean.mask(" / ".join(one.comment for one in own if one.comment))
            rated = [(items[one.item], int(one.verdict)) for one in own if one.verdict]
            for asks, rating in rated:
                place = (
                    asks.run,
                    item,
                    digest,
                    asks.part,
                    asks.criterion,
                    asks.question,
                )
                ends = int(asks.choices[0]), int(asks.choices[-1])
                found.append(Rating(*place, *ends, rating, name, comment, date))
                comment = ""  # it stands with the answer's first rating
            if comment:
                unrated.append(f"comment without a rating: {item}, {name}: {comment}")
            left = ", ".join(
                sorted(asked[answer] - {asks.criterion for asks, _ in rated})
            )
            if not left:
                in_full += 1
            elif rated:
                incomplete.append(f"incomplete: {item}: no rating by {name} for {left}")
        in_part, unseen = len(incomplete), len(asked) - in_full - len(incomplete)
        count = f"{name} rated {in_full} of {plural(len(asked), 'answer')} in full"
        lines += [
            f"{count}, {in_part} in part, {unseen} not at all",
            *incomplete,
            *unrated,
        ]
    return found, lines


def load_ratings(path: Path) -> list[Rating]:
    """Return the ratings of a file, none if there is no file. Raises UsageError, with line."""
    if not path.exists():
        return []
    ratings = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            ratings.append(clean.masked(decode_text(Rating, line)))
        except ValueError as error:
            message = f"not a rating that `qagate review` wrote: {error}"
            raise problem(path, number, message) from None
    return ratings


def table_of(ratings: Iterable[Rating], *, padded: bool = False) -> list[str]:
    """Return a table's lines: a row of all answers if of several slices, then one of each slice."""
    show = clean.line if padded else clean.prose
    by_criterion: dict[tuple[str, str, int, int], list[Rating]] = defaultdict(list)
    for one in ratings:
        by_criterion[one.criterion, one.question, one.lowest, one.highest].append(one)
    rows = []
    for (name, _, lowest, highest), some in by_criterion.items():
        slices = sorted({one.part for one in some})
        for part in [WHOLE, *slices] if len(slices) > 1 else slices:
            own = [one for one in some if part in (WHOLE, one.part)]
            rows.append((show(name), show(part), f"{lowest}-{highest}", *_figures(own)))
    return markdown_table(_HEADER, rows, padded=padded)


def _figures(ratings: Sequence[Rating]) -> tuple[str, ...]:
    """Return the figures of ratings by one criterion, in the order of the table's columns.

    The mean's interval counts answers to one item together. Alpha is Krippendorff's for numbers,
    over answers with two ratings or more; kappa is Cohen's with quadratic weights.
    """
    given: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    cells: dict[str, list[tuple[int, int]]] = defaultdict(list)
    lowest, scores = ratings[0].lowest, [one.rating for one in ratings]
    for one in ratings:
        given[one.item, one.digest][one.rater.casefold()] = str(one.rating)
        cells[one.item].append((0, one.rating - lowest))
    raters = {name for said in given.values() for name in said}
    agreement = agreement_among([*given.values()], [item for item, _ in given])
    points = range(lowest, ratings[0].highest + 1)
    patterns, items = count_patterns(cells.values(), (1, len(points)))
    table = CountTable(counts=patterns, golds=("",), outcomes=tuple(map(str, points)))
    interval = mean_interval(mean_rating, table, items)
    return (
        *(str(len(some)) for some in (given, scores, raters)),
        Estimate.of(sum(scores) / len(scores), interval, len(scores)).text(),
        " ".join(str(scores.count(point)) for point in points),
        agreement.alpha.text(),
        agreement.pairs[0].kappa.text()
        if len(raters) == 2 and agreement.pairs
        else "-",
    )


def save_ratings(ratings: Sequence[Rating], path: Path) -> tuple[Path, ...]:
    """Write ratings as JSON lines, figures as Markdown; return both paths. Raises QAError."""
    if path.suffix != ".jsonl":
        what = "ratings are written as JSON lines; name a file that ends in .jsonl"
        raise UsageError(f"{path}: {what}")
    lines = [*table_of(ratings), ""]
    for name, question in {one.criterion: one.question for one in ratings}.items():
        text = clean.prose(question.replace("\n", " · "), _QUESTION)
        lines.append(f"- {clean.prose(name)}: {text}")
    texts = {
        path: "".join(
            f"{json.dumps(asdict(one), ensure_ascii=False)}\n" for one in ratings
        ),
        path.with_suffix(".md"): "\n".join([*lines, ""]),
    }
    write_texts(texts.items())
    return tuple(texts)
