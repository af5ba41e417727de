"""What a run was asked with: versions and hashes, and the datasets as they were declared."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_type_hints

from cases.dataset import Dataset, Plan, PlannedItem, Selection, Slice, Threshold
from evaluators.answer_checks import version_of
from evaluators.answerers import RECORDED
from evaluators.core import CORRECT, GRADES, Outcome
from evaluators.extra_metrics import CheckSpec, MetricSpec
from evaluators.rubric import Protocol, Rubric
from reports.run.json_data import decode, encode, inner
from reports.run.record import total_cost

PACKAGES = ("pytest", "pytest-xdist", "openai", "anthropic", "deepeval", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeFacts:
    """What a report says of all outcomes together; nothing of a single item is kept."""

    slices: AbstractSet[str]
    """The names of those with an outcome."""
    models: AbstractSet[str]
    """As the providers named them, as are the judges."""
    judges: AbstractSet[str]
    replies: Mapping[str, int]
    """How many verdicts there are, and how many rest on replies that others paid for."""
    unpriced: bool
    """Whether some cost is not known."""
    known: float
    """What is known of the cost, in USD."""
    answering: float | None
    """What the answers cost in USD; None if that is not known."""
    unmeasured: Mapping[str, tuple[int, str]]
    """For each extra metric, how many items lack it, and why the first does."""

    @classmethod
    def of(cls, outcomes: Iterable[tuple[PlannedItem, Outcome]]) -> "OutcomeFacts":
        """Return the facts of all of these."""
        ended = list(outcomes)
        every = [outcome for _, outcome in ended]
        usages = [(one.usage, one.answering) for one in every if one.state in ("passed", "failed")]
        lacking: dict[str, list[str]] = {}
        for one in every:
            for name, why in one.unmeasured.items():
                lacking.setdefault(name, []).append(why)
        return cls(
            slices={item.slice.name for item, _ in ended},
            models={one.model for one in every} - {""},
            judges={one.judge for one in every} - {""},
            replies={
                "verdicts": len(usages),
                "earlier": sum(whole.earlier > 0 for whole, _ in usages),
                "imported": sum(whole.imported > 0 for whole, _ in usages),
                "answers": sum(answer.earlier > 0 for _, answer in usages),
                "judgements": sum(whole.earlier > answer.earlier for whole, answer in usages),
            },
            unpriced=any(one.usage.cost is None for one in every),
            known=sum(one.usage.known for one in every),
            answering=total_cost(one.answering.cost for one in every),
            unmeasured={name: (len(whys), whys[0]) for name, whys in lacking.items()},
        )


def provenance(
    plan: Plan, choice: Selection, found: OutcomeFacts, specs: Mapping[str, object]
) -> dict[str, object]:
    """Return what reproduces the run; ``specs`` name ``model`` and ``judge``, without keys."""
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
        "packages": dict(map(_version, PACKAGES)),
    }


def named_model(model: str, provenance: object) -> str:
    """Return a model's name; of recorded answers with their file. Takes any run's provenance."""
    slices = inner(provenance, "slices")
    files = {str(inner(slices, name).get("file", "")) for name in slices}
    named = model == RECORDED and len(files) == 1 and "" not in files
    return f"{model} ({files.pop()})" if named else model


def _version(package: str) -> tuple[str, str]:
    try:
        return package, version(package)
    except PackageNotFoundError:
        return package, "not installed"


_OF_DATASET = (
    *("name", "kind", "pooled", "holm", "require_calibration", "sampling"),
    *("judge_unmeasured", "left_out", "laxer", "baseline_required"),
)
_OF_SLICE = (
    *("language", "pass_bar", "penalty", "by", "floor", "floor_limit", "offline_floor"),
    *("declared", "cluster", "attacks", "order"),
)
"""The fields of a dataset and of a slice that ``run.json`` has as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSlice:
    """What ``run.json`` has of a slice in another form: no data and no texts."""

    file: str
    rules: tuple[Threshold, ...] = ()
    metrics: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    rubric: str = ""
    """The version of its rubric."""
    protocol: Protocol | None = None
    """None where nothing judges it."""
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] = GRADES
    passing: tuple[str, ...] = (CORRECT,)

    @classmethod
    def of(cls, slice_: Slice) -> "DeclaredSlice":
        """Return what is written of a slice."""
        found = cls(
            file=slice_.path.name,
            rules=slice_.thresholds,
            metrics=tuple(metric.name for metric in slice_.metrics),
            checks=tuple(check.name for check in slice_.checks),
            labels=slice_.labels,
            passing=slice_.passing,
        )
        if (one := slice_.rubric) is None:
            return found
        return replace(found, rubric=one.version, protocol=one.protocol, scores=dict(one.scores))

    def rubric_of(self, language: str) -> Rubric | None:
        """Return the rubric without its texts."""
        own = ("protocol", "scores", "labels", "passing")
        known: Any = {key: getattr(self, key) for key in own}
        known |= {"name": self.rubric.partition(".")[0], "version": self.rubric}
        return Rubric(language=language, system="", user="", **known) if self.protocol else None


def dump_datasets(datasets: Sequence[Dataset]) -> list[dict[str, object]]:
    """Return the datasets as JSON data that ``load_datasets`` reads back."""
    found: list[dict[str, object]] = []
    for one in datasets:
        slices = []
        for part in one.slices.values():
            own = {name: encode(getattr(part, name)) for name in _OF_SLICE}
            slices.append(own | encode(DeclaredSlice.of(part)))
            if part.labels == GRADES:  # as in every run before there were others
                del slices[-1]["labels"], slices[-1]["passing"]
        found.append({name: encode(getattr(one, name)) for name in _OF_DATASET})
        found[-1]["slices"] = slices
    return found


def load_datasets(values: Sequence[Mapping[str, Any]]) -> tuple[Dataset, ...]:
    """Return datasets to decide gates again, without texts. Raises ValueError and the like."""
    found = []
    for value in values:
        own, rest = _decoded(Dataset, value, _OF_DATASET)
        slices = []
        for part in rest.pop("slices"):
            mine, others = _decoded(Slice, part, _OF_SLICE)
            one: DeclaredSlice = decode(DeclaredSlice, others)
            slices.append(
                Slice(
                    dataset=own["name"],
                    kind=own["kind"],
                    path=Path(one.file),
                    rubric=one.rubric_of(mine["language"]),
                    thresholds=one.rules,
                    metrics=tuple(MetricSpec(name=name) for name in one.metrics),
                    checks=tuple(CheckSpec(name=name, check="") for name in one.checks),
                    **mine,
                )
            )
        if rest:
            raise ValueError(f"unknown field {min(rest)!r} of a dataset")
        by_language = {part.language: part for part in slices}
        found.append(Dataset(folder=Path(own["name"]), slices=by_language, **own))
    return tuple(found)


def _decoded(
    kind: type, value: Mapping[str, Any], names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of these names as ``kind`` has them, and the rest of the data."""
    hints = get_type_hints(kind)
    own = {name: decode(hints[name], value[name]) for name in names if name in value}
    return own, {name: part for name, part in value.items() if name not in own}
