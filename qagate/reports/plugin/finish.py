"""A session's report: made, written, shown. It is loaded, with numpy, while replies are awaited."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from qagate.evaluators.core import Outcome, QAError
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.runtime.budget import BATCH, part_of_cost
from qagate.evaluators.text import digest
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.metrics.summary import extra_notes
from qagate.reports.plugin import rejudge
from qagate.reports.plugin.run import USED_UP, EngineRun
from qagate.reports.plugin.session_results import SessionResults
from qagate.reports.plugin.worker import gc_paused
from qagate.reports.render import console, html, markdown, words
from qagate.reports.render.writer import append_summary, write
from qagate.reports.run import clean
from qagate.reports.run.json_data import ordered
from qagate.reports.run.provenance import provenance
from qagate.reports.run.record import total_cost
from qagate.reports.run.report import WARNING, Report, SliceSummary
from qagate.reports.run.report_folder import previous
from qagate.reports.run.transcripts import Packer, keys_of, of_ledger
from qagate.reports.verdict.assemble import Facts, assemble
from qagate.reports.verdict.trend import with_trend

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_GITHUB_RUN = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
Outcomes = Mapping[str, Outcome]  # by the keys of the plan's items
_COLOURS = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}


def prepare() -> None:
    """Load what the report will need."""
    import_module("numpy.random")
    html.prepare()
    markdown.template()


def finish(
    run: EngineRun,
    results: SessionResults,
    ended: SessionFacts,
    about: Mapping[str, object],
    packer: Packer | None = None,
) -> tuple[Report, str]:
    """Write a session's report and CI's summary; return it and a warning. Raises WriteError."""
    options, plan = run.options, run.plan
    with gc_paused():  # nothing becomes garbage before everything is written
        unreached = next(
            (kind for kind in USED_UP if kind in run.host.status.stops), ""
        )
        unreached = "engine" if run.host.status.failure else unreached
        unreached = unreached or ("interrupted" if ended.interrupted else "stopped")
        outcomes = results.final_outcomes(run.host.arrivals.outcomes, unreached)
        facts = _facts(run, ended, about, outcomes)
        earlier = (
            one and replace(one, people=run.adjudications, plan=run.audit_plan)
            for one in run.earlier
        )
        if options.answers is not None:
            outcomes, facts = rejudge.ended(options.answers, plan, outcomes, facts)
        records = [results.record_of(key, one) for key, one in outcomes.items()]
        report = with_trend(assemble(plan, records, facts, *earlier), options.here)
        unread = ""
        with ExitStack() as stack:
            transcripts = None
            if not options.no_transcripts and any(
                record.calls for record in report.records
            ):
                try:
                    opened = stack.enter_context(Ledger(options.ledger, read_only=True))
                    transcripts = of_ledger(opened)
                    if packer:
                        packer.begin(options.ledger, keys_of(report.records))
                except QAError as error:
                    unread = f"no prompts and replies in the report folder: {error}"
            write(report, options.report_dir, transcripts, packer)
        page = os.environ.get(STEP_SUMMARY)
        unappended = append_summary(report, Path(page)) if page else ""
        return report, "; ".join(filter(None, (unread, unappended)))


def _facts(
    run: EngineRun, ended: SessionFacts, about: Mapping[str, object], outcomes: Outcomes
) -> Facts:
    options, plan, status = run.options, run.plan, run.host.status
    specs: dict[str, object] = {
        "model": options.model,
        "judge": " ".join(options.judges),
        "sent": clean.masked(ordered(run.sent)),
    }
    if labels := {key: one.label for key, one in run.adjudications.items()}:
        specs["adjudications"] = {"verdicts": len(labels), "sha256": digest(labels)}
    stops, usages = status.stops, [one.usage for one in outcomes.values()]
    known = (
        sum(one.known for one in usages)
        if any(one.cost is None for one in usages)
        else None
    )
    session = replace(
        ended,
        gates_off=options.gates_off,
        cause=next((why for kind, why in stops.items() if kind not in USED_UP), ""),
        left="; ".join(filter(None, (stops.get(BATCH, ""), status.unkept))),
        one_shard=plan.shard is not None,
        notes=(
            *(f"{WARNING}{one}" for one in ended.notes),
            *_notes(run, outcomes, known),
        ),
    )
    spent = {"requests": status.requests, "spent": run.spent}
    spent |= {} if known is None else {"known_cost": known}
    return Facts(
        model=options.model,
        judge=" ".join(options.judges),
        session=session,
        provenance=provenance(plan, options.choice, outcomes, specs),
        run={**about, **ci_link(os.environ), **spent, "replies": _replies(outcomes)},
        complete=not ended.interrupted and not status.failure,
        calibrations=run.calibrator.calibrations(run.host.arrivals.outcomes),
    )


def _replies(outcomes: Outcomes) -> dict[str, int]:
    """Return how many verdicts there are, and how many rest on replies that others paid for."""
    graded = (one for one in outcomes.values() if one.state in ("passed", "failed"))
    usages = [(one.usage, one.answering) for one in graded]
    return {
        "verdicts": len(usages),
        "earlier": sum(whole.earlier > 0 for whole, _ in usages),
        "imported": sum(whole.imported > 0 for whole, _ in usages),
        "answers": sum(answer.earlier > 0 for _, answer in usages),
        "judgements": sum(whole.earlier > answer.earlier for whole, answer in usages),
    }


def _notes(run: EngineRun, outcomes: Outcomes, known: float | None) -> Iterator[str]:
    """Yield what is odd about the run; ``known`` is the part of a cost that is not all known."""
    options = run.options
    if run.connected.replaced:
        yield run.connected.replaced
    for spec in run.connected.specs.values():
        if spec.function and spec.function.is_hashed and not spec.version:
            what = f"no version is declared, so its module's source alone, {spec.function.release}"
            more = f"if it depends on more, name {spec.text}@VERSION"
            yield f"{spec.text}: {what}, tells the ledger when it changes; {more}"
    if known is not None:
        every = [text for text, price in run.pricing.items() if price is None]
        others = [name for name in every if name != options.model]
        answering = total_cost(one.answering.cost for one in outcomes.values())
        names = others if others and answering is not None else every
        yield f"cost {part_of_cost(known)}: no price for {', '.join(names)}"
    yield from run.host.status.notes
    if run.host.status.failure:
        yield f"{WARNING}{run.host.status.failure}"
    asked = {run.plan.items[key].slice.name for key in outcomes}
    slices = (one for dataset in run.plan.datasets for one in dataset.slices.values())
    offline_judge = "" if run.takes_extras else " ".join(options.judges)
    ended = (one for one in slices if one.name in asked)
    yield from extra_notes(ended, outcomes.values(), offline_judge)


def ci_link(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``link``: the address of the CI run that keeps the report; empty outside CI."""
    server, repository, run = (environment.get(name, "") for name in _GITHUB_RUN)
    found = (
        f"{server}/{repository}/actions/runs/{run}"
        if server and repository and run
        else ""
    )
    found = found or environment.get("CI_JOB_URL", "")  # GitLab's
    return {"link": found} if found else {}


def ci_lines(report: Report, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands that annotate a GitHub run; none elsewhere."""
    if environment.get("GITHUB_ACTIONS") == "true":
        yield from console.annotations(report)


# The terminal


def show_report(
    reporter: pytest.TerminalReporter, report: Report, folder: Path
) -> None:
    """Write gates, what broke, notes and the path; under ``-v`` also slices, and every note."""
    verbosity = reporter.config.option.verbose
    if verbosity > 0:
        reporter.write_sep("=", "qa slices")
        for line in slice_lines(report.slices):
            reporter.write_line(line)
    if report.decision.gates:
        reporter.write_sep("=", "qa gates")  # unlike section() it ends the line before
    for gate in words.by_urgency(report.decision.gates):
        reporter.write(f"{gate.state:<{console.STATE}}", **{_COLOURS[gate.state]: True})
        for line in console.gate_lines(gate, folder):
            reporter.write_line(line)
    notes = console.notes(report) if verbosity > 0 else console.brief(report)
    ends = [*console.wrapped(words.origin(report.run)), *console.totals(report)]
    ends.append(f"report: {folder / 'report.html'}")
    before = previous(folder) / "report.html"
    if report.verdict not in ("PASS", "FAIL") and before.is_file():
        ends.append(f"the last one that decided: {before}")
    ends += console.next_step(report, folder)
    warnings, of_ci = console.warnings(report.comparison), ci_lines(report, os.environ)
    for line in (*warnings, *notes, *ends, *of_ci):
        reporter.write_line(line)


def slice_lines(slices: Iterable[SliceSummary]) -> list[str]:
    """Return counts and metrics of each slice, and its headline by its breakdowns."""
    lines = []
    for one in slices:
        counts = one.counts
        partial = "  PARTIAL" if one.partial else ""
        drawn = [f"sample: {one.sample.text}"] if one.sample else []
        drawn += (
            [f"{counts.stopped:,} stopped: decided without them"]
            if counts.stopped
            else []
        )
        lines.append(
            f"{one.name:<20} {counts.planned:>6} planned {counts.passed:>6} right"
            f" {counts.failed:>6} missed {counts.error:>5} error {counts.missing:>5} missing"
            f"{partial}"
        )
        headline = words.headline(one)
        drawn += [f"{name} {found.text()}" for name, found in headline.items()]
        rows = [""]  # as many parts as fit with the indent; no part is broken
        for part in drawn:
            longer = f"{rows[-1]}  {part}" if rows[-1] else part
            fits = len(longer) <= console.width() - 4 or not rows[-1]
            rows = [*rows[:-1], longer] if fits else [*rows, part]
        lines += [f"    {row}" for row in rows]
        measure = next(iter(headline), "")
        for field, values in one.breakdowns.items():
            for value, found in values.items():
                if estimate := found.get(measure):
                    name = clean.cut(clean.line(f"{field} = {value}"), 40)
                    text = f"{measure} {estimate.text()} (n={estimate.n})"
                    lines.append(f"        {name:<40} {text}")
    return lines
