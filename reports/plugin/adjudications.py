"""Which verdicts by people hold in a run: of ``--adjudications``, or beside the data."""

from cases.plan import Plan
from cases.review.adjudications import beside, load_adjudications
from evaluators.core import digest
from evaluators.judges.adjudicated import Adjudications
from reports.plugin.options import Options


def adjudications_of(options: Options, plan: Plan) -> Adjudications:
    """Return the run's verdicts by people.

    Raises UsageProblem where a file is missing that was named, or cannot be read.
    """
    if options.adjudications_off:
        return {}
    if options.adjudications is not None:
        return load_adjudications(options.adjudications)
    return beside(dict.fromkeys(dataset.folder for dataset in plan.datasets))


def provenance_of(adjudications: Adjudications) -> dict[str, object]:
    """Return what a report says of these verdicts: how many, and a hash of all of them."""
    if not adjudications:
        return {}
    labels = {key: one.label for key, one in adjudications.items()}
    return {"adjudications": {"verdicts": len(labels), "sha256": digest(labels)}}
