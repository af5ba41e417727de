"""The last step: the balanced set is chosen, and its files are put into a dataset folder."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from cases.tools.builder import balance, freezing
from cases.tools.builder.datasheet import Facts, datasheet
from cases.tools.builder.folder import Values
from cases.tools.builder.items import BuildError, Item
from cases.tools.builder.office import ModelOffice
from cases.tools.builder.people_steps import agreed
from cases.tools.builder.plan import Build, Report
from evaluators.core import UsageError

STEPS_BEFORE = ("sample", "generate", "check", "validate", "review", "accept")
DEFAULT = 500


def settle_freeze(build: Build) -> Values:
    """Return the seed, the splits and where the dataset goes."""
    seed = build.folder.options("sample").get("seed", 1)
    values = build.remembered("freeze", {"to": None, "splits": {}, "seed": seed})
    if not values["to"]:
        msg = "build: say where the dataset goes: --to cases/NAME"
        raise UsageError(msg)
    freezing.dataset_name(Path(str(values["to"])))
    return values


def freeze(build: Build, values: Values, items: Sequence[Item], _: ModelOffice) -> list[Item]:
    """Return the items with those dropped that are not of the final set.

    Raises UsageError where the dataset's folder has other data, BuildError where nothing is left.
    """
    made = build.folder.options("sample")
    counts = cast("Mapping[str, int]", made.get("counts", {}))
    sources = cast("Mapping[str, object]", made["sources"])
    sizes = {group: counts.get(group, DEFAULT) for group in sources}
    shares = cast("Mapping[str, float]", values["splits"])
    chosen = balance.frozen(items, sizes, shares, int(str(values["seed"])))
    if not any(item.state == "kept" for item in chosen):
        msg = "freeze: no item is left, or all of a source have one answer; sample more"
        raise BuildError(msg)
    freezing.changed(_data_files(build, values, chosen), force=build.options.force)
    for line in _short(chosen, sizes):
        build.say(line)
    return chosen


def _short(items: Sequence[Item], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each source that gave fewer items than were wanted of it."""
    kept = Counter(item.origin.group for item in items if item.state == "kept")
    for group, wanted in sizes.items():
        if kept[group] < wanted // 2 * 2:
            yield (
                f"freeze: {group}: only {kept[group]} of {wanted} items, half and half; a larger "
                "--oversample in another --folder makes more"
            )


def _data_files(build: Build, values: Values, items: Sequence[Item]) -> freezing.Files:
    kept = [item for item in items if item.state == "kept"]
    rows = freezing.rows_of(kept, build.recipe.labels)
    return freezing.data_files(Path(str(values["to"])), build.recipe.language, rows)


def write_dataset(build: Build, values: Values, report: Report) -> None:
    """Put the dataset's files in place; the same steps give the same bytes."""
    folder, language = Path(str(values["to"])), build.recipe.language
    data = _data_files(build, values, build.folder.read("freeze"))
    sheet = datasheet(_facts(build, folder, report, freezing.hashes(data)))
    files = {**data, freezing.readme(folder, sheet, language): sheet}
    freezing.write_files(files, force=build.options.force)
    new = freezing.helpers(folder, language, build.recipe.labels, _bar(report))
    freezing.write_files(new, force=False)
    main = next(iter(data))
    build.say(f"freeze: the items stand in {main}; datasheet and hashes beside it")
    if language not in freezing.declared(folder):
        name = freezing.dataset_name(folder)
        build.say(
            f"freeze: run it with --items {name}:{language}={main}, or add it to dataset.yaml"
        )


def _facts(build: Build, to: Path, report: Report, hashes: Mapping[str, str]) -> Facts:
    folder = build.folder
    items = [item for item in folder.read("freeze") if item.state == "kept"]
    return Facts(
        name=freezing.dataset_name(to),
        language=build.recipe.language,
        labels=build.recipe.labels,
        items=items,
        options={step: folder.options(step) for step in STEPS_BEFORE},
        report=report,
        agreement=agreed(build, folder.read("accept")),
        files=hashes,
    )


def _bar(report: Report) -> float:
    """Return the accuracy that the question alone reaches, rounded up to a hundredth."""
    alone = report["question_only"]
    shares = cast("Mapping[str, Mapping[str, float]]", alone)["shares"]
    return min(0.99, math.ceil(100 * max(shares.values())) / 100)
