"""A rule judge as another repository would write it, in one file."""

POLITE = """
from evaluators.core import Verdict


class Polite:
    async def judge(self, case, answer, ask):
        if "broken" in answer:
            raise ValueError("no such word")
        if "silent" in answer:
            return None
        if "odd" in answer:
            return Verdict(grade="POLITE")
        polite = "please" in answer
        grade = "CORRECT" if polite else "INCORRECT"
        return Verdict(grade=grade, rating=10 if polite else 2, reason="a word", sure=polite)
"""
