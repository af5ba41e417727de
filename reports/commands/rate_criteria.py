"""``python -m reports review --criteria``: people rate answers by questions of the user's own."""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cases.review.criteria import load_criteria
from cases.review.issued import Issued
from cases.review.reviews import Review
from evaluators.core import UsageError
from evaluators.output import plural, say
from evaluators.text import listed
from reports.commands.recorded_runs import home
from reports.review.criteria_ratings import (
    answer_of,
    load_ratings,
    merged,
    ratings_of,
    save_ratings,
    summaries,
    table_of,
    unrated_comments,
)
from reports.review.human_review import at_most, pick_at_random
from reports.review.review_sheet import issue_criteria
from reports.run import clean
from reports.run.run_reader import load_report

FILE = "criteria-ratings.jsonl"
_REFUSED = 6


def issue_form(run: Path, options: argparse.Namespace) -> int:
    """Write the form in which answers drawn at random are rated by each criterion; return 0."""
    criteria = load_criteria(options.criteria)
    report = load_report(run)
    drawn = pick_at_random(report, options.sample, options.seed)
    picks = at_most(drawn, options.limit, options.seed)
    if not picks:
        raise UsageError(f"{run}: no answer to rate; ask for some with --sample")
    name = f"{report.run.get('id', '')} of {report.model}"
    paths = issue_criteria(options.to or home(run), picks, criteria, name)
    rated = (
        f"{plural(len(picks), 'answer')} drawn at random, to be rated by {len(criteria)} criteria:"
    )
    names = (f"  {one.lowest}-{one.highest}  {one.name}" for one in criteria)
    say(sys.stdout, *map(clean.line, [rated, *names, *map(str, paths)]))
    return 0


def accept_ratings(reviews: Sequence[Review], issued: Issued, options: argparse.Namespace) -> int:
    """Add ratings to their file and say how they came out; return 6 where one was refused.

    ``issued`` knows every item of the reviews.
    """
    others = [one for one in reviews if not issued.items[one.item].criterion]
    if others:
        raise UsageError(
            f"{others[0].source}: a verdict, beside ratings by criteria; accept the two apart"
        )
    path = options.to or issued.path.parent / FILE
    old = load_ratings(path)
    today = datetime.now(UTC).date().isoformat()
    ratings, refused = merged(old, ratings_of(reviews, issued.items, today))
    if len(runs := {one.run for one in ratings}) > 1:
        what = f"ratings of two runs, {listed(sorted(runs))}, would have one mean"
        raise UsageError(f"{path}: {what}; name another file with --to")
    paths = save_ratings(ratings, path) if ratings else ()
    added = plural(len(ratings) - len(old), "new rating")
    lines = [
        *_completeness(reviews, issued),
        f"{added}, {len(ratings)} in {path}",
        *(f"refused: {line}" for line in refused),
        *(f"comment without a rating: {line}" for line in unrated_comments(reviews, issued.items)),
    ]
    table = table_of(summaries(ratings), padded=True) if ratings else []
    said = "ratings by criteria change no grade and no gate"
    say(sys.stdout, *map(clean.line, lines), *table, said, *map(str, paths))
    return _REFUSED if refused else 0


def _completeness(reviews: Sequence[Review], issued: Issued) -> Iterator[str]:
    """Yield how many answers each reviewer rated by every criterion, and which only by some."""
    asked = defaultdict(set)
    for item, one in issued.items.items():
        if one.criterion:
            asked[answer_of(item, one)].add(one.criterion)
    given: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for review in reviews:
        one = issued.items[review.item]
        rated = given[review.reviewer][answer_of(review.item, one)]
        rated |= {one.criterion} if review.verdict else set()
    for name, answers in given.items():
        full = Counter(asked[id_] == rated for id_, rated in answers.items() if rated)
        yield (
            f"{name} rated {full[True]} of {plural(len(asked), 'answer')} in full, "
            f"{full[False]} in part, {len(asked) - full.total()} not at all"
        )
        for id_, rated in answers.items():
            if rated and (left := asked[id_] - rated):
                item = id_.rpartition("@")[0]
                yield f"incomplete: {item}: no rating by {name} for {', '.join(sorted(left))}"
