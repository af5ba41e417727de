"""All steps in their order, and what those before the people's need."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from cases.tools.builder.arguments import DATASET
from cases.tools.builder.asking import Desk
from cases.tools.builder.folder import Values
from cases.tools.builder.freeze import freeze, settle_freeze, write_dataset
from cases.tools.builder.generate import Generator
from cases.tools.builder.items import Article, Item
from cases.tools.builder.office import ModelOffice
from cases.tools.builder.people_steps import (
    accept,
    review,
    settle_accept,
    settle_review,
    tell_agreement,
    write_sheets,
)
from cases.tools.builder.plan import Build, Step
from cases.tools.builder.sample import Group, Sampler
from cases.tools.builder.sources import Source, articles
from cases.tools.builder.validate import Validator, check_pair
from evaluators import rubric
from evaluators.core import Model, UsageError
from evaluators.files import file_hash
from evaluators.rubric import Prompt, Rubric, load_prompt, load_rubric

COUNT, OVERSAMPLE, SEED = 500, 1.3, 1
RUBRICS = Path(rubric.__file__).parent / "rubrics"
DATASETS = Path(__file__).parents[2]


def _settle_sample(build: Build) -> Values:
    defaults: dict[str, object] = {
        "sources": None,
        "counts": {},
        "licences": {},
        "oversample": OVERSAMPLE,
        "seed": SEED,
    }
    values = build.settle("sample", defaults, {"recipe": build.recipe.sample_version})
    _need(values, "sources", "say where texts come from: --source news=articles.jsonl")
    for option in ("counts", "licences"):
        for group in set(_mapping(values, option)) - set(_mapping(values, "sources")):
            name = option.removesuffix("s")
            msg = f"build: --{name} {group}=…: there is no --source {group}=…"
            raise UsageError(msg)
    if not build.folder.made("sample"):
        for sources in _sources(build, values).values():
            _check_sources(sources)
    return values


def _sources(build: Build, values: Values) -> dict[str, list[Source]]:
    licences = cast("Mapping[str, str]", values["licences"])
    given = cast("Mapping[str, Sequence[str]]", values["sources"])
    contact = build.options.contact
    return {
        group: [
            Source(group=group, where=where, licence=licences.get(group, ""), contact=contact)
            for where in places
        ]
        for group, places in given.items()
    }


def _check_sources(sources: Sequence[Source]) -> None:
    for source in sources:
        source.check()
    if len(sources) > 1 and any(source.is_api for source in sources):
        msg = f"--source {sources[0].group}: a wiki's pages have no end; give it a group of its own"
        raise UsageError(msg)


def _sample(build: Build, values: Values, _: Sequence[Item], __: ModelOffice) -> list[Item]:
    counts = cast("Mapping[str, int]", values["counts"])
    oversample = float(str(values["oversample"]))
    groups = [
        Group(
            name=name,
            wanted=math.ceil(counts.get(name, COUNT) * oversample),
            articles=partial(_articles, build, sources),
            drawn=sources[0].is_api,
        )
        for name, sources in _sources(build, values).items()
    ]
    language = build.checker.language
    sampler = Sampler(recipe=build.recipe, language=language, seed=int(str(values["seed"])))
    items = sampler.sample(groups)
    for group in groups:
        found = sum(item.state == "kept" and item.origin.group == group.name for item in items)
        if found < group.wanted:
            build.say(f"sample: {group.name}: only {found} of {group.wanted} paragraphs found")
    return items


def _articles(build: Build, sources: Sequence[Source]) -> Iterator[Article]:
    for source in sources:
        yield from articles(source, build.folder.path, build.say)


def _hashes(values: Values) -> Values:
    """Return the options with the SHA-256 of each source that is a file."""
    places = cast("Mapping[str, Sequence[str]]", values["sources"])
    paths = [Path(where) for wheres in places.values() for where in wheres if "://" not in where]
    return {**values, "files": {f"{path}": file_hash(path) for path in paths if path.is_file()}}


def _settle_generate(build: Build) -> Values:
    seed = build.folder.options("sample").get("seed", SEED)
    defaults = {"generator": None, "plain": False, "seed": seed}
    recipe = build.recipe
    versions = {"recipe": recipe.generate_version, "rules": recipe.check_version}
    values = build.settle("generate", defaults, versions)
    _need(values, "generator", "name the model that writes: --generator provider:NAME")
    build.spec("generator", values["generator"])
    return values


def _generate(
    build: Build, values: Values, items: Sequence[Item], office: ModelOffice
) -> list[Item]:
    async def work(model: Model, desk: Desk) -> list[Item]:
        generator = Generator(
            model=model,
            recipe=build.recipe,
            seed=int(str(values["seed"])),
            passes=build.checker.check,
            forced=not values["plain"],
            leave_out=build.options.leave_out_failed,
        )
        return await generator.generate(items, desk)

    return office.run("generate", build.spec("generator", values["generator"]), work)


def _settle_check(build: Build) -> Values:
    return build.settle("check", {}, {"recipe": build.recipe.check_version})


def _check(build: Build, _: Values, items: Sequence[Item], __: ModelOffice) -> list[Item]:
    return build.checker.check(items)


def _settle_validate(build: Build) -> Values:
    defaults = {"validator": None, "blind": False, "same_provider": False}
    versions = {"rubric": _rubric(build).version}
    values = build.settle("validate", defaults, versions)
    _need(values, "validator", "name a model of another provider: --validator provider:NAME")
    validator = build.spec("validator", values["validator"])
    writer = build.options.given["generator"] or build.folder.options("generate").get("generator")
    if writer:
        generator = build.spec("generator", writer)
        check_pair(generator, validator, same_provider=bool(values["same_provider"]))
    return {**values, "prompt": _prompt(build).version} if values["blind"] else values


def _validate(
    build: Build, values: Values, items: Sequence[Item], office: ModelOffice
) -> list[Item]:
    async def work(model: Model, desk: Desk) -> list[Item]:
        validator = Validator(
            model=model,
            recipe=build.recipe,
            rubric=_rubric(build),
            blind=_prompt(build) if values["blind"] else None,
        )
        return await validator.validate(items, desk)

    return office.run("validate", build.spec("validator", values["validator"]), work)


def _rubric(build: Build) -> Rubric:
    return load_rubric(RUBRICS / f"validate.{build.recipe.language}.yaml")


def _prompt(build: Build) -> Prompt:
    return load_prompt(DATASETS / DATASET / f"answer.{build.recipe.language}.yaml")


def _mapping(values: Values, key: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", values[key])


def _need(values: Values, key: str, advice: str) -> None:
    if not values[key]:
        msg = f"build: {advice}"
        raise UsageError(msg)


STEPS: Mapping[str, Step] = {
    "sample": Step(
        help="take paragraphs from dumps, wikis and files, by seed",
        after="",
        settle=_settle_sample,
        work=_sample,
        record=_hashes,
    ),
    "generate": Step(
        help="let a model write a yes/no question on each",
        after="sample",
        settle=_settle_generate,
        work=_generate,
        models=("generator",),
    ),
    "check": Step(
        help="drop by rule what is no such question, a copy or a repetition",
        after="generate",
        settle=_settle_check,
        work=_check,
    ),
    "validate": Step(
        help="let a model of another provider confirm the answers",
        after="check",
        settle=_settle_validate,
        work=_validate,
        models=("validator",),
    ),
    "review": Step(
        help="write sheets for native speakers",
        after="validate",
        settle=settle_review,
        work=review,
        finish=write_sheets,
        people=True,
    ),
    "accept": Step(
        help="read what they sent back (accept FILE …): agreement, disputes, corrections",
        after="review",
        settle=settle_accept,
        work=accept,
        finish=tell_agreement,
        people=True,
        renewed=True,
    ),
    "freeze": Step(
        help="choose a balanced set and write it as a dataset with its datasheet (--to)",
        after="accept",
        settle=settle_freeze,
        work=freeze,
        finish=write_dataset,
        people=True,
        renewed=True,
    ),
}
"""Each step by its name, in their order."""
