"""What the sections of ``report.html`` show: the report's values grouped and named, no markup."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from evaluators.output import plural
from evaluators.statistics.intervals import UNDEFINED, number
from evaluators.statistics.metrics import USAGE, columns, counts_every_item
from reports.render import words
from reports.render.charts import Plot, plot, reach_of, trend
from reports.run.evidence import SliceComparison
from reports.run.json_data import inner
from reports.run.report import Decision, GateResult, Report, SliceSummary

_EXITS = {
    1: "something failed that is not an item's miss",
    2: "the run was interrupted; no gate decides",
    3: "pytest had an internal error",
    4: "nothing was graded: no call could be made, or the run was asked for in a wrong way",
    5: "no item was selected",
}
_GATES = re.compile(r"^GATES (PASS|FAIL|INCONCLUSIVE) \((\d+ of \d+)(?: failed)?\): exit \d+")
_ENDED = {"PASS": "passed", "FAIL": "failed", "INCONCLUSIVE": "undecided"}
_FIRST = 5  # reasons next to the verdict; slices in the usage table
_SIDE_BY_SIDE = 100  # flipped items of a kind shown side by side, the first few at once
_AT_ONCE = {"broke": 8, "fixed": 4}
_SOURCES = ("file", "data_sha256", "prompt", "rubric", "pass_bar")  # these columns come first
_FLIPS = {"broke": "Right then, wrong now", "fixed": "Wrong then, right now"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindView:
    """Slices of one kind: they share their metrics."""

    title: str
    measures: tuple[str, ...]
    shown: tuple[str, ...]
    """The metrics in the table; the others stand below it."""
    slices: tuple[SliceSummary, ...]

    @property
    def rest(self) -> tuple[str, ...]:
        """The measures that stand below the table."""
        return tuple(name for name in self.measures if name not in self.shown)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields by which any of the slices is broken down."""
        return tuple(dict.fromkeys(name for part in self.slices for name in part.breakdowns))


def sections(report: Report) -> dict[str, object]:
    """Return what the templates need in addition to the report, by name."""
    gates = words.by_urgency(report.decision.gates)
    undecided = [gate for gate in gates if gate.state != "PASS"]
    compared = report.comparison.slices if report.comparison else ()
    judging = report.judging
    declared = (one for dataset in report.datasets for one in dataset.slices.values())
    rated = (one for one in report.slices if "correct" in one.measures)
    usage = words.usage_rows(report)
    return {
        "gates": gates,
        "gate_rows": gate_rows(gates),
        "passing": [gate for gate in gates if gate.state == "PASS"],
        "headline": headline(report.decision.line, undecided),
        "reasons": undecided[:_FIRST],
        "more": len(undecided[_FIRST:]),
        "nearest": nearest(gates),
        "kinds": kinds(report.slices),
        "pass_bars": {one.name: one.pass_bar for one in declared if one.kind.rated},
        "reach": {
            "comparison": reach_of(one.difference for one in compared),
            "parity": reach_of(gap.difference for gap in report.parity),
        },
        "records": {record.key: record for record in report.records},
        "flips": _flips(report),
        "disputes": [
            ("Items over which the panel split", judging.disagreements),
            ("Audited items over which the model differs", judging.audit_disagreements),
        ],
        "judged_rate": {one.name: one.measures["correct"].value for one in rated},
        "trend": _trend(report),
        "usage": {
            "header": words.USAGE_HEADER,
            "first": usage[:_FIRST],
            "more": usage[_FIRST:],
            "notes": "; ".join(words.usage_notes(report)),
            "tokens": words.tokens(report),
        },
        **_origin(report),
    }


def fixed(value: float | None) -> str:
    """Return a share or a rating to three decimals, as all of its table have them."""
    known = value is not None and math.isfinite(value)
    return f"{round(value or 0.0, 3) + 0.0:.3f}" if known else "undefined"


def shown_as(gate: GateResult) -> words.Shown:
    """Return how a gate's figures are written: more precisely if its bar is finer, or a price."""
    rule = gate.threshold
    fine = any(bar is not None and abs(bar) < 0.01 for bar in (rule.min, rule.max))
    return number if fine or {rule.measure, rule.of} & USAGE.keys() else fixed


def gate_rows(gates: Iterable[GateResult]) -> dict[str, list[tuple[GateResult, Plot]]]:
    """Return the gates of each slice with their pictures, the slice of the first gate first."""
    rows: dict[str, list[tuple[GateResult, Plot]]] = defaultdict(list)
    for gate in gates:
        rows[gate.slice].append((gate, plot(gate)))
    return rows


def headline(line: str, listed: Sequence[GateResult]) -> str:
    """Return a decision's line without what stands next to it: verdict, exit code, listed gates."""
    named = tuple(f"{gate.slice} {gate.name}" for gate in listed) or ("\n",)
    line = _GATES.sub(lambda found: f"{found[2]} gates {_ENDED[found[1]]}", line)
    return "; ".join(part for part in line.split("; ") if not part.startswith(named))


def items_link(gate: GateResult) -> str:
    """Return the address, on the page, of a gate's items: of a paired gate those that broke."""
    found = {"dataset": gate.dataset, "language": gate.language}
    if gate.threshold.paired:
        found["flip"] = "broke"
    return f"#items?{urlencode({name: value for name, value in found.items() if value})}"


def exit_meaning(decision: Decision) -> str:
    """Return what the exit code of a run says, nothing where the verdict next to it says that."""
    failed = any(one.state == "FAIL" for one in decision.gates)
    if decision.code in (0, 6) or (failed and decision.code == 1):
        return ""
    return _EXITS.get(decision.code, "as pytest or a plugin has it")


def date(started: object) -> str:
    """Return the minute of an ISO time stamp, ``unknown`` where there is none."""
    return str(started)[:16].replace("T", " ") + " UTC" if started else "unknown"


def kinds(slices: Sequence[SliceSummary]) -> list[KindView]:
    """Return one view a kind, in the order of the slices."""
    views = []
    for kind in dict.fromkeys(part.kind for part in slices):
        parts = tuple(part for part in slices if part.kind == kind)
        every = dict.fromkeys(name for part in parts for name in part.measures)
        names = tuple(name for name in every if name not in USAGE)  # a table of their own
        shown = tuple(name for name in columns(kind) if name in names) or names[:3]
        views.append(KindView(title=kind.heading, measures=names, shown=shown, slices=parts))
    return views


def others(one: SliceComparison) -> list[tuple[str, int]]:
    """Return the counts of a compared slice that have no column of their own."""
    named = (
        ("right in both", one.both_right),
        ("wrong in both", one.both_wrong),
        ("ungraded", one.ungraded),
        ("new", one.added),
        (words.FEWER_REPEATS, one.repeats),
        ("with other data", one.changed),
        ("gone", one.removed),
    )
    return [(name, count) for name, count in named if count]


def outlook(gate: GateResult) -> str:
    """Return how many items stand between a share and its bar; nothing where undecided."""
    spare = _spare(gate)
    if spare is None:
        return ""
    passes, has_floor = gate.state == "PASS", gate.threshold.min is not None
    side = "fewer" if passes == has_floor else "more"
    return f"would {'fail' if passes else 'pass'} with {plural(spare, 'item')} {side}"


def nearest(gates: Iterable[GateResult]) -> GateResult | None:
    """Return the gate that the fewest items would turn, where all pass and any can tell."""
    found = list(gates)
    known = [(spare, gate) for gate in found if (spare := _spare(gate)) is not None]
    passing = all(gate.state == "PASS" for gate in found)
    return min(known, key=lambda pair: pair[0])[1] if known and passing else None


def _spare(gate: GateResult) -> int | None:
    """Return the fewest items that would turn a decided gate on a share with one bar."""
    rule, value, n = gate.threshold, gate.estimate.value, gate.estimate.n
    one_bar = (rule.min is None) != (rule.max is None)
    plain = rule.evidence == "estimate" and gate.worst == gate.best
    if not (one_bar and plain and n) or not counts_every_item(rule.measure) or value is None:
        return None
    most = math.floor((rule.max or 0.0) * n + 1e-9)
    least = None if rule.min is None else math.ceil(rule.min * n - 1e-9)
    spare = most - round(value * n) if least is None else round(value * n) - least
    return {"PASS": spare + 1, "FAIL": -spare, "INCONCLUSIVE": None}[gate.state]


def _trend(report: Report) -> dict[str, object] | None:
    if not report.trend:
        return None
    heads = [f"{point.name} ({point.model}, {point.started[:10]})" for point in report.trend]
    rows = []
    for part in report.slices:
        measure, now = next(iter(words.headline(part).items()), ("", UNDEFINED))
        before = [point.slices.get(part.name) for point in report.trend]
        if not any(before):
            continue
        found = [(one.estimate, one.changed) if one else (None, ()) for one in before]
        figures = [*found, (now, ())]
        marks = trend([estimate or UNDEFINED for estimate, _ in figures])
        named = [(head, *one) for head, one in zip([*heads, "now"], figures, strict=True)]
        rows.append({"name": part.name, "measure": measure, "marks": marks, "figures": named})
    return {"heads": [*heads, "Now"], "rows": rows}


def _flips(report: Report) -> list[dict[str, object]]:
    if report.comparison is None:
        return []
    records = {record.key: record for record in report.records}
    fixed = [(records[one.key], one) for one in report.comparison.changes if one.flip == "fixed"]
    return [
        {"title": _FLIPS[flip], "flip": flip, "total": len(pairs),
         "first": pairs[: _AT_ONCE[flip]], "more": pairs[_AT_ONCE[flip] : _SIDE_BY_SIDE]}
        for flip, pairs in {"broke": words.broke(report), "fixed": fixed}.items() if pairs
    ]  # fmt: skip


def _origin(report: Report) -> dict[str, object]:
    """Return the provenance; that of the slices as a table, in an order that survives a file."""
    slices = inner(report.provenance, "slices")
    if not slices:
        return {"sources": None, "provenance": report.provenance}
    unset: Any = (None, "", [], ())
    known = {str(name): {key: str(one) for key, one in inner(slices, name).items()
                         if one not in unset} for name in sorted(slices)}  # fmt: skip
    rest = {name: part for name, part in report.provenance.items() if name != "slices"}
    names = {name for part in known.values() for name in part}
    columns = (*(name for name in _SOURCES if name in names), *sorted(names.difference(_SOURCES)))
    rows = [(name, [(key, part.get(key, "–")) for key in columns]) for name, part in known.items()]
    return {"sources": {"columns": columns, "rows": rows}, "provenance": rest}
