"""What a run was asked with: versions and hashes."""

import platform
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from cases.dataset import Plan, PlannedItem, Selection
from evaluators.answer_checks import version_of
from evaluators.answerers import RECORDED
from evaluators.core import Outcome
from reports.run.json_data import inner
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
