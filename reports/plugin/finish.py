"""The end of a session: what came of it, written down."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from cases.plan import Plan
from evaluators.core import Outcome
from reports.assemble import Baseline, Facts, assemble
from reports.gates.decide import SessionFacts
from reports.plugin.book import SessionResults
from reports.plugin.ci import link
from reports.plugin.garbage import no_collection
from reports.plugin.options import Options
from reports.plugin.run import Run
from reports.plugin.run_models import provenance_of
from reports.provenance import provenance
from reports.render import html
from reports.report import Report
from reports.run_reader import load_run
from reports.summary import extra_notes
from reports.writer import append_summary, write

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How pytest ended. ``notes`` go into the report.

    ``about`` is what may differ between two runs over the same replies.
    """

    pytest_code: int
    interrupted: bool
    baseline: Baseline | None
    notes: tuple[str, ...]
    about: Mapping[str, object]


def prepare() -> None:
    """Load what the report will need."""
    import_module("numpy.random")
    html.prepare()


def read_baseline(path: Path | None) -> Baseline | None:
    """Return the run to compare with. Raises UsageError where it cannot be read."""
    if path is None:
        return None
    run, records = load_run(path)
    return Baseline(path=str(path), run=run, records=records)


def finish(
    options: Options, plan: Plan, book: SessionResults, run: Run, ending: Ending
) -> tuple[Report, str]:
    """Write the report of a session that planned at least one item; return it and a warning.

    Raises WriteError where the folder cannot take it.
    """
    with no_collection():  # nothing of what is made is garbage before all is written
        return _finish(options, plan, book, run, ending)


def _finish(
    options: Options, plan: Plan, book: SessionResults, run: Run, ending: Ending
) -> tuple[Report, str]:
    outcomes = book.close(run.outcomes, _why_missing(run, ending))
    parties = {"model": options.model, "judge": " ".join(options.judges)}
    specs = {**parties, **_judge_options(options), **provenance_of(run.adjudications)}
    facts = Facts(
        **parties,
        session=SessionFacts(
            other_failures=book.other_failures,
            interrupted=ending.interrupted,
            gates_off=options.gates_off,
            pytest_code=ending.pytest_code,
        ),
        provenance=provenance(plan, options.choice, outcomes, specs),
        run={
            **ending.about,
            **link(os.environ),
            "requests": run.requests,
            "spent": run.spent,
        },
        notes=(
            *ending.notes,
            *_price_notes(run, outcomes),
            *_notes(run),
            *_extra_notes(run, plan, outcomes, options),
        ),
        complete=not ending.interrupted and not run.failure,
        calibrations=run.calibrations(),
    )
    report = assemble(plan, outcomes, facts, ending.baseline)
    write(report, options.report_dir)
    page = os.environ.get(STEP_SUMMARY)
    return report, append_summary(report, Path(page)) if page else ""


def _judge_options(options: Options) -> dict[str, object]:
    """Return what else was said of the judge, where anything was."""
    given = {"tie_breaker": options.tie_breaker or None, "audit": options.audit}
    return {name: value for name, value in given.items() if value is not None}


def _why_missing(run: Run, ending: Ending) -> str:
    if run.failure:
        return "engine"
    if run.stopped:
        return run.stopped
    return "interrupted" if ending.interrupted else "stopped"


def _notes(run: Run) -> tuple[str, ...]:
    return (*run.ledger_notes, *([run.failure] if run.failure else []))


def _extra_notes(
    run: Run, plan: Plan, outcomes: Mapping[str, Outcome], options: Options
) -> list[str]:
    slices = {plan.items[key].slice.name: plan.items[key].slice for key in outcomes}
    rules = "" if run.takes_extras else " ".join(options.judges)
    return extra_notes(slices.values(), outcomes.values(), rules)


def _price_notes(run: Run, outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """Return whose price is not known where a cost lacks it; the same for kept replies."""
    if all(one.usage.cost is not None for one in outcomes.values()):
        return ()
    return (f"cost unknown: no price for {', '.join(run.unpriced)}",)
