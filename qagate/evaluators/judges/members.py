"""Who may be asked behind a judge that lets others judge."""

from collections.abc import Iterator

from qagate.evaluators import core
from qagate.evaluators.judges.rubric_judge import RubricJudge


def single_judges(judge: core.Judge) -> Iterator[core.Judge]:
    """Yield the judges that may be asked, one by one: a panel's members, a cascade's model."""
    if not isinstance(judge, core.CombinedJudge):
        yield judge
        return
    for member in judge.asks:
        yield from single_judges(member)


def judging_models(judge: core.Judge) -> Iterator[RubricJudge]:
    """Yield those of the single judges that are models with a rubric."""
    for single in single_judges(judge):
        if isinstance(single, RubricJudge):
            yield single
