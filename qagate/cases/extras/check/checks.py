"""Checks of a slice as a whole, all checks by name, and running them over data sets or files."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

from qagate.bundled import CASES
from qagate.cases.config import load_dataset, with_items
from qagate.cases.dataset import DATASET_FILE, Dataset, Slice, clusters_in
from qagate.cases.extras.check import item_checks, labelled_sets
from qagate.cases.extras.check.item_checks import Finding, Subject, error, warning
from qagate.cases.extras.check.labelled_sets import Requirements
from qagate.evaluators.core import (
    GRADES,
    NO,
    UNANSWERED,
    YES,
    Case,
    UsageError,
    Verdict,
)
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.extras.lexical.overlap import rate
from qagate.evaluators.judges.offline import choice_of
from qagate.evaluators.languages.detection import words
from qagate.evaluators.output import plural
from qagate.evaluators.reading import NUMBER, Settings, load_settings
from qagate.evaluators.replies.choices import read_choice, yes_or_no
from qagate.evaluators.replies.readers import Invalid
from qagate.evaluators.statistics.paired import shown_by, smallest_n
from qagate.evaluators.text import first_of, hint, shown

MIN_FOR_BALANCE = 10  # the balance of fewer items says nothing
YES_SHARE = (0.4, 0.6)
LEAST_GRADE = 0.1
BAR = 0.58  # the highest share of answers that a rule without the passage may give
FEWEST_FOR_CUES = (
    150  # of fewer items the best of many words is above the bar by chance
)
SURE = 2.33
"""Standard errors above one half at which a predictor is right by more than luck, one in 100."""
TWINS = ("twin", "twin_id")
LINKS = (*TWINS, "story_id")  # fields whose value says which items are about one story
ONE_FACT = (
    0.7  # the least share of words in their order that twin passages have in common
)
DIFFICULTY = "difficulty"
DIFFICULTY_DATE = "difficulty_date"
A_YEAR = 366  # days after which models are too old to tell what today's know
CEILING = 0.95
"""The highest share right of a reference model at which a slice can still show a loss."""
FEWEST_KNOWN = 20  # of fewer items the share right says nothing

_Worded = tuple[Case, frozenset[str]]


def balance(subject: Subject) -> Iterator[Finding]:
    """Find classes out of balance: yes and no, or the labels of judged items."""
    counts = Counter(case.label or "" for case in subject.cases)
    if counts.total() < MIN_FOR_BALANCE:
        return
    if subject.slice_.kind.words:
        share, (low, high) = counts[YES] / counts.total(), YES_SHARE
        if not low <= share <= high:
            what = f"{share:.0%} of the answers are yes ({counts[YES]} yes, {counts[NO]} no)"
            yield warning(0, f"{what}; add items until it is {low:.0%} to {high:.0%}")
    elif not subject.slice_.kind.answered and counts.keys() <= set(GRADES):
        for label in GRADES:
            if counts[label] / counts.total() < LEAST_GRADE:
                what = f"{counts[label]} of {counts.total()} labels are {label}"
                yield warning(0, f"{what}; add items until it is {LEAST_GRADE:.0%}")


def cue_words(subject: Subject) -> Iterator[Finding]:
    """Find the word in a yes/no question that answers too many items; yes and no count alike."""
    items = _worded(subject)
    if len(items) < FEWEST_FOR_CUES:
        return
    counts = _counts(items)
    gaps = {
        word: counts[word, YES] / counts["", YES] - counts[word, NO] / counts["", NO]
        for word, _ in counts
        if word
    }
    best = max(gaps, key=lambda word: (abs(gaps[word]), word))
    share = (1 + abs(gaps[best])) / 2
    if share > BAR:
        said = "yes" if gaps[best] > 0 else "no"
        what = f"the word {shown(best)} in a question means {said}: that rule alone answers "
        what += f"{share:.0%} right, above {BAR:.0%}"
        seen = f"({counts[best, YES]} yes, {counts[best, NO]} no)"
        yield warning(
            0, f"{what} {seen}; reword questions or add twins with the other answer"
        )


def closed_book(subject: Subject) -> Iterator[Finding]:
    """Find that questions' words alone answer too many items, learnt from other clusters."""
    items = _worded(subject)
    if len(items) < FEWEST_FOR_CUES:
        return
    odds = _log_odds(subject.slice_, items)
    totals = Counter(case.label for case, _ in items)
    right = [case for case, _ in items if (odds[case.row] > 0) == (case.label == YES)]
    share = sum(1 / totals[case.label] for case in right) / 2
    if share > max(BAR, 0.5 + SURE * 0.5 / math.sqrt(len(items))):
        surest = sorted((case.row for case in right), key=lambda row: -abs(odds[row]))
        rows = first_of([str(row) for row in surest], 10)
        what = f"the words of the questions alone answer {share:.0%} right, above {BAR:.0%}: "
        seen = f"{len(right)} of {len(items)} items, most surely rows {rows}; reword those or"
        yield warning(0, f"{what}{seen} add twins with the other answer")


def _worded(subject: Subject) -> list[_Worded]:
    """Return yes/no items with the words of their questions; none where one answer is missing."""
    if not subject.slice_.kind.words:
        return []
    cases = [case for case in subject.cases if case.label in (YES, NO)]
    items = [
        (case, frozenset(map(str.casefold, words(case.question)))) for case in cases
    ]
    return items if len({case.label for case, _ in items}) > 1 else []


def _log_odds(slice_: Slice, items: Sequence[_Worded]) -> Mapping[int, float]:
    """Return by row the log odds of yes that the words have in other clusters, smoothed by one."""
    clusters: dict[object, list[_Worded]] = defaultdict(list)
    for case, own in items:
        clusters[slice_.cluster_of(case)].append((case, own))
    others = _counts(items)
    found = {}
    for members in clusters.values():
        mine = _counts(members)
        others.subtract(mine)
        for case, own in members:
            found[case.row] = math.fsum(
                math.log((others[word, YES] + 1) / (others["", YES] + 2))
                - math.log((others[word, NO] + 1) / (others["", NO] + 2))
                for word in own
            )
        others.update(mine)
    return found


def _counts(items: Sequence[_Worded]) -> Counter[tuple[str, str]]:
    """Return in how many questions of each answer a word stands; with ``""`` how many there are."""
    return Counter(
        (word, str(case.label)) for case, own in items for word in ("", *own)
    )


def twins(subject: Subject) -> Iterator[Finding]:
    """Find twins without opposite answers, or whose passages differ in no fact or several."""
    for link in TWINS if subject.slice_.kind.words else ():
        for name, pair in _linked(subject, link).items():
            rows = first_of([str(case.row) for case in pair], 5)
            if len(pair) != 2:
                message = f"{link} {shown(name)} is that of {len(pair)} rows ({rows})"
                yield error(pair[0].row, f"{message}; twins are two")
                continue
            one, two = (case.context.split() for case in pair)
            likeness = SequenceMatcher(None, one, two, autojunk=False).ratio()
            if pair[0].label == pair[1].label:
                message = f"the twins {shown(name)} (rows {rows}) have the same answer"
                yield error(pair[1].row, f"{message}; change the fact that decides it")
            elif likeness == 1 and pair[0].question != pair[1].question:
                continue  # two questions about one passage
            elif not ONE_FACT <= likeness < 1:
                what = "are the same" if likeness == 1 else "differ in more than a fact"
                message = (
                    f"the passages of the twins {shown(name)} (rows {rows}) {what}"
                )
                yield warning(pair[1].row, f"{message}; change one fact of one passage")


def unclustered(subject: Subject) -> Iterator[Finding]:
    """Find the field that joins items which the data set counts as independent."""
    for link in LINKS:
        linked = _linked(subject, link).values()
        if any(
            len({subject.slice_.cluster_of(case) for case in some}) > 1
            for some in linked
        ):
            message = f"rows with one {link!r} are counted as independent"
            yield warning(0, f"{message}; say 'cluster: {link}' in dataset.yaml")


def _linked(subject: Subject, field: str) -> Mapping[str, Sequence[Case]]:
    found: dict[str, list[Case]] = defaultdict(list)
    for case in subject.cases:
        if value := _value(case, field):
            found[value].append(case)
    return found


def _value(case: Case, field: str) -> str:
    value = case.metadata.get(field)
    return "" if value is None else str(value).strip()


def too_easy(subject: Subject) -> Iterator[Finding]:
    """Find that published models (``difficulty``), else recorded answers, are nearly all right."""
    if not subject.slice_.kind.answered:
        return
    given = {
        case.row: text for case in subject.cases if (text := _value(case, DIFFICULTY))
    }
    known = []
    for row, text in given.items():
        share = float(text) if NUMBER.fullmatch(text) else -1.0
        if 0 <= share <= 1:
            known.append(share)
        else:
            yield error(
                row,
                f"{DIFFICULTY!r} is {shown(text)}; write a share right, from 0 to 1",
            )
    who = f"published models are right, by the mean {DIFFICULTY!r},"
    if not known:
        who = "recorded answers are right"
        answered = (case for case in subject.cases if case.recorded is not None)
        known = [float(_is_right(subject.slice_, case)) for case in answered]
    if len(known) >= FEWEST_KNOWN and (mean := sum(known) / len(known)) > CEILING:
        what = (
            f"cannot see a loss: {who} in {mean:.0%} of {len(known)} items, more than "
        )
        yield warning(0, f"{what}{CEILING:.0%}; add items that a good model misses")


def _is_right(slice_: Slice, case: Case) -> bool:
    answer = case.recorded or ""
    if slice_.kind.closed:
        said = _chosen(slice_, case, answer)
        verdict = Verdict(
            grade=UNANSWERED if isinstance(said, Invalid) else said, reason=""
        )
    else:
        verdict = rate(case, answer) if slice_.kind.rated else grade(case, answer)
    return slice_.kind.passes(case, verdict, slice_.passing, slice_.pass_bar)


def _chosen(slice_: Slice, case: Case, answer: str) -> str | Invalid:
    """Return which option an answer chooses, as a run reads it."""
    if slice_.kind.words:
        return read_choice(answer, yes_or_no(slice_.yes, slice_.no))
    return choice_of(case, answer)


def old_difficulty(
    subjects: Mapping[str, Subject], measured: date | None
) -> Iterator[Finding]:
    """Find a ``difficulty`` that models gave more than a year ago, or nobody knows when."""
    rows = sum(
        bool(_value(case, DIFFICULTY))
        for one in subjects.values()
        for case in one.cases
    )
    today = datetime.now(UTC).date()
    if not rows or (measured and (today - measured).days <= A_YEAR):
        return
    since = f"is of {measured}, more than 12 months ago" if measured else "has no date"
    what = f"{DIFFICULTY!r} of {rows:,} rows {since}: it does not tell what today's models know"
    yield warning(
        0, f"{what}; ask them, then write 'check: {{{DIFFICULTY_DATE}: {today}}}'"
    )


def ungated(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Finding]:
    """Find the declared languages without a gate of their own: nothing there stops an upgrade."""
    for code in subjects:
        if code in dataset.slices and not dataset.slices[code].thresholds:
            yield warning(
                0, f"language {code!r} has no gates; add 'gates:' with a metric and bar"
            )


def narrow_margins(
    dataset: Dataset, subjects: Mapping[str, Subject]
) -> Iterator[Finding]:
    """Find the gates on a change that so few items can never pass, even if no answer changes."""
    mine = [own for code, own in subjects.items() if code in dataset.slices]
    clusters = clusters_in((own.slice_, case) for own in mine for case in own.cases)
    gates = [
        (code, dataset.slices[code].thresholds, len(some))
        for code, some in clusters.items()
    ]
    gates.append(("*", dataset.pooled, len(set().union(*clusters.values()))))
    for code, threshold, count in (
        (code, one, n) for code, some, n in gates for one in some
    ):
        margin, change, where = (
            threshold.max or 0.0,
            threshold.measure,
            f"{dataset.name}:{code}",
        )
        if not threshold.of_share or threshold.evidence != "confident" or margin >= 1:
            continue
        if margin == 0:
            yield warning(
                0,
                f"{where}: no number of items can show a {change} of 0; give a margin",
            )
        elif count < smallest_n(margin):
            what = f"{plural(count, 'independent item')} can never show a {change} below {margin:g}"
            advice = f"it takes {smallest_n(margin):,}, or widen the margin"
            yield warning(0, f"{where}: {what}; {advice}")


def drops_shown(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[str]:
    """Yield what the items of each language can show, where a gate is on a change of a share."""
    languages_of: dict[int, list[str]] = {}
    for language, subject in subjects.items():
        gates = (*dataset.slices[language].thresholds, *dataset.pooled)
        items = {subject.slice_.cluster_of(case) for case in subject.cases}
        if items and any(gate.of_share for gate in gates):
            languages_of.setdefault(len(items), []).append(language)
    for count, languages in languages_of.items():
        names = ", ".join(f"{dataset.name}:{language}" for language in languages)
        shown_drops = shown_by(count)
        yield f"{names}: {plural(count, 'independent item')} can show {shown_drops}"


SLICE_CHECKS: Mapping[str, Callable[[Subject], Iterable[Finding]]] = {
    "duplicate": partial(item_checks.repeats, contradicting=False),
    "conflict": partial(item_checks.repeats, contradicting=True),
    "leak": item_checks.leaks,
    "id": item_checks.ids,
    "retired": item_checks.unknown_retired,
    "superseded": item_checks.superseded,
    "overlap": item_checks.overlap,
    "loose-gold": item_checks.loose_golds,
    "exported-gold": item_checks.exported_golds,
    "index-gold": item_checks.index_golds,
    "no-expected": item_checks.without_expected,
    "unshown-options": item_checks.unshown_options,
    "moved-options": item_checks.moved_options,
    "alike-gold": item_checks.alike_golds,
    "mixed-scripts": item_checks.mixed_scripts,
    "invisible": item_checks.invisible,
    "language": item_checks.other_language,
    "balance": balance,
    "cue-word": cue_words,
    "closed-book": closed_book,
    "twins": twins,
    "cluster": unclustered,
    "too-easy": too_easy,
}
"""What is checked in each slice."""

DATASET_CHECKS: Mapping[
    str, Callable[[Dataset, Mapping[str, Subject]], Iterable[Finding]]
] = {
    "gates": ungated,
    "margin": narrow_margins,
}
"""What is checked over the slices of a data set together; subjects are by language."""

DATED_CHECKS = {"old-difficulty": old_difficulty}
"""What is checked there of the date in ``check: {difficulty_date: …}``."""


@dataclass(slots=True)
class CheckResult:
    """What is found in data files."""

    files: int = 0
    items: int = 0
    findings: set[Finding] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    """Messages about files that could not be loaded."""
    waived: list[str] = field(default_factory=list)
    """What data sets ask not to be told, with the reason."""
    labelled: list[str] = field(default_factory=list)
    """What labelled answers hold, and what they can show of a judge."""
    drops: list[str] = field(default_factory=list)
    """The smallest drops that the items can show."""

    @property
    def errors(self) -> int:
        """How many findings are errors; all others are warnings."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def lines(self) -> list[str]:
        """The findings in the order of files and rows."""
        ordered = sorted(
            self.findings, key=lambda one: (str(one.file), one.row, one.line)
        )
        return [finding.line for finding in ordered]

    def add_slices(self, slices: Collection[Slice]) -> dict[str, Subject]:
        """Check slices one by one; return those that can be loaded, by language."""
        self.files += len(slices)
        subjects = {}
        for slice_ in slices:
            try:
                subject = item_checks.read_subject(slice_)
            except UsageError as problem:
                self.refused.append(str(problem))
                continue
            subjects[slice_.language] = subject
            self.items += len(subject.cases)
            self.findings.update(findings(SLICE_CHECKS, slice_.path, subject))
        return subjects

    def add_labels(
        self,
        subjects: Collection[Subject],
        asking: Collection[Dataset],
        required: Requirements | None,
    ) -> None:
        """Check labelled answers: by what is required of them, else for what they cannot show."""
        for subject in subjects:
            labelled = labelled_sets.labelled_answers(subject, asking)
            self.labelled += labelled_sets.lines_about(labelled)
            path = subject.slice_.path
            if required is None:
                caveats = findings(labelled_sets.CAVEATS, path, labelled)
                self.findings.update(caveats)
            else:
                rules = {labelled_sets.REQUIRES: labelled_sets.breaches}
                self.findings.update(findings(rules, path, labelled, required))

    def add_dataset(self, dataset: Dataset, checked: Collection[Dataset] = ()) -> None:
        """Check a data set and its slices, without what it waives. Raises UsageError.

        ``checked`` are all that are checked: labelled answers are compared with their questions.
        """
        settings = load_settings(dataset.folder / DATASET_FILE).part("check")
        settings.check_keys(("waive", DIFFICULTY_DATE, labelled_sets.REQUIRES))
        waive = settings.part("waive")
        waive.check_keys(
            (
                *SLICE_CHECKS,
                *DATASET_CHECKS,
                *DATED_CHECKS,
                *labelled_sets.CAVEATS,
            )
        )
        reasons = {name: waive.text(name) for name in waive.values}
        before, self.findings = self.findings, set()
        subjects = self.add_slices(dataset.slices.values())
        measured = _difficulty_date(settings)
        file = settings.path
        self.findings.update(findings(DATED_CHECKS, file, subjects, measured))
        self.findings.update(findings(DATASET_CHECKS, file, dataset, subjects))
        self.drops += drops_shown(dataset, subjects)
        if labelled_sets.measures_judges(dataset):
            asking = labelled_sets.asking_datasets(checked)
            required = None
            if labelled_sets.REQUIRES in settings.values:
                part = settings.part(labelled_sets.REQUIRES)
                known = [asker.name for asker in asking]
                required = labelled_sets.read_requirements(part, known)
            self.add_labels(subjects.values(), asking, required)
        counts = Counter(finding.check for finding in self.findings)
        told = {finding for finding in self.findings if finding.check not in reasons}
        self.findings = before | told
        for name, reason in reasons.items():
            self.waived.append(
                f"{waive.path}: {name}: waived, {counts[name]} not shown: {reason}"
            )


def _difficulty_date(settings: Settings) -> date | None:
    """Return when the items were measured to be hard. Raises UsageError for no date."""
    text = settings.text(DIFFICULTY_DATE)
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise settings.problem(
            DIFFICULTY_DATE, f"want a date YYYY-MM-DD, got {shown(text)}"
        ) from None


def check_datasets(paths: Sequence[Path]) -> CheckResult:
    """Check the data sets named, or in these folders, each once. Raises UsageError."""
    here = Path.cwd()
    bundled = CASES.relative_to(here) if CASES.is_relative_to(here) else CASES
    files: dict[Path, None] = {}
    for path in paths or [bundled]:
        below = sorted(path.rglob(DATASET_FILE)) if path.is_dir() else [path]
        if not below:
            raise UsageError(
                f"{path}: no {DATASET_FILE} in this folder or below it; name another"
            )
        if below[0].name != DATASET_FILE:
            what = f"neither a folder nor a {DATASET_FILE}"
            raise UsageError(
                f"{path}: {what}; say --as DATASET:LANG to check a data file"
            )
        files |= dict.fromkeys(below)
    datasets = [load_dataset(file) for file in files]
    result = CheckResult()
    for dataset in datasets:
        result.add_dataset(dataset, datasets)
    return result


def check_files(paths: Sequence[Path], as_: str) -> CheckResult:
    """Check data files as items of ``DATASET:LANG``, without its gates. Raises UsageError."""
    if not paths:
        raise UsageError(
            f"check: --as {as_}: no file given; name the data files to check"
        )
    name, colon, language = as_.partition(":")
    bundled = {path.parent.name: path for path in sorted(CASES.rglob(DATASET_FILE))}
    if name not in bundled:
        raise UsageError(
            f"check: --as {shown(as_)}: no bundled dataset; {hint(name, bundled)}"
        )
    if not colon:
        raise UsageError(f"check: --as {as_}: want DATASET:LANG, such as {name}:en")
    dataset = load_dataset(bundled[name])
    result = CheckResult()
    for path in paths:
        slice_ = with_items(dataset, language, path).slices[language]
        subjects = result.add_slices([slice_])
        if labelled_sets.measures_judges(dataset):
            asking = labelled_sets.asking_datasets([])
            result.add_labels(subjects.values(), asking, None)
    return result


def findings(
    checks: Mapping[str, Callable[..., Iterable[Finding]]],
    file: Path,
    *subjects: object,
) -> list[Finding]:
    """Return what these checks find in subjects, with the names of check and file, in no order."""
    found = (
        (name, finding)
        for name, check in checks.items()
        for finding in check(*subjects)
    )
    return [replace(finding, check=name, file=file) for name, finding in found]
