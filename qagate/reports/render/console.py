"""What a terminal shows, as wide as it is: gates, two runs compared, and the command to go on."""

import math
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import number
from qagate.reports.gates.decide import (
    LOSS_IN_A_POOL,
    NO_BASELINE,
    NO_CHANGE_GATE,
    NO_GATE,
    NO_LOSS_SEEN,
    NOTHING_GRADED,
    UNHEALTHY,
)
from qagate.reports.judge.measuring import NAME_A_MODEL
from qagate.reports.metrics.gate import GRADE, MORE_LABELS, WAYS_OUT
from qagate.reports.render import health, words, worst_first
from qagate.reports.render.first_screen import lost_difference
from qagate.reports.render.judge_words import judge_sentence
from qagate.reports.render.language_rows import LanguageRow, language_rows
from qagate.reports.render.measure_words import percent, points
from qagate.reports.render.sentence import sentence_of
from qagate.reports.run import clean
from qagate.reports.run.evidence import Comparison, SliceComparison
from qagate.reports.run.report import (
    ASK_ANEW,
    LABEL,
    REVIEW,
    WARNING,
    GateResult,
    Obstacle,
    Report,
)

WIDTH = 100  # where no terminal says its own
STATE = 13  # columns of a verdict
MAX_NAMED = 10  # changed items named
_FEWER = "repeats left out, as the baseline has fewer"
_ROW = "{:<16} {:>6} {:>6} {:>6}  {:<24} {:>9}  {:<20}"
_COLUMNS = (
    "slice",
    "pairs",
    "fixed",
    "broke",
    "new - old [95 %]",
    "McNemar p",
    "odds fixed : broke",
)


def gates(report: Report, folder: Path | None = None) -> Iterator[str]:
    """Yield the gates, FAIL first, with why, and notes; commands name the report's ``folder``."""
    for gate in worst_first.gates(report):
        title, *why = gate_lines(gate, folder)
        yield f"{gate.state:<{STATE}}{title}"
        yield from why
    yield from health_lines(report)
    yield from warnings(report.comparison)
    yield from wrapped(words.origin(report.run))
    yield from notes(report)


def gate_lines(gate: GateResult, folder: Path | None = None) -> list[str]:
    """Return a gate's line, to stand behind its verdict, and why; not if it surely passes."""
    value = (
        words.signed(gate.estimate) if gate.threshold.paired else gate.estimate.text()
    )
    title = f"{gate.slice:<14} {gate.name} {value}, bar {words.bar(gate)}"
    title = ", ".join(filter(None, [title, gate.pairs, gate.needs]))
    if gate.state == "PASS" and gate.worst == gate.best:
        return [title]
    reason = gate.reason
    if folder:
        for command in (LABEL, REVIEW):
            reason = reason.replace(command, command.replace("RUN", f"{folder}"))
    return [title, *wrapped(clean.line(reason), "    ")]


def health_lines(report: Report) -> Iterator[str]:
    """Yield what is wrong with many answers, and the likely cause, as wide as the terminal."""
    for cause in health.causes(report):
        yield from wrapped(f"{cause.mark:<{STATE}}{clean.line(cause.text)}")


def warnings(compared: Comparison | None) -> Iterator[str]:
    """Yield whole what else than the model may be why two runs differ."""
    for warning in compared.warnings if compared else ():
        yield from wrapped(f"WARNING: {clean.line(warning)}")


def notes(report: Report) -> Iterator[str]:
    """Yield the notes on a run, those that touch the verdict first; a note's lines are indented."""
    for note in sorted(report.notes, key=_urgency):
        yield from _note_lines(note)


def _note_lines(note: str) -> list[str]:
    text = clean.line(note)
    return wrapped(text if text.startswith(WARNING) else f"note: {text}")


NOTED = 3
"""Notes that a terminal shows: those that touch the verdict first."""
_ADVICE = re.compile(
    r"[;:,] (or )?(add|ask|give|install|keep|label|make|name|run|say|see|set|use|write|qagate|--)"
)
_OF_ONE_SLICE = re.compile(r"\S+:\S+|\b(?:in|for) [a-z]{2,3}\b|\d[\d.,]*")
"""What differs between notes that say the same of several languages."""


def _urgency(note: str) -> int:
    """Return 0 for a note that touches the verdict, 1 where there is something to do, else 2."""
    if note.startswith(WARNING):
        return 0
    return 1 if _ADVICE.search(note) else 2


def brief(report: Report) -> Iterator[str]:
    """Yield ungraded items, the worst lost answers, and a few notes, none of them twice."""
    for name, counts in ((one.name, one.counts) for one in report.slices):
        lacking = ("ERROR", counts.error), ("MISSING", counts.missing)
        if texts := ", ".join(
            f"{count:,} {state}" for state, count in lacking if count
        ):
            yield f"not graded   {name}: {texts} of {counts.planned:,}"
    yield from lost_lines(report)
    yield from _few_notes(report)


def lost_lines(report: Report) -> Iterator[str]:
    """Yield the worst lost answers: the item, its question, and what became of the answer."""
    for lost in worst_first.five_lost(report):
        record = lost.record
        marked = lost_difference(lost)
        answers = f"{clean.line(marked.old_words)} → {clean.line(marked.new_words)}"
        yield clean.cut(
            f"lost         {record.key}: {clean.line(record.question)}", width()
        )
        yield clean.cut(f"{'':<{STATE}}{answers}", width())


def _few_notes(report: Report) -> Iterator[str]:
    """Yield the most urgent notes; what is said of several languages is said of the first."""
    alike: dict[str, list[str]] = {}
    for note in sorted(report.notes, key=_urgency):
        alike.setdefault(_OF_ONE_SLICE.sub("", note), []).append(note)
    for same in list(alike.values())[:NOTED]:
        first, *others = same
        if others:
            first = f"{first} (and {len(others):,} like it)"
        yield from _note_lines(first)
    more = sum(len(same) for same in list(alike.values())[NOTED:])
    if more:
        yield f"and {plural(more, 'more note')}: in summary.md, on the page, or with -v"


def verdict_lines(report: Report) -> Iterator[str]:
    """Yield what to do in a sentence, its figures, old and new by language, and the judge."""
    sentence = sentence_of(report)
    yield from wrapped(f"{report.verdict}  {clean.line(sentence.text)}")
    if sentence.numbers:
        yield from textwrap.wrap(_plain(sentence.numbers), width())
    yield from _language_lines(report)
    if sentence.advice:
        yield from wrapped(f"{sentence.advice_title}: {_plain(sentence.advice)}")
    if any(part.kind.answered for part in report.slices):
        telling = worst_first.telling_slices(report)
        yield from wrapped(f"The judge: {_plain(judge_sentence(report, telling))}")


def _plain(text: str) -> str:
    """Return a sentence of ours without its marks for bold figures."""
    return clean.line(text.replace("**", ""))


def _language_lines(report: Report) -> Iterator[str]:
    shown = language_rows(report)
    if shown is None:
        return
    heads = ("old", "new", "change") if shown.is_change else ("old", "new", "")
    yield f"{shown.title:<24}{heads[0]:>8}{heads[1]:>10}{heads[2]:>9}"
    for row in shown.rows:
        name = clean.cut(row.name, 23)
        yield f"{name:<24}{_share(row.old)} → {_share(row.new)}{_change(row)}  {row.verdict}"


def _share(value: float | None) -> str:
    return f"{'–' if value is None else percent(value, 1):>8}"


def _change(row: LanguageRow) -> str:
    if not row.gate.threshold.paired or row.value is None:
        return " " * 8
    return f"{points(row.value):>8}"


def totals(report: Report) -> Iterator[str]:
    """Yield how many items the model passed and missed, and how many labelled answers the judge."""
    for who, what, answered in (
        ("model", "item", True),
        ("judge", "labelled answer", False),
    ):
        if counts := [
            one.counts for one in report.slices if one.kind.answered == answered
        ]:
            yield (
                f"{who}: {plural(sum(one.planned for one in counts), what)}, "
                f"{sum(one.passed for one in counts):,} right, "
                f"{sum(one.failed for one in counts):,} missed, "
                f"{sum(one.ungraded for one in counts):,} without a grade"
            )


def comparison(report: Report) -> Iterator[str]:
    """Yield the comparison table, its warnings, and the items that broke."""
    compared = report.comparison
    if compared is None:
        return
    yield from _table(report, compared, "old")
    lost = worst_first.lost_answers(report)
    if lost:
        yield from ("", f"broke ({len(lost):,}):")
    for answer in lost[:MAX_NAMED]:
        record = answer.record
        texts = (
            f"  {record.key}: {clean.line(record.question)}",
            f"    expected: {clean.line(record.expected)}",
            f"    old: {clean.line(answer.change.answer or '')}",
            f"    new: {clean.line(record.answer or '')}",
        )
        yield from (clean.cut(text, width()) for text in texts)
    if len(lost) > MAX_NAMED:
        yield f"  and {len(lost) - MAX_NAMED:,} more"
    if report.since_anchor is not None:
        yield from ("", *_table(report, report.since_anchor, "anchor"))


def _table(report: Report, compared: Comparison, name: str) -> Iterator[str]:
    """Yield both runs, a row for each slice, and below it what its row has no column for."""
    yield f"{name}: {clean.line(compared.model)}, judge {clean.line(compared.judge)}"
    yield f"new: {clean.line(words.model(report))}, judge {clean.line(report.judge)}"
    yield ""
    yield _ROW.format(*_COLUMNS).rstrip()
    for part in worst_first.by_slice(report, compared.slices):
        cells = (
            part.name,
            part.difference.n,
            part.fixed,
            part.broke,
            words.signed(part.difference),
            words.p_value(part.p_value),
            words.odds(part.odds),
        )
        yield _ROW.format(*cells).rstrip()
        yield from wrapped("; ".join(_beside_row(part)), "    ")
    yield from warnings(compared)


def _beside_row(part: SliceComparison) -> Iterator[str]:
    """Yield the further differences of a slice, and which items are not simply paired."""
    for name, difference in part.differences.items():
        yield f"{name} {words.signed(difference)}"
    counts = {
        "new": part.added,
        "removed": part.removed,
        "changed data": part.changed,
        "ungraded": part.ungraded,
        _FEWER: part.repeats,
    }
    for what, count in counts.items():
        if count:
            yield f"{count:,} {what}"
    if part.respelt:
        yield (
            f"{part.respelt:,} of the new ask what a removed one does but for blanks, "
            "case or signs: spell them alike, or give both an id"
        )
    if part.other_golds:
        yield f"{part.other_golds:,} with another gold than before: a flip may be the gold's"


def width() -> int:
    """Return the columns of the terminal; 100 where there is none, and never fewer than 40."""
    return max(40, shutil.get_terminal_size((WIDTH, 24)).columns)


def wrapped(text: str, indent: str = "") -> list[str]:
    """Return a sentence on lines as wide as the terminal, the later ones indented."""
    return textwrap.wrap(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


LIMIT = 10  # GitHub shows ten errors and ten warnings a step


def annotations(report: Report) -> Iterator[str]:
    """Yield a line for each gate that is FAIL or INCONCLUSIVE, FAIL first, at most ten a level."""

    def data(text: str, more: str = "") -> str:
        for character in f"%\r\n{more}":
            text = text.replace(character, f"%{ord(character):02X}")
        return text

    for state, level in (("FAIL", "error"), ("INCONCLUSIVE", "warning")):
        for gate in [one for one in report.decision.gates if one.state == state][
            :LIMIT
        ]:
            found, title = gate.estimate, f"{state}: {gate.slice} {gate.name}"
            text = f"{gate.name} {number(found.value)}, 95 % interval {words.interval(found)}, "
            text += f"n={found.n}; bar {words.bar(gate)}"
            yield f"::{level} title={data(title, ':,')}::{data(text)}"


FEW_LABELS = 30  # below, the next step is to label more
_NARROWING = (
    "-k",
    "-m",
    "--limit",
    "--shard",
)  # options that leave items of a language out
_REST = "    # asks only for what is missing"
_MENDED = "    # once that is fixed"
MODELS_FILE = "in a models file"
"""Stands in a last line that names a setting which would help."""
_COLLECTED = "    # once the reports of all shards are in shards/"


def next_step(report: Report, folder: Path) -> list[str]:
    """Return the line for a terminal, none where no command is known, for the report's folder."""
    return [f"next: {step}" for step in _steps(report, folder) if step][:1]


def _steps(report: Report, folder: Path) -> Iterator[str]:
    """Yield commands that lead on from a verdict, the best first; empty where none is known."""
    home = shlex.quote(_near(folder))
    again = str(report.run.get("command", ""))  # a merged report has none
    line = report.decision.line
    code = report.decision.code
    if code == 1:
        yield _after_fail(report, home)
    elif (code in (2, 4) or line.startswith(NOTHING_GRADED)) and again:
        yield _once_more(again, line, code)
    elif report.shards:
        yield _after_shard(folder, again, code)
    elif line.startswith((NO_GATE, NO_CHANGE_GATE)):
        yield _with_first_gates(report, home)
    elif line.startswith(NO_BASELINE):
        if report.trend:
            yield f"{again} --baseline={report.trend[-1].name}"
        else:
            yield f"qagate promote v1 {home} --anyway REASON"
    elif line.startswith(LOSS_IN_A_POOL):
        yield _comparison_with(report.baseline or report.anchor, home)
    elif line.startswith(UNHEALTHY):
        yield again and f"{again}{_MENDED}"
    elif code == 6:
        yield from _after_doubt(report, home, again)


def _once_more(again: str, line: str, code: int) -> str:
    """Return the same command, with the option for a key if the line asks for one."""
    key = re.search(r"--key-env \S+=NAME", line)
    if key:
        return f"{again} {key.group()}"
    return again + (_REST if code == 2 else _MENDED)


def _after_shard(folder: Path, again: str, code: int) -> str:
    """Return what goes on with a shard that lacks something, or puts whole ones together."""
    if not again:
        return ""
    if code:
        return again + _REST
    if folder.name.isdigit():  # as --report-dir=shards/2: the other shards are near
        numbered = shlex.quote(_near(folder.parent / "[0-9]*"))
        return f"qagate merge {numbered} --to reports/out"
    return f"qagate merge 'shards/*' --to reports/out{_COLLECTED}"


def _with_first_gates(report: Report, home: str) -> str:
    """Return what gives gates to the slices that lack them, and decides by these."""
    line = report.decision.line
    change = line.startswith(NO_CHANGE_GATE)
    if line.startswith(NO_LOSS_SEEN):
        change = bool(report.baseline)
    gates = _first_gates(report, change=change)
    decide = f"qagate gate {home} --gates gates.yaml --to reports/decided"
    return f"echo '{gates}' > gates.yaml; {decide}"


def _comparison_with(earlier: str, home: str) -> str:
    name = words.run_name(_near(Path(earlier)))
    return f"qagate compare {shlex.quote(name)} {home}"


def _near(path: Path) -> str:
    return str(
        path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    )


def _first_gates(report: Report, *, change: bool) -> str:
    decided = {
        gate.slice
        for gate in report.decision.gates
        if gate.threshold.paired or not change
    }
    line = report.decision.line
    if line.startswith(NO_LOSS_SEEN):
        # Those that it names have gates, but none that would do.
        decided = {one.name for one in report.slices if f"{one.name} (" not in line}
    made: dict[str, list[str]] = {}
    for one in report.slices:
        name, found = next(iter(words.headline(one).items()), ("", None))
        low = found.low if found and found.low is not None else 0.0
        gate = (
            "drop: {max: 0.05}"
            if change
            else f"{name}: {{min: {math.floor(10 * low) / 10:g}}}"
        )
        if one.kind.answered and one.name not in decided:
            made.setdefault(one.dataset, []).append(f"{one.language}: {{{gate}}}")
    return (
        "{"
        + ", ".join(f"{name}: {{{', '.join(own)}}}" for name, own in made.items())
        + "}"
    )


def _after_fail(report: Report, home: str) -> str:
    """Return what shows the items behind a FAIL: the comparison, else the first that missed."""
    failed = [gate for gate in report.decision.gates if gate.state == "FAIL"]
    paired = [gate for gate in failed if gate.threshold.paired]
    if paired:
        only_anchored = all(gate.anchored for gate in paired)
        return _comparison_with(
            report.anchor if only_anchored else report.baseline, home
        )
    slices = {gate.slice for gate in failed}
    missed = (one for one in worst_first.items(report) if one.outcome == "failed")
    keys = (one.key for one in missed if f"{one.dataset}:{one.language}" in slices)
    return next((f"qagate show {shlex.quote(key)} {home}" for key in keys), "")


def _after_doubt(report: Report, home: str, again: str) -> Iterator[str]:
    """Yield what would decide, the surest first: labels, people, a whole run, grades, rows."""
    unclear = [one for one in report.decision.gates if one.state == "INCONCLUSIVE"]
    why = " ".join([report.decision.line, *(one.reason for one in unclear)])
    lacks = "; ".join(f"{one.remedy} for {one.slice}" for one in unclear if one.remedy)
    if LABEL in why:
        yield _label_command(report, home)
    if audited := re.search(r"qagate review RUN( --\S+ --until-decided)", why):
        yield f"qagate review {home}{audited.group(1)} --to audit"
    if again:
        yield from _run_again(report, why, lacks, again)
    by_labels = (
        MORE_LABELS,
        WAYS_OUT[Obstacle.FEW_LABELS],
        WAYS_OUT[Obstacle.UNMEASURED],
    )
    if _has_few_labels(why) or any(gate.remedy.endswith(by_labels) for gate in unclear):
        yield _label_command(report, home)
    if any(gate.remedy == WAYS_OUT[Obstacle.DISTRUSTED] for gate in unclear):
        yield f"qagate review {home} --to review    # people judge what matters most"
    if again and (
        rows := re.search(r"about [\d,]+ more (pair|item)s for [^;]+", lacks)
    ):
        yield f"{again}    # after adding {rows.group()}"


def _label_command(report: Report, home: str) -> str:
    """Return the command by which people label answers, of the baseline too where there is one."""
    earlier = ""
    if report.baseline:
        name = words.run_name(_near(Path(report.baseline)))
        earlier = f" --baseline={shlex.quote(name)}"
    return f"qagate label {home}{earlier}    # your labels measure the judge"


def _has_few_labels(why: str) -> bool:
    """Return whether a judge was refused by so few labels that more are the next step."""
    refused = f"{Obstacle.DISTRUSTED}|{Obstacle.FEW_LABELS}"
    labels = re.search(rf"judge (?:{refused}) in .*?\(n=(\d+)", why)
    return labels is not None and int(labels.group(1)) < FEW_LABELS


def _run_again(report: Report, why: str, lacks: str, again: str) -> Iterator[str]:
    if ASK_ANEW in why:
        yield f"{again} {ASK_ANEW}"
    if why.startswith("INCONCLUSIVE"):  # slices of the baseline may lack
        yield whole_run(again)
    if any(one.obstacle for one in report.slices):
        yield whole_run(again, _NARROWING)
    if report.session.left or f"{GRADE} " in lacks:
        has_to_be_mended = MODELS_FILE in report.decision.line
        yield again + (_MENDED if has_to_be_mended else _REST)
    if NAME_A_MODEL in why:
        others = shlex.join(_without(again, ("--judge",)))
        yield f"{others} --judge anthropic:claude-opus-4-1 --dry-run"
    by_rejudging = WAYS_OUT[Obstacle.CHANGED]
    if blocked := [one for one in report.decision.gates if one.remedy == by_rejudging]:
        role = "anchor" if all(one.anchored for one in blocked) else "baseline"
        run = _near(Path(report.anchor if role == "anchor" else report.baseline))
        own = ("--model", "--baseline", "--anchor", "--report-dir")
        kept = _without(re.sub("^(pytest|qagate run) ?", "", again), own)
        rejudge = shlex.join(["qagate", "rejudge", words.run_name(run), *kept])
        yield f"{rejudge}    # then this run again, with --{role}=reports/rejudged"


def whole_run(
    command: str, narrowing: Sequence[str] = (*_NARROWING, "--languages")
) -> str:
    """Return a command without the options and node ids that leave items out."""
    kept = list[str]()
    for word in _without(command, narrowing):
        path, is_test, _ = word.partition("::")
        if not (is_test and path in kept):
            kept.append(path)
    return shlex.join(kept)


def _without(command: str, options: Sequence[str]) -> Iterator[str]:
    every = iter(shlex.split(command))
    for word in every:
        name, equals, _ = word.partition("=")
        if name not in options:
            yield word
        elif not equals:
            next(every, "")
