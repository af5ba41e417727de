"""How people call what is measured, and how they write its figures.

Shares are whole per cents in sentences, with one decimal in tables. Two figures that are compared
and would round to the same get a decimal each.
"""

from collections.abc import Mapping

from qagate.cases.dataset import Threshold
from qagate.evaluators.metric_specs import CHECK_PREFIX
from qagate.evaluators.statistics.intervals import number
from qagate.evaluators.statistics.metrics import DROP, counts_every_item

MINUS = "\N{MINUS SIGN}"
RIGHT = ("", "correct", "accuracy", "pass_rate")
"""The metrics that are the share of right answers; a margin names it by no name."""
NOUNS: Mapping[str, str] = {
    **dict.fromkeys(RIGHT, "right answers"),
    "incorrect": "wrong answers",
    "attempted": "attempted answers",
    "not_attempted": "answers that say they do not know",
    "declined": "declined answers",
    "cut": "answers cut short",
    "thought_only": "answers that are thoughts alone",
    "echo": "answers that repeat the question",
    "repetition": "answers that say one thing over and over",
    "empty": "empty answers",
    "premise_accepted": "false premises taken for true",
    "correct_given_attempted": "right answers among those attempted",
    "f_score": "the F-score",
    "mean_rating": "the mean rating",
    "agreement": "answers on which the judge agrees with their label",
    "check_language": "answers in the language of their question",
}
"""In the plural, as the subject of a sentence."""
STATES: Mapping[str, str] = {
    "incorrect": "are wrong",
    "not_attempted": "say that they do not know",
    "declined": "decline",
    "cut": "are cut short",
    "thought_only": "are thoughts alone",
    "echo": "repeat the question",
    "repetition": "say one thing over and over",
    "empty": "are empty",
    "other_language": "are in another language",
}
"""What a share of answers does, after "12% of the Polish answers"."""
SLOWEST = {
    "seconds_p50": "half of the answers take",
    "seconds_p95": "the slowest 5% take",
}


def noun(measure: str) -> str:
    """Return what a metric counts, for instance ``wrong answers``."""
    plain = measure.removeprefix(CHECK_PREFIX).replace("_", " ")
    return NOUNS.get(measure, plain)


def is_share(threshold: Threshold) -> bool:
    """Return whether the figures of a gate are shares, to be written in per cent."""
    name = threshold.of if threshold.paired else threshold.measure
    if name in RIGHT or name in NOUNS or name in STATES:
        return name not in ("f_score", "mean_rating")
    return counts_every_item(name) or name.startswith(CHECK_PREFIX)


def percent(share: float, decimals: int = 0) -> str:
    """Return a share in per cent, such as ``24%``; a loss of nothing has no sign."""
    text = f"{100 * share:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return f"{text.replace('-', MINUS)}%"


def percents(*shares: float) -> list[str]:
    """Return shares that are compared, each with a decimal if two would look the same."""
    texts = [percent(share) for share in shares]
    if len(set(texts)) < len(set(shares)):
        texts = [percent(share, 1) for share in shares]
    return texts


def points(change: float) -> str:
    """Return a change in points with its sign and one decimal, such as ``+0.9``."""
    text = f"{100 * change:+.1f}"
    if float(text) == 0:
        return "0.0"
    return text.replace("-", MINUS)


def figures(threshold: Threshold, *values: float) -> list[str]:
    """Return values of a gate's metric as a sentence writes them."""
    if is_share(threshold):
        return percents(*values)
    name = threshold.of if threshold.paired else threshold.measure
    if name.startswith("seconds"):
        return [f"{value:.3g} s" for value in values]
    if name == "cost":
        return [f"${number(value)}" for value in values]
    return [number(value) for value in values]


def falls(threshold: Threshold) -> bool:
    """Return whether a margin is about a fall, not a rise."""
    return threshold.measure == DROP
