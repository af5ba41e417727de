"""What else than the model changed since an earlier run: judge, rubric, prompts, parameters.

A difference between two runs counts against the model only if nothing else can have made
it. ``changed_judge`` and ``changed_requests`` say why the difference of a slice may be the
judge's own, which closes its gates; ``changed_origin`` says what a reader should know.
Provenances are compared as free-form data: see ``provenance.py``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from qagate.cases.dataset import Slice
from qagate.evaluators.core import LEXICAL, RECORDED, parse_judges
from qagate.evaluators.metric_specs import CHECK_PREFIX
from qagate.evaluators.text import first_of, mask, one_line
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.json_data import inner, mappings, ordered
from qagate.reports.run.record import Record
from qagate.reports.run.report import Obstacle

Provenance = Mapping[str, object]
MAX_VALUE_LENGTH = 60
"""Characters of a parameter's value in a message."""


def changed_judge(
    slice_: Slice,
    new: Sequence[Record],
    old: Sequence[Record],
    baseline: Baseline,
    judge: str,
) -> str:
    """Return why a difference to the baseline may be the judge's own, or nothing.

    ``new`` and ``old`` are the records of the slice in both runs; ``judge`` is the SPECs of
    the new run's judges.
    """
    both_graded = _has_grades(new) and _has_grades(old)
    if not both_graded:
        return ""
    former_judge = baseline.report.judge
    names_before = _judges_asked(old, former_judge)
    names_now = _judges_asked(new, judge)
    both_asked = bool(names_before and names_now)
    # Where a side was spared every call, its SPEC is all that is known of its judge.
    before = names_before or {former_judge}
    now = names_now or {judge}
    if before != now and (both_asked or former_judge != judge):
        return (
            f"the judge {Obstacle.CHANGED} from {', '.join(sorted(before))} "
            f"to {', '.join(sorted(now))}"
        )
    former_slice = inner(baseline.report.provenance, "slices", slice_.name)
    former_rubric = former_slice.get("rubric")
    rubric = slice_.rubric.version if slice_.rubric else ""
    if former_rubric is not None and former_rubric != rubric:
        return f"the rubric {Obstacle.CHANGED} from {former_rubric} to {rubric}"
    return ""


def _has_grades(records: Sequence[Record]) -> bool:
    return any(record.result for record in records)


def _judges_asked(records: Sequence[Record], spec: str) -> set[str]:
    """Return who graded, as providers name them; nobody where no model was asked."""
    asked: set[str] = set()
    for name in {record.judge for record in records if record.result}:
        asked |= names_by_providers(name, spec)
    return asked


def names_by_providers(judge: str, spec: str) -> frozenset[str]:
    """Return the members of a judge that a provider named, by these names.

    ``judge`` is what ``returned_names(spec)`` gave. In it a member still has its SPEC if it was
    not asked, or if its provider names no model: such a member is left out.
    """
    names = judge.split(" ")
    member_specs = spec.split(" ")
    if len(names) != len(member_specs):
        return frozenset({judge})  # it cannot be told apart: a name may hold a space
    named = set()
    for name, member_spec in zip(names, member_specs, strict=True):
        if name != member_spec:
            named.add(name)
    return frozenset(named)


def changed_requests(
    slice_: Slice, baseline: Baseline, judge: str, provenance: Provenance
) -> str:
    """Return what is sent to a judge, or checked, and changed; or nothing.

    ``judge`` and ``provenance`` are the new run's.
    """
    is_judged = slice_.kind.by_rubric or not slice_.kind.answered
    if is_judged:
        own_words = f"{LEXICAL}:{slice_.language}"
        for spec in (own_words, *parse_judges(judge.split(" ")).models()):
            before = inner(baseline.report.provenance, "sent", spec)
            now = inner(provenance, "sent", spec)
            # Own words for the rules may come or go; a model's request must be known in both.
            is_known = spec == own_words or (before and now)
            if before != now and is_known:
                moves = _moves(before, now)
                return f"what is sent to the judge {spec} {Obstacle.CHANGED}: {moves}"
    if slice_.kind.by_checks:
        names = changed_metrics(slice_, baseline, provenance)
        if names:
            return f"{first_of(names)} {Obstacle.CHANGED} since the {baseline.role}"
    return ""


def changed_metrics(
    slice_: Slice, baseline: Baseline, provenance: Provenance
) -> list[str]:
    """Return the checks and extra metrics that are not the same in both runs.

    None where one of the runs has none at all: then there are no values to compare.
    """
    before = _metrics_of(baseline.report.provenance, slice_.name)
    now = _metrics_of(provenance, slice_.name)
    if not before or not now:
        return []
    changed = []
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            changed.append(name)
    return changed


def _metrics_of(provenance: Provenance, slice_name: str) -> dict[str, object]:
    """Return what a provenance says of each check and extra metric of a slice, by name."""
    part = inner(provenance, "slices", slice_name)
    metrics: dict[str, object] = {}
    for check in mappings(part.get("checks")):
        metrics[f"{CHECK_PREFIX}{check.get('name')}"] = ordered(check)
    for metric in mappings(part.get("metrics")):
        metrics[str(metric.get("name"))] = ordered(metric)
    return metrics


def changed_origin(
    baseline: Baseline, model: str, judge: str, provenance: Provenance
) -> Iterator[str]:
    """Yield which prompts and parameters changed apart from model and judge, or are not known.

    ``model``, ``judge`` and ``provenance`` are the new run's.
    """
    former_provenance = baseline.report.provenance
    former_model = baseline.report.model
    if RECORDED not in (former_model, model):
        for name in inner(provenance, "slices"):
            before = inner(former_provenance, "slices", name).get("prompt")
            now = inner(provenance, "slices", name).get("prompt")
            if before and now and before != now:
                yield (
                    f"{name}: the answer prompt changed from {before} to {now}, "
                    "not the model alone"
                )
    sent_before = inner(former_provenance, "sent", former_model)
    sent_now = inner(provenance, "sent", model)
    # An entry of a models file may keep its own name and name another model.
    is_other_model = former_model != model or sent_before.get("name") != sent_now.get(
        "name"
    )
    if is_other_model:  # name and address differ in any case
        sent_before = _parameters_alone(sent_before)
        sent_now = _parameters_alone(sent_now)
    if sent_before and sent_now and sent_before != sent_now:
        moves = _moves(sent_before, sent_now)
        yield f"what is sent to the model changed, not the model alone: {moves}"
    if "sent" not in provenance:
        return
    unknown = []
    for spec in _models_of(former_model, judge):
        if not inner(former_provenance, "sent", spec):
            unknown.append(spec)
    if unknown:
        yield f"the {baseline.role} does not say what parameters {', '.join(unknown)} had"


def _models_of(former_model: str, judge: str) -> list[str]:
    """Return the model of the earlier run, if one was asked, and the judges' models."""
    models = []
    if former_model != RECORDED:
        models.append(former_model)
    for spec in parse_judges(judge.split(" ")).models():
        if spec != former_model:
            models.append(spec)
    return models


def _parameters_alone(sent: Mapping[str, object]) -> Mapping[str, object]:
    if "parameters" not in sent:
        return {}
    return {"parameters": sent["parameters"]}


def _moves(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Return in words what differs, such as ``temperature from 0 to 1, top_p from …``."""
    flat_before = _with_flat_parameters(before)
    flat_now = _with_flat_parameters(now)
    moves = []
    for name in sorted(flat_before.keys() | flat_now.keys()):
        old = flat_before.get(name)
        new = flat_now.get(name)
        if old != new:
            moves.append(f"{name} from {_value_text(old)} to {_value_text(new)}")
    return ", ".join(moves)


def _with_flat_parameters(sent: Mapping[str, object]) -> dict[str, object]:
    """Return what is sent with each parameter beside the other fields."""
    return {**sent, "parameters": None, **inner(sent, "parameters")}


def _value_text(value: object) -> str:
    if value is None:
        return "nothing"
    return one_line(mask(json.dumps(value, default=str)), MAX_VALUE_LENGTH)
