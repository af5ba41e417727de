"""The checks by code that a data set can name, and how they run.

A check gives a score from 0 to 1; an exception is an error of the item. BLEU, ROUGE-L and chrF are
weak: a right answer in other words scores low, a wrong answer that differs in one word scores high.
They show that answers changed, not which are right.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from qagate.evaluators.core import PYTHON, Ask, Case, JudgeError, QAError, UsageError
from qagate.evaluators.metric_specs import CheckSpec, Score
from qagate.evaluators.optional import require
from qagate.evaluators.reading import parse_json
from qagate.evaluators.text import hint, mask, one_line
from qagate.evaluators.user_code import (
    RULE_SECONDS,
    SHORT,
    apart,
    in_thread,
    load_named,
    off_the_loop,
)

_WORD = re.compile(r"\w+")


def _sacrebleu(name: str, case: Case, answer: str) -> float:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415

    metric = BLEU(effective_order=True) if name == "bleu" else CHRF()
    score = float(metric.sentence_score(answer, _golds(case)).score)
    return min(1.0, max(0.0, score / 100))  # rounding may end above 1


def _rouge_l(case: Case, answer: str) -> float:
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415

    words = _WORD.findall(answer.casefold())
    golds = [_WORD.findall(gold.casefold()) for gold in _golds(case)]
    return max(
        2 * LCSseq.similarity(words, one) / (len(words) + len(one) or 1)
        for one in golds
    )


def _golds(case: Case) -> list[str]:
    return [gold for gold in case.golds if gold.strip()]


WORDING_METRICS: Mapping[str, Callable[[Case, str], float]] = {
    "bleu": partial(_sacrebleu, "bleu"),  # Papineni et al. 2002; sacrebleu, Post 2018
    "chrf": partial(
        _sacrebleu, "chrf"
    ),  # chrF2, Popović 2015; suits inflected languages
    "rouge_l": _rouge_l,  # F1 with the nearest gold, Lin 2004; for any script
}
"""By their names in data sets: from 0 to 1, over the golds."""

COMPARING = frozenset({*WORDING_METRICS, "exact"})
"""Checks that hold an answer against the golds."""


def why_unscored(spec: CheckSpec, case: Case) -> str:
    """Return why an item can have no score of a check; empty where it can have one."""
    if spec.check in COMPARING and not _golds(case):
        return f"no score for {spec.check}: no expected answer"
    return ""


NEEDED: Mapping[str, str] = {
    "bleu": "sacrebleu",
    "chrf": "sacrebleu",
    "json_schema": "jsonschema",
    "regex": "regex",
}
"""The optional package that a bundled check needs."""


async def score(spec: CheckSpec, case: Case, answer: str, ask: Ask) -> Score:
    """Return the result of a check, which holds up no other. Raises JudgeError."""
    import asyncio  # noqa: PLC0415  # workers load the specs and check nothing

    try:
        if spec.check in IMMEDIATE and len(answer) <= SHORT:
            return _scored(spec, case, answer)
        if spec.check in QUICK:
            return await off_the_loop(
                spec.metric, lambda _: _scored(spec, case, answer), ask
            )
        load, work = partial(_loaded, spec), partial(_scored, spec, case, answer)
        done = in_thread(partial(apart, spec.metric, load, work), note=bool)
        return await asyncio.wrap_future(done)
    except QAError:
        raise
    except Exception as error:  # the user's code may raise anything
        msg = f"{spec.metric}: {one_line(mask(f'{type(error).__name__}: {error}'))}"
        raise JudgeError(msg, kind="check_failed") from error


def _loaded(spec: CheckSpec) -> None:
    load_check(spec)


def _scored(spec: CheckSpec, case: Case, answer: str) -> Score:
    """Return a check's result, which may be a bool or a number, as a Score. Raises ValueError."""
    result = load_check(spec)(case, answer)
    if isinstance(result, Score) and result.value is None:
        return result
    score = result if isinstance(result, Score) else Score(value=result)  # type: ignore[arg-type]
    if not isinstance(score.value, bool | int | float) or not 0 <= score.value <= 1:
        raise ValueError(
            f"want a Score, true, false or a number from 0 to 1, got {result!r:.60}"
        )
    return Score(value=float(score.value), reason=one_line(mask(str(score.reason))))


@cache
def load_check(spec: CheckSpec) -> Callable[[Case, str], object]:
    """Return the function of a check. Raises UsageError for an unknown check or invalid text."""
    if module := NEEDED.get(spec.check):
        require(module, f"check {spec.check}")
    if spec.check in BUNDLED_CHECKS:
        return BUNDLED_CHECKS[spec.check](spec.text)
    if not spec.check.startswith(PYTHON):
        known = (*BUNDLED_CHECKS, f"{PYTHON}MODULE:FUNCTION")
        raise UsageError(f"check {spec.check!r}: {hint(spec.check, known)}")
    _, found = load_named(
        spec.check.removeprefix(PYTHON), f"check {spec.check}", "function"
    )
    if (
        not callable(found)
        or inspect.isclass(found)
        or inspect.iscoroutinefunction(found)
    ):
        raise UsageError(
            f"check {spec.check}: want a function of case and answer, not async; give its name"
        )
    return found


def _exact(text: str) -> Callable[[Case, str], Score]:
    return lambda case, answer: Score(
        value=answer.strip() in case.golds, reason="compared to the golds to the letter"
    )


def _language(text: str) -> Callable[[Case, str], Score]:
    from qagate.evaluators.languages.detection import is_in  # noqa: PLC0415  # reads its table of words

    words = {
        True: "is in",
        False: "is not in",
        None: "is too short to tell whether it is in",
    }

    def check(case: Case, answer: str) -> Score:
        found = is_in(answer, case.language)
        return Score(value=found, reason=f"the answer {words[found]} {case.language}")

    return check


def _regex(text: str) -> Callable[[Case, str], Score]:
    import regex  # noqa: PLC0415  # unlike re it has a time-out and lets other threads run

    try:
        pattern = regex.compile(text)
    except regex.error as error:
        raise UsageError(f"pattern {text!r:.60}: {error}") from None

    def check(case: Case, answer: str) -> Score:
        found = pattern.search(answer, timeout=RULE_SECONDS, concurrent=True)
        return Score(
            value=found is not None, reason=f"{text} is {'' if found else 'not '}found"
        )

    return check


def _json_schema(text: str) -> Callable[[Case, str], Score]:
    from jsonschema import SchemaError  # noqa: PLC0415
    from jsonschema.validators import validator_for  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    schema = json.loads(text)
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise UsageError(f"no JSON schema: {one_line(error.message)}") from None
    validator = kind(schema, registry=Registry())  # fetches nothing

    def check(case: Case, answer: str) -> Score:
        try:
            value: Any = parse_json(answer)
        except ValueError as error:
            return Score(value=0.0, reason=f"the answer is not JSON: {error}")
        wrong = next(iter(validator.iter_errors(value)), None)
        where = (
            f"{wrong.json_path}: {wrong.message}"
            if wrong
            else "the answer fits the schema"
        )
        return Score(value=wrong is None, reason=where)

    return check


BUNDLED_CHECKS: Mapping[str, Callable[[str], Callable[[Case, str], object]]] = {
    "exact": _exact,
    "language": _language,
    "regex": _regex,
    "json_schema": _json_schema,
    **{name: lambda text, run=run: run for name, run in WORDING_METRICS.items()},  # type: ignore[misc]
}
"""Makers of the checks that need no code of the user, each from its text."""

IMMEDIATE = frozenset({"exact", "language"})
"""Checks that take a millisecond or less for a short answer."""

QUICK = BUNDLED_CHECKS.keys() - {"json_schema"}
"""Checks whose time is in proportion to the text, or limited; the others run in a process apart."""
