"""What a run was asked with, and the earlier run to compare with: may a difference count."""

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from qagate.cases.dataset import Plan, Selection, Slice
from qagate.evaluators.adjudications import Adjudications
from qagate.evaluators.core import LEXICAL, RECORDED, Outcome, parse_judges
from qagate.evaluators.metric_specs import CHECK_PREFIX, version_of
from qagate.evaluators.text import first_of, mask, one_line
from qagate.reports.run.evidence import AuditPlan
from qagate.reports.run.record import Record, by_slice
from qagate.reports.run.report import Obstacle, Role, SliceSummary
from qagate.reports.run.run_json import inner, load_run, mappings, ordered, sample_of

PACKAGES = ("pytest", "pytest-xdist", "openai", "anthropic", "deepeval", "numpy")


def provenance(
    plan: Plan,
    choice: Selection,
    outcomes: Mapping[str, Outcome],
    specs: Mapping[str, object],
) -> dict[str, object]:
    """Return what reproduces the run; ``specs`` name ``model`` and ``judge``, without keys."""
    slices = {plan.items[key].slice.name: plan.items[key].slice for key in outcomes}
    return {
        **specs,
        "models_returned": sorted({one.model for one in outcomes.values()} - {""}),
        "judges_returned": sorted({one.judge for one in outcomes.values()} - {""}),
        "slices": {
            name: {
                "file": slice_.path.name,
                "data_sha256": plan.hashes.get(name, ""),
                "prompt": slice_.prompt.version if slice_.prompt else "",
                "rubric": slice_.rubric.version if slice_.rubric else "",
                "pass_bar": slice_.pass_bar if slice_.kind.rated else None,
                "metrics": [asdict(metric) for metric in slice_.metrics],
                "checks": [
                    {**asdict(check), "version": version_of(check)}
                    for check in slice_.checks
                ],
            }
            for name, slice_ in sorted(slices.items())
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


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """An earlier run to compare with."""

    path: str
    run: Mapping[str, object]
    """Its ``run.json``."""
    records: tuple[Record, ...]
    role: Role = "baseline"
    people: Adjudications = field(default_factory=dict)
    """People's verdicts on answers of this run, or of the one that is compared with it."""
    plan: AuditPlan = field(default_factory=dict)
    """The pairs that people were to look at, as the first form had them."""

    @cached_property
    def slices(self) -> Mapping[str, tuple[Record, ...]]:
        """The records of each slice by its name."""
        return by_slice(self.records)

    @property
    def sha256(self) -> str:
        """The checksum of its records, empty where ``run.json`` has none."""
        return str(inner(self.run, "records").get("sha256", ""))

    def obstacle(self, now: SliceSummary) -> str:
        """Return why its part of a slice may not stand for all of it, or nothing."""
        if self.run.get("complete") is not True:
            return (
                f"the {self.role} was cut short; {Obstacle.OTHER_ITEMS} a complete run"
            )
        slices = mappings(self.run.get("slices"))
        part = next((one for one in slices if one.get("name") == now.name), None)
        if part is None:
            what = f"the {self.role} knows no {now.name}"
            return f"{what}; {Obstacle.OTHER_ITEMS} a run of the same slices"
        if part.get("partial") is not False:
            what = f"only a part of the {self.role}'s slice was run, picked by hand"
            return f"{what}; {Obstacle.OTHER_ITEMS} a run of all of it"
        try:
            then = sample_of(part, inner(self.run, "provenance"))
        except (KeyError, ValueError):
            return (
                f"the {self.role} does not say whether it asked all items; run it again"
            )
        if then is None or (
            now.sample
            and (then.items, then.seed) == (now.sample.items, now.sample.seed)
        ):
            return ""
        what = f"the {self.role} asked {then.text}"
        return f"{what}; {Obstacle.OTHER_ITEMS} a run of all, or of the same"


def load_baseline(path: Path, role: Role = "baseline") -> Baseline:
    """Return the run of a report folder or its ``run.json``. Raises UsageError as ``load_run``."""
    run, records = load_run(path)
    return Baseline(path=str(path), run=run, records=records, role=role)


def changed_judge(
    slice_: Slice,
    new: Sequence[Record],
    old: Sequence[Record],
    baseline: Baseline,
    judge: str,
) -> str:
    """Return why a difference to the baseline may be the judge's own, or nothing."""
    former = str(baseline.run.get("judge", ""))
    before, now = _judges(old, former), _judges(new, judge)
    # Where a side was spared every call its SPEC is all that is known of its judge.
    was, is_ = before or {former}, now or {judge}
    differs = was != is_ and (bool(before and now) or former != judge)
    graded = any(one.result for one in old) and any(one.result for one in new)
    if graded and differs:
        former, judge = (", ".join(sorted(names)) for names in (was, is_))
        return f"the judge {Obstacle.CHANGED} from {former} to {judge}"
    rubric = inner(baseline.run, "provenance", "slices", slice_.name).get("rubric")
    now_asked = slice_.rubric.version if slice_.rubric else ""
    if graded and rubric is not None and rubric != now_asked:
        return f"the rubric {Obstacle.CHANGED} from {rubric} to {now_asked}"
    return ""


def changed_requests(
    slice_: Slice, baseline: Baseline, judge: str, origin: object
) -> str:
    """Return what is sent to a judge, or checked, and changed; ``origin`` is the new run's."""
    by_judge = slice_.kind.by_rubric or not slice_.kind.answered
    words = f"{LEXICAL}:{slice_.language}"
    for spec in (words, *parse_judges(judge.split(" ")).models()) if by_judge else ():
        was, is_ = (
            inner(one, "sent", spec) for one in (baseline.run.get("provenance"), origin)
        )
        if was != is_ and (spec == words or (was and is_)):
            return f"what is sent to the judge {spec} {Obstacle.CHANGED}: {_moved(was, is_)}"
    if slice_.kind.by_checks and (names := retaken(slice_, baseline, origin)):
        return f"{first_of(names)} {Obstacle.CHANGED} since the {baseline.role}"
    return ""


def retaken(slice_: Slice, baseline: Baseline, origin: object) -> list[str]:
    """Return the checks and extra metrics that are not the same in both runs."""

    def taken(run: object) -> dict[str, object]:
        part = inner(run, "slices", slice_.name)
        checks = (
            (f"{CHECK_PREFIX}{one.get('name')}", one)
            for one in mappings(part.get("checks"))
        )
        named = ((str(one.get("name")), one) for one in mappings(part.get("metrics")))
        return {name: ordered(one) for name, one in (*checks, *named)}

    was, is_ = taken(baseline.run.get("provenance")), taken(origin)
    if not (was and is_):  # an older run does not say
        return []
    return [name for name in {**was, **is_} if was.get(name) != is_.get(name)]


def changed_origin(
    baseline: Baseline, model: str, judge: str, origin: object
) -> Iterator[str]:
    """Yield which prompts and parameters changed apart from model and judge, or are not known."""
    before, former = baseline.run.get("provenance"), str(baseline.run.get("model", ""))
    for name in inner(origin, "slices") if RECORDED not in (former, model) else ():
        old, new = (
            inner(one, "slices", name).get("prompt") for one in (before, origin)
        )
        if old and new and old != new:
            yield f"{name}: the answer prompt changed from {old} to {new}, not the model alone"
    was, is_ = inner(before, "sent", former), inner(origin, "sent", model)
    if former != model:  # its name and address differ in any case
        was, is_ = (
            {"parameters": one["parameters"]} if "parameters" in one else {}
            for one in (was, is_)
        )
    if was and is_ and was != is_:
        yield f"what is sent to the model changed, not the model alone: {_moved(was, is_)}"
    asked = [former] if former != RECORDED else []
    asked += [one for one in parse_judges(judge.split(" ")).models() if one != former]
    says = isinstance(origin, Mapping) and "sent" in origin
    if says and (unknown := [one for one in asked if not inner(before, "sent", one)]):
        yield f"the {baseline.role} does not say what parameters {', '.join(unknown)} had"


def _moved(then: Mapping[str, object], now: Mapping[str, object]) -> str:
    was, is_ = (
        {**one, "parameters": None, **inner(one, "parameters")} for one in (then, now)
    )
    names = sorted(
        name for name in was.keys() | is_.keys() if was.get(name) != is_.get(name)
    )

    def word(value: object) -> str:
        return (
            "nothing"
            if value is None
            else one_line(mask(json.dumps(value, default=str)), 60)
        )

    moves = (
        f"{name} from {word(was.get(name))} to {word(is_.get(name))}" for name in names
    )
    return ", ".join(moves)


def _judges(records: Sequence[Record], spec: str) -> set[str]:
    """Return who graded, as providers name them; nobody where no model was asked."""
    names = {record.judge for record in records if record.result}
    return {one for name in names for one in known_names(name, spec)}


def known_names(name: str, spec: str) -> frozenset[str]:
    """Return the members of a judge that were asked, by their providers' names.

    ``name`` comes from ``returned_names(spec)``: a member that is the same in both was not asked.
    """
    members, asked = name.split(" "), spec.split(" ")
    if len(members) != len(asked):
        return frozenset({name})
    return frozenset(one for one, two in zip(members, asked, strict=True) if one != two)
