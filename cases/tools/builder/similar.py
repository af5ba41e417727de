"""Texts that say nearly the same, by rapidfuzz."""

from collections.abc import Sequence


def nearest(text: str, others: Sequence[str], least: float) -> int | None:
    """Return the index of the most similar of some texts, None where all are below ``least``.

    ``least`` is a percentage: 100 minus the share of letters and places to be inserted or deleted
    (normalised Indel similarity). Letter case and punctuation do not count.
    """
    from rapidfuzz import fuzz, process  # noqa: PLC0415  # only the builder needs it

    found = process.extractOne(text, others, scorer=fuzz.ratio, score_cutoff=least)
    return None if found is None else int(found[2])


def plain(text: str) -> str:
    """Return a text as it is compared."""
    from rapidfuzz import utils  # noqa: PLC0415

    return " ".join(utils.default_process(text).split())


def contained(text: str, longer: str) -> float:
    """Return how much of a text stands in a longer one in one piece, in percent."""
    from rapidfuzz import fuzz  # noqa: PLC0415

    return float(fuzz.partial_ratio(text, longer)) if len(text) <= len(longer) else 0.0
