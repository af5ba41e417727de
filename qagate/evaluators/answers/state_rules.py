"""What each state of an answer is graded as; no judge is asked where that is settled.

| state | graded as |
| --- | --- |
| answered | the judge reads it |
| declined, echo, repetition, empty | the label of an answer that says nothing |
| cut | the judge reads it; nothing where the whole is needed |
| thought_only | nothing: no answer came |

An answer that declines meets a gold that begins with ``UNANSWERABLE:``. A rubric reads what is
rated, and so do labels of its own, but for an empty answer, which is rated 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from qagate.evaluators.core import (
    CORRECT,
    NOT_ATTEMPTED,
    AnswerState,
    Ask,
    Case,
    ReadAnswer,
    Verdict,
)
from qagate.evaluators.finishes import FILTERED
from qagate.evaluators.kinds import FALSE_PREMISE, UNANSWERABLE

REASONS: Mapping[AnswerState, str] = {
    "declined": "the model declined to answer",
    "echo": "the answer repeats what was asked",
    "repetition": "the answer is one phrase over and over",
    "empty": "no content",
}
"""Why an answer says nothing, for the verdict; the judge was not asked."""

CAUSES: Mapping[AnswerState, str] = {
    "thought_only": "the reply holds thoughts and no answer; raise max_tokens",
    "cut": "the answer was cut at the limit of tokens, and the whole is needed; raise max_tokens",
}
"""Why an answer is not graded, and what to do."""

EMPTY_RATING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRules:
    """What the states of a slice's answers are graded as."""

    silent: str = ""
    """The label of an answer that says nothing; empty where a judge reads it all the same."""
    rates_empty: bool = False
    """Whether verdicts are ratings, so that an empty answer gets the lowest."""
    needs_whole: bool = False
    """Whether a cut answer cannot be read: half a word may be another word, half JSON is none."""

    reads_refusals: bool = False
    """Whether code reads the words of an answer, those of a refusal included: "I do not know" may
    go on with an option's letter."""

    def problem(self, answer: ReadAnswer) -> str:
        """Return why there is no answer to grade; empty where there is one."""
        if answer.state == "thought_only" or (
            answer.state == "cut" and self.needs_whole
        ):
            return CAUSES[answer.state]
        return ""

    def verdict(self, case: Case, answer: ReadAnswer) -> Verdict | None:
        """Return the verdict that needs no judge; None where a judge reads the answer."""
        if answer.state not in REASONS:
            return None
        reason = f"{REASONS[answer.state]}; the judge was not asked"
        if self.rates_empty and answer.state == "empty":
            return Verdict(rating=EMPTY_RATING, reason=reason)
        if not self.silent:
            return None
        if answer.state == "declined":
            in_words = answer.finish != FILTERED
            # A denial of a false premise may be in the words of a refusal.
            is_for_the_judge = self.reads_refusals or _begins(case, FALSE_PREMISE)
            if in_words and is_for_the_judge:
                return None
            if self.silent == NOT_ATTEMPTED and _begins(case, UNANSWERABLE):
                return Verdict(grade=CORRECT, reason=reason)
        return Verdict(grade=self.silent, reason=reason)


JUDGE_ALL = StateRules()
"""A judge reads whatever is an answer."""


def _begins(case: Case, mark: str) -> bool:
    """Return whether a gold begins with a mark, such as ``UNANSWERABLE:``."""
    return any(gold.strip().upper().startswith(mark) for gold in case.golds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledByState:
    """Stands in place of a judge where the state of the answer says the verdict."""

    spec: str
    """The SPEC of the judge in whose place it stands."""
    settled: Verdict

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict."""
        return self.settled
