"""What a judge's errors leave of a margin: the questions that a paired gate asks of them.

A judge that errs shows a smaller change than there was. Whether the pairs of a gate still show
that the true change keeps to the margin is answered by its errors on labelled answers
(``reports/judge/errors.py``). A gate asks once for each treatment of what is missing.
"""

from dataclasses import replace

from qagate.evaluators.statistics.metrics import ANSWER_STATES
from qagate.evaluators.statistics.misclassification import Confusion, Reader
from qagate.reports.compare.sides import Sides
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.judge.slice_judge import errors_of


def errors_in(sides: Sides, measure: str) -> JudgeErrors | None:
    """Return the errors that a gate has to count with; None where no judge graded.

    ``measure`` is what changes, empty for the share that passes.
    """
    if measure in ANSWER_STATES:
        return None
    judges = []
    for side in sides:
        if side.judge is not None and not side.judge.is_code:
            judges.append((side.judge, float(side.size)))
    if not judges:
        return None
    return errors_of(judges, measure)


def with_labels(errors: JudgeErrors, times: float) -> JudgeErrors:
    """Return the same errors as so many times as many labels would show them."""
    readers: dict[str, Reader] = {}
    for name, reader in errors.readers.items():
        readers[name] = reader
        if isinstance(reader, Confusion):
            rows = tuple(
                replace(row, labels=round(row.labels * times), size=row.size * times)
                for row in reader.rows
            )
            readers[name] = replace(reader, rows=rows)
    return replace(errors, readers=readers)
