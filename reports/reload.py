"""A Report from the data of ``run.json`` and its records: the inverse of ``render.run_json``."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from cases.slices import Threshold
from reports import declared
from reports.codec import decode
from reports.evidence import Comparison, Judging, LanguageGap
from reports.record import Record
from reports.report import Counts, Decision, GateResult, Report, SessionEnd, SliceSummary

_RULE = tuple(field.name for field in fields(Threshold))
_PLAIN = ("model", "judge", "baseline", "complete", "cost", "tokens", "provenance", "run")


def report_from(run: Mapping[str, object], records: tuple[Record, ...]) -> Report:
    """Return the report that ``run.json`` with these records was written for.

    Raises KeyError, TypeError or ValueError where ``run`` is not what that report would render.
    """
    return Report(
        **{name: run[name] for name in _PLAIN},  # type: ignore[arg-type]
        counts=_counts(run["counts"]),
        slices=tuple(_slice(part) for part in _list(run["slices"])),
        decision=_decision(_object(run["decision"]), _list(run["gates"])),
        records=records,
        notes=tuple(map(str, _list(run["notes"]))),
        datasets=declared.load(_list(run["datasets"])),
        session=decode(SessionEnd, run["session"]),
        comparison=decode(Comparison, run["comparison"]) if run["comparison"] else None,
        parity=tuple(decode(LanguageGap, gap) for gap in _list(run["parity"])),
        judging=decode(Judging, run["judging"]),
    )


def _decision(decision: Mapping[str, object], gates: Sequence[object]) -> Decision:
    bare = decode(Decision, {**decision, "gates": []})
    return replace(bare, gates=tuple(_gate(_object(gate)) for gate in gates))


def _gate(gate: Mapping[str, object]) -> GateResult:
    rest = {name: part for name, part in gate.items() if name not in (*_RULE, "slice", "bar")}
    return decode(GateResult, {**rest, "rule": {name: gate[name] for name in _RULE}})


def _slice(value: object) -> SliceSummary:
    part = _object(value)
    rest = {name: one for name, one in part.items() if name not in ("name", "confusion")}
    made = decode(SliceSummary, {**rest, "counts": _plan(part["counts"])})
    return replace(made, confusion=dict(map(_cell, _list(part["confusion"]))))


def _cell(value: object) -> tuple[tuple[str, str], int]:
    cell = _object(value)
    return (str(cell["label"]), str(cell["grade"])), int(str(cell["count"]))


def _counts(value: object) -> Counts:
    return decode(Counts, _plan(value))


def _plan(value: object) -> dict[str, object]:
    counts = dict(_object(value))
    return {"planned": counts.pop("plan"), **counts}


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        msg = f"an object is needed, not {type(value).__name__}"
        raise ValueError(msg)
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        msg = f"a list is needed, not {type(value).__name__}"
        raise ValueError(msg)
    return value
