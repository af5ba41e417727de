"""Which slices a session has to decide, and whether a test was collected of each data set.

A slice is to decide if it lies under the paths of the run, unless a path, ``--languages`` or a mark
of ours leaves it out. Whatever else leaves its tests out, another mark, ``-k``, a plug-in or a test
module that is gone, the verdict must not be about the rest alone.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from qagate.cases.dataset import DATASET_FILE, Dataset, Plan, Slice
from qagate.cases.discovery import named_paths
from qagate.evaluators.text import harmless

CHOOSING = (
    "markexpr",
    "ignore",
    "ignore_glob",
    "keyword",
    "deselect",
    "lf",
    "stepwise",
)
"""pytest's options by which a user chooses tests."""
MOST_OTHER_MARKS = 8
"""So many marks of others in ``-m`` are tried both ways; with more, every slice is expected."""
OWN_MARKS = ("qa", "parametrize")
"""The marks that every test of ours has, beside those of its data set and language."""


def expected_slices(config: pytest.Config, plan: Plan) -> tuple[str, ...]:
    """Return the names of the slices that the session has to decide."""
    own_marks = set(OWN_MARKS)
    for dataset in plan.datasets:
        own_marks |= {dataset.name, *dataset.slices}
    markexpr: str = getattr(config.option, "markexpr", "") or ""
    names: dict[str, None] = {}
    for dataset in _datasets_named(config, plan):
        if _only_measures_judges(dataset):
            continue
        for item in plan.tests(dataset):
            if item.slice.name not in names and not _leaves_out(
                markexpr, item.slice, own_marks
            ):
                names[item.slice.name] = None
    return tuple(names)


def _leaves_out(markexpr: str, slice_: Slice, own_marks: Collection[str]) -> bool:
    """Return whether our own marks alone make ``-m`` leave a slice out.

    Marks of others may be on a test or not: the slice is left out only if it is in either case.
    """
    if not markexpr:
        return False
    marks = {*OWN_MARKS, slice_.dataset, slice_.language}
    others: dict[str, None] = {}

    def is_on(name: str, /, **arguments: object) -> bool:
        if name not in own_marks:
            others[name] = None
        return name in marks

    expression = Expression.compile(markexpr)
    is_selected = expression.evaluate(is_on)
    if is_selected:
        return False
    if len(others) > MOST_OTHER_MARKS:
        return False
    return not any(
        expression.evaluate(matcher) for matcher in _either_way(list(others), marks)
    )


def _either_way(
    others: Sequence[str], marks: Collection[str]
) -> Iterator[Callable[..., bool]]:
    """Yield a matcher for each way in which the other marks may be on a test."""
    for choice in product((False, True), repeat=len(others)):
        present = {name for name, is_on in zip(others, choice, strict=True) if is_on}

        def is_on(
            name: str, /, present: Collection[str] = present, **arguments: object
        ) -> bool:
            return name in marks or name in present

        yield is_on


def check_collected(config: pytest.Config, plan: Plan, keys: Collection[str]) -> None:
    """Raise UsageError for a data set under one of the run's folders without any test.

    ``keys`` are those of the items with a test. Where the user chose tests by an option, or by
    code that an option names, the verdict says which slices are missing.
    """
    is_chosen = any(config.getoption(name, None) for name in CHOOSING)
    if is_chosen or config.option.pyargs:
        return
    slices_with_tests = {plan.items[key].slice.name for key in keys}
    without_test = []
    named = named_paths(config.args, Path(config.invocation_params.dir))
    for dataset in _datasets_named(config, plan):
        folder = dataset.folder.resolve()
        is_under = any(folder.is_relative_to(path) for path in named)
        if not is_under or (keys and _only_measures_judges(dataset)):
            continue
        slices = {item.slice.name for item in plan.tests(dataset)}
        if slices and slices_with_tests.isdisjoint(slices):
            without_test.append(dataset)
    if without_test:
        raise pytest.UsageError(harmless(_no_test(without_test)))


def _datasets_named(config: pytest.Config, plan: Plan) -> Iterator[Dataset]:
    """Yield the data sets that lie under the paths of the run, or beside a named file."""
    here = Path(config.invocation_params.dir)
    named = named_paths(config.args, here)
    ignored = [(here / path).resolve() for path in config.option.ignore or ()]
    for dataset in plan.datasets:
        folder = dataset.folder.resolve()
        if any(folder.is_relative_to(path) for path in ignored):
            continue
        is_under = any(folder.is_relative_to(path) for path in named)
        is_beside = any(path.parent == folder for path in named)
        if is_under or is_beside:
            yield dataset


def _only_measures_judges(dataset: Dataset) -> bool:
    """Whether a data set holds labelled answers that are no attacks on the judge."""
    if dataset.kind.answered:
        return False
    return not any(slice_.attacks for slice_ in dataset.slices.values())


def _no_test(datasets: Sequence[Dataset]) -> str:
    missing_tests = []
    for dataset in datasets:
        file = dataset.folder / DATASET_FILE
        missing_tests.append(f'{file}: no test with @pytest.mark.qa("{dataset.name}")')
    return (
        f"{', '.join(missing_tests)} was collected; "
        "add its test module (test_*.py), or leave it out by path or -m"
    )
