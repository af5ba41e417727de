"""``run.json`` and ``records.jsonl``: strict JSON, exact text, the same bytes for the same run.

Every field of a report is derived from its dataclass. What is named or placed differently in the
file stands in this module alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, get_type_hints

from cases.dataset import SliceSample, Threshold
from evaluators.text import flat
from reports.run.json_data import decode, dump, encode, ordered
from reports.run.provenance import dump_datasets, load_datasets
from reports.run.record import Record, in_order
from reports.run.report import Report, SliceSummary

SCHEMA_VERSION = 2
RECORDS = "records.jsonl"
Data = Mapping[str, Any]

_COLUMNS = tuple(field.name for field in fields(Record))
_values = attrgetter(*_COLUMNS)
_APART = ("records", "datasets", "decision", "counts", "slices", "provenance", "run")
_LATER = frozenset({"anchor", "since_anchor", "trend", "shards"})
"""What earlier versions did not write."""
_RULE = tuple(field.name for field in fields(Threshold))


def render(report: Report, vouched: str) -> str:
    """Return ``run.json``: everything but the items, which its ``records`` block vouches for.

    ``vouched`` is the SHA-256 of ``records.jsonl``, in hex.
    """
    whole = {f.name: getattr(report, f.name) for f in fields(Report) if f.name not in _APART}
    decision = report.decision
    data = {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict,
        "decision": {"code": decision.code, "line": decision.line},
        **encode(whole),
        "counts": _plan(encode(report.counts)),
        "slices": [_slice(part) for part in report.slices],
        "gates": [
            {"slice": gate.slice, **made.pop("threshold"), "bar": gate.bar, **made}
            for gate, made in zip(decision.gates, encode(decision.gates), strict=True)
        ],
        "datasets": dump_datasets(report.datasets),
        "records": {"file": RECORDS, "count": len(report.records), "sha256": vouched},
        "provenance": ordered(report.provenance),
        "run": ordered(report.run),
    }
    return dump(data, indent=1) + "\n"


def records(report: Report) -> Iterator[str]:
    """Return the lines of ``records.jsonl``, one a record: by dataset, language, row, repeat."""
    for record in in_order(report.records):
        values = dict(zip(_COLUMNS, _values(record), strict=True))
        if record.votes:
            values["votes"] = [flat(vote) for vote in record.votes]
        values["metadata"] = ordered(record.metadata)
        yield f"{dump(values)}\n"


def _slice(part: SliceSummary) -> Data:
    made = encode(part)
    return {"name": part.name, **made, "counts": _plan(made["counts"])}


def _plan(counts: Data) -> Data:
    return {"plan" if name == "planned" else name: count for name, count in counts.items()}


def report_from(run: Data, found: tuple[Record, ...]) -> Report:
    """Return the report that ``run.json`` with these records was written for.

    Raises KeyError, TypeError or ValueError where ``run`` is not what that report would render.
    """
    gates = [_gate(gate) for gate in _list(run["gates"])]
    data = {
        **run,
        "counts": _planned(run["counts"]),
        "decision": {**run["decision"], "gates": gates},
    }
    apart: Any = {
        "records": found,
        "datasets": load_datasets(_list(run["datasets"])),
        "slices": slices_from(run),
    }
    hints = get_type_hints(Report)
    missing = _LATER - run.keys()
    names = [name for name in hints if name not in apart and name not in missing]
    return Report(**apart, **{name: _field(hints[name], name, data[name]) for name in names})


def _field(hint: Any, name: str, value: object) -> Any:
    try:
        return decode(hint, value)
    except ValueError as error:
        raise ValueError(str(error).replace("`$", f"`{name}")) from None


def slices_from(run: Data) -> tuple[SliceSummary, ...]:
    """Return the slices of ``run.json``. Raises KeyError, TypeError or ValueError."""
    return tuple(
        _field(
            SliceSummary,
            "slices[]",
            {
                **{name: value for name, value in part.items() if name != "name"},
                "counts": _planned(part["counts"]),
                "sample": encode(sample_of(part, run["provenance"])),
            },
        )
        for part in _list(run["slices"])
    )


def sample_of(part: Data, provenance: Data) -> SliceSample | None:
    """Return what ``--limit`` drew of a slice of ``run.json``, None where all of it was asked.

    Earlier versions noted only the limit, in the provenance: there a slice with exactly as many
    items may have had more. Raises KeyError or ValueError where nothing is known.
    """
    if "sample" in part:
        sample: SliceSample | None = decode(SliceSample | None, part["sample"])
        return sample
    limit, seed, repeats = (provenance[name] for name in ("limit", "seed", "repeats"))
    if limit is None:
        return None
    items, times, whole = (int(str(one)) for one in (limit, repeats, part["whole"]))
    return None if whole < items * times else SliceSample(items=items, of=None, seed=int(str(seed)))


def _planned(counts: Data) -> Data:
    return {"planned" if name == "plan" else name: count for name, count in counts.items()}


def _gate(gate: Data) -> Data:
    rule = {name: gate[name] for name in _RULE if name in gate}
    own = {name: part for name, part in gate.items() if name not in (*_RULE, "slice", "bar")}
    return {**own, "threshold": rule}


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(f"a list is needed, not {type(value).__name__}")
    return value
