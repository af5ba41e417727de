"""How much of an expert's wording an answer shares: BLEU, ROUGE-L and chrF, by their own libraries.

They are the weak measures that they are known as: a right answer in other words scores low, and a
wrong one that differs in a single word scores high. They say how answers changed, not which are
right, so that they stand beside a judge and never in its place.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from evaluators.core import Case, JudgeError

_WORD = re.compile(r"\w+")


class _Words:
    """Splits text of any script: ROUGE's own tokenizer knows no letters but those of English."""

    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.casefold())


@cache
def _bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415  # loaded where it is asked for

    return BLEU(effective_order=True)


@cache
def _chrf() -> Any:
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415

    return CHRF()


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415

    return RougeScorer(["rougeL"], tokenizer=_Words())


def bleu(case: Case, answer: str) -> float:
    """Return sentence BLEU, 0 to 1, over the golds (Papineni et al. 2002; sacrebleu, Post 2018)."""
    return _share(_bleu().sentence_score(answer, _golds(case)).score / 100)


def chrf(case: Case, answer: str) -> float:
    """Return chrF2, 0 to 1, over the golds (Popović 2015): it suits languages that inflect."""
    return _share(_chrf().sentence_score(answer, _golds(case)).score / 100)


def rouge_l(case: Case, answer: str) -> float:
    """Return the F of ROUGE-L, 0 to 1, of the nearest gold (Lin 2004)."""
    return _share(max(_rouge().score(gold, answer)["rougeL"].fmeasure for gold in _golds(case)))


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))  # some sums end a rounding error above 1


def _golds(case: Case) -> list[str]:
    golds = [gold for gold in case.golds if gold.strip()]
    if not golds:
        msg = "no expert answer to compare with"
        raise JudgeError(msg, kind="check_failed")
    return golds


MEASURES: Mapping[str, Callable[[Case, str], float]] = {
    "bleu": bleu,
    "chrf": chrf,
    "rouge_l": rouge_l,
}
"""By the names that a data set gives them."""
