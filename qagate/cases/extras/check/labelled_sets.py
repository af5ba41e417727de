"""What a set of labelled answers holds, what it has to hold, and what it cannot show.

Labelled answers (kind ``judged``) measure a judge. ``qagate check`` says of each language

- what is there, and what that can show of a judge: two lines (``lines_about``);
- what ``check: requires:`` of its dataset.yaml asks for and it lacks: errors (``REQUIREMENTS``);
- where nothing is required, what the labels cannot show: warnings (``CAVEATS``).

Answers to one question count together where a judge is measured, so a question here is
what the slice calls a cluster. Attacks measure no judge's errors on answers, and are left out.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE, Dataset, Slice
from qagate.cases.extras.check import label_power
from qagate.cases.extras.check.item_checks import Finding, Subject, error, warning
from qagate.cases.extras.check.label_power import Floor, LabelClass
from qagate.cases.labels import DRAWN_GRADE
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.kinds import NOT_CORRECT, TWO_WAY, Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.reading import Settings
from qagate.evaluators.text import first_of, hint, shown

REQUIRES = "requires"
"""The key under ``check:``, and what its errors are called."""
ERROR = "error"
"""The column that says why an answer is hard to judge: of what kind a judge's error is."""
MANY = 1_000_000
FEW_TO_A_QUESTION = 3
"""More answers to one question tell mostly of that question."""
EACH_CLASS = 30
"""Of fewer answers of a class nothing corrects a rate for the judge's errors there."""
NEAR = 2
"""Ratings this far from the bar are near it: a rater that errs there moves a verdict."""
FRAME_WORDS = 5
"""Words in a row that are one frame, where two answers have them."""
ROWS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """``check: requires:`` of a dataset.yaml: what each of its languages has to hold."""

    answers: int = 0
    """The fewest answers."""
    questions: int = 0
    """The fewest questions."""
    answers_per_question: int = MANY
    """The most answers to one question."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """The fewest answers by label."""
    no_more_than: Mapping[str, str] = field(default_factory=dict)
    """Labels that may not be more frequent than another one."""
    near_bar: int = 0
    """The fewest ratings near the bar, on each side of it."""
    errors_named: bool = False
    """Whether each answer has its kind of error."""
    answers_per_frame: int = MANY
    """The most answers that share five words in a row."""
    not_asked_in: tuple[str, ...] = ()
    """Data sets that may ask none of the questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswers:
    """The labelled answers of one language."""

    slice_: Slice
    cases: tuple[Case, ...]
    asked: Mapping[str, frozenset[str]]
    """The questions of data sets that a model answers, by the data set's name."""

    @property
    def is_rated(self) -> bool:
        """Whether its labels are ratings."""
        labels = [case.label for case in self.cases if case.label]
        return bool(labels) and all(label.isdigit() for label in labels)

    @property
    def questions(self) -> dict[Cluster, list[Case]]:
        """The answers to each question, in the order of the file."""
        answers_to = defaultdict(list)
        for case in self.cases:
            answers_to[self.slice_.cluster_of(case)].append(case)
        return dict(answers_to)


def read_requirements(settings: Settings, datasets: Collection[str]) -> Requirements:
    """Return what is required. Raises UsageError for a key or a data set nobody knows."""
    settings.check_keys(Requirements.__dataclass_fields__)
    labels = settings.part("labels")
    limits = settings.part("no_more_than")
    not_asked_in = settings.words("not_asked_in")
    for name in not_asked_in:
        if name not in datasets:
            what = f"no data set {shown(name)}; {hint(name, datasets)}"
            raise settings.problem("not_asked_in", what)

    def most(key: str) -> int:
        return settings.whole(key, 1, MANY) or MANY

    def fewest(part: Settings, key: str) -> int:
        return part.whole(key, 0, MANY) or 0

    return Requirements(
        answers=fewest(settings, "answers"),
        questions=fewest(settings, "questions"),
        answers_per_question=most("answers_per_question"),
        labels={label: fewest(labels, label) for label in labels.values},
        no_more_than={label: limits.text(label) for label in limits.values},
        near_bar=fewest(settings, "near_bar"),
        errors_named=settings.flag("errors_named"),
        answers_per_frame=most("answers_per_frame"),
        not_asked_in=not_asked_in,
    )


def measures_judges(dataset: Dataset) -> bool:
    """Return whether a data set holds labelled answers, rather than attacks or questions."""
    attacks = any(slice_.attacks for slice_ in dataset.slices.values())
    return not dataset.kind.answered and not attacks


def labelled_answers(subject: Subject, asking: Collection[Dataset]) -> LabelledAnswers:
    """Return the labelled answers of a slice, beside the data sets that ask a model."""
    return LabelledAnswers(
        slice_=subject.slice_,
        cases=subject.cases,
        asked=_questions_asked(asking, subject.slice_.language),
    )


def asking_datasets(checked: Collection[Dataset]) -> list[Dataset]:
    """Return the data sets that a model answers: those being checked, and the bundled ones."""
    by_folder = {dataset.folder.resolve(): dataset for dataset in checked}
    for path in sorted(CASES.rglob(DATASET_FILE)):
        folder = path.parent.resolve()
        if folder not in by_folder:
            by_folder[folder] = load_dataset(path)
    return [dataset for dataset in by_folder.values() if dataset.kind.answered]


def _questions_asked(
    datasets: Collection[Dataset], language: str
) -> dict[str, frozenset[str]]:
    questions = {}
    for dataset in datasets:
        slice_ = dataset.slices.get(language)
        if slice_ is None:
            continue
        try:
            cases = load_cases(slice_)
        except UsageError:  # told where that data set is checked
            continue
        questions[dataset.name] = frozenset(_plain(case.question) for case in cases)
    return questions


def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


def lines_about(labelled: LabelledAnswers) -> list[str]:
    """Return a line of counts, and one of what they can show of a judge."""
    path = labelled.slice_.path
    lines = [f"{path}: labels: {_counts(labelled)}"]
    answers_to = [len(cases) for cases in labelled.questions.values()]
    said = label_power.sentences(classes(labelled), answers_to, _floor(labelled))
    if said:
        lines.append(f"{path}: labels show: {'; '.join(said)}")
    return lines


def _counts(labelled: LabelledAnswers) -> str:
    answers = plural(len(labelled.cases), "answer")
    questions = plural(len(labelled.questions), "question")
    found = Counter(case.label or "tied" for case in labelled.cases)
    labels = {label: found[label] for label in (*_labels(labelled), *found)}
    if labelled.is_rated:
        labels = found
    kinds = Counter(kind for case in labelled.cases if (kind := _kind_of_error(case)))
    parts = [f"{answers} to {questions}", _by_label(labels)]
    if kinds:
        by_kind = [f"{kind} {count}" for kind, count in kinds.most_common()]
        parts.append(f"{plural(len(kinds), 'kind')} of {ERROR}: {', '.join(by_kind)}")
    return "; ".join(parts)


def _by_label(labels: Mapping[str, int]) -> str:
    """Return the counts by label, ratings in their order."""
    if all(label.isdigit() for label in labels):
        in_order = sorted(labels, key=int)
        return ", ".join(f"{labels[label]} rated {label}" for label in in_order)
    return ", ".join(f"{count} {label}" for label, count in labels.items())


def _kind_of_error(case: Case) -> str:
    value = case.metadata.get(ERROR)
    return "" if value is None else str(value).strip()


def _floor(labelled: LabelledAnswers) -> Floor:
    """Return what the slice asks of a judge: ratings count by their side of the bar."""
    slice_ = labelled.slice_
    measure = "pass_agreement" if labelled.is_rated else "agreement"
    return Floor(
        share=slice_.floor.get(measure, 0.0),
        limit=slice_.floor_limit.get(measure, 0.0),
    )


def classes(labelled: LabelledAnswers) -> list[LabelClass]:
    """Return the classes of labelled answers in which a judge's errors are measured apart.

    Right answers are one class, and each other label is one. Ratings make two, those near
    the bar on either side: far from it no error moves a verdict.
    """
    slice_ = labelled.slice_
    if labelled.is_rated:
        below, above = _near_bar(slice_.pass_bar)
        return [
            _class_of(labelled, f"rated {_or(above)}", above, passes=True),
            _class_of(labelled, f"rated {_or(below)}", below, passes=False),
        ]
    right = [label for label in _labels(labelled) if label in slice_.passing]
    wrong = [label for label in _labels(labelled) if label not in slice_.passing]
    return [
        _class_of(labelled, " or ".join(right), right, passes=True),
        *(_class_of(labelled, label, [label], passes=False) for label in wrong),
    ]


def _labels(labelled: LabelledAnswers) -> Sequence[str]:
    """Return the labels that answers may have: two where one says only "not right"."""
    if any(case.label == NOT_CORRECT for case in labelled.cases):
        return TWO_WAY
    return labelled.slice_.labels


def _class_of(
    labelled: LabelledAnswers, name: str, labels: Collection[str], *, passes: bool
) -> LabelClass:
    answers_to = []
    for cases in labelled.questions.values():
        of_class = [case for case in cases if _class_label(labelled, case) in labels]
        answers_to.append(len(of_class))
    return LabelClass(name=name, passes=passes, answers_to=tuple(answers_to))


def _class_label(labelled: LabelledAnswers, case: Case) -> str | None:
    """Return the label that counts: NOT_CORRECT for all wrong ones where a row has it."""
    is_wrong = case.label is not None and case.label not in labelled.slice_.passing
    if is_wrong and NOT_CORRECT in _labels(labelled):
        return NOT_CORRECT
    return case.label


def _near_bar(bar: int) -> tuple[list[str], list[str]]:
    """Return the ratings near the bar that do not pass, and those that do."""
    below = [str(rating) for rating in range(max(1, bar - NEAR), bar)]
    above = [str(rating) for rating in range(bar, min(10, bar + NEAR - 1) + 1)]
    return below, above


def _or(labels: Sequence[str]) -> str:
    return " or ".join(labels) or "below the bar"


# What a set requires of itself: errors.

Requirement = Callable[[LabelledAnswers, Requirements], Iterator[Finding]]


def enough_answers(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find too few answers."""
    count = len(labelled.cases)
    if count < required.answers:
        yield error(0, _short(plural(count, "answer"), count, required.answers))


def enough_questions(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find too few questions for the answers to stand on."""
    count = len(labelled.questions)
    if count < required.questions:
        yield error(0, _short(plural(count, "question"), count, required.questions))


def _short(counted: str, count: int, fewest: int) -> str:
    return f"{counted}, fewer than the {fewest} required; add {fewest - count}"


def few_answers_to_a_question(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find questions with too many answers."""
    most = required.answers_per_question
    for cases in labelled.questions.values():
        if len(cases) > most:
            asked = shown(cases[0].question)
            message = f"{len(cases)} answers to {asked}, more than {most}"
            advice = "give some of them questions of their own"
            yield error(cases[most].row, f"{message}; {advice}")


def enough_of_each_label(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find labels that too few answers have."""
    counts = Counter(case.label for case in labelled.cases)
    for label, fewest in required.labels.items():
        if counts[label] < fewest:
            yield error(0, _short(f"{counts[label]} {label}", counts[label], fewest))


def rarer_labels(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find labels that are more frequent than another one should let them be."""
    counts = Counter(case.label for case in labelled.cases)
    for label, other in required.no_more_than.items():
        if counts[label] > counts[other]:
            message = f"{counts[label]} {label}, more than {counts[other]} {other}"
            advice = "the easier class would flatter a judge; add to the other"
            yield error(0, f"{message}; {advice}")


def enough_near_the_bar(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find too few ratings next to the bar, on either side of it."""
    counts = Counter(case.label for case in labelled.cases)
    for ratings in _near_bar(labelled.slice_.pass_bar):
        count = sum(counts[rating] for rating in ratings)
        if count < required.near_bar:
            counted = f"{count} rated {_or(ratings)}"
            yield error(0, _short(counted, count, required.near_bar))


def each_error_named(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find answers that do not say what a judge may get wrong about them."""
    if not required.errors_named:
        return
    for case in labelled.cases:
        if not _kind_of_error(case):
            yield error(case.row, f"{ERROR!r} is empty; name the kind")


def no_common_frame(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find answers that look like one form filled in: the same five words in a row.

    Words that stand so in the question do not count: an answer may repeat it.
    """
    rows_with: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for case in labelled.cases:
        for frame in _frames(case):
            rows_with[frame].append(case.row)
    told = set()
    for frame, rows in rows_with.items():
        if len(rows) <= required.answers_per_frame or tuple(rows) in told:
            continue
        told.add(tuple(rows))
        words = shown(" ".join(frame))
        message = f"{words} stands in {len(rows)} answers (rows {_rows(rows)})"
        yield error(
            rows[0], f"{message}, more than {required.answers_per_frame}; reword"
        )


def _frames(case: Case) -> list[tuple[str, ...]]:
    """Return the runs of five words of an answer, each once, but for its question's."""
    asked = " ".join(re.findall(r"\w+", case.question.casefold()))
    words = re.findall(r"\w+", (case.recorded or "").casefold())
    frames: dict[tuple[str, ...], None] = {}
    for start in range(len(words) - FRAME_WORDS + 1):
        frame = tuple(words[start : start + FRAME_WORDS])
        if " ".join(frame) not in asked:
            frames[frame] = None
    return list(frames)


def own_questions(
    labelled: LabelledAnswers, required: Requirements
) -> Iterator[Finding]:
    """Find questions that a data set asks of models, although it must not."""
    for name in required.not_asked_in:
        for case in _shared_with(labelled, name):
            message = f"{shown(case.question)} is asked in {name} too"
            yield error(case.row, f"{message}; keep it in one of the two")


def _shared_with(labelled: LabelledAnswers, name: str) -> list[Case]:
    """Return the first answer to each question that a data set asks too."""
    asked = labelled.asked.get(name, frozenset())
    return [
        cases[0]
        for cases in labelled.questions.values()
        if _plain(cases[0].question) in asked
    ]


def _rows(rows: Sequence[int]) -> str:
    return first_of([str(row) for row in rows], ROWS_NAMED)


REQUIREMENTS: Sequence[Requirement] = (
    enough_answers,
    enough_questions,
    few_answers_to_a_question,
    enough_of_each_label,
    rarer_labels,
    enough_near_the_bar,
    each_error_named,
    no_common_frame,
    own_questions,
)


def breaches(labelled: LabelledAnswers, required: Requirements) -> Iterator[Finding]:
    """Find all that a set requires of itself and does not hold."""
    for requirement in REQUIREMENTS:
        yield from requirement(labelled, required)


# What labels cannot show: warnings.


def crowded_questions(labelled: LabelledAnswers) -> Iterator[Finding]:
    """Find that answers stand on few questions, and so tell of these alone."""
    crowded = [
        cases for cases in labelled.questions.values() if len(cases) > FEW_TO_A_QUESTION
    ]
    if not crowded:
        return
    largest = max(crowded, key=len)
    message = (
        f"{plural(len(crowded), 'question')} with more than {FEW_TO_A_QUESTION} answers"
    )
    example = f"{len(largest)} on {shown(largest[0].question)}"
    advice = "they count together and show little more than one; answer other questions"
    yield warning(0, f"{message} ({example}): {advice}")


def small_classes(labelled: LabelledAnswers) -> Iterator[Finding]:
    """Find classes with so few answers that nobody sees how often a judge errs there."""
    small = [each for each in classes(labelled) if each.total < EACH_CLASS]
    if small:
        counts = ", ".join(f"{each.total} {each.name}" for each in small)
        message = f"{counts}: fewer than {EACH_CLASS} of a class cannot show how often"
        yield warning(0, f"{message} a judge errs there; add more")


def shared_questions(labelled: LabelledAnswers) -> Iterator[Finding]:
    """Find that a judge is measured on questions on which it also decides."""
    for name in labelled.asked:
        shared = [case for case in _shared_with(labelled, name) if not _is_drawn(case)]
        if not shared:
            continue
        total = plural(len(labelled.questions), "question")
        rows = _rows([case.row for case in shared])
        message = f"{len(shared)} of {total} asked in {name} too (rows {rows})"
        advice = "these labels cannot show how a judge does on others; ask others here"
        yield warning(0, f"{message}: {advice}")


def _is_drawn(case: Case) -> bool:
    """Return whether it is a model's own answer, drawn from a run: its questions are asked too."""
    return DRAWN_GRADE in case.metadata


def no_kinds_of_error(labelled: LabelledAnswers) -> Iterator[Finding]:
    """Find that nothing says of what kind an answer is."""
    constructed = [case for case in labelled.cases if not _is_drawn(case)]
    if constructed and not any(_kind_of_error(case) for case in constructed):
        message = f"no column {ERROR!r} names what is hard about each answer"
        yield warning(0, f"{message}: a report cannot show what a judge is weak at")


CAVEATS: Mapping[str, Callable[[LabelledAnswers], Iterator[Finding]]] = {
    "crowded-question": crowded_questions,
    "small-class": small_classes,
    "asked-too": shared_questions,
    "error-kinds": no_kinds_of_error,
}
"""What is checked of a labelled set that requires nothing of itself, by name."""
