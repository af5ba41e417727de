"""The steps that people do. A reviewer sees text and question, never the generated answer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from cases.builder.recipe import Recipe
from cases.builder.rules import check_questions
from cases.builder.steps import DISPUTED, BuildStep, ModelCalls
from cases.builder.validation import CONTESTED, is_contested
from cases.builder.work_folder import DraftItem, Values
from cases.review import sheet as sheets
from cases.review.reviews import Agreement, Review, Settled, agreement, read_sheets, settle
from evaluators.core import UsageError
from evaluators.reading import file_hash
from evaluators.statistics.intervals import Estimate

OVERLAP = 0.2
SHEETS, AGREEMENT = "review", "agreement.json"
MOST_VERDICTS = 3  # after which a dispute is given up
_DROPS: Mapping[str, str] = {sheets.UNCLEAR: "unclear", "BAD_LANGUAGE": "bad_language"}


def assigned(items: Sequence[DraftItem], share: float, duty: sheets.Duty | None) -> list[DraftItem]:
    """Return the items with those who are to see them: a drawn ``share``, and contested ones."""
    strata = {item.id: f"{item.origin.group}/{item.answer}" for item in items}
    drawn = sheets.draw(strata, round(share * len(items)), duty.seed) if duty else frozenset[str]()
    drawn |= {item.id for item in items if is_contested(item)}
    strata = {id_: stratum for id_, stratum in strata.items() if id_ in drawn}
    duties = sheets.assign(strata, duty) if duty else {}
    return [
        replace(item, review={"asked": [name for name, ids in duties.items() if item.id in ids]})
        for item in items
    ]


def reviewers_of(item: DraftItem) -> list[str]:
    """Return the names of those who are to see an item."""
    return list(item.review.get("asked", ()))


def verdicts_on(item: DraftItem) -> list[dict[str, str]]:
    """Return what reviewers said of an item: reviewer, verdict, edited, comment."""
    return list(item.review.get("said", ()))


def sheet_of(name: str, items: Iterable[DraftItem], reviewer: str = "") -> sheets.Sheet:
    """Return a sheet of items, with proposed wordings, and whether (not how) models disagree."""
    rows = tuple(
        sheets.SheetItem(
            id=item.id,
            language=item.language,
            fields={
                "context": item.paragraph,
                "question": item.question,
                "source": f"{item.origin.title} · {item.origin.group}",
            },
            questions=(sheets.verdict_question("question"),),
            edit=item.question,
            reasons=(
                *((CONTESTED,) if is_contested(item) else ()),
                *dict.fromkeys(one["edited"] for one in verdicts_on(item) if one["edited"]),
            ),
        )
        for item in items
    )
    return sheets.Sheet(name=name, items=rows, reviewer=reviewer)


def accepted(
    items: Sequence[DraftItem], reviews: Sequence[Review], *, unreviewed: bool
) -> list[DraftItem]:
    """Return what the verdicts make of the items; with ``unreviewed`` those at hand suffice.

    Kept: confirmed or corrected. Dropped: unclear, bad language, disputed after three verdicts, or
    contested and seen by nobody. Pending: disputed, or not yet seen by all assigned.
    """
    outcomes = settle([item.id for item in items], reviews)
    return [_accepted(item, outcomes[item.id], unreviewed=unreviewed) for item in items]


def _accepted(item: DraftItem, outcome: Settled, *, unreviewed: bool) -> DraftItem:
    keys = ("reviewer", "verdict", "edited", "comment")
    said = [{key: getattr(one, key) for key in keys} for one in outcome.reviews]
    item = replace(item, review={**item.review, "said": said})
    missing = len(reviewers_of(item)) - len(said)
    if missing > 0 and not unreviewed:
        return item.pending("not_reviewed", f"{missing} of those asked have not answered")
    if not said:
        nobody = "the validator's opinions differ, and nobody has decided"
        return item.dropped(CONTESTED, nobody) if is_contested(item) else item
    if outcome.verdict in _DROPS:
        return item.dropped(_DROPS[outcome.verdict], "; ".join(outcome.comments))
    against = outcome.verdict != item.answer
    if not outcome.verdict or (against and len(outcome.names) < 2):
        verdicts = ", ".join(one.verdict for one in outcome.reviews)
        if len(said) >= MOST_VERDICTS:
            return item.dropped("disputed", verdicts)
        why = f"in dispute ({verdicts}); another person must decide"
        return item.pending("against_answer" if outcome.verdict else "conflict", why)
    question = outcome.edited or item.question
    review = dict(item.review)
    review |= {"answer_before": item.answer} if against else {}
    review |= {"question_before": item.question} if question != item.question else {}
    return replace(item, answer=outcome.verdict, question=question, review=review)


def agreed(items: Sequence[DraftItem], recipe: Recipe) -> tuple[Agreement, ...]:
    """Return the agreement of those assigned at first, on all items and each type of question."""
    types, found = dict[str, str](), list[Review]()
    for item in items:
        types[item.id] = recipe.type_of(item.review.get("question_before", item.question))
        names, said = {name.casefold() for name in reviewers_of(item)}, verdicts_on(item)
        for one in [one for one in said if one["reviewer"].casefold() in names] or said:
            found.append(Review(item=item.id, reviewer=one["reviewer"], verdict=one["verdict"]))
    return agreement(found, types)


def interval_text(one: Estimate) -> str:
    """Return a figure with its interval."""
    return one.text("{value} ({low} to {high})")


class ReviewStep(BuildStep):
    """Hands items out to reviewers."""

    name = "review"
    help = "write sheets for native speakers (--reviewer, once for each)"

    def settings(self) -> Values:
        """Return the reviewers, the share of items they review, and the overlap."""
        build, asks = self.build, self.build.recipe.build
        if build.options.unreviewed and build.folder.record(self.name):
            return build.folder.options(self.name)
        share = 0.0 if build.options.unreviewed else asks.share
        values = {
            "reviewers": list(build.setting("reviewers", self.name) or ()) if share else [],
            "share": share,
            "overlap": asks.overlap,
            "seed": asks.seed,
        }
        self._duty(values)
        return values

    @staticmethod
    def _duty(values: Values) -> sheets.Duty | None:
        reviewers, overlap = tuple(values["reviewers"]), values["overlap"]
        if not values["share"]:
            return None
        if not reviewers:
            what = "build: name who reviews: --reviewer NAME, once for each; or give --unreviewed"
            raise UsageError(what)
        overlap = OVERLAP * (len(reviewers) > 1) if overlap is None else overlap
        return sheets.Duty(reviewers=reviewers, overlap=overlap, seed=values["seed"])

    def work(self, items: Sequence[DraftItem], _: ModelCalls) -> list[DraftItem]:
        """Return the items, each with those who are to see it."""
        return assigned(items, self.values["share"], self._duty(self.values))

    def finish(self, _: Values) -> None:
        """Write a form and its CSV twin for every reviewer."""
        build, items = self.build, self.build.folder.read(self.name)
        for number, name in enumerate(self.values["reviewers"], 1):
            if own := [item for item in items if name in reviewers_of(item)]:
                sheet = sheet_of(f"{build.recipe.language}-{number}", own, name)
                page, twin = sheets.write_sheet(sheet, build.folder.path / SHEETS)
                build.say(f"review: {name}: {len(own)} items: {page}, {twin.name}")


class AcceptStep(BuildStep):
    """Takes the reviewers' verdicts back."""

    name = "accept"
    help = "read what they sent back (accept FILE …): agreement, disputes, corrections"
    renewed = True

    def settings(self) -> Values:
        """Return the reviewers' files, those accepted before included, with their hashes."""
        options, before = self.build.options, self.build.folder.options(self.name)
        names = dict.fromkeys([*before.get("files", {}), *map(str, options.files)])
        for name in names:
            if not Path(name).is_file():
                what = f"build: accept {name}: no such file; give what a reviewer sent back"
                raise UsageError(what)
        hashes = {name: file_hash(Path(name)) for name in names}
        unreviewed = options.unreviewed or before.get("unreviewed", False)
        return {"unreviewed": unreviewed, "files": hashes}

    def work(self, items: Sequence[DraftItem], _: ModelCalls) -> list[DraftItem]:
        """Return the items as the verdicts leave them; edited questions are checked again."""
        recipe, unreviewed = self.build.recipe, self.values["unreviewed"]
        paths = [Path(name) for name in self.values["files"]]
        if not paths and not unreviewed and any(map(reviewers_of, items)):
            raise UsageError(
                "build: accept: name the files that reviewers sent back, or give --unreviewed to "
                "go on without them"
            )
        reviews = read_sheets(paths, sheet_of("accept", items).allowed)
        return check_questions(accepted(items, reviews, unreviewed=unreviewed), recipe)

    def finish(self, _: Values) -> None:
        """Say how far reviewers agree, and write a sheet of disputed items."""
        build, items = self.build, self.build.folder.read(self.name)
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
            sheet = sheet_of(f"{build.recipe.language}-disputes", disputed)
            page, twin = sheets.write_sheet(sheet, build.folder.path / SHEETS)
            build.say(
                f"accept: {len(disputed)} items are in dispute; let somebody who has not seen them "
                f"decide: {page}, {twin.name}; then run accept with that file"
            )
