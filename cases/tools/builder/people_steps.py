"""The steps that people do: sheets go out to reviewers, and their verdicts come back."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from cases.tools.builder.datasheet import figure
from cases.tools.builder.folder import Values
from cases.tools.builder.items import Item
from cases.tools.builder.office import ModelOffice
from cases.tools.builder.people import (
    DISPUTED,
    accepted,
    asked_of,
    reviews_of,
    shared_out,
    sheet_of,
    types_of,
)
from cases.tools.builder.plan import Build, Report
from cases.tools.review.reviews import Agreement, Review, agreement, read_sheets
from cases.tools.review.sheet import Duty, sheets_for
from cases.tools.review.sheet_files import write_sheet
from evaluators.core import UsageError
from evaluators.files import file_hash

SHARE, OVERLAP = 1.0, 0.2
SHEETS = "review"
AGREEMENT = "agreement.json"


def settle_review(build: Build) -> Values:
    """Return who is to review what share, with what overlap."""
    seed = build.folder.options("sample").get("seed", 1)
    defaults = {"reviewers": [], "share": SHARE, "overlap": None, "seed": seed}
    values = build.settle("review", defaults, {})
    _duty(values)
    return values


def _duty(values: Values) -> Duty | None:
    """Return how items are shared out, None for nothing at all. Raises UsageError."""
    reviewers = tuple(cast("Sequence[str]", values["reviewers"]))
    if not float(str(values["share"])):
        return None
    if not reviewers:
        msg = "build: name who reviews: --reviewer NAME, once for each; or give --share 0"
        raise UsageError(msg)
    given = values["overlap"]
    overlap = (OVERLAP if len(reviewers) > 1 else 0.0) if given is None else float(str(given))
    return Duty(reviewers=reviewers, overlap=overlap, seed=int(str(values["seed"])))


def review(_: Build, values: Values, items: Sequence[Item], __: ModelOffice) -> list[Item]:
    """Return the items, each with those who are to see it."""
    return shared_out(items, float(str(values["share"])), _duty(values))


def write_sheets(build: Build, values: Values, _: Report) -> None:
    """Write a form and its CSV twin for every reviewer."""
    items = build.folder.read("review")
    given = {
        name: [item.id for item in items if name in asked_of(item)]
        for name in cast("Sequence[str]", values["reviewers"])
    }
    whole = sheet_of(build.recipe.language, items, build.recipe)
    for sheet in sheets_for(whole, given):
        if sheet.items:
            page, twin = write_sheet(sheet, build.folder.path / SHEETS)
            build.say(f"review: {sheet.reviewer}: {len(sheet.items)} items: {page}, {twin.name}")


def settle_accept(build: Build) -> Values:
    """Return the reviewers' files, those accepted before included, with their hashes."""
    values = build.remembered("accept", {"unreviewed": False})
    kept = build.folder.options("accept").get("files", {})
    known = list(cast("dict[str, str]", kept))
    paths = [Path(name) for name in dict.fromkeys([*known, *map(str, build.options.files)])]
    for path in paths:
        if not path.is_file():
            msg = f"build: accept {path}: no such file; give what a reviewer sent back"
            raise UsageError(msg)
    return {**values, "files": {f"{path}": file_hash(path) for path in paths}}


def accept(build: Build, values: Values, items: Sequence[Item], _: ModelOffice) -> list[Item]:
    """Return the items as the reviewers' verdicts leave them; edited ones are checked again."""
    reviews = _reviews(build, values, items)
    settled = accepted(items, reviews, unreviewed=bool(values["unreviewed"]))
    return build.checker.check(settled)


def _reviews(build: Build, values: Values, items: Sequence[Item]) -> tuple[Review, ...]:
    paths = [Path(name) for name in cast("dict[str, str]", values["files"])]
    if not paths and not values["unreviewed"] and any(map(asked_of, items)):
        msg = (
            "build: accept: name the files that reviewers sent back, or give --unreviewed to go on "
            "without them"
        )
        raise UsageError(msg)
    return read_sheets(paths, sheet_of("accept", items, build.recipe).allowed)


def tell_agreement(build: Build, _: Values, __: Report) -> None:
    """Say how far reviewers agree, and write a sheet of what is in dispute."""
    items = build.folder.read("accept")
    found = agreed(build, items)
    content = [asdict(one) for one in found]
    build.folder.write_json(AGREEMENT, content)
    for one in found if found[0].items else ():
        build.say(f"accept: {_line(one)}")
    disputed = [item for item in items if item.state == "pending" and item.reason in DISPUTED]
    if disputed:
        language = build.recipe.language
        sheet = sheet_of(f"{language}-disputes", disputed, build.recipe)
        page, twin = write_sheet(sheet, build.folder.path / SHEETS)
        build.say(
            f"accept: {len(disputed)} items are in dispute; let somebody who has not seen them "
            f"decide: {page}, {twin.name}; then run accept with that file"
        )


def agreed(build: Build, items: Sequence[Item]) -> tuple[Agreement, ...]:
    """Return the agreement on all items and on each type of question."""
    return agreement(reviews_of(items), types_of(items, build.recipe))


def _line(one: Agreement) -> str:
    kappas = "; ".join(
        f"kappa of {json.dumps(pair.first, ensure_ascii=False)} and "
        f"{json.dumps(pair.second, ensure_ascii=False)} {figure(pair.kappa)}"
        for pair in one.pairs
    )
    return (
        f"agreement, {one.group or 'all'}: {one.items} items seen by several, equal verdicts "
        f"{figure(one.raw)}, alpha {figure(one.alpha)}{'; ' if kappas else ''}{kappas}"
    )
