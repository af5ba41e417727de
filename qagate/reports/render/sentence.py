"""The one sentence that says what to do with a release, with its figures and the next step.

``sentence_of`` is asked by the page, its tab, the terminal, the pull request's comment and the
printed sheet. A sentence begins with what to do, calls languages by their names, and holds two
figures at most. It has one function for each cause that a verdict can end in (``BY_CAUSE``); what
keeps a single gate open is told apart below. ``**bold**`` marks the figures that matter.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qagate.evaluators.output import plural
from qagate.evaluators.statistics.metrics import USAGE
from qagate.reports.render import measure_words, worst_first
from qagate.reports.render.judge_words import trust_of
from qagate.reports.render.measure_words import percent, percents
from qagate.reports.render.names import ALL_LANGUAGES, Names, listed, number_word
from qagate.reports.run.evidence import SliceComparison
from qagate.reports.run.report import (
    Cause,
    GateResult,
    Obstacle,
    Report,
    SliceSummary,
)

STOP = "Do not ship"
OPEN = "Cannot be decided"
GO = "Ship"
TO_DO = "What to do"
TO_DECIDE = "What would decide it"
RUN_AGAIN = "Run the same command again: only these are asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What a reader of a verdict is told."""

    text: str
    """One sentence, such as ``Do not ship: Polish fell from 94% right to 70%.``"""
    numbers: str = ""
    """The figures behind it, in a sentence or three."""
    advice: str = ""
    """What to do."""
    advice_title: str = TO_DO


def _undecided(why: str, *, advice: str, numbers: str = "") -> Sentence:
    """Return what a reader is told where nothing is decided: why, and what would decide it."""
    return Sentence(
        text=f"{OPEN}: {why}", numbers=numbers, advice=advice, advice_title=TO_DECIDE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInWords:
    """A report as sentences ask it."""

    report: Report
    names: Names

    def gates(self, *states: str) -> list[GateResult]:
        """Return the gates in one of these states, worst first."""
        return [gate for gate in worst_first.gates(self.report) if gate.state in states]

    def comparison(
        self, name: str, *, anchored: bool = False
    ) -> SliceComparison | None:
        """Return how a slice, or a pool, compares with the earlier run."""
        compared = self.report.since_anchor if anchored else self.report.comparison
        for part in compared.slices if compared else ():
            if part.name == name:
                return part
        return None

    def summary(self, name: str) -> SliceSummary | None:
        """Return the counts of a slice."""
        for part in self.report.slices:
            if part.name == name:
                return part
        return None

    @property
    def answered(self) -> list[SliceSummary]:
        """The slices that a model answered."""
        return [part for part in self.report.slices if part.kind.answered]

    @property
    def noun(self) -> str:
        """What the slices are called together."""
        return "language" if len(self.names.datasets) < 2 else "slice"


def sentence_of(report: Report) -> Sentence:
    """Return what to do with a release, and why."""
    run = RunInWords(report=report, names=Names.of(report))
    cause = report.decision.cause
    if not report.complete and report.verdict == "INCOMPLETE":
        cause = Cause.INTERRUPTED
    return BY_CAUSE[cause](run)


# FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A language whose loss of right answers fails a gate."""

    gate: GateResult
    slice: str


def _losses(run: RunInWords) -> list[Loss]:
    """Return the languages that fail by what they lost, worst first, each once."""
    losses: dict[str, Loss] = {}
    for gate in run.gates("FAIL"):
        is_loss = measure_words.falls(gate.threshold) and not gate.threshold.of
        if not is_loss:
            continue
        names = [gate.slice] if gate.language else []
        names += [f"{gate.dataset}:{language}" for language in gate.bands]
        for name in names:
            losses.setdefault(name, Loss(gate=gate, slice=name))
    order = worst_first.slices(run.report)
    return sorted(losses.values(), key=lambda loss: order.index(loss.slice))


def _gate_failed(run: RunInWords) -> Sentence:
    if not run.gates("FAIL"):
        return _own_tests_failed(run)
    losses = _losses(run)
    if losses:
        return _languages_lost(run, losses)
    return _other_gate_failed(run)


def _languages_lost(run: RunInWords, losses: Sequence[Loss]) -> Sentence:
    worst = losses[0]
    name = run.names.of_slice(worst.slice)
    return Sentence(
        text=f"{STOP}: {_fall_text(run, losses)}",
        numbers=_loss_numbers(run, losses),
        advice=(
            f"Read the lost {_adjective(name)} answers. If the new ones are wrong, send the "
            "model back. If some are right after all, correct the expected answers and judge "
            "again."
        ),
    )


def _fall_text(run: RunInWords, losses: Sequence[Loss]) -> str:
    if len(losses) > 2:
        return _many_fell(run, losses)
    parts: list[str] = []
    for loss in losses:
        then, now = _shares(run, loss)
        before, after = percents(then, now)
        name = run.names.of_slice(loss.slice)
        if parts:
            parts.append(f"{name} from {before} to {after}")
        else:
            parts.append(f"{name} fell from {before} {_right(run, loss)} to {after}")
    since = " since the anchor" if losses[0].gate.anchored else ""
    return f"{', '.join(parts)}{since}."


def _many_fell(run: RunInWords, losses: Sequence[Loss]) -> str:
    worst = losses[0]
    then, now = _shares(run, worst)
    name = run.names.of_slice(worst.slice)
    counted = f"{number_word(len(losses))} of {number_word(len(run.answered))}"
    margins = {loss.gate.threshold.max for loss in losses}
    by_margin = all(loss.gate.threshold.fail == "margin" for loss in losses)
    limit = "more than they may"
    if len(margins) == 1 and by_margin:
        limit = f"more than {percent(margins.pop() or 0.0)}"
    most = percent(max(0.0, then - now))
    return f"{counted} {run.noun}s lost {limit}, {name} most ({most})."


def _right(run: RunInWords, loss: Loss) -> str:
    part = run.summary(loss.slice)
    return "good enough" if part is not None and part.kind.rated else "right"


def _shares(run: RunInWords, loss: Loss) -> tuple[float, float]:
    """Return the share of right answers of a language then and now."""
    part = run.comparison(loss.slice, anchored=loss.gate.anchored)
    pairs = part.difference.n if part else 0
    if part is None or not pairs:
        return loss.gate.old or 0.0, loss.gate.new or 0.0
    return (
        (part.both_right + part.broke) / pairs,
        (part.both_right + part.fixed) / pairs,
    )


def _loss_numbers(run: RunInWords, losses: Sequence[Loss]) -> str:
    worst = losses[0]
    gate = worst.gate
    name = run.names.of_slice(worst.slice)
    part = run.comparison(worst.slice, anchored=gate.anchored)
    texts = []
    if part is not None:
        texts.append(_counts_text(name, part))
        language = worst.slice.partition(":")[2]
        band = gate.bands.get(language, gate.band)
        texts[-1] += _net_loss(part, band)
    texts.append(_limit_text(gate))
    texts.append(_others_hold(run, [loss.slice for loss in losses]))
    return " ".join(text for text in texts if text)


def _counts_text(name: str, part: SliceComparison) -> str:
    answers = plural(part.broke, "right answer")
    return (
        f"{_capital(name)} lost **{answers}** and won {part.fixed:,}, "
        f"of {part.difference.n:,}"
    )


def _net_loss(part: SliceComparison, band: tuple[float, float] | None) -> str:
    loss = -(part.difference.value or 0.0)
    if band is None:
        return f": a net loss of **{percent(loss)}**."
    least, most = sorted((-band[0], -band[1]))
    return f": a net loss of **{percent(loss)}** ({_range(least, most)})."


def _range(low: float, high: float) -> str:
    """Return ``19 to 29%``; a loss below nothing is a gain, and has a minus sign."""
    return f"{percent(low).removesuffix('%')} to {percent(high)}"


def _limit_text(gate: GateResult) -> str:
    threshold = gate.threshold
    if threshold.fail == "zero":
        return "A loss that is shown fails, whatever its size."
    (limit,) = measure_words.figures(threshold, threshold.max or 0.0)
    return f"At most {limit} may be lost."


def _others_hold(run: RunInWords, named: Sequence[str]) -> str:
    """Return that the other languages hold, where all of their gates do."""
    failing = {gate.slice for gate in run.report.decision.gates if gate.state != "PASS"}
    others = [part.name for part in run.answered if part.name not in named]
    if not others or failing & set(others):
        return ""
    if len(others) == 1:
        return f"{_capital(run.names.of_slice(others[0]))} holds."
    return f"The other {number_word(len(others))} {run.noun}s hold."


def _other_gate_failed(run: RunInWords) -> Sentence:
    failed = run.gates("FAIL")
    gate = failed[0]
    text = _gate_clause(run, gate)
    more = len(failed) - 1
    numbers = [_alone_text(run, gate)]
    if more:
        gates = f"{plural(more, 'more gate')} {'fails' if more == 1 else 'fail'}"
        numbers.append(f"{gates}.")
    if run.report.session.failures:
        numbers.append(f"{_own_tests_text(run)}.")
    return Sentence(
        text=f"{STOP}: {text}.{_old_missed_too(gate)}",
        numbers=" ".join(text for text in numbers if text),
        advice="Read the answers behind it; if the model is to blame, send it back.",
    )


def _alone_text(run: RunInWords, gate: GateResult) -> str:
    if gate.estimate.n and not gate.threshold.paired:
        return f"It is measured on {plural(gate.estimate.n, 'answer')}."
    if gate.estimate.n:
        return f"It is measured on {plural(gate.estimate.n, 'question')} asked in both runs."
    return ""


def _gate_clause(run: RunInWords, gate: GateResult) -> str:
    """Return what a gate that fails is about, such as ``English is right on 92%, and …``."""
    if gate.threshold.paired:
        return _margin_clause(run, gate)
    return _bar_clause(run, gate)


def _margin_clause(run: RunInWords, gate: GateResult) -> str:
    threshold = gate.threshold
    name = _in_place(run.names.of_gate(gate))
    if gate.bands and not gate.language:
        language = next(iter(gate.bands))
        name = _in_place(run.names.of_slice(f"{gate.dataset}:{language}"))
    if not threshold.of and gate.estimate.value is not None:
        lost, limit = percents(-gate.estimate.value, threshold.max or 0.0)
        alone = "" if gate.language else ". None fails alone"
        return f"{run.names.of_gate(gate)} lost {lost}, and {limit} may be lost{alone}"
    subject = measure_words.noun(threshold.of)
    verb = "fell" if measure_words.falls(threshold) else "rose"
    if gate.old is None or gate.new is None or gate.bands:
        change = abs(gate.estimate.value or 0.0)
        shown, limit = measure_words.figures(threshold, change, threshold.max or 0.0)
        if gate.bands:
            return f"{subject}{name} {verb} by more than the {limit} allowed"
        return f"{subject}{name} {verb} by {shown}, and {limit} may be"
    before, after = measure_words.figures(threshold, gate.old, gate.new)
    return f"{subject}{name} {verb} from {before} to {after}"


def _bar_clause(run: RunInWords, gate: GateResult) -> str:
    threshold = gate.threshold
    value = gate.estimate.value
    name = run.names.of_gate(gate)
    if value is None:
        return f"{measure_words.noun(threshold.measure)}{_in_place(name)} are not known"
    is_low = threshold.min is not None and value < threshold.min
    bar = threshold.min if is_low else threshold.max
    if bar is None:
        bar = threshold.min or 0.0
        is_low = True
    shown, limit = measure_words.figures(threshold, value, bar)
    if threshold.measure in measure_words.SLOWEST:
        limit = limit.removesuffix(" s")
        return (
            f"{measure_words.SLOWEST[threshold.measure]} {shown}{_in_place(name)}, "
            f"and {limit} may be"
        )
    if threshold.measure in measure_words.RIGHT:
        if is_low:
            return f"{name} is right on {shown}, and {limit} is needed"
        return f"{name} is right on {shown}, and at most {limit} may be"
    if threshold.measure == "agreement":
        agrees = f"the judge agrees with {shown} of the labels{_in_place(name)}"
        return f"{agrees}, and {limit} is needed"
    if threshold.measure in measure_words.STATES and not is_low:
        state = measure_words.STATES[threshold.measure]
        return f"{shown} of the {_adjective(name)} answers {state}, and {limit} may be"
    subject = measure_words.noun(threshold.measure)
    if threshold.measure in USAGE:
        subject = USAGE[threshold.measure].title.lower()
    needed = f"at least {limit} is needed" if is_low else f"at most {limit} may be"
    return f"{subject}{_in_place(name)}: {shown}, and {needed}"


def _old_missed_too(gate: GateResult) -> str:
    """Return that the old model missed a bar as well, where it did."""
    threshold = gate.threshold
    if threshold.paired or gate.old is None:
        return ""
    is_low = threshold.min is not None and gate.old < threshold.min
    is_high = threshold.max is not None and gate.old > threshold.max
    if not is_low and not is_high:
        return ""
    value = gate.estimate.value
    shown = measure_words.figures(threshold, gate.old)[0]
    if value is not None:
        shown = measure_words.figures(threshold, gate.old, value)[0]
    return f" The old model missed it too ({shown})."


def _own_tests_failed(run: RunInWords) -> Sentence:
    states = {gate.state for gate in run.report.decision.gates}
    gates = "The gates hold."
    if "INCONCLUSIVE" in states:
        gates = "Not every gate can be decided."
    if not states:
        gates = "No gate decided anything."
    return Sentence(
        text=f"{STOP}: {_own_tests_text(run)}. {gates}",
        advice="Read what they say: these are not wrong answers, which gates count.",
    )


def _own_tests_text(run: RunInWords) -> str:
    failures = run.report.session.failures
    if not failures:
        return "something failed that is no wrong answer"
    return f"{failures:,} of your own tests failed"


# INCONCLUSIVE by a gate


def _gate_open(run: RunInWords) -> Sentence:
    gates = run.gates("INCONCLUSIVE")
    return _open_sentence(run, gates[0], gates)


def why_open(report: Report, gate: GateResult) -> str:
    """Return what keeps one gate open, without what to do."""
    run = RunInWords(report=report, names=Names.of(report))
    text = _open_sentence(run, gate, [gate]).text
    return _capital(text.removeprefix(OPEN).lstrip(": "))


def _open_sentence(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence:
    for rule in OPEN_RULES:
        sentence = rule(run, gate, gates)
        if sentence is not None:
            return sentence
    return _as_recorded(run, gate)


def _judge_unknown(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    if Obstacle.UNMEASURED not in gate.reason:
        return None
    place = _in_place(run.names.of_gate(gate))
    return Sentence(
        text=f"{OPEN}: nobody knows how often the judge is right{place}.",
        numbers=_more_open(run, gate, gates),
        advice=(
            "Label 90 answers, 30 of each grade, or say that the judge may go unmeasured: "
            "the last line then says so."
        ),
    )


FAVOUR = re.compile(
    r"it favours the (?P<run>new|old) run by (?P<value>\S+), 95 % interval "
    r"(?P<low>\S+) to (?P<high>\S+), over (?P<labels>[\d,]+) labels"
)
"""How a gate says that its judge is not fair: see ``judge/favour.py``."""


def _judge_favours(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    favour = FAVOUR.search(gate.reason)
    if favour is None:
        return None
    ends = sorted(abs(float(favour[end])) for end in ("low", "high"))
    value, low, high = percents(abs(float(favour["value"])), *ends)
    place = _in_place(run.names.of_gate(gate))
    return Sentence(
        text=f"{OPEN}: the judge favours the {favour['run']} model{place} by {value}.",
        numbers=(
            f"Over {favour['labels']} labels on answers of both models it may be {low} to {high}. "
            f"{_more_open(run, gate, gates)}"
        ).strip(),
        advice="Use another judge: this one cannot compare these two models.",
        advice_title=TO_DECIDE,
    )


def _judge_distrusted(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    is_few = Obstacle.FEW_LABELS in gate.reason
    if not is_few and Obstacle.DISTRUSTED not in gate.reason:
        return None
    place = _in_place(run.names.of_gate(gate))
    trust = trust_of(run.report, gate.slice)
    text = f"the judge is not trusted{place}"
    advice = "Take a better judge."
    if trust is not None and trust.low is not None and trust.high is not None:
        low, high, needed = percents(trust.low, trust.high, trust.needed)
        text = f"the judge is right on {low} to {high}{place}, and {needed} is needed"
    if is_few:
        more = re.search(r"about ([\d,]+) items", gate.reason)
        answers = f"about {more.group(1)} answers" if more else "more answers"
        advice = f"Label {answers}, or take a better judge."
    return Sentence(
        text=f"{OPEN}: {text}.",
        numbers=_more_open(run, gate, gates),
        advice=advice,
        advice_title=TO_DECIDE,
    )


def _only_a_part(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    parts = [part for part in run.report.slices if _is_in(part, gate) and part.obstacle]
    if not parts:
        return None
    part = parts[0]
    name = run.names.of_slice(part.name)
    whole = part.sample.of if part.sample else part.whole
    asked = part.counts.planned - part.counts.stopped
    text = f"only a part of the {_adjective(name)} questions was asked"
    if whole and asked < whole:
        text = f"only {asked:,} of {whole:,} {_adjective(name)} questions were asked"
    return _undecided(
        f"{text}.",
        numbers=_more_open(run, gate, gates),
        advice="Ask all of them: answers that are kept are not paid for again.",
    )


def _without_grade(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    parts = [part for part in run.report.slices if _is_in(part, gate)]
    ungraded = sum(part.counts.error + part.counts.missing for part in parts)
    if not ungraded or gate.threshold.of_usage:
        return None
    name = _adjective(run.names.of_gate(gate)) if gate.language else ""
    answers = "answer has" if ungraded == 1 else "answers have"
    it = "it" if ungraded == 1 else "they"
    subject = f"{ungraded:,} {name} {answers}".replace("  ", " ")
    return _undecided(
        f"{subject} no grade, and {it} could tip it.",
        numbers=_more_open(run, gate, gates),
        advice=RUN_AGAIN,
    )


def _items_changed(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    seen_to = re.search(r"see to the ([\d,]+ .+? items?)", gate.remedy)
    if not seen_to:
        return None
    items = seen_to.group(1).replace("item", "question")
    place = _in_place(run.names.of_gate(gate))
    return _undecided(
        f"{items}{place} cannot be compared, and they could tip it.",
        numbers=_more_open(run, gate, gates),
        advice=(
            "Ask the questions of the old run as they were. To mend one, retire its id and add "
            "it under a new one."
        ),
    )


def _waits_for_people(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    """Word an audited gate: what the judge says of the answers is no verdict there."""
    if gate.audit is None or not gate.audit.next:
        return None
    place = _in_place(run.names.of_gate(gate))
    pairs = plural(gate.audit.next, "pair")
    command = re.search(r"to read: (.+ --until-decided)", gate.reason)
    advice = "Let people read them."
    if command is not None:
        advice = f"Let people read them: {command.group(1)}."
    return _undecided(
        f"people decide{place}, and have to read {pairs} of answers more.",
        numbers=f"They have looked at {gate.audit.looked:,} of {plural(gate.audit.pairs, 'pair')}.",
        advice=advice,
    )


def _too_close(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence | None:
    if gate.estimate.value is None or gate.band is None:
        return None
    if not gate.threshold.paired:
        return _bar_too_close(run, gate, gates)
    close = _close_losses(gates)
    if gate in close and len(close) > 2:
        text = _many_close(run, close)
    elif gate in close:
        text = _loss_close(run, close)
    else:
        text = _change_close(run, gate)
    return _undecided(
        f"{text}.",
        numbers=_close_numbers(run, gate),
        advice=_would_decide(run, gate),
    )


def _close_losses(gates: Sequence[GateResult]) -> list[GateResult]:
    """Return the gates on lost right answers that are open as their band reaches the limit."""
    return [
        gate
        for gate in gates
        if measure_words.falls(gate.threshold)
        and not gate.threshold.of
        and gate.estimate.value is not None
        and gate.band is not None
    ]


def _loss_close(run: RunInWords, close: Sequence[GateResult]) -> str:
    parts = []
    for gate in close:
        lost, limit = percents(_loss_of(gate), gate.threshold.max or 0.0)
        name = run.names.of_gate(gate)
        if _loss_of(gate) <= 0:
            parts.append(f"{name} lost nothing, and a loss of {limit} is not ruled out")
        else:
            parts.append(f"{name} lost {lost}, perhaps more than {limit}")
    return "; ".join(parts)


def _many_close(run: RunInWords, close: Sequence[GateResult]) -> str:
    worst = close[0]
    counted = f"{number_word(len(close))} of {number_word(len(run.answered))}"
    lost, limit = percents(_loss_of(worst), worst.threshold.max or 0.0)
    name = run.names.of_gate(worst)
    return (
        f"{counted} {run.noun}s may have lost more than {limit}, {name} most ({lost})"
    )


def _loss_of(gate: GateResult) -> float:
    return -(gate.estimate.value or 0.0)


def _change_close(run: RunInWords, gate: GateResult) -> str:
    threshold = gate.threshold
    place = _in_place(run.names.of_gate(gate))
    verb = "fell" if measure_words.falls(threshold) else "rose"
    harm = gate.estimate.value or 0.0
    if measure_words.falls(threshold):
        harm = -harm
    change, limit = measure_words.figures(
        threshold, max(0.0, harm), threshold.max or 0.0
    )
    subject = measure_words.noun(threshold.of)
    return f"{subject}{place} {verb} by {change}, perhaps by more than {limit}"


def _bar_too_close(
    run: RunInWords, gate: GateResult, gates: Sequence[GateResult]
) -> Sentence:
    threshold = gate.threshold
    value = gate.estimate.value or 0.0
    is_floor = threshold.min is not None
    bar = threshold.min if threshold.min is not None else threshold.max or 0.0
    shown, limit = measure_words.figures(threshold, value, bar)
    name = run.names.of_gate(gate)
    side = "less" if is_floor else "more"
    needed = "needed" if is_floor else "allowed"
    if threshold.measure in measure_words.SLOWEST:
        slowest = measure_words.SLOWEST[threshold.measure]
        text = (
            f"{slowest} {shown}{_in_place(name)}, perhaps {side} than the {limit} "
            f"{needed}"
        )
    elif threshold.measure in measure_words.RIGHT:
        text = (
            f"{name} is right on {shown}, perhaps on {side} than the {limit} {needed}"
        )
    else:
        subject = measure_words.noun(threshold.measure)
        text = (
            f"{subject}{_in_place(name)}: {shown}, perhaps {side} than the "
            f"{limit} {needed}"
        )
    return _undecided(
        f"{text}.",
        numbers=_more_open(run, gate, gates),
        advice=_would_decide(run, gate),
    )


def _close_numbers(run: RunInWords, gate: GateResult) -> str:
    texts = []
    part = run.comparison(gate.slice, anchored=gate.anchored)
    is_loss = measure_words.falls(gate.threshold) and not gate.threshold.of
    if part is not None and is_loss:
        name = run.names.of_gate(gate)
        texts.append(f"{_capital(_counts_text(name, part))}.")
    if gate.band is not None and gate.estimate.value is not None:
        sign = -1 if measure_words.falls(gate.threshold) else 1
        ends = sorted(sign * end for end in gate.band)
        value = sign * gate.estimate.value
        limit = gate.threshold.max or 0.0
        low, seen, high, allowed = measure_words.figures(
            gate.threshold, ends[0], value, ends[1], limit
        )
        word = "loss" if sign < 0 else "rise"
        texts.append(
            f"The {word} is {seen}; with the errors of sample and judge it may be "
            f"**{low} to {high}**, and at most {allowed} is allowed."
        )
    texts.append(_others_hold(run, [gate.slice]))
    return " ".join(text for text in texts if text)


def _would_decide(run: RunInWords, gate: GateResult) -> str:
    """Return the remedies of a gate in words: so many questions, or so many labels."""
    name = run.names.of_gate(gate)
    if not gate.remedy:
        return "No number of questions can be named; a wider limit would."
    text = gate.remedy
    units = {"pair": "question", "item": "question", "fact": "fact", "group": "group"}
    for unit, word in units.items():
        shown = f"more {_adjective(name)} {word}" if gate.language else f"more {word}"
        text = re.sub(rf"\bmore {unit}(s?)\b", rf"{shown}\1", text)
    label = f"more labelled {_adjective(name)} answers" if gate.language else ""
    if label:
        text = text.replace("more labels", label)
    place = name if gate.language else "all languages"
    return f"{_capital(text)}. Until then, do not ship it for {place}."


def _as_recorded(run: RunInWords, gate: GateResult) -> Sentence:
    """Return the record's own words where nothing better is known."""
    reason, _, rest = run.names.in_words(gate.reason).partition("; ")
    place = run.names.of_gate(gate)
    advice = f"{_capital(rest)}." if rest else ""
    return Sentence(
        text=f"{OPEN} for {place}: {reason}.",
        advice=advice or "Read the gate's reason on the page.",
        advice_title=TO_DECIDE,
    )


def _more_open(run: RunInWords, gate: GateResult, gates: Sequence[GateResult]) -> str:
    others = [other for other in gates if other is not gate]
    if not others:
        return _others_hold(run, [gate.slice])
    names = dict.fromkeys(run.names.of_gate(other) for other in gates)
    if len(names) == 1:
        return f"{plural(len(gates), 'gate')} wait for it."
    return f"{plural(len(gates), 'gate')} cannot be decided, in {listed(list(names))}."


OpenRule = Callable[[RunInWords, GateResult, Sequence[GateResult]], Sentence | None]
OPEN_RULES: Sequence[OpenRule] = (
    _only_a_part,
    _judge_unknown,
    _judge_favours,
    _judge_distrusted,
    _without_grade,
    _items_changed,
    _waits_for_people,
    _too_close,
)
"""What may keep a gate open; the first that answers words it."""


# INCONCLUSIVE by the run


def _doubt(run: RunInWords) -> Sentence:
    reason, _, rest = run.names.in_words(run.report.decision.about[0]).partition("; ")
    return _undecided(
        f"{reason}.",
        advice=f"{_capital(rest)}." if rest else "",
    )


def _without_gates(run: RunInWords) -> Sentence:
    return _undecided(
        "no gate says what is good enough.",
        advice="Give the data set gates, such as drop: {max: 0.05}, and decide again.",
    )


def _slice_without_gate(run: RunInWords) -> Sentence:
    names = _slice_list(run)
    return _undecided(
        f"no gate of its own says what is good enough in {names}.",
        advice="Give it a bar or a margin of its own: a pool may hold while a language fails.",
    )


def _no_baseline(run: RunInWords) -> Sentence:
    reason = "".join(run.report.decision.about)
    return _undecided(
        "losses were not looked for, as no old model was given.",
        numbers=f"{_capital(run.names.in_words(reason))}." if reason else "",
        advice="Name the last release with --baseline.",
    )


def _no_change_gate(run: RunInWords) -> Sentence:
    return _undecided(
        f"no gate says how much {_slice_list(run)} may lose.",
        advice="Give it a margin, such as drop: {max: 0.05}.",
    )


def _blind(run: RunInWords) -> Sentence:
    return _undecided(
        f"the gates would not notice a loss in {_slice_list(run)}.",
        numbers="They would pass if half of the right answers were lost, or all.",
        advice="Give it a bar on correct, or a margin below the share that was right.",
    )


def _outvoted(run: RunInWords) -> Sentence:
    loss = run.names.in_words(run.report.decision.about[0])
    return _undecided(
        f"{loss}, and no gate is about it alone.",
        numbers="That is more than all languages together may lose, and these hold.",
        advice="Give the language a margin of its own, such as drop: {max: 0.05}.",
    )


def _unhealthy(run: RunInWords) -> Sentence:
    about = run.names.in_words(run.report.decision.about[0])
    reason, _, rest = about.partition("; ")
    return _undecided(
        f"{reason.removesuffix('.')}.",
        numbers="The gates hold, but so many such answers may be the wiring's fault.",
        advice=f"{_capital(rest)}."
        if rest
        else "See to these answers, and run it again.",
    )


def _shard(run: RunInWords) -> Sentence:
    shards = run.report.shards
    held = len(shards.held) if shards else 1
    whole = shards.of if shards else 1
    parts = f"{held} of {plural(whole, 'part')}"
    return _undecided(
        f"this is {parts} of a run.",
        advice="Put all parts together: qagate merge decides over all of them.",
    )


def _nothing_graded(run: RunInWords) -> Sentence:
    about = "".join(run.report.decision.about)
    reason, _, rest = about.partition("; ")
    text = f"no answer has a grade ({reason})" if reason else "no answer has a grade"
    return _undecided(
        f"{text}.",
        advice=f"{_capital(rest)}." if rest else "See the warnings, and run it again.",
    )


def _nothing_selected(run: RunInWords) -> Sentence:
    return _undecided(
        "no question was asked.",
        advice="A filter, a mark or a plugin left all of them out; run without it.",
    )


# Cut short, or decided by nobody


def _interrupted(run: RunInWords) -> Sentence:
    counts = run.report.counts
    graded = counts.passed + counts.failed
    return _undecided(
        f"the run was cut short after {graded:,} of {counts.planned:,} answers.",
        advice="Run the same command again for the rest: what was paid for is kept.",
    )


def _broken_off(run: RunInWords) -> Sentence:
    reason = "".join(run.report.decision.about)
    return _undecided(
        "the run broke off with an error of its own.",
        numbers=f"{_capital(reason)}." if reason else "",
        advice="Run the same command again; what was paid for is kept.",
    )


def _gates_off(run: RunInWords) -> Sentence:
    return _undecided(
        "the gates were switched off.",
        advice="Run it without --gates off to decide.",
    )


def _by_plugin(run: RunInWords) -> Sentence:
    code = run.report.decision.code
    return _undecided(
        f"pytest, or a plugin, ended the run with exit code {code}.",
        advice="See what it says in the terminal.",
    )


def _read_anew(run: RunInWords) -> Sentence:
    lacking = run.report.counts.ungraded
    text = "Read anew by today's judge: this decides nothing."
    if lacking:
        text = f"Read anew in part: {plural(lacking, 'grade')} lacking. This decides nothing."
    return Sentence(text=text, advice=RUN_AGAIN if lacking else "")


# PASS


def _passed(run: RunInWords) -> Sentence:
    report = run.report
    if report.shards is not None:
        return _shard(run)
    if any(part.stand_in for part in report.judging.calibrations):
        return Sentence(
            text="Nothing to sign: a placeholder judge graded, so this tests the setup alone.",
            numbers="All gates hold.",
            advice="Name the model to try, and a model that judges.",
        )
    if not report.decision.gates:
        return _without_gates(run)
    margins = [gate for gate in run.gates("PASS") if gate.threshold.paired]
    if not margins:
        return Sentence(
            text="The bars hold, but losses were not looked for: no old model was given.",
            numbers=_closest_bar(run),
            advice="Name the last release before you sign.",
        )
    return Sentence(
        text=f"{GO}: {_kept_text(run, margins)}",
        numbers=_closest(run),
        advice="Sign, and keep this run as the baseline of the next release.",
    )


def _kept_text(run: RunInWords, margins: Sequence[GateResult]) -> str:
    losses = [
        gate
        for gate in margins
        if measure_words.falls(gate.threshold) and not gate.threshold.of
    ]
    own = [gate for gate in losses if gate.language] or losses
    limits = {gate.threshold.max for gate in own}
    limit = "than it may"
    if len(limits) == 1:
        limit = f"than the {percent(limits.pop() or 0.0)} allowed"
    if not own:
        return "nothing grew worse than it may."
    if len(own) == 1:
        name = run.names.of_gate(own[0])
        lost = "lost" if own[0].language else "together lost"
        if not own[0].language:
            name = "all languages"
        return f"{name} {lost} no more {limit}."
    return f"no {run.noun} lost more {limit}."


def _closest(run: RunInWords) -> str:
    """Return the language that came nearest to its limit, and how near."""
    nearest: GateResult | None = None
    room = 0.0
    for gate in run.gates("PASS"):
        is_loss = measure_words.falls(gate.threshold) and not gate.threshold.of
        if not is_loss or not gate.language or gate.band is None:
            continue
        left = (gate.threshold.max or 0.0) + gate.band[0]
        if nearest is None or left < room:
            nearest, room = gate, left
    if nearest is None or nearest.band is None:
        return ""
    part = run.comparison(nearest.slice, anchored=nearest.anchored)
    if part is None:
        return ""
    name = run.names.of_gate(nearest)
    worst = percent(max(0.0, -nearest.band[0]))
    (limit,) = measure_words.figures(nearest.threshold, nearest.threshold.max or 0.0)
    counts = (
        f"it lost {plural(part.broke, 'right answer')} and won {part.fixed:,}, "
        f"of {part.difference.n:,}"
    )
    if len(run.answered) == 1:
        return f"{_capital(counts)}. At worst {worst} are lost; {limit} may be."
    every = f"In every {run.noun} a loss beyond its limit is ruled out."
    return f"{every} The closest is **{name}**: {counts}; at worst {worst} are lost."


def _closest_bar(run: RunInWords) -> str:
    """Return the bar that the measured figure came nearest to."""
    nearest: GateResult | None = None
    room = 0.0
    for gate in run.gates("PASS"):
        value, bar = gate.estimate.value, gate.threshold.min
        is_about_right = gate.threshold.measure in measure_words.RIGHT
        if value is None or bar is None or not is_about_right:
            continue
        if nearest is None or value - bar < room:
            nearest, room = gate, value - bar
    if nearest is None:
        return ""
    shown, needed = measure_words.figures(
        nearest.threshold, nearest.estimate.value or 0.0, nearest.threshold.min or 0.0
    )
    subject = measure_words.noun(nearest.threshold.measure)
    place = _in_place(run.names.of_gate(nearest))
    return f"Closest call: {shown} {subject}{place}, where {needed} is needed."


# Words


def _is_in(part: SliceSummary, gate: GateResult) -> bool:
    if gate.language:
        return part.name == gate.slice
    return part.dataset == gate.dataset


def _in_place(name: str) -> str:
    """Return `` in Polish``; of a pool `` in all languages together``."""
    return f" in {name}"


def _adjective(name: str) -> str:
    """Return a name as it stands before a noun: ``Polish``, ``Polish (eba)``, nothing of a pool."""
    if name.startswith(ALL_LANGUAGES):
        return "pooled"
    language, _, dataset = name.partition(" in ")
    return f"{language} {dataset}" if dataset else language


def _slice_list(run: RunInWords) -> str:
    """Return the slices that the cause names, by the names that people call them."""
    names = [
        run.names.of_slice(name.partition(" (")[0])
        for name in run.report.decision.about
    ]
    return listed(names) or "this run"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


Telling = Callable[[RunInWords], Sentence]
BY_CAUSE: Mapping[Cause, Telling] = {
    Cause.BROKEN_OFF: _broken_off,
    Cause.INTERRUPTED: _interrupted,
    Cause.GATES_OFF: _gates_off,
    Cause.NOTHING_SELECTED: _nothing_selected,
    Cause.PLUGIN: _by_plugin,
    Cause.GATE_FAILED: _gate_failed,
    Cause.OWN_TESTS: _own_tests_failed,
    Cause.NOTHING_GRADED: _nothing_graded,
    Cause.SHARD: _shard,
    Cause.DOUBT: _doubt,
    Cause.GATE_OPEN: _gate_open,
    Cause.NO_GATES: _without_gates,
    Cause.SLICE_WITHOUT_GATE: _slice_without_gate,
    Cause.NO_BASELINE: _no_baseline,
    Cause.NO_CHANGE_GATE: _no_change_gate,
    Cause.BLIND: _blind,
    Cause.OUTVOTED: _outvoted,
    Cause.UNHEALTHY: _unhealthy,
    Cause.PASSED: _passed,
    Cause.READ_ANEW: _read_anew,
}
"""What is said of each cause; none may be without words."""
