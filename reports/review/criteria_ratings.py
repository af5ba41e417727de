"""How people rated answers by separate criteria: kept line by line, with means and agreement."""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cases.review.issued import Asked
from cases.review.reviews import Review
from cases.review.sheet_files import BOM, CELL
from evaluators.core import UsageError
from evaluators.output import markdown_table, write_texts
from evaluators.reading import parse_json, problem, read_text
from evaluators.statistics.agreement import alpha_of, kappas
from evaluators.statistics.count_table import CountTable, count_patterns
from evaluators.statistics.intervals import Estimate
from evaluators.statistics.ratios import mean_rating
from evaluators.statistics.sparse import mean_interval
from reports.run import clean
from reports.run.clean import mask, masked
from reports.run.json_data import decode

WHOLE = "all"
_HEADER = ("criterion", "slice", "scale", "answers", "ratings", "raters", "mean [95 %]")
_AGREEMENT = ("each point, from the lowest", "alpha [95 %]", "kappa of two [95 %]")
_COLUMNS = ("criterion", "question", "slice", "lowest", "highest", "answers", "ratings", "raters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """What one person said of one answer by one criterion, on the scale ``lowest`` to ``highest``.

    ``item`` names the item, ``digest`` (``answer_digest``) the answer that ``run`` gave, ``part``
    the slice.
    """

    run: str
    item: str
    digest: str
    part: str
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
            raise ValueError(f"rating {self.rating} is outside {self.lowest} to {self.highest}")

    @property
    def place(self) -> tuple[str, ...]:
        """What was rated, by which question and by whom: one rating each."""
        return self.item, self.digest, self.criterion, self.question, self.rater.casefold()


def ratings_of(reviews: Iterable[Review], items: Mapping[str, Asked], date: str) -> list[Rating]:
    """Return the ratings in reviews of what was asked; a comment stays with the answer's first."""
    found = []
    for said in _by_answer(reviews, items).values():
        comments = " / ".join(one.comment for one in said if one.comment)
        for one in said:
            if one.verdict:
                found.append(_rating(one, items[one.item], comments, date))
                comments = ""
    return found


def unrated_comments(reviews: Iterable[Review], items: Mapping[str, Asked]) -> list[str]:
    """Return what people wrote of answers that they rated by no criterion."""
    return [
        f"{answer.rpartition('@')[0]}, {one.reviewer}: {mask(one.comment)}"
        for (answer, _), said in _by_answer(reviews, items).items()
        for one in said
        if not any(other.verdict for other in said)
    ]


def _by_answer(
    reviews: Iterable[Review], items: Mapping[str, Asked]
) -> dict[tuple[str, str], list[Review]]:
    """Return what each reviewer said of each answer."""
    found = defaultdict(list)
    for one in reviews:
        found[answer_of(one.item, items[one.item]), one.reviewer].append(one)
    return found


def _rating(review: Review, asked: Asked, comment: str, date: str) -> Rating:
    item, _, digest = answer_of(review.item, asked).rpartition("@")
    return Rating(
        run=asked.run,
        item=item,
        digest=digest,
        part=asked.part,
        criterion=asked.criterion,
        question=asked.question,
        lowest=int(asked.choices[0]),
        highest=int(asked.choices[-1]),
        rating=int(review.verdict),
        rater=review.reviewer,
        comment=mask(comment),
        date=date,
    )


def answer_of(item: str, asked: Asked) -> str:
    """Return which answer a question of a form is about: its item and the digest of both."""
    return item.removesuffix(f"#{asked.criterion}")


def load_ratings(path: Path) -> list[Rating]:
    """Return the ratings of a file, none where there is no file. Raises UsageError, with line."""
    lines = read_text(path).split("\n") if path.exists() else []
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found += [masked(decode(Rating, parse_json(line)))] if line.strip() else []
        except ValueError as error:
            what = f"not a rating that `python -m reports review` wrote: {error}"
            raise problem(path, number, what) from None
    return found


def merged(old: Iterable[Rating], new: Iterable[Rating]) -> tuple[list[Rating], list[str]]:
    """Return old and new ratings, and a line for each new one that contradicts an old one."""
    found = {one.place: one for one in old}
    refused = []
    for one in new:
        before = found.setdefault(one.place, one)
        if before.rating != one.rating:
            refused.append(
                f"{one.item}, {one.criterion}: {one.rater} says {one.rating}, but said "
                f"{before.rating}; take that line out to rate it anew"
            )
    return list(found.values()), refused


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionSummary:
    """The ratings by one criterion: of one slice, or of all (``WHOLE``).

    ``mean`` counts ratings, its interval holds answers of one item together. ``counts`` says how
    often each point of the scale was given. ``alpha`` is Krippendorff's for numbers, over answers
    with two ratings or more; ``kappa`` Cohen's with quadratic weights, None unless two raters.
    """

    part: str
    first: Rating
    answers: int
    raters: int
    mean: Estimate
    counts: tuple[int, ...]
    alpha: Estimate
    kappa: Estimate | None

    def cells(self, show: Callable[[str], str]) -> tuple[str, ...]:
        """Return the row of the table; ``show`` makes names harmless where it is to stand."""
        one = self.first
        return (
            *(show(one.criterion), show(self.part), f"{one.lowest}-{one.highest}"),
            *(str(number) for number in (self.answers, self.mean.n, self.raters)),
            self.mean.text(),
            " ".join(map(str, self.counts)),
            self.alpha.text(),
            self.kappa.text() if self.kappa else "-",
        )

    @property
    def values(self) -> tuple[str, ...]:
        """The row of the CSV; an empty cell stands for what is undefined."""
        one, figures = self.first, (self.mean, self.alpha, self.kappa)
        numbers = [(it.value, it.low, it.high) if it else (None,) * 3 for it in figures]
        return (
            *map(clean.cell, (one.criterion, one.question, self.part)),
            *(str(one.lowest), str(one.highest)),
            *(str(number) for number in (self.answers, self.mean.n, self.raters)),
            " ".join(map(str, self.counts)),
            *("" if value is None else f"{value:.6g}" for some in numbers for value in some),
        )


def summaries(ratings: Iterable[Rating]) -> list[CriterionSummary]:
    """Return the figures of each criterion: of all answers, then slice by slice if several."""
    by_criterion: dict[tuple[object, ...], dict[str, list[Rating]]] = defaultdict(dict)
    for one in ratings:
        question = (one.criterion, one.question, one.lowest, one.highest)
        by_criterion[question].setdefault(one.part, []).append(one)
    found = []
    for parts in by_criterion.values():
        if len(parts) > 1:
            found.append(_summary(WHOLE, [one for some in parts.values() for one in some]))
        found += [_summary(part, some) for part, some in sorted(parts.items())]
    return found


def _summary(part: str, ratings: Sequence[Rating]) -> CriterionSummary:
    given: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for one in ratings:
        given[one.item, one.digest][one.rater.casefold()] = str(one.rating)
    clusters = [item for item, _ in given]
    units = [list(said.values()) for said in given.values()]
    raters = sorted({name for said in given.values() for name in said})
    rows = [[said.get(name, "") for name in raters] for said in given.values()]
    first, times = ratings[0], Counter(one.rating for one in ratings)
    points = range(first.lowest, first.highest + 1)
    return CriterionSummary(
        part=part,
        first=first,
        answers=len(units),
        raters=len(raters),
        mean=_mean(units, clusters, tuple(map(str, points))),
        counts=tuple(times[point] for point in points),
        alpha=alpha_of(units, clusters),
        kappa=kappas(raters, rows, clusters)[0].kappa if len(raters) == 2 else None,
    )


def _mean(
    units: Sequence[Sequence[str]], clusters: Sequence[str], scale: tuple[str, ...]
) -> Estimate:
    """Return the mean of all ratings, with the interval that ratings have everywhere."""
    cells: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for unit, cluster in zip(units, clusters, strict=True):
        cells[cluster] += [(0, scale.index(label)) for label in unit]
    patterns, items = count_patterns(cells.values(), (1, len(scale)))
    table = CountTable(counts=patterns, golds=("",), outcomes=scale)
    labels = [int(label) for unit in units for label in unit]
    interval = mean_interval(mean_rating, table, items)
    return Estimate.of(sum(labels) / len(labels), interval, len(labels))


def table_of(found: Iterable[CriterionSummary], *, padded: bool = False) -> list[str]:
    """Return the lines of the Markdown table of these figures; ``padded``, for a terminal."""
    rows = (one.cells(clean.line if padded else clean.prose) for one in found)
    return markdown_table((*_HEADER, *_AGREEMENT), rows, padded=padded)


def _csv(rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return BOM + out.getvalue()


def save_ratings(ratings: Sequence[Rating], path: Path) -> tuple[Path, ...]:
    """Write the ratings as JSON lines, their figures as Markdown and CSV; return the paths.

    Raises UsageError for another ending than ``.jsonl``, QAError where they cannot be written.
    """
    if path.suffix != ".jsonl":
        raise UsageError(
            f"{path}: ratings are written as JSON lines; name a file that ends in .jsonl"
        )
    found = summaries(ratings)
    figures = [
        f"{name}{end}" for name in ("mean", "alpha", "kappa") for end in ("", "_low", "_high")
    ]
    header = (*_COLUMNS, "counts", *figures)
    questions = {one.first.criterion: one.first.question.split("\n") for one in found}
    said = [
        f"- {clean.prose(name)}: {clean.prose(' · '.join(lines), CELL)}"
        for name, lines in questions.items()
    ]
    texts = {
        path: "".join(f"{json.dumps(asdict(one), ensure_ascii=False)}\n" for one in ratings),
        path.with_suffix(".md"): "\n".join([*table_of(found), "", *said, ""]),
        path.with_suffix(".csv"): _csv([header, *(one.values for one in found)]),
    }
    write_texts(texts.items())
    return tuple(texts)
