"""Answers that are the earlier run's own: nothing differs from itself.

Answers from a file say nothing of when they were given. A file that was exported twice, or that
somebody forgot to replace, holds the old answers and would pass every gate on a change. So
recorded answers that equal the earlier run's in all rows that both have, or in all rows of a
slice with many different answers, are taken for the same file. An unchanged product that really
answers so says it by a column ``run`` or ``date`` that differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qagate.evaluators.core import RECORDED
from qagate.evaluators.models.versions import may_be_one_model
from qagate.evaluators.output import plural
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import Pair, Pairing
from qagate.reports.run.report import ASK_ANEW, Obstacle

MOST_BY_CHANCE = 20
"""Different answers of a slice: with more of them, two runs never agree in all by chance."""
COLUMNS = ("run", "date")
"""The columns that tell two exports apart."""


def other_source(model: str, earlier_model: str, role: str) -> str:
    """Return why answers of a model and answers of a file are no comparison; else nothing."""
    is_recorded = model == RECORDED
    was_recorded = earlier_model == RECORDED
    if is_recorded == was_recorded:
        return ""
    if is_recorded:
        return (
            f"the answers stand in the data file, and the {role}'s were given by "
            f"{earlier_model}; give --model, or {Obstacle.OTHER_ITEMS} a run of recorded answers"
        )
    return (
        f"the {role}'s answers stood in a data file, and these are given by {model}; "
        f"{Obstacle.OTHER_ITEMS} a run of a model"
    )


def same_run(pairing: Pairing, role: str) -> str:
    """Return why a model's answers are the earlier run's own; nothing where all were asked anew.

    A model behind one name changes while the name stays, so only answers that another run asked
    say anything about it.
    """
    asked = [pair for pair in pairing.pairs if pair.new.asked_by]
    same = [pair for pair in asked if pair.new.asked_by == pair.old.asked_by]
    if not same:
        return ""
    return (
        f"{len(same):,} of {plural(len(asked), 'answer')} are the {role}'s own, which the same run "
        f"asked; ask them anew: {ASK_ANEW}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedNames:
    """By which names the models of two runs were asked."""

    model: str
    """The SPEC of the new run's model."""
    new: str
    """The name in the new run's requests."""
    old: str
    """The name in the earlier run's requests."""

    @property
    def are_alike(self) -> bool:
        """Whether both may be one model: then an answer of either is one of the other."""
        return may_be_one_model(self.new, self.old)


def same_model(pairing: Pairing, names: AskedNames, role: str) -> str:
    """Return why the earlier run's model gave the answers of a new one; nothing if it did not.

    Behind a gateway a new name may still lead to the old model. Where a reply names the model by
    which the earlier run was asked, the new one was not asked.
    """
    if names.are_alike:
        return ""
    answers = 0
    by_old_model = 0
    for pair in pairing.pairs:
        if pair.new.answer is None:
            continue
        answers += 1
        names_model = pair.new.model not in ("", names.model)
        if names_model and may_be_one_model(pair.new.model, names.old):
            by_old_model += 1
    if not by_old_model:
        return ""
    return (
        f"{by_old_model:,} of {plural(answers, 'answer')} come from {names.old}, the model of the "
        f"{role}, by the names in the replies, and not from {names.new}; mend where that name "
        f"leads, then ask anew: {ASK_ANEW}"
    )


def name_of_both(pairing: Pairing, names: AskedNames) -> str:
    """Return the name in replies of both runs, if their models were asked by different names.

    One model may have answered both. Or a server names each of its models so; nothing tells.
    """
    if names.are_alike:
        return ""
    for pair in pairing.pairs:
        is_named = pair.new.model not in ("", names.model)
        if is_named and pair.new.model == pair.old.model:
            return pair.new.model
    return ""


def same_files(sides: Mapping[str, PairedSlice], role: str) -> dict[str, str]:
    """Return by slice why its recorded answers are taken for the earlier run's own."""
    answered: dict[str, Sequence[Pair]] = {}
    for name, side in sides.items():
        if side.slice_.kind.answered:
            answered[name] = [pair for pair in side.pairing.pairs if _both_there(pair)]
    pairs_of_run = [pair for pairs in answered.values() for pair in pairs]
    whole_run = bool(pairs_of_run) and _is_same(pairs_of_run)
    reasons = {}
    for name, pairs in answered.items():
        different = {pair.new.answer for pair in pairs}
        whole_slice = len(different) > MOST_BY_CHANCE and _is_same(pairs)
        if whole_run or whole_slice:
            reasons[name] = (
                f"all {len(pairs):,} recorded answers are the {role}'s own, so it seems to be the "
                f"same file; {Obstacle.OTHER_ITEMS} the release before, or give the rows a column "
                "`run` or `date` that differs"
            )
    return reasons


def _both_there(pair: Pair) -> bool:
    return pair.old.answer is not None and pair.new.answer is not None


def _is_same(pairs: Sequence[Pair]) -> bool:
    if any(pair.old.answer != pair.new.answer for pair in pairs):
        return False
    return not any(_tells_apart(column, pairs) for column in COLUMNS)


def _tells_apart(column: str, pairs: Sequence[Pair]) -> bool:
    """Whether all rows of this run have another value in the column than the earlier run had."""
    before = {str(pair.old.metadata.get(column, "")) for pair in pairs}
    now = {str(pair.new.metadata.get(column, "")) for pair in pairs}
    return "" not in now and before.isdisjoint(now)
