"""How people rated answers by their own criteria: kept line by line, with means and agreement."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cases.review.reviews import IssuedItem, Review
from evaluators.core import UsageError
from evaluators.output import markdown_table, plural, write_texts
from evaluators.reading import parse_json, problem, read_text
from evaluators.statistics.agreement import kappas, krippendorff_alpha
from evaluators.statistics.count_table import CountTable, count_patterns, mean_interval, mean_rating
from evaluators.statistics.intervals import Estimate
from reports.run import clean
from reports.run.json_data import decode

FILE = "criteria-ratings.jsonl"
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
    """That of the answer (``answer_digest``)."""
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
            raise ValueError(f"rating {self.rating} is outside {self.lowest} to {self.highest}")


def ratings_of(
    reviews: Iterable[Review], items: Mapping[str, IssuedItem], date: str
) -> tuple[list[Rating], list[str], list[str]]:
    """Return the ratings, lines about what each person rated, and comments without a rating.

    An answer's comments stand with its first rating.
    """
    asked: dict[str, set[str]] = defaultdict(set)
    for id_, of in items.items():
        if of.criterion:
            asked[id_.removesuffix(f"#{of.criterion}")].add(of.criterion)
    given: dict[str, dict[str, list[Review]]] = defaultdict(lambda: defaultdict(list))
    for one in reviews:
        answer = one.item.removesuffix(f"#{items[one.item].criterion}")
        given[one.reviewer][answer].append(one)
    found, told, unrated = list[Rating](), list[str](), list[str]()
    for name, answers in given.items():
        full, incomplete = 0, list[str]()
        for answer, said in answers.items():
            item, _, digest = answer.rpartition("@")
            comment = clean.mask(" / ".join(one.comment for one in said if one.comment))
            rated = [(items[one.item], int(one.verdict)) for one in said if one.verdict]
            for of, rating in rated:
                place = (of.run, item, digest, of.part, of.criterion, of.question)
                ends = int(of.choices[0]), int(of.choices[-1])
                found.append(Rating(*place, *ends, rating, name, comment, date))
                comment = ""
            unrated += [f"{item}, {name}: {comment}"] if comment else []
            left = ", ".join(sorted(asked[answer] - {of.criterion for of, _ in rated}))
            full += not left
            if rated and left:
                incomplete.append(f"incomplete: {item}: no rating by {name} for {left}")
        some, none = len(incomplete), len(asked) - full - len(incomplete)
        count = f"{name} rated {full} of {plural(len(asked), 'answer')} in full"
        told += [f"{count}, {some} in part, {none} not at all", *incomplete]
    return found, told, unrated


def load_ratings(path: Path) -> list[Rating]:
    """Return the ratings of a file, none if there is no file. Raises UsageError, with line."""
    found = []
    for number, line in enumerate(read_text(path).split("\n") if path.exists() else (), 1):
        try:
            found += [clean.masked(decode(Rating, parse_json(line)))] if line.strip() else []
        except ValueError as error:
            what = f"not a rating that `qagate review` wrote: {error}"
            raise problem(path, number, what) from None
    return found


def merged_ratings(old: Iterable[Rating], new: Iterable[Rating]) -> tuple[list[Rating], list[str]]:
    """Return old and new ratings, and a line for each new one that contradicts an old one."""
    found: dict[tuple[str, ...], Rating] = {}
    refused = []
    for one in (*old, *new):
        place = one.item, one.digest, one.criterion, one.question, one.rater.casefold()
        before = found.setdefault(place, one)
        if before.rating != one.rating:
            refused.append(
                f"{one.item}, {one.criterion}: {one.rater} says {one.rating}, but said "
                f"{before.rating}; take that line out to rate it anew"
            )
    return list(found.values()), refused


def table_of(ratings: Iterable[Rating], *, padded: bool = False) -> list[str]:
    """Return the lines of a Markdown table, ``padded`` for a terminal.

    Each criterion has a row of all answers, if they are of several slices, then one of each slice.
    """
    show = clean.line if padded else clean.prose
    by_criterion: dict[tuple[str, str, int, int], dict[str, list[Rating]]] = defaultdict(dict)
    for one in ratings:
        parts = by_criterion[one.criterion, one.question, one.lowest, one.highest]
        for part in (WHOLE, one.part):
            parts.setdefault(part, []).append(one)
    rows = []
    for (name, _, lowest, highest), parts in by_criterion.items():
        slices = sorted(parts.keys() - {WHOLE})
        for part in [WHOLE, *slices] if len(slices) > 1 else slices:
            scale = f"{lowest}-{highest}"
            rows.append((show(name), show(part), scale, *_figures(parts[part])))
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
    clusters = [item for item, _ in given]
    raters = sorted({name for said in given.values() for name in said})
    rows = [[said.get(name, "") for name in raters] for said in given.values()]
    points = range(lowest, ratings[0].highest + 1)
    patterns, items = count_patterns(cells.values(), (1, len(points)))
    table = CountTable(counts=patterns, golds=("",), outcomes=tuple(map(str, points)))
    interval = mean_interval(mean_rating, table, items)
    return (
        *(str(len(some)) for some in (given, scores, raters)),
        Estimate.of(sum(scores) / len(scores), interval, len(scores)).text(),
        " ".join(str(scores.count(point)) for point in points),
        krippendorff_alpha([list(said.values()) for said in given.values()], clusters).text(),
        kappas(raters, rows, clusters)[0].kappa.text() if len(raters) == 2 else "-",
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
        path: "".join(f"{json.dumps(asdict(one), ensure_ascii=False)}\n" for one in ratings),
        path.with_suffix(".md"): "\n".join([*lines, ""]),
    }
    write_texts(texts.items())
    return tuple(texts)
