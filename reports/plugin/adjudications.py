"""Which verdicts by people hold in a run: of ``--adjudications``, or beside the data."""

from cases.plan import Plan
from evaluators.canonical import digest
from evaluators.judges.adjudicated import FILE, Adjudications
from reports.plugin.options import Options


def adjudications_of(options: Options, plan: Plan) -> Adjudications:
    """Return the run's verdicts by people.

    Raises UsageError where a file is missing that was named, or cannot be read.
    """
    folders = dict.fromkeys(dataset.folder for dataset in plan.datasets)
    there = options.adjudications or any((folder / FILE).is_file() for folder in folders)
    if options.adjudications_off or not there:
        return {}
    from cases.tools.review.adjudications import (  # noqa: PLC0415  # brings the forms for people along
        beside,
        load_adjudications,
    )

    if options.adjudications is not None:
        return load_adjudications(options.adjudications)
    return beside(folders)


def provenance_of(adjudications: Adjudications) -> dict[str, object]:
    """Return what a report says of these verdicts: how many, and a hash of all of them."""
    if not adjudications:
        return {}
    labels = {key: one.label for key, one in adjudications.items()}
    return {"adjudications": {"verdicts": len(labels), "sha256": digest(labels)}}
