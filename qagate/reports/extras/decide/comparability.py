"""Whether two results can be compared: two runs, the older one as baseline, measured alike.

Equal answers are no sign of the same run: short ones are equal often. The name of the run is, and
so are two files of the same bytes with many answers. How both were measured is compared in
``run/measured.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import file_hash
from qagate.evaluators.text import first_of, shown
from qagate.reports.compare.same_file import MOST_BY_CHANCE
from qagate.reports.extras.decide.foreign_run import Choice, ForeignRun
from qagate.reports.extras.decide.form_table import forms
from qagate.reports.run.accepted import Accepted
from qagate.reports.run.measured import MeasuredOtherwise, differences


def same_run(
    new: ForeignRun, old: ForeignRun, new_choice: Choice, old_choice: Choice
) -> str:
    """Return why two results are the same run; empty where they are two."""
    if new_choice.side != old_choice.side:
        return ""
    if new.run_id and new.run_id == old.run_id and new.model == old.model:
        return f"both results are of one run, {new.run_id}; give that of the release before"
    if new.path.resolve() == old.path.resolve() or _same_bytes(new, old):
        return "both results are one file; give that of the release before"
    return ""


def _same_bytes(new: ForeignRun, old: ForeignRun) -> bool:
    """Whether two files are copies: an unchanged model may give the same scores, or few answers."""
    answers = {sample.answer for sample in new.samples if sample.answer}
    if len(answers) <= MOST_BY_CHANCE or new.path.is_dir() or old.path.is_dir():
        return False
    return file_hash(new.path) == file_hash(old.path)


def remarks(new: ForeignRun, old: ForeignRun) -> Iterator[str]:
    """Yield what a reader has to know of both together, beside the verdict."""
    order = _wrong_order(new, old)
    if order:
        yield order
    if new.template != old.template:
        yield "the chat templates differ; items are paired by their documents"
    if new.version != old.version:
        yield f"{new.tool} {new.version or '?'} here, {old.version or '?'} in the baseline"
    unsaid = _unsaid(new, old)
    if unsaid:
        yield f"neither result says how it was measured in {', '.join(unsaid)}"


def _unsaid(new: ForeignRun, old: ForeignRun) -> list[str]:
    """Return the fields of which no task of either result says anything."""
    fields = list(forms()[new.form].measured) or ["grader", "threshold", "arguments"]
    said: set[str] = set()
    for run in (new, old):
        for task in run.tasks.values():
            said.update(task.measured)
    return [field for field in fields if field not in said]


def _wrong_order(new: ForeignRun, old: ForeignRun) -> str:
    """Return that OLD was made after NEW, where both say when; else nothing."""
    made_new, made_old = _seconds(new.date), _seconds(old.date)
    if made_new is None or made_old is None or made_old <= made_new:
        return ""
    return (
        f"the baseline is younger than the new result ({_day(made_old)}, {_day(made_new)}): "
        "are they the wrong way round?"
    )


def _seconds(date: str) -> float | None:
    """Return a date of a result in seconds since 1970; None for none."""
    try:
        return float(date)
    except ValueError:
        pass
    try:
        parsed = datetime.fromisoformat(date)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return parsed.timestamp()


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g}"


def accepted_changes(
    given: Sequence[tuple[str, str]], pairs: Sequence[tuple[ForeignRun, ForeignRun]]
) -> list[Accepted]:
    """Return the differences that the command line accepts in each pair of NEW and OLD.

    Raises UsageError for a difference that no pair has.
    """
    differences_of_pairs = [_differences(new, old) for new, old in pairs]
    accepted = []
    for name, value in given:
        if not any(_is_there(name, value, known) for known in differences_of_pairs):
            known = [
                difference.to_accept
                for by_field in differences_of_pairs
                for difference in by_field.values()
            ]
            raise UsageError(
                f"--accept-changed {shown(f'{name}={value}')}: nothing differs so; "
                f"{first_of(known) or 'both were measured alike'}"
            )
    for by_field in differences_of_pairs:
        in_pair = {
            name: value for name, value in given if _is_there(name, value, by_field)
        }
        accepted.append(Accepted(measured=in_pair))
    return accepted


def _differences(new: ForeignRun, old: ForeignRun) -> dict[str, MeasuredOtherwise]:
    """Return in what two results were measured otherwise, by field."""
    found: dict[str, MeasuredOtherwise] = {}
    for name, task in new.tasks.items():
        former = old.tasks.get(name)
        if former is not None:
            for difference in differences(task.measured, former.measured):
                found[difference.field] = difference
    return found


def _is_there(name: str, value: str, known: Mapping[str, MeasuredOtherwise]) -> bool:
    accepted = Accepted(measured={name: value})
    return name in known and known[name].is_accepted(accepted)
