"""``run.json`` and ``records.jsonl``: strict JSON, exact text, the same bytes for the same run."""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from numbers import Integral, Real
from operator import attrgetter

from evaluators.core import Vote
from reports.run import clean
from reports.run.clean import find_plain
from reports.run.provenance import dump_datasets
from reports.run.record import Record, in_order
from reports.run.report import Counts, GateResult, Report, SliceSummary

SCHEMA_VERSION = 2
RECORDS = "records.jsonl"
_FIELDS = tuple(field.name for field in fields(Record))
_KNOWN = frozenset(_FIELDS)
_values = attrgetter(*_FIELDS)
_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def render(report: Report, vouched: str) -> str:
    """Return ``run.json``: everything but the items, which its ``records`` block vouches for.

    ``vouched`` is the SHA-256 of ``records.jsonl``, in hex.
    """
    return dump(_run(report, vouched), indent=1) + "\n"


def records(report: Report, plain_keys: Collection[str] | None = None) -> Iterator[str]:
    """Return the lines of ``records.jsonl``: an object each, by dataset, language, row and repeat.

    ``plain_keys`` is what ``find_plain`` says of the records, where it was asked already.
    """
    keys = find_plain(report.records) if plain_keys is None else plain_keys
    for record in in_order(report.records):
        yield f"{_line(record, record.key in keys)}\n"


def _line(record: Record, is_plain: bool) -> str:
    values = dict(zip(_FIELDS, _values(record), strict=True))
    values["votes"] = [asdict(vote) for vote in record.votes]
    values["metadata"] = ordered(record.metadata)
    if is_plain:
        with suppress(TypeError, ValueError):  # a number or a type that strict JSON does not have
            return _STRICT.encode(values)
    return dump(values)


def dump(value: object, indent: int | None = None) -> str:
    """Return strict JSON with its text readable but its hidden characters escaped.

    Lone surrogates become escapes that read back as themselves, so the text is valid UTF-8.
    """
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    return clean.HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def plain(value: object) -> object:
    """Return a value as JSON data: text masked, NaN and infinities None, other types as text."""
    kind = type(value)
    if kind is str:
        return clean.mask(value)  # type: ignore[arg-type]
    if value is None or kind is int or kind is bool:
        return value
    if isinstance(value, Mapping):
        # A field's name is no secret, and there are millions of them.
        return {
            str(key) if key in _KNOWN else clean.mask(str(key)): plain(part)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Vote):
        return plain(asdict(value))
    return _scalar(value)


def _scalar(value: object) -> object:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return clean.mask(str(value))


def ordered(value: object) -> object:
    """Return free-form data with its mappings by key: they may have been filled in any order."""
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda pair: str(pair[0]))
        return {str(key): ordered(part) for key, part in items}
    if isinstance(value, (list, tuple)):
        return [ordered(part) for part in value]
    return value


def _run(report: Report, vouched: str) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "complete": report.complete,
        "verdict": report.verdict,
        "decision": {"code": report.decision.code, "line": report.decision.line},
        "model": report.model,
        "judge": report.judge,
        "baseline": report.baseline,
        "anchor": report.anchor,
        "counts": _counts(report.counts),
        "slices": [_slice(part) for part in report.slices],
        "gates": [_gate(gate) for gate in report.decision.gates],
        "cost": report.cost,
        "tokens": report.tokens,
        "notes": report.notes,
        "comparison": asdict(report.comparison) if report.comparison else None,
        "since_anchor": asdict(report.since_anchor) if report.since_anchor else None,
        "parity": [asdict(gap) for gap in report.parity],
        "trend": [asdict(point) for point in report.trend],
        "judging": asdict(report.judging),
        "shards": asdict(report.shards) if report.shards else None,
        "session": asdict(report.session),
        "datasets": dump_datasets(report.datasets),
        "records": {"file": RECORDS, "count": len(report.records), "sha256": vouched},
        "provenance": ordered(report.provenance),
        "run": ordered(report.run),
    }


def _counts(counts: Counts) -> dict[str, int]:
    named = asdict(counts)
    return {"plan": named.pop("planned"), **named}


def _slice(part: SliceSummary) -> dict[str, object]:
    return {
        "name": part.name,
        "dataset": part.dataset,
        "language": part.language,
        "kind": part.kind,
        "partial": part.partial,
        "whole": part.whole,
        "sample": asdict(part.sample) if part.sample else None,
        "note": part.note,
        "counts": _counts(part.counts),
        "measures": {name: asdict(found) for name, found in part.measures.items()},
        "labels": dict(part.labels),
        "confusion": [
            {"label": label, "grade": grade, "count": count}
            for (label, grade), count in sorted(part.confusion.items())
        ],
        "breakdowns": {
            name: {
                value: {measure: asdict(found) for measure, found in measures.items()}
                for value, measures in values.items()
            }
            for name, values in part.breakdowns.items()
        },
    }


def _gate(gate: GateResult) -> dict[str, object]:
    return {
        "slice": gate.slice,
        "dataset": gate.dataset,
        "language": gate.language,
        **asdict(gate.threshold),
        "bar": gate.bar,
        "state": gate.state,
        "estimate": asdict(gate.estimate),
        "worst": gate.worst,
        "best": gate.best,
        "reason": gate.reason,
        "anchored": gate.anchored,
        "audit": asdict(gate.audit) if gate.audit else None,
    }
