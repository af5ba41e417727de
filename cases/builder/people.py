"""The steps that people do: sheets go out to reviewers, and their verdicts come back.

A reviewer sees text and question, never the answer that was generated, and answers: yes, no,
unclear, or bad language; the question may be corrected.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from cases.builder.build_step import ModelCalls, Step
from cases.builder.datasheet import interval_text
from cases.builder.question_rules import check_questions
from cases.builder.recipe import Recipe
from cases.builder.validation import CONTESTED, is_contested
from cases.builder.work_folder import Item, Values
from cases.review.reviews import (
    AGREED,
    UNREVIEWED,
    Agreement,
    Review,
    Settled,
    agreement,
    read_sheets,
    settle,
)
from cases.review.sheet import (
    UNCLEAR,
    Duty,
    Field,
    Sheet,
    SheetItem,
    assign,
    choice_set,
    draw,
    sheets_for,
)
from cases.review.sheet_files import write_sheet
from evaluators.core import UsageError
from evaluators.reading import file_hash

SHARE, OVERLAP = 1.0, 0.2
SHEETS, AGREEMENT = "review", "agreement.json"
CHOICES = "question"
MOST = 3  # verdicts after which a dispute is given up
DISPUTED = ("conflict", "against_answer")
"""Reasons of items that a further person is to look at."""

_DROPS: Mapping[str, str] = {UNCLEAR: "unclear", "BAD_LANGUAGE": "bad_language"}


def assigned(items: Sequence[Item], share: float, duty: Duty | None) -> list[Item]:
    """Return the items, each with the names of those who are to see it; none without a duty.

    ``share`` of them is drawn, from each source and answer in proportion, beside all that the
    validators differ about.
    """
    strata = {item.id: f"{item.origin.group}/{item.answer}" for item in items}
    drawn = draw(strata, round(share * len(items)), duty.seed) if duty else frozenset[str]()
    drawn |= {item.id for item in items if is_contested(item)}
    duties = assign({id_: strata[id_] for id_ in strata if id_ in drawn}, duty) if duty else {}
    return [
        replace(item, review={"asked": [name for name, ids in duties.items() if item.id in ids]})
        for item in items
    ]


def reviewers_of(item: Item) -> list[str]:
    """Return the names of those who are to see an item."""
    return list(item.review.get("asked", []))


def verdicts_on(item: Item) -> list[dict[str, str]]:
    """Return what reviewers said of an item: reviewer, verdict, edited, comment."""
    return list(item.review.get("said", []))


def sheet_of(name: str, items: Iterable[Item], recipe: Recipe) -> Sheet:
    """Return a sheet of items for anyone to fill in.

    Of an item in dispute it shows the wordings that reviewers proposed, and of each whether the
    models differ about it, though not how.
    """
    rows = tuple(
        SheetItem(
            id=item.id,
            language=item.language,
            fields=(
                Field(title="context", text=item.paragraph),
                Field(title="question", text=item.question),
                Field(title="source", text=f"{item.origin.title} · {item.origin.group}"),
            ),
            choices=CHOICES,
            edit=item.question,
            reasons=_reasons(item),
            group=recipe.type_of(item.question),
        )
        for item in items
    )
    return Sheet(name=name, items=rows, choices={CHOICES: choice_set(CHOICES)})


def _reasons(item: Item) -> tuple[str, ...]:
    edited = filter(None, (one["edited"] for one in verdicts_on(item)))
    return ((CONTESTED,) if is_contested(item) else ()) + tuple(dict.fromkeys(edited))


def accepted(items: Sequence[Item], reviews: Sequence[Review], *, unreviewed: bool) -> list[Item]:
    """Return what the verdicts make of the items.

    Kept: the answer confirmed or corrected, the question edited where somebody did. Dropped:
    unclear, bad language, still in dispute after three, or contested by the validators and seen by
    nobody. Pending: in dispute, or not yet seen by
    all reviewers assigned; with ``unreviewed`` the verdicts that are there suffice.
    """
    outcomes = settle([item.id for item in items], reviews)
    return [_accepted(item, outcomes[item.id], unreviewed=unreviewed) for item in items]


def _accepted(item: Item, outcome: Settled, *, unreviewed: bool) -> Item:
    keys = ("reviewer", "verdict", "edited", "comment")
    said = [{key: getattr(one, key) for key in keys} for one in outcome.reviews]
    item = replace(item, review={**item.review, "said": said})
    missing = len(reviewers_of(item)) - len(said)
    if missing > 0 and not unreviewed:
        return item.pending("not_reviewed", f"{missing} of those asked have not answered")
    if outcome.state == UNREVIEWED:
        nobody = "the validators differ about it, and nobody has decided"
        return item.dropped(CONTESTED, nobody) if is_contested(item) else item
    if outcome.state != AGREED:
        return _disputed(item, "conflict")
    if outcome.verdict in _DROPS:
        return item.dropped(_DROPS[outcome.verdict], "; ".join(outcome.comments))
    if outcome.verdict != item.answer and len(outcome.names) < 2:
        return _disputed(item, "against_answer")
    question = outcome.edited or item.question
    review = dict(item.review)
    if outcome.verdict != item.answer:
        review["answer_before"] = item.answer
    if question != item.question:
        review["question_before"] = item.question
    return replace(item, answer=outcome.verdict, question=question, review=review)


def _disputed(item: Item, reason: str) -> Item:
    verdicts = [one["verdict"] for one in verdicts_on(item)]
    said = ", ".join(verdicts)
    if len(verdicts) >= MOST:
        return item.dropped("disputed", said)
    return item.pending(reason, f"in dispute ({said}); a further person is to decide")


def agreed(items: Sequence[Item], recipe: Recipe) -> tuple[Agreement, ...]:
    """Return the agreement on all items and on each type of question, as the reviewers saw it."""
    types = {
        item.id: recipe.type_of(item.review.get("question_before", item.question)) for item in items
    }
    return agreement(first_reviews(items), types)


def first_reviews(items: Iterable[Item]) -> list[Review]:
    """Return the verdicts that show how far people agree: of the reviewers assigned at first.

    Who decides disputes sees nothing but these, and would make agreement look worse than it is.
    """
    found = []
    for item in items:
        names = {name.casefold() for name in reviewers_of(item)}
        said = verdicts_on(item)
        first = [one for one in said if one["reviewer"].casefold() in names]
        found += [
            Review(item=item.id, reviewer=one["reviewer"], verdict=one["verdict"])
            for one in first or said
        ]
    return found


class ReviewStep(Step):
    """Hands items out to reviewers."""

    name = "review"
    help = "write sheets for native speakers"
    after = "probe"
    by_people = True

    def settle(self) -> Values:
        """Return the reviewers, the share of items they review, and the overlap."""
        values = self.fixed(
            self.remembered(reviewers=[], share=SHARE, overlap=None, seed=self.sample_seed)
        )
        self._duty(values)
        return values

    @staticmethod
    def _duty(values: Values) -> Duty | None:
        """Return how items are assigned, None for nothing at all. Raises UsageError."""
        reviewers, overlap = tuple(values["reviewers"]), values["overlap"]
        if not values["share"]:
            return None
        if not reviewers:
            raise UsageError(
                "build: name who reviews: --reviewer NAME, once for each; or give --share 0"
            )
        if overlap is None:
            overlap = OVERLAP if len(reviewers) > 1 else 0.0
        return Duty(reviewers=reviewers, overlap=overlap, seed=values["seed"])

    def work(self, items: Sequence[Item], _: ModelCalls) -> list[Item]:
        """Return the items, each with those who are to see it."""
        return assigned(items, self.values["share"], self._duty(self.values))

    def finish(self, _: Values) -> None:
        """Write a form and its CSV twin for every reviewer."""
        build, items = self.build, self.build.folder.read("review")
        given = {
            name: [item.id for item in items if name in reviewers_of(item)]
            for name in self.values["reviewers"]
        }
        whole = sheet_of(build.recipe.language, items, build.recipe)
        for sheet in sheets_for(whole, given):
            if sheet.items:
                page, twin = write_sheet(sheet, build.folder.path / SHEETS)
                size = len(sheet.items)
                build.say(f"review: {sheet.reviewer}: {size} items: {page}, {twin.name}")


class AcceptStep(Step):
    """Takes the reviewers' verdicts back."""

    name = "accept"
    help = "read what they sent back (accept FILE …): agreement, disputes, corrections"
    after = "review"
    by_people = True
    renewed = True

    def settle(self) -> Values:
        """Return the reviewers' files, those accepted before included, with their hashes."""
        before = self.build.folder.options("accept").get("files", {})
        names = dict.fromkeys([*before, *map(str, self.build.options.files)])
        for name in names:
            if not Path(name).is_file():
                raise UsageError(
                    f"build: accept {name}: no such file; give what a reviewer sent back"
                )
        hashes = {name: file_hash(Path(name)) for name in names}
        return {**self.remembered(unreviewed=False), "files": hashes}

    def work(self, items: Sequence[Item], _: ModelCalls) -> list[Item]:
        """Return the items as the reviewers' verdicts leave them; edited ones are checked again."""
        recipe, unreviewed = self.build.recipe, self.values["unreviewed"]
        paths = [Path(name) for name in self.values["files"]]
        if not paths and not unreviewed and any(map(reviewers_of, items)):
            raise UsageError(
                "build: accept: name the files that reviewers sent back, or give --unreviewed to "
                "go on without them"
            )
        reviews = read_sheets(paths, sheet_of("accept", items, recipe).allowed)
        return check_questions(accepted(items, reviews, unreviewed=unreviewed), recipe)

    def finish(self, _: Values) -> None:
        """Say how far reviewers agree, and write a sheet of what is in dispute."""
        build, items = self.build, self.build.folder.read("accept")
        found = agreed(items, build.recipe)
        build.folder.write_json(AGREEMENT, [asdict(one) for one in found])
        for one in found if found[0].items else ():
            kappas = "".join(
                f"; kappa of {json.dumps(pair.first, ensure_ascii=False)} and "
                f"{json.dumps(pair.second, ensure_ascii=False)} {interval_text(pair.kappa)}"
                for pair in one.pairs
            )
            build.say(
                f"accept: agreement, {one.group or 'all'}: {one.items} items seen by several, "
                f"equal verdicts {interval_text(one.raw)}, alpha {interval_text(one.alpha)}{kappas}"
            )
        disputed = [item for item in items if item.state == "pending" and item.reason in DISPUTED]
        if disputed:
            sheet = sheet_of(f"{build.recipe.language}-disputes", disputed, build.recipe)
            page, twin = write_sheet(sheet, build.folder.path / SHEETS)
            build.say(
                f"accept: {len(disputed)} items are in dispute; let somebody who has not seen them "
                f"decide: {page}, {twin.name}; then run accept with that file"
            )
