"""A report counted again from its own records, against other runs or with other gates.

Nothing is asked anew: the records and what the session knew are in the report already.
"""

from qagate.cases.config import GatesFile
from qagate.cases.dataset import Dataset
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.report import Report
from qagate.reports.verdict.assemble import Facts, ReportInputs, account


def rebuilt(
    report: Report,
    baseline: Baseline | None,
    anchor: Baseline | None = None,
    datasets: tuple[Dataset, ...] | None = None,
) -> Report:
    """Return the report counted again against these runs; ``datasets`` replace its own."""
    inputs = inputs_of(report, report.datasets if datasets is None else datasets)
    return account(inputs, _facts_of(report), baseline, anchor)


def regated(
    report: Report,
    gates: GatesFile,
    baseline: Baseline | None,
    anchor: Baseline | None = None,
) -> Report:
    """Return the report with these gates for its own. Raises UsageError for names it lacks."""
    datasets = gates.put_into(report.datasets, "--gates")
    return rebuilt(report, baseline, anchor, datasets)


def inputs_of(report: Report, datasets: tuple[Dataset, ...]) -> ReportInputs:
    """Return what a report was counted from, with these ``datasets`` for its own."""
    whole = {}
    samples = {}
    for summary in report.slices:
        whole[summary.name] = summary.whole
        if summary.sample:
            samples[summary.name] = summary.sample
    return ReportInputs(
        datasets=datasets,
        records=report.records,
        whole=whole,
        samples=samples,
        labels=report.labels,
        label_datasets=report.label_datasets,
        rule_checks=report.judging.rule_checks,
        shards=report.shards,
    )


def _facts_of(report: Report) -> Facts:
    session = report.session
    return Facts(
        model=report.model,
        judge=report.judge,
        session=SessionFacts(
            pytest_code=session.pytest_code,
            failures=session.failures,
            interrupted=session.interrupted,
            cause=session.cause,
            left=session.left,
            expected=session.expected,
            notes=session.notes,
            superseded=session.superseded,
        ),
        provenance=report.provenance,
        run=report.run,
        complete=report.complete,
        run_id=report.decided.run if report.decided else "",
        started=report.decided.at if report.decided else 0.0,
        named=report.decided.named if report.decided else "",
        fresh=report.decided.fresh if report.decided else "",
        monitor=report.decided.monitor if report.decided else False,
        accepted=session.accepted,
        needs_baseline=session.needs_baseline,
        tries=report.tries,
        unsettled=report.unsettled,
        candidates=report.candidates,
        canaries=report.judging.canaries,
    )
