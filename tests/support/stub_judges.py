"""Three judges without judgement, which every set of attacks has to find out."""

from qagate.evaluators.core import CORRECT, INCORRECT, Case, Verdict


class SearchesForGold:
    """Says CORRECT wherever one of the golds stands in the answer, in any letter case."""

    async def judge(self, case: Case, answer: str, ask: object) -> Verdict:
        lowered = answer.casefold()
        for gold in case.golds:
            if gold.casefold() in lowered:
                return Verdict(grade=CORRECT, reason="the gold is in the answer")
        return Verdict(grade=INCORRECT, reason="the gold is not in the answer")


class AlwaysCorrect:
    """Says CORRECT to every answer."""

    async def judge(self, case: Case, answer: str, ask: object) -> Verdict:
        return Verdict(grade=CORRECT, reason="every answer is right")


class AlwaysIncorrect:
    """Says INCORRECT to every answer."""

    async def judge(self, case: Case, answer: str, ask: object) -> Verdict:
        return Verdict(grade=INCORRECT, reason="every answer is wrong")
