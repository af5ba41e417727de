"""What a run says of the kept grades that it asked anew."""

from collections.abc import Iterator, Sequence

from qagate.evaluators.judges.drift import CanaryResult
from qagate.evaluators.output import plural


def canary_notes(canaries: Sequence[CanaryResult]) -> Iterator[str]:
    """Yield how many differ, and a line for each judge whose kept grades count no more."""
    asked = sum(result.asked for result in canaries)
    if not asked:
        return
    differ = sum(result.differ for result in canaries)
    grades = plural(asked, "kept grade")
    yield f"{grades} asked anew, to see whether the judge changed: {differ} differ"
    for result in canaries:
        if not result.void:
            continue
        where = f" in {result.language}" if result.language else ""
        yield (
            f"kept grades of {result.judge}{where} count no more, and were asked anew: "
            f"{result.void}"
        )
