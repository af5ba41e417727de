"""What a report holds apart from counts, metrics and gates: values, and nothing that counts them.

In the order of the file: how answers compare with those of earlier runs and of other
languages, how far the judge can be believed, what people's verdicts say, and the trend over
earlier runs. Intervals are at 95 %, as in all of the product.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from qagate.evaluators.judges.drift import CanaryResult
from qagate.evaluators.judges.rule_checks import NO_CHECKS, RuleChecks
from qagate.evaluators.kinds import DatasetName, LanguageName, MetricName
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.agreement import PairAgreement
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.misclassification import KeptShare
from qagate.evaluators.typed_data import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShift:
    """What answers took, over pairs known in both; ``factor`` is now / before, paired."""

    before: Estimate
    now: Estimate
    factor: Estimate


Flip = Literal["fixed", "broke", "same", "new", "changed", "ungraded"]
"""An item compared with the baseline's: ``new`` was not there, ``changed`` has other data now, and
``ungraded`` lacks a grade in at least one of the two runs."""

MeasuredIn = Literal["records", "session", "ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One item whose flip, grade or rating differs from the baseline's."""

    key: str
    flip: Flip
    answer: str | None = None
    """The baseline's, as are the fields below: None or empty for ``new`` and ``changed`` items."""
    grade: str | None = None
    rating: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceComparison:
    """One slice compared with the baseline's.

    The counts from ``fixed`` to ``repeats`` sum to the items of the new run, but for ``removed``.
    """

    dataset: DatasetName
    language: LanguageName
    """Empty where the languages of a dataset are pooled."""
    difference: Estimate
    """New - old of the share that passes, over graded pairs, with Tango's interval."""
    p_value: float | None
    """McNemar's exact one."""
    odds: Estimate
    """The ratio fixed / broke with its exact interval. None for an end, or for a value with a
    ``low`` end, means unbounded."""
    fixed: int
    broke: int
    both_right: int
    both_wrong: int
    ungraded: int
    """Items without a grade in the new run or in the old one."""
    added: int
    changed: int
    """Items with other data in the old run."""
    removed: int
    """Items of the old run alone."""
    repeats: int = 0
    """Items left out because the old run has fewer repeats."""
    differences: Mapping[str, Estimate] = field(default_factory=dict)
    """New - old of the other metrics."""
    usage: Mapping[str, UsageShift] = field(default_factory=dict)
    """What answers took then and now."""
    detectable: float | None = None
    """The drop that this many pairs would exclude with 80 % power if nothing changed."""
    blocked: str = ""
    """Why the difference may be the judge's own; empty where it is not."""
    respelt: int = 0
    """Of ``added``, items that ask what a removed one asked but for blanks, case and signs."""
    other_golds: int = 0
    """Pairs of one question whose golds differ by more than blanks, case and signs."""

    @property
    def name(self) -> str:
        """Dataset and language, as reports show them."""
        return f"{self.dataset}:{self.language or '*'}"

    @property
    def shared(self) -> int:
        """How many items both runs have, graded or not."""
        pairs = self.fixed + self.broke + self.both_right + self.both_wrong
        return pairs + self.ungraded + self.changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The run compared with its baseline."""

    model: str
    """The baseline's, as is the judge."""
    judge: str
    sha256: str = ""
    """The checksum of the baseline's records."""
    slices: tuple[SliceComparison, ...] = ()
    changes: tuple[Change, ...] = ()
    """In the order of the records; other items of a compared slice are unchanged."""
    warnings: tuple[str, ...] = ()
    """Judges that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedFact:
    """A fact that is right in the reference language and wrong in another."""

    fact: str
    reference: str
    """The key of the record in the reference language."""
    other: str
    """The key of the record in the other language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageGap:
    """How much worse the same facts do in a language than in the reference language."""

    dataset: DatasetName
    reference: LanguageName
    language: LanguageName
    difference: Estimate
    """Language - reference of the share that passes, paired by fact, with Tango's interval; with
    one that holds at any look where a language was stopped once its gates were decided."""
    p_value: float | None
    """McNemar's exact one; None where a language was stopped."""
    lapses: tuple[MissedFact, ...] = ()
    """Facts that are right in the reference language alone."""
    ahead: int = 0
    """The number of facts that are right in the other language alone."""


Symptom = Literal[
    "cut",
    "thought_only",
    "empty",
    "echo",
    "repetition",
    "declined",
    "other_language",
]
"""What is wrong with an answer, whatever it says."""

HealthLevel = Literal["few", "warning", "severe"]
"""How large a share of answers is; a severe one keeps a run from passing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomCount:
    """How many answers of a slice have one symptom."""

    symptom: Symptom
    count: int
    old_count: int | None
    """In the baseline's answers, as today's reader reads them; None without one."""
    level: HealthLevel
    cause: str
    """What follows the numbers in a sentence: the symptom, the likely cause and what to do. Empty
    where no answer of this run has the symptom."""
    examples: tuple[str, ...] = ()
    """The keys of some of this run's answers with the symptom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceHealth:
    """How many answers of a slice are none, or not what was asked for."""

    dataset: DatasetName
    language: LanguageName
    answers: int
    """How many answers came."""
    old_answers: int | None
    """How many the baseline has; None without one."""
    symptoms: tuple[SymptomCount, ...]
    """Each symptom that an answer of one of the runs has, in the order of ``Symptom``."""
    is_waived: bool = False
    """Whether the data set says ``health: off``: then no share keeps the run from passing."""

    @property
    def name(self) -> str:
        """Dataset and language, as reports show them."""
        return f"{self.dataset}:{self.language}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionCell:
    """How many items with this given label got this grade."""

    label: str
    grade: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Labelled answers that are hard to judge for one reason, and how the judge did on them."""

    kind: str
    """What the column ``error`` of the labelled answers calls it."""
    wrong: int
    """Answers that the judge got wrong; ratings on the other side of the bar."""
    answers: int
    """Answers of this kind with a grade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAgreement:
    """How far the members of a panel, or the people who labelled, agree on one slice."""

    slice: str
    judges: tuple[str, ...]
    alpha: Estimate
    """Krippendorff's; its form for numbers where they rate."""
    pairs: tuple[PairAgreement, ...] = ()
    """Cohen's kappas; quadratic-weighted where they rate."""
    split: tuple[str, ...] = ()
    """The keys of the items on which they differ."""
    undecided: int = 0
    """Split items without a verdict."""
    silent: Mapping[str, int] = field(default_factory=dict)
    """Missing votes of each member that missed any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How well the judge agrees with given labels in one language, and its floor there."""

    dataset: DatasetName
    language: LanguageName
    measures: Mapping[MetricName, Estimate]
    floor: Mapping[str, float] = field(default_factory=dict)
    """The lowest trustworthy metrics, by name."""
    floor_limit: Mapping[str, float] = field(default_factory=dict)
    """What the whole 95 % interval of a metric must keep to."""
    trusted: bool | None = None
    """None where no floor is given, or too few labels show that it is reached."""
    reason: str = ""
    """Why the judge is not trusted."""
    graders: tuple[str, ...] = ()
    """The slices whose gates depend on it."""
    source: MeasuredIn = "records"
    """Where the verdicts are: in the run's ``records``, in this ``session``, or in the ``ledger``.
    """
    stand_in: str = ""
    """How an offline judge with a floor of its own compares with a model's floor."""
    items: int = 0
    """Labelled items asked, those without a grade included."""
    whole: int = 0
    """Labelled items in the data."""
    ungraded: int = 0
    """Verdicts that are missing."""
    constructed: int = 0
    """Labels of answers that were written to test the judge."""
    bundled: bool = False
    """Whether the labelled answers come with this package; none of them is the user's own then."""
    pass_bar: int | None = None
    """The rating that passes; None where labels are no ratings."""
    kept: tuple[KeptShare, ...] = ()
    """How much of each class it keeps on its side of the border of answers that pass."""
    confusion: tuple[ConfusionCell, ...] = ()
    tokens: int = 0
    """Of replies that no record counts, as is the cost in USD."""
    cost: float | None = 0.0
    people: PanelAgreement | None = None
    """How far the people agree whose labels these are; None where they are not told apart."""
    judges: Mapping[str, int] = field(default_factory=dict)
    """How many verdicts that no record holds came from each judge, as providers name it."""
    weaknesses: tuple[Weakness, ...] = ()
    """What it is weak at, worst first; empty where the labelled answers name no kinds."""

    @property
    def labels(self) -> str:
        """How many labelled items there are, and what to call them where all are constructed."""
        count = max(self.items, self.whole)
        if 0 < self.items <= self.constructed:
            text = f"{plural(count, 'unit test')} of the judge"
        else:
            text = plural(count, "labelled item")
        if self.items < self.whole:
            return f"{self.items:,} of {text}"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesCheck:
    """How often the model differs from the rules before it, on answers that the rules settled."""

    judged: int
    settled: int
    """Answers, of the ``judged``, that needed no model."""
    difference: Estimate
    """Over the settled answers that the model graded as well."""
    differing: tuple[str, ...] = ()
    """The keys of those on which it differs."""
    silent: int = 0
    """Answers that it had to grade as well, and did not."""
    grades: Mapping[str, str] = field(default_factory=dict)
    """What it says, by the key of the item; empty where it gave no grade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPair:
    """What the first form of an audit fixed of two answers to an item."""

    why: str
    """Why people look at them, a key of the form's reasons; empty for answers of the same text."""
    probability: Share
    """The probability that they are drawn, 0 to 1."""
    judged: Annotated[int, Meta(ge=-1, le=1)]
    """New - old by the judge's verdicts; 0 where one is missing."""
    share: Share
    """The gate's ``share``."""
    order: str = ""
    """The data set's ``order``."""


AuditPlan = Mapping[
    str, PlannedPair
]  # the pairs of an audit, by a hash of the two answers


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStep:
    """The evidence of an audit after ``looked`` pairs."""

    looked: int
    passing: float
    """For PASS, as a logarithm to the base 10: 1.602, which is 40, decides."""
    failing: float
    """For FAIL, on the same scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """What people's verdicts on pairs of answers say of a gate."""

    pairs: int
    alike: int
    """Pairs with the same text twice."""
    looked: int
    """Pairs that people have judged."""
    open: int
    """Drawn pairs that people have not judged yet."""
    next: int
    """Open pairs to judge now: as many as may decide the gate."""
    judged: Estimate
    """The difference that the judge sees."""
    corrected: Estimate
    """``judged`` corrected for the judge's errors; undefined where nothing measures these."""
    steps: tuple[AuditStep, ...] = ()
    """In the order of the pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A slice's ``correct``, corrected for the judge's errors."""

    slice: str
    correct: Estimate
    """Undefined where ``unfit``."""
    labelled: int
    """Labelled items that measure these errors."""
    sensitivity: float
    specificity: float
    unfit: str = ""
    """Why the labels correct nothing here; else empty."""
    by_people: int = 0
    """Answers that a person judged: they count as they are."""
    constructed: int = 0
    """Labelled answers that were written to be hard; no model gave them."""

    @property
    def caution(self) -> str:
        """What else to know before the figure is used, empty where there is nothing."""
        cautions = []
        if self.unfit:
            cautions.append(self.unfit)
        if self.by_people:
            answers = plural(self.by_people, "answer")
            cautions.append(f"{answers} by people as they are")
        if self.constructed:
            cautions.append(
                f"{self.constructed} of the labels are unit tests of the judge, constructed "
                "answers: they say nothing certain about its errors on this run's own"
            )
        return "; ".join(cautions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Who graded, and how far the grades can be believed."""

    graded: int = 0
    """Graded items of the kinds that a judge decides."""
    settled: int = 0
    """Graded items that needed no call to a judge's model."""
    by_judge: Mapping[str, int] = field(default_factory=dict)
    """Graded items by who decided."""
    calibrations: tuple[Calibration, ...] = ()
    unmeasured: tuple[str, ...] = ()
    """Slices whose judge no labels of the run measure."""
    waived: tuple[str, ...] = ()
    """Why grades count as read although no label measures who gave them, a line each."""
    disagreements: tuple[str, ...] = ()
    """The keys of items on which a panel split."""
    rules: RulesCheck | None = None
    """None unless rules stand before a model."""
    panels: tuple[PanelAgreement, ...] = ()
    """One for each slice that a panel judged."""
    corrected: tuple[Corrected, ...] = ()
    """One for each graded slice whose judge enough labelled items measure."""

    @property
    def rule_checks(self) -> RuleChecks:
        """What the model says of answers that rules before it settled."""
        return NO_CHECKS if self.rules is None else self.rules.grades

    canaries: tuple[CanaryResult, ...] = ()
    """Whether the judge is still the one that gave the kept grades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendFigure:
    """A slice's headline metric in an earlier run."""

    measure: MetricName
    estimate: Estimate
    changed: tuple[str, ...] = ()
    """What else was different then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A promoted run."""

    name: str
    started: str
    """An ISO time stamp."""
    model: str
    slices: Mapping[str, TrendFigure]
    """Those that it shares with the report."""
