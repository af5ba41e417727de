"""A recorded run looked at again: other gates, another baseline. Nobody is asked anything."""

from dataclasses import replace

from cases.config import Gates, with_gates
from evaluators.core import UsageError
from reports.assemble import Facts, Material, account
from reports.decide import SessionFacts
from reports.report import Report
from reports.trust import Baseline


def facts_of(report: Report) -> Facts:
    """Return what the run's own session knew."""
    session = report.session
    return Facts(
        model=report.model,
        judge=report.judge,
        session=SessionFacts(
            other_failures=session.failures,
            interrupted=session.interrupted,
            pytest_code=session.pytest_code,
        ),
        provenance=report.provenance,
        run=report.run,
        notes=session.notes,
        complete=report.complete,
    )


def material_of(report: Report) -> Material:
    """Return the run's records, what was declared for them, and what else measured its judge."""
    return Material(
        datasets=report.datasets,
        records=report.records,
        whole={one.name: one.whole for one in report.slices},
        outside=tuple(one for one in report.judging.calibrations if one.source != "records"),
    )


def rebuilt(report: Report, baseline: Baseline | None) -> Report:
    """Return the report with everything counted again, beside this baseline."""
    return account(material_of(report), facts_of(report), baseline)


def regated(report: Report, gates: Gates, baseline: Baseline | None) -> Report:
    """Return the report with these gates in place of all that the run had.

    Raises UsageError where the gates name none of the run's datasets, or a language or measure
    that one of them does not have.
    """
    names = [dataset.name for dataset in report.datasets]
    if not set(gates) & set(names):
        msg = f"--gates: no gate for any dataset of this run ({', '.join(names)}); name one of them"
        raise UsageError(msg)
    datasets = tuple(with_gates(dataset, gates) for dataset in report.datasets)
    return account(replace(material_of(report), datasets=datasets), facts_of(report), baseline)
