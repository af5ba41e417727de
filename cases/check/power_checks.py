"""Checks of whether a slice can see a loss: items that a reference model knows all say nothing."""

from collections.abc import Iterator

from cases.check.findings import Note, Subject, error, warning
from cases.dataset import Slice
from evaluators.core import UNANSWERED, Case, Verdict
from evaluators.judges.lexical.lexical_judge import grade
from evaluators.judges.offline import rate
from evaluators.replies import Invalid, read_yes_no
from evaluators.text import shown

DIFFICULTY = "difficulty"
CEILING = 0.95
"""The highest share right of a reference model at which a slice can still see one get worse."""
FEWEST = 20
"""Below so many items a share says nothing."""


def too_easy(subject: Subject) -> Iterator[Note]:
    """Yield that the reference model is nearly always right, so that no loss can be seen here.

    The reference is the share of published models that were right, where items have it in
    ``difficulty``; otherwise the recorded answers, as the rules without a model read them.
    """
    if not subject.slice_.kind.answered:
        return
    given = {case.row: text for case in subject.cases if (text := _difficulty(case))}
    shares = {row: _share(text) for row, text in given.items()}
    for row, share in shares.items():
        if share is None:
            message = f"{DIFFICULTY!r} is {shown(given[row])}; write a share right, from 0 to 1"
            yield error(row, message)
    known = [share for share in shares.values() if share is not None]
    who = f"published models are right, by the mean {DIFFICULTY!r}," if known else ""
    if not known:
        who = "recorded answers are right"
        answered = (case for case in subject.cases if case.recorded is not None)
        known = [float(_is_right(subject.slice_, case)) for case in answered]
    if len(known) >= FEWEST and (mean := sum(known) / len(known)) > CEILING:
        message = (
            f"cannot see a loss: {who} in {mean:.0%} of {len(known)} items, more than "
            f"{CEILING:.0%}; add items that a good model misses"
        )
        yield warning(0, message)


def _difficulty(case: Case) -> str:
    return str(case.metadata.get(DIFFICULTY, "")).strip()


def _share(text: str) -> float | None:
    """Return a share from 0 to 1, None for any other text."""
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _is_right(slice_: Slice, case: Case) -> bool:
    """Return whether the recorded answer of an item passes by the rules without a model."""
    answer = case.recorded or ""
    if slice_.kind.words:
        said = read_yes_no(answer, "stop", (slice_.yes,), (slice_.no,))
        verdict = Verdict(grade=UNANSWERED if isinstance(said, Invalid) else said, reason="")
    else:
        verdict = rate(case, answer) if slice_.kind.rated else grade(case, answer)
    return slice_.kind.passes(case, verdict, slice_.passing, slice_.pass_bar)
