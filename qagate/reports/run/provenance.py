"""What a run was asked with: every version, hash and parameter that can move its figures.

A report keeps it as free-form data, by which a run can be repeated and ``changes.py`` finds
what else than the model changed between two runs.
"""

import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from qagate.cases.dataset import Plan, Selection, Slice
from qagate.evaluators.core import RECORDED, Outcome
from qagate.evaluators.metric_specs import version_of
from qagate.evaluators.models.versions import asked_spec
from qagate.evaluators.reading import file_hash
from qagate.reports.run.json_data import inner

PACKAGES = ("pytest", "pytest-xdist", "openai", "anthropic", "deepeval", "numpy")
"""Those whose versions a report names."""


def provenance(
    plan: Plan,
    choice: Selection,
    outcomes: Mapping[str, Outcome],
    specs: Mapping[str, object],
) -> dict[str, object]:
    """Return what reproduces the run; ``specs`` name ``model`` and ``judge``, without keys."""
    models = {outcome.model for outcome in outcomes.values()}
    judges = {outcome.judge for outcome in outcomes.values()}
    slices = {}
    for key in outcomes:
        slice_ = plan.items[key].slice
        slices[slice_.name] = slice_
    slice_provenances = {}
    for name, slice_ in sorted(slices.items()):
        slice_provenances[name] = _slice_provenance(slice_, plan.hashes.get(name, ""))
    return {
        **specs,
        "models_returned": sorted(models - {""}),
        "judges_returned": sorted(judges - {""}),
        "slices": slice_provenances,
        "limit": choice.limit,
        "seed": choice.seed,
        "repeats": choice.repeats,
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in PACKAGES},
    }


def _slice_provenance(slice_: Slice, data_sha256: str) -> dict[str, object]:
    checks = []
    for check in slice_.checks:
        checks.append({**asdict(check), "version": version_of(check)})
    recorded: dict[str, object] = {}
    if slice_.recorded is not None:
        recorded["recorded_file"] = slice_.recorded.name
        recorded["recorded_sha256"] = file_hash(slice_.recorded)
    return {
        "file": slice_.path.name,
        "data_sha256": data_sha256,
        **recorded,
        "prompt": slice_.prompt.version if slice_.prompt else "",
        "rubric": slice_.rubric.version if slice_.rubric else "",
        "pass_bar": slice_.pass_bar if slice_.kind.rated else None,
        "metrics": [asdict(metric) for metric in slice_.metrics],
        "checks": checks,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def sent_spec(model: str, provenance: Mapping[str, object]) -> str:
    """Return the SPEC of the model that was asked; recorded answers are named by their file.

    So each release whose answers come by ``--recorded FILE`` is a model of its own.
    """
    if model != RECORDED:
        return asked_spec(model, inner(provenance, "sent", model))
    files = set()
    for name in inner(provenance, "slices"):
        files.add(str(inner(provenance, "slices", name).get("recorded_file", "")))
    names = " ".join(sorted(files - {""}))
    return f"{RECORDED} ({names})" if names else RECORDED


def named_model(model: str, provenance: Mapping[str, object]) -> str:
    """Return a model's name; of recorded answers with their file, if it is a single one."""
    if model != RECORDED:
        return model
    slices = inner(provenance, "slices")
    files = set()
    for name in slices:
        slice_ = inner(slices, name)
        files.add(str(slice_.get("recorded_file") or slice_.get("file", "")))
    if len(files) != 1 or "" in files:
        return model
    return f"{model} ({files.pop()})"
