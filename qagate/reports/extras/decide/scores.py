"""Values as scores: which are numbers, which are words for one, and which are none.

What is missing, empty, NaN or null is no score. It is never 0, and no reason to refuse a file.
"""

import json
import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

DECLINED = frozenset({"n", "noanswer", "not_attempted"})
RIGHT_OR_WRONG: Mapping[str, float] = {
    **dict.fromkeys(("c", "correct", "pass", "passed"), 1.0),
    **dict.fromkeys(("i", "incorrect", "fail", "failed"), 0.0),
    **dict.fromkeys(DECLINED, 0.0),
    "p": 0.5,
}
"""Words that say which way is better; of inspect_ai C, I, P (partial) and N."""
FLAGS: Mapping[str, float] = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
"""Words that do not: ``true`` may be a defect."""
MISSING = frozenset({"", "nan", "none", "null", "n/a", "na", "-", "error"})

MORE_IS_BETTER = frozenset(
    {
        "acc",
        "accuracy",
        "correct",
        "correctness",
        "score",
        "match",
        "em",
        "f1",
        "pass",
        "passed",
    }
    | {
        "success",
        "right",
        "grade",
        "verdict",
        "bleu",
        "rouge",
        "chrf",
        "faithfulness",
        "recall",
    }
    | {
        "precision",
        "relevancy",
        "relevance",
        "groundedness",
        "coherence",
        "fluency",
        "helpfulness",
    }
)
"""Words in a score's name of which it is plain."""
LESS_IS_BETTER = (
    *(
        "error",
        "err",
        "wrong",
        "incorrect",
        "fail",
        "failure",
        "loss",
        "perplexity",
        "ppl",
        "wer",
    ),
    *(
        "cer",
        "ter",
        "mer",
        "edit",
        "distance",
        "brier",
        "rmse",
        "mae",
        "mse",
        "bias",
        "not",
        "no",
    ),
    *(
        "toxic",
        "hallucination",
        "defect",
        "harm",
        "violation",
        "violence",
        "hate",
        "unsafe",
        "miss",
    ),
    *(
        "leak",
        "attack",
        "refusal",
        "latency",
        "cost",
        "seconds",
        "penalty",
        "invalid",
        "stereotype",
    ),
)
"""Beginnings of words in names of which less usually is better."""
SHORTEST_BEGINNING = 4
"""Shorter ones have to be the whole word, or its plural: ``no`` is no beginning of ``normal``."""


def number(value: object, words: Mapping[str, float] = {}) -> float | None:
    """Return a score as a number; None for what is none. ``words`` are the user's own."""
    if isinstance(value, int | float):
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:
            return None
    if not isinstance(value, str):
        return None
    word = value.strip().casefold()
    for known in (words, RIGHT_OR_WRONG, FLAGS):
        if word in known:
            return known[word]
    try:
        parsed = float(word)
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None


def is_missing(value: object) -> bool:
    """Return whether nothing stands there, in any way that tools write it."""
    if isinstance(value, float):
        return not math.isfinite(value)
    return value is None or (
        isinstance(value, str) and value.strip().casefold() in MISSING
    )


def says_direction(value: object) -> bool:
    """Return whether a value is a word such as ``correct``, which more is better of."""
    return isinstance(value, str) and value.strip().casefold() in RIGHT_OR_WRONG


def looks_less(name: str) -> bool:
    """Return whether a score's name is one of which less usually is better."""
    return any(_begins_like_less(word) for word in _words_of(name))


def looks_more(name: str) -> bool:
    """Return whether a score's name is one of which more plainly is better."""
    return not looks_less(name) and any(
        word in MORE_IS_BETTER for word in _words_of(name)
    )


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name is one of these; ``*`` stands for any part of it."""
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)


def _words_of(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[a-z]+\d*", apart.casefold())


def _begins_like_less(word: str) -> bool:
    for beginning in LESS_IS_BETTER:
        if word in (beginning, f"{beginning}s"):
            return True
        if len(beginning) >= SHORTEST_BEGINNING and word.startswith(beginning):
            return True
    return False


def text_of(value: object) -> str:
    """Return a question or answer as text: a text itself, the last message of a chat, or JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value:
        last = value[-1]
        if isinstance(last, Mapping) and isinstance(last.get("content"), str):
            return str(last["content"])
        if len(value) == 1 and isinstance(last, str):
            return last
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
