"""What a run was asked with: versions and hashes, and the datasets as they were declared."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cases.dataset import Dataset, Plan, Sampling, Selection, Slice, Threshold
from evaluators.answer_checks import version_of
from evaluators.answerers import RECORDED
from evaluators.core import CORRECT, GRADES
from evaluators.extra_metrics import CheckSpec, MetricSpec
from evaluators.kinds import Kind
from evaluators.rubric import Protocol, Rubric
from reports.run.json_data import decode
from reports.run.outcome_facts import OutcomeFacts

PACKAGES = ("pytest", "pytest-xdist", "openai", "anthropic", "deepeval", "scipy")


def provenance(
    plan: Plan, choice: Selection, found: OutcomeFacts, specs: Mapping[str, object]
) -> dict[str, object]:
    """Return what a reader needs to reproduce the run; the same for the same replies.

    ``specs`` maps ``model`` and ``judge`` to what names them, without keys.
    """
    slices = {one.name: one for part in plan.datasets for one in part.slices.values()}
    return {
        **specs,
        "models_returned": sorted(found.models),
        "judges_returned": sorted(found.judges),
        "slices": {
            name: {
                "file": slice_.path.name,
                "data_sha256": plan.hashes.get(name, ""),
                "prompt": slice_.prompt.version if slice_.prompt else "",
                "rubric": slice_.rubric.version if slice_.rubric else "",
                "pass_bar": slice_.pass_bar if slice_.kind.rated else None,
                "metrics": [asdict(metric) for metric in slice_.metrics],
                "checks": [
                    {**asdict(check), "version": version_of(check)} for check in slice_.checks
                ],
            }
            for name, slice_ in sorted(slices.items())
            if name in found.slices
        },
        "limit": choice.limit,
        "seed": choice.seed,
        "repeats": choice.repeats,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def named_model(model: str, provenance: object) -> str:
    """Return a model's name; that of recorded answers with their file, where they have one.

    ``provenance`` may be what an earlier run has of it, whatever that is.
    """
    slices = provenance.get("slices") if isinstance(provenance, Mapping) else None
    known = slices.values() if isinstance(slices, Mapping) else ()
    files = {str(part.get("file", "")) for part in known if isinstance(part, Mapping)}
    named = model == RECORDED and len(files) == 1 and "" not in files
    return f"{model} ({files.pop()})" if named else model


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSlice:
    """A slice without its data and texts, as ``run.json`` has it.

    ``rubric`` is the version of its rubric; ``protocol`` is None where nothing judges it.
    """

    language: str
    file: str
    rules: tuple[Threshold, ...] = ()
    pass_bar: int = 6
    penalty: float = 1.0
    by: tuple[str, ...] = ()
    floor: Mapping[str, float] = field(default_factory=dict)
    floor_limit: Mapping[str, float] = field(default_factory=dict)
    offline_floor: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    declared: bool = True
    rubric: str = ""
    protocol: Protocol | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] = GRADES
    passing: tuple[str, ...] = (CORRECT,)
    cluster: str = ""
    attacks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDataset:
    """A dataset as ``run.json`` has it; its slices are in the order of its file."""

    name: str
    kind: Kind
    slices: tuple[DeclaredSlice, ...]
    pooled: tuple[Threshold, ...] = ()
    holm: bool = False
    require_calibration: bool = False
    sampling: Sampling | None = None
    judge_unmeasured: bool = False
    left_out: tuple[str, ...] = ()


def dump_datasets(datasets: Sequence[Dataset]) -> list[dict[str, object]]:
    """Return the datasets as JSON data that ``load_datasets`` reads back."""
    found = [
        asdict(
            DeclaredDataset(
                name=one.name,
                kind=one.kind,
                slices=tuple(map(_declared, one.slices.values())),
                pooled=one.pooled,
                holm=one.holm,
                require_calibration=one.require_calibration,
                sampling=one.sampling,
                judge_unmeasured=one.judge_unmeasured,
                left_out=one.left_out,
            )
        )
        for one in datasets
    ]
    for slice_ in (one for dataset in found for one in dataset["slices"]):
        if slice_["labels"] == GRADES:  # not written, as in every run before there were others
            del slice_["labels"], slice_["passing"]
    return found


def _declared(slice_: Slice) -> DeclaredSlice:
    rubric = slice_.rubric
    return DeclaredSlice(
        language=slice_.language,
        file=slice_.path.name,
        rules=slice_.thresholds,
        pass_bar=slice_.pass_bar,
        penalty=slice_.penalty,
        by=slice_.by,
        floor=dict(slice_.floor),
        floor_limit=dict(slice_.floor_limit),
        offline_floor=dict(slice_.offline_floor),
        metrics=tuple(metric.name for metric in slice_.metrics),
        checks=tuple(check.name for check in slice_.checks),
        declared=slice_.declared,
        rubric=rubric.version if rubric else "",
        protocol=rubric.protocol if rubric else None,
        scores=dict(rubric.scores) if rubric else {},
        labels=slice_.labels,
        passing=slice_.passing,
        cluster=slice_.cluster,
        attacks=slice_.attacks,
    )


def load_datasets(values: Sequence[object]) -> tuple[Dataset, ...]:
    """Return the datasets: enough to decide on their gates again.

    A rubric has its version, protocol and scores, and no text. Raises ValueError where the data
    is not what ``dump_datasets`` returns.
    """
    return tuple(
        Dataset(
            name=one.name,
            folder=Path(one.name),
            kind=one.kind,
            slices={part.language: _slice(one, part) for part in one.slices},
            pooled=one.pooled,
            holm=one.holm,
            require_calibration=one.require_calibration,
            sampling=one.sampling,
            judge_unmeasured=one.judge_unmeasured,
            left_out=one.left_out,
        )
        for one in (decode(DeclaredDataset, value) for value in values)
    )


def _slice(dataset: DeclaredDataset, one: DeclaredSlice) -> Slice:
    rubric = None
    if one.protocol is not None:
        rubric = Rubric(
            name=one.rubric.partition(".")[0],
            language=one.language,
            protocol=one.protocol,
            system="",
            user="",
            version=one.rubric,
            scores=one.scores,
            labels=one.labels,
            passing=one.passing,
        )
    return Slice(
        dataset=dataset.name,
        language=one.language,
        kind=dataset.kind,
        path=Path(one.file),
        rubric=rubric,
        thresholds=one.rules,
        pass_bar=one.pass_bar,
        penalty=one.penalty,
        by=one.by,
        floor=one.floor,
        floor_limit=one.floor_limit,
        offline_floor=one.offline_floor,
        metrics=tuple(MetricSpec(name=name) for name in one.metrics),
        checks=tuple(CheckSpec(name=name, check="") for name in one.checks),
        declared=one.declared,
        cluster=one.cluster,
        attacks=one.attacks,
    )
