"""Whether a judge turned out to be the model under test, by the names in the replies.

A run refuses from the start a judge that is asked as the model under test is. Behind a gateway
one model may have two names, and only replies tell: there a provider names the release that
answered. Where both sides are named alike, a model judged its own answers.
"""

from collections.abc import Iterable, Iterator, Mapping

from qagate.evaluators.core import parse_judges
from qagate.evaluators.models.versions import asked_name, may_be_one_model
from qagate.reports.run.json_data import inner
from qagate.reports.run.record import Record

ALLOWED = "allow_self_judge"
"""The key of a provenance that says that the user allowed it."""


def self_judged(
    records: Iterable[Record], model: str, judge: str, provenance: Mapping[str, object]
) -> Iterator[str]:
    """Yield a line for each judge whose replies name the model that gave the answers.

    ``model`` and ``judge`` are the SPECs that were asked. Two SPECs that ask for one name say
    so themselves, and mean two servers.
    """
    if provenance.get(ALLOWED):
        return
    sent = inner(provenance, "sent")
    returned = {(record.model, record.judge) for record in records}
    for member in parse_judges(judge.split(" ")).members:
        asked_model = asked_name(model, inner(sent, model))
        asked_judge = asked_name(member.model, inner(sent, member.model))
        if may_be_one_model(asked_model, asked_judge):
            continue
        for answered_as, judges in sorted(returned):
            if answered_as != model and _names(judges, member.rules, answered_as):
                yield (
                    f"{member.model} judged itself: its replies and those of {model}, the model "
                    f"under test, name {answered_as}; name another judge, or give "
                    "--allow-self-judge"
                )
                break


def _names(judges: str, rules: str, model: str) -> bool:
    """Return whether judges, as their replies name them, have this model behind these rules."""
    for judge in parse_judges(judges.split(" ")).members:
        if (
            judge.model
            and judge.rules == rules
            and may_be_one_model(judge.model, model)
        ):
            return True
    return False
