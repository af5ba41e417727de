"""Where a run's numbers come from: versions and hashes of everything that could change them."""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from cases.dataset import Choice, Plan, Slice
from evaluators.core import Outcome

PACKAGES = ("pytest", "pytest-xdist", "openai", "anthropic", "deepeval", "scipy")


def provenance(
    plan: Plan, choice: Choice, outcomes: Mapping[str, Outcome], specs: Mapping[str, object]
) -> dict[str, object]:
    """Return what a reader needs to reproduce the run; the same for the same replies.

    ``specs`` maps ``model`` and ``judge`` to what names them, without keys.
    """
    slices = {plan.items[key].slice.name: plan.items[key].slice for key in outcomes}
    return {
        **specs,
        "models_returned": sorted({one.model for one in outcomes.values() if one.model}),
        "judges_returned": sorted({one.judge for one in outcomes.values() if one.judge}),
        "slices": {
            name: _slice(slices[name], plan.hashes.get(name, "")) for name in sorted(slices)
        },
        "limit": choice.limit,
        "seed": choice.seed,
        "repeats": choice.repeats,
        "python": platform.python_version(),
        "packages": _versions(PACKAGES),
    }


def _slice(slice_: Slice, digest: str) -> dict[str, object]:
    return {
        "file": slice_.path.name,
        "data_sha256": digest,
        "prompt": slice_.prompt.version if slice_.prompt else "",
        "rubric": slice_.rubric.version if slice_.rubric else "",
        "pass_bar": slice_.pass_bar if slice_.kind == "rated" else None,
        "metrics": [asdict(metric) for metric in slice_.metrics],
    }


def _versions(names: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
