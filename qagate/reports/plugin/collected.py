"""Whether pytest collected a test of each data set that the user asked for.

A data set whose test module is missing or broken would silently drop out of the verdict.
Where the user left tests out, by path, ``-m`` or ``-k``, that is no mistake.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from qagate.cases.dataset import DATASET_FILE, Dataset, Plan
from qagate.cases.discovery import named_paths
from qagate.evaluators.text import harmless

BY_HAND = ("keyword", "deselect", "lf", "stepwise")
"""pytest's options that may leave out any test."""
CHOOSING = ("markexpr", "ignore", "ignore_glob", *BY_HAND)
"""pytest's options by which a user chooses tests."""


def check_collected(
    config: pytest.Config, plan: Plan, keys: Collection[str]
) -> tuple[str, ...]:
    """Return the slices that paths and ``-m`` choose, but of which no test is left.

    ``keys`` are those of the items with a test. A labelled data set without a test measures
    the judge of others. Raises UsageError for a data set under one of the run's folders
    without a test, where no option leaves any out.
    """
    is_picked_by_hand = _is_any_given(config, BY_HAND)
    is_chosen = _is_any_given(config, CHOOSING) or config.option.pyargs
    if is_chosen and not is_picked_by_hand:
        return ()
    named = named_paths(config.args, Path(config.invocation_params.dir))
    slices_with_tests = {plan.items[key].slice.name for key in keys}
    slices_without: dict[str, None] = {}
    datasets_without = []
    for dataset in plan.datasets:
        folder = dataset.folder.resolve()
        is_under = any(folder.is_relative_to(path) for path in named)
        is_beside = any(path.parent == folder for path in named)
        if not (is_under or is_beside):
            continue
        if keys and _only_measures_judges(dataset):
            continue
        slices = [item.slice.name for item in plan.tests(dataset)]
        for name in slices:
            if name not in slices_with_tests:
                slices_without[name] = None
        if slices and is_under and slices_with_tests.isdisjoint(slices):
            datasets_without.append(dataset)
    if datasets_without and not is_picked_by_hand:
        raise pytest.UsageError(harmless(_no_test(datasets_without)))
    return tuple(slices_without)


def _is_any_given(config: pytest.Config, names: Sequence[str]) -> bool:
    return any(getattr(config.option, name, None) for name in names)


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
