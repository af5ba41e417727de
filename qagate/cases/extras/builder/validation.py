"""Models check the items, then people do. A reviewer never sees the generated answer.

The validator confirms answers; the probe finds what needs no text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from qagate.bundled import CASES
from qagate.cases.extras.builder.generation import own_message
from qagate.cases.extras.builder.recipe import DATASET, PROPOSED, Recipe
from qagate.cases.extras.builder.rules import check_questions
from qagate.cases.extras.builder.steps import DISPUTED, BuildStep, ModelCalls, StepCalls
from qagate.cases.extras.builder.work_folder import DraftItem, Items, Values
from qagate.cases.extras.review import sheet as sheets
from qagate.cases.extras.review.page import write_sheet
from qagate.cases.extras.review.reviews import (
    Review,
    Settled,
    agreement,
    check_rows,
    read_rows,
    settle,
)
from qagate.cases.tasks import answer_messages
from qagate.evaluators import core
from qagate.evaluators.core import (
    Ask,
    Case,
    JudgeError,
    Model,
    Reply,
    Request,
    UsageError,
)
from qagate.evaluators.judges.rubric_judge import (
    PARAMETERS,
    ask_until_read,
    judge_messages,
)
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.reading import file_hash
from qagate.evaluators.replies.choices import read_choice, yes_or_no
from qagate.evaluators.replies.readers import (
    Invalid,
    read_grade,
    read_reason,
    unfinished,
)
from qagate.evaluators.rubric import RUBRICS, Prompt, Rubric, load_prompt, load_rubric
from qagate.evaluators.statistics.agreement import Agreement
from qagate.evaluators.text import digest

NOT_CONFIRMED = (
    "not_confirmed"  # the reason of an item whose answer no opinion supports
)
CONTESTED = "contested"
"""The field of ``DraftItem.validator`` that says that opinions differ."""
KNOWN = "closed_book"
"""The reason of an item that every model answered correctly without its text."""
PROMPTS = CASES / DATASET
OVERLAP = 0.2
SHEETS, AGREEMENT = "review", "agreement.json"
Words = tuple[str, str, str]  # by which a model says yes, no, and that it does not know
INTERVAL = "{value} ({low} to {high})"
MOST_VERDICTS = 3  # after which a dispute is given up
_DROPS: Mapping[str, str] = {sheets.UNCLEAR: "unclear", "BAD_LANGUAGE": "bad_language"}


def version_of(template: str) -> str:
    """Return the name of a user's own template in the ledger's keys and in datasheets."""
    return f"template#{digest(template)[:12]}"


def is_contested(item: DraftItem) -> bool:
    """Return whether opinions on an item differ, so that people must decide."""
    return bool(item.validator.get(CONTESTED))


def _case(item: DraftItem, recipe: Recipe, context: str = "") -> Case:
    golds = (recipe.labels[core.YES], recipe.labels[core.NO])
    make = partial(Case, id=item.id, dataset=DATASET, language=item.language, row=0)
    return make(question=item.question, golds=golds, context=context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """A model that confirms items by a rubric; it sees text, question and answer, nothing else."""

    model: Model
    recipe: Recipe
    rubric: Rubric
    blind: Prompt | None = None
    """The prompt by which it first answers by itself."""

    async def confirm(self, item: DraftItem, ask: Ask) -> DraftItem:
        """Return the item, kept (``contested`` where its opinions differ) or dropped."""
        template, labels = self.recipe.validation, self.recipe.labels
        version = version_of(template) if template else self.rubric.version
        said: dict[str, object] = {"model": self.model.spec, "prompt": version}
        case = _case(item, self.recipe, item.paragraph)

        def read(reply: Reply) -> str | Invalid:
            found, refused = read_grade(reply), Invalid("NOT_ATTEMPTED is not on offer")
            return refused if found == core.NOT_ATTEMPTED else found

        try:
            if self.blind is not None:
                words = labels[core.YES], labels[core.NO], ""
                said["blind"] = await _own_answer(
                    self.model, self.blind, case, ask, words
                )
            texts = (item.paragraph, item.question, labels[item.answer])
            own = own_message(template, dict(zip(PROPOSED, texts, strict=True)))
            messages = (
                own
                if template
                else judge_messages(self.rubric, case, labels[item.answer])
            )
            request = Request(messages=messages, parameters=PARAMETERS, version=version)
            grade, reply = await ask_until_read(self.model, request, ask, read)
        except JudgeError as error:
            return replace(item, validator=said).dropped("unreadable", f"{error}")
        reason = read_reason(reply)
        said |= {"returned": reply.model, "verdict": grade, "explanation": reason}
        opinions = [grade == core.CORRECT]
        if self.blind is not None:
            opinions.append(said["blind"] == item.answer)
        if not any(opinions):
            return replace(item, validator=said).dropped(NOT_CONFIRMED, reason)
        return replace(
            item, validator=said if all(opinions) else {**said, CONTESTED: True}
        )


async def _own_answer(
    model: Model, prompt: Prompt, case: Case, ask: Ask, words: Words
) -> str:
    """Return a model's YES, NO or UNANSWERED; the last word is empty for never."""
    yes, no, unknown = words

    def read(reply: Reply) -> str | Invalid:
        if unknown and unknown.casefold() in reply.text.casefold():
            return core.UNANSWERED
        cut = unfinished(reply.finish)
        return cut or read_choice(reply.text, yes_or_no(yes, no))

    messages = answer_messages(prompt, case)
    request = Request(messages=messages, parameters=PARAMETERS, version=prompt.version)
    answer, _ = await ask_until_read(model, request, ask, read)
    return answer


def check_pair(generator: Spec, validator: Spec, *, same_provider: bool) -> None:
    """Raise UsageError if both are one model, or of one provider where that is not allowed."""
    names = {spec.name.casefold().rpartition("/")[2] for spec in (generator, validator)}
    if len(names) == 1:  # behind a gateway, too
        what = f"--validator {validator.text} is the generator; name a model of another provider"
        raise UsageError(what)
    if generator.base_url == validator.base_url and not same_provider:
        what = f"--validator {validator.text} is of the generator's provider; name a model of"
        advice = "say `same_provider: true` under the recipe's key 'build'"
        raise UsageError(f"{what} another one, or {advice}")


class ValidateStep(BuildStep):
    """Lets a second model confirm the answers."""

    name = "validate"
    help = "let a model of another provider confirm the answers"
    models = ("validator",)

    def settings(self) -> Values:
        """Return the validator, the form of its requests, and the versions of its prompts."""
        build, recipe = self.build, self.build.recipe
        named, same_provider = self.named("validator"), recipe.build.same_provider
        validator = build.model("validator", named)
        writer = build.model_name("generator", "generate")
        if writer:
            generator = build.model("generator", writer)
            check_pair(generator, validator, same_provider=same_provider)
        if recipe.validation:
            rubric_version = version_of(recipe.validation)
        else:
            rubric_version = self._rubric.version
        settings = {
            "validator": named,
            "blind": recipe.build.blind,
            "same_provider": same_provider,
            "rubric": rubric_version,
        }
        if recipe.build.blind:
            settings["prompt"] = self._prompt.version
        return settings

    def work(self, items: Items, calls: ModelCalls) -> list[DraftItem]:
        """Return the items, dropped if the validator does not confirm them."""
        blind = self._prompt if self.values["blind"] else None
        make = partial(
            Validator, recipe=self.build.recipe, rubric=self._rubric, blind=blind
        )

        async def work(model: Model, own: StepCalls) -> list[DraftItem]:
            return await own.ask_items(self.name, items, make(model=model).confirm)

        return calls.run(self.name, self.spec("validator"), work)

    @property
    def _rubric(self) -> Rubric:
        return load_rubric(RUBRICS / f"validate.{self.build.recipe.language}.yaml")

    @property
    def _prompt(self) -> Prompt:
        return load_prompt(PROMPTS / f"answer.{self.build.recipe.language}.yaml")


class ProbeStep(BuildStep):
    """Drops what the generator and the validator both answer without the text."""

    name = "probe"
    help = "drop what both models answer without the text"
    models = ("generator", "validator")

    def settings(self) -> Values:
        """Return both models and the version of the prompt; only ``probe`` if it is off."""
        recipe = self.build.recipe
        if not recipe.build.probe:
            return {"probe": False}
        if not recipe.probe:
            what = f"{recipe.path}: no key 'probe', the prompt of that step; add it"
            raise UsageError(f"{what}, or say `probe: false` under the key 'build'")
        return {
            "probe": True,
            "generator": self.named("generator", "generate"),
            "validator": self.named("validator", "validate"),
            "recipe": recipe.probe_version,
        }

    def work(self, items: Items, calls: ModelCalls) -> list[DraftItem]:
        """Return the items, dropped if both know them; the second gets what the first knew."""
        found = {item.id: item for item in items}
        for role in self.models if self.values["probe"] else ():
            known = (
                one for one in found.values() if {*one.probe.values()} <= {one.answer}
            )
            probe = partial(
                self._probed, [item for item in known if item.state == "kept"]
            )
            found |= {
                item.id: item for item in calls.run(self.name, self.spec(role), probe)
            }
        names = ", ".join(
            str(self.values.get(one)).partition("@")[0] for one in self.models
        )
        for item in [one for one in found.values() if one.state == "kept"]:
            if {*item.probe.values()} == {item.answer}:
                found[item.id] = item.dropped(
                    KNOWN, f"answered right without its text by {names}"
                )
        return list(found.values())

    async def _probed(
        self, items: Items, model: Model, calls: StepCalls
    ) -> list[DraftItem]:
        recipe, labels = self.build.recipe, self.build.recipe.labels
        language, version = recipe.language, f"probe#{recipe.probe_version[:12]}"
        prompt = Prompt(
            name="probe",
            language=language,
            system="",
            user=recipe.probe,
            version=version,
        )
        words = labels[core.YES], labels[core.NO], recipe.unknown

        async def one(item: DraftItem, ask: Ask) -> DraftItem:
            try:
                said = await _own_answer(model, prompt, _case(item, recipe), ask, words)
            except JudgeError:
                said = (
                    core.UNANSWERED
                )  # three replies that say nothing: it does not know
            return replace(item, probe={**item.probe, model.spec: said})

        return await calls.ask_items("probe", items, one)


def assigned(items: Items, values: Values) -> list[DraftItem]:
    """Return the items with those who are to see a drawn share, and contested ones."""
    duties: Mapping[str, Sequence[str]] = {}
    if values["share"]:
        duties = _duties(items, values)
    handed_out = []
    for item in items:
        asked = [name for name, ids in duties.items() if item.id in ids]
        handed_out.append(replace(item, review={"asked": asked}))
    return handed_out


def _duties(items: Items, values: Values) -> Mapping[str, Sequence[str]]:
    """Return the ids of the items that each reviewer sees."""
    reviewers, seed = values["reviewers"], values["seed"]
    if not reviewers:
        message = "build: name who reviews: --reviewer NAME, once for each; or give --unreviewed"
        raise UsageError(message)
    overlap = values["overlap"]
    if overlap is None:
        overlap = OVERLAP if len(reviewers) > 1 else 0.0
    strata = {item.id: f"{item.origin.group}/{item.answer}" for item in items}
    drawn = sheets.draw(strata, round(values["share"] * len(items)), seed)
    drawn |= {item.id for item in items if is_contested(item)}
    asked = {id_: stratum for id_, stratum in strata.items() if id_ in drawn}
    return sheets.assign(asked, reviewers, overlap, seed)


def reviewers_of(item: DraftItem) -> list[str]:
    """Return the names of those who are to see an item."""
    return list(item.review.get("asked", ()))


def verdicts_on(item: DraftItem) -> list[dict[str, str]]:
    """Return what reviewers said of an item: reviewer, verdict, edited, comment."""
    return list(item.review.get("said", ()))


def sheet_of(name: str, items: Iterable[DraftItem], reviewer: str = "") -> sheets.Sheet:
    """Return a sheet of items, with proposed wordings, and whether (not how) models disagree."""
    rows = tuple(_sheet_item(item) for item in items)
    return sheets.Sheet(name=name, items=rows, reviewer=reviewer)


def _sheet_item(item: DraftItem) -> sheets.SheetItem:
    reasons = [CONTESTED] if is_contested(item) else []
    for opinion in verdicts_on(item):
        wording = opinion["edited"]
        if wording and wording not in reasons:
            reasons.append(wording)
    return sheets.SheetItem(
        id=item.id,
        language=item.language,
        fields={
            "context": item.paragraph,
            "question": item.question,
            "source": f"{item.origin.title} · {item.origin.group}",
        },
        questions=(sheets.verdict_question("question"),),
        edit=item.question,
        reasons=tuple(reasons),
    )


def accepted(
    items: Items, reviews: Sequence[Review], *, unreviewed: bool
) -> list[DraftItem]:
    """Return what the verdicts make of the items; with ``unreviewed`` those at hand suffice.

    Kept: confirmed or corrected. Dropped: unclear, bad language, disputed after three verdicts, or
    contested and seen by nobody. Pending: disputed, or not yet seen by all assigned.
    """
    outcomes = settle([item.id for item in items], reviews)
    return [_accepted(item, outcomes[item.id], unreviewed=unreviewed) for item in items]


def _accepted(item: DraftItem, outcome: Settled, *, unreviewed: bool) -> DraftItem:
    said = []
    for opinion in outcome.reviews:
        said.append(
            {
                "reviewer": opinion.reviewer,
                "verdict": opinion.verdict,
                "edited": opinion.edited,
                "comment": opinion.comment,
            }
        )
    item = replace(item, review={**item.review, "said": said})
    missing = len(reviewers_of(item)) - len(said)
    if missing > 0 and not unreviewed:
        return item.pending(
            "not_reviewed", f"{missing} of those asked have not answered"
        )
    if not said:
        nobody = "the validator's opinions differ, and nobody has decided"
        return item.dropped(CONTESTED, nobody) if is_contested(item) else item
    if outcome.verdict in _DROPS:
        comments = dict.fromkeys(one.comment for one in outcome.agreed if one.comment)
        return item.dropped(_DROPS[outcome.verdict], "; ".join(comments))
    against = outcome.verdict != item.answer
    if not outcome.verdict or (against and len(outcome.agreed) < 2):
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


def agreed(items: Items, recipe: Recipe) -> tuple[Agreement, ...]:
    """Return the agreement of those assigned at first, on all items and each type of question."""
    types, found = dict[str, str](), list[Review]()
    for item in items:
        types[item.id] = recipe.type_of(
            item.review.get("question_before", item.question)
        )
        names, said = (
            {name.casefold() for name in reviewers_of(item)},
            verdicts_on(item),
        )
        for one in [one for one in said if one["reviewer"].casefold() in names] or said:
            found.append(
                Review(item=item.id, reviewer=one["reviewer"], verdict=one["verdict"])
            )
    return agreement(found, types)


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
            "reviewers": build.reviewers() if share else [],
            "share": share,
            "overlap": asks.overlap,
            "seed": asks.seed,
        }
        # Refuse reviewers who cannot do it, before anything is written.
        assigned((), values)
        return values

    def work(self, items: Items, _: ModelCalls) -> list[DraftItem]:
        """Return the items, each with those who are to see it."""
        return assigned(items, self.values)

    def finish(self, _: Values) -> None:
        """Write a form and its CSV twin for every reviewer."""
        build, items = self.build, self.build.folder.read(self.name)
        for number, name in enumerate(self.values["reviewers"], 1):
            if own := [item for item in items if name in reviewers_of(item)]:
                sheet = sheet_of(f"{build.recipe.language}-{number}", own, name)
                page, twin = write_sheet(sheet, build.folder.path / SHEETS)
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

    def work(self, items: Items, _: ModelCalls) -> list[DraftItem]:
        """Return the items as the verdicts leave them; edited questions are checked again."""
        recipe, unreviewed = self.build.recipe, self.values["unreviewed"]
        paths = [Path(name) for name in self.values["files"]]
        if not paths and not unreviewed and any(map(reviewers_of, items)):
            what = "build: accept: name the files that reviewers sent back, or give --unreviewed"
            raise UsageError(f"{what} to go on without them")
        reviews = check_rows(read_rows(paths), sheet_of("accept", items).allowed)
        return check_questions(accepted(items, reviews, unreviewed=unreviewed), recipe)

    def finish(self, _: Values) -> None:
        """Say how far reviewers agree, and write a sheet of disputed items."""
        build, items = self.build, self.build.folder.read(self.name)
        found = agreed(items, build.recipe)
        build.folder.write_json(AGREEMENT, [asdict(one) for one in found])
        for one in found if found[0].items else ():
            for line in one.lines("item"):
                build.say(f"accept: {one.group or 'all'}: {line}")
        disputed = [
            item
            for item in items
            if item.state == "pending" and item.reason in DISPUTED
        ]
        if disputed:
            sheet = sheet_of(f"{build.recipe.language}-disputes", disputed)
            page, twin = write_sheet(sheet, build.folder.path / SHEETS)
            what = f"{len(disputed)} items are in dispute; let somebody who has not seen them"
            where = f"{page}, {twin.name}; then run accept with that file"
            build.say(f"accept: {what} decide: {where}")
