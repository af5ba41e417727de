"""What a report says beyond one slice's metrics: comparison, language gaps, the judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from evaluators.output import plural
from evaluators.statistics.agreement import PairAgreement
from evaluators.statistics.intervals import Estimate
from evaluators.statistics.youden import Separation
from reports.run.usage_summary import UsageShift

Flip = Literal["fixed", "broke", "same", "new", "changed", "ungraded"]
"""An item beside the baseline's: ``new`` was not there, ``changed`` has other data now, and
``ungraded`` lacks a grade in at least one of the two runs."""

Source = Literal["records", "session", "ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One item that differs from the baseline: its flip, and what the baseline had for it.

    An item that did not flip is listed too where its grade or rating differs. What the baseline had
    is None or empty for ``new`` and ``changed`` items.
    """

    key: str
    flip: Flip
    answer: str | None = None
    grade: str | None = None
    rating: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceComparison:
    """One slice beside the baseline's; ``language`` is empty where a dataset's are pooled.

    ``difference`` is new - old of the share that passes, over graded pairs, with Tango's interval;
    ``p_value`` McNemar's exact one; ``odds`` the ratio fixed / broke with its exact interval (an
    end of None is unbounded, as is a value of None beside a ``low`` end). ``differences`` holds
    those of other metrics, ``usage`` what answers took. With no change so many pairs would exclude
    a drop of ``detectable`` with 80 % power.

    ``fixed``, ``broke``, ``both_right``, ``both_wrong``, ``ungraded`` (no grade in the new run, or
    none in the old one), ``added``, ``changed`` (other data) and ``repeats`` (left out, as the old
    run has fewer) sum to the items of the new run; ``removed`` are the old run's alone. ``blocked``
    says why the difference may be the judge's own.
    """

    dataset: str
    language: str
    difference: Estimate
    p_value: float | None
    odds: Estimate
    fixed: int
    broke: int
    both_right: int
    both_wrong: int
    ungraded: int
    added: int
    changed: int
    removed: int
    repeats: int = 0
    differences: Mapping[str, Estimate] = field(default_factory=dict)
    usage: Mapping[str, UsageShift] = field(default_factory=dict)
    detectable: float | None = None
    blocked: str = ""

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
    """The run beside its baseline, whose ``model`` and ``judge`` these are.

    ``sha256`` is that of the baseline's records. ``changes`` are in the order of the records; an
    item of a compared slice that is not among them is unchanged. ``warnings`` name changed judges.
    """

    model: str
    judge: str
    sha256: str = ""
    slices: tuple[SliceComparison, ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedFact:
    """A fact that is right in the reference language and wrong in another; keys of both records."""

    fact: str
    reference: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageGap:
    """How much worse the same facts come out in a language than in the reference language.

    ``difference`` is language - reference of the share that passes, paired by fact, with Tango's
    interval; ``p_value`` McNemar's exact one. ``lapses`` are right in the reference alone, and
    ``ahead`` counts those in the other language alone.
    """

    dataset: str
    reference: str
    language: str
    difference: Estimate
    p_value: float
    lapses: tuple[MissedFact, ...] = ()
    ahead: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionCell:
    """How many items with this given label got this grade."""

    label: str
    grade: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAgreement:
    """How far the members of a panel, or the people who labelled, agree on one slice.

    ``alpha`` is Krippendorff's (of ratings: for numbers), ``pairs`` hold the kappas (of ratings:
    quadratic-weighted). ``split`` are the keys of the items on which they differ; ``undecided`` of
    these got no verdict. ``silent`` counts the missing votes of each member that missed any.
    """

    slice: str
    judges: tuple[str, ...]
    alpha: Estimate
    pairs: tuple[PairAgreement, ...] = ()
    split: tuple[str, ...] = ()
    undecided: int = 0
    silent: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How well the judge agrees with given labels in one language, and its floor there.

    ``floor_limit`` is what the whole 95 % interval of a measure has to keep to. ``trusted`` is None
    where no floor is given or the labels cannot show it reached; ``reason`` says why a judge is not
    trusted, ``stand_in`` how an offline judge with a floor of its own does beside that of a model.
    ``graders`` are the slices whose gates hang on it. ``source`` says where the verdicts are: among
    the ``records`` of the run, in the ``session`` beside them, or in the ``ledger`` from earlier.
    ``blocks`` says why the gates that hang on it cannot be decided. ``items`` counts the labelled
    items, those without a grade included, of the ``whole``; ``confusion`` (given label, grade)
    pairs. ``ungraded`` counts lacking verdicts, ``constructed`` labels of answers that were
    constructed. ``separations`` say how well it tells classes apart, by ``youden`` and the like.
    ``pass_bar`` is the rating that passes there, None where labels are no ratings. ``tokens`` and
    ``cost`` (USD) are of replies that no record counts.
    """

    dataset: str
    language: str
    measures: Mapping[str, Estimate]
    floor: Mapping[str, float] = field(default_factory=dict)
    floor_limit: Mapping[str, float] = field(default_factory=dict)
    trusted: bool | None = None
    reason: str = ""
    graders: tuple[str, ...] = ()
    source: Source = "records"
    blocks: str = ""
    stand_in: str = ""
    items: int = 0
    whole: int = 0
    ungraded: int = 0
    constructed: int = 0
    separations: Mapping[str, Separation] = field(default_factory=dict)
    pass_bar: int | None = None
    confusion: tuple[ConfusionCell, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0
    people: PanelAgreement | None = None
    """How far the people agree whose labels these are; None where they are not told apart."""

    @property
    def labels(self) -> str:
        """How many labelled items there are, and what to call them where all are constructed."""
        tests = 0 < self.items <= self.constructed
        noun, end = ("unit test", " of the judge") if tests else ("labelled item", "")
        sampled = f"{self.items:,} of " if self.items < self.whole else ""
        return f"{sampled}{plural(max(self.items, self.whole), noun)}{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """How often the model differs from the rules before it, over items that the rules decided.

    ``settled`` of ``judged`` items needed no model; it judged a random share of them as well, with
    no verdict on ``silent``. ``disagreement`` is a share of the others.
    """

    judged: int
    settled: int
    disagreement: Estimate
    silent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStep:
    """How far an audit had come when ``looked`` pairs had been looked at.

    ``passing`` and ``failing`` are the evidence that the gate passes and that it fails, as
    logarithms to the base 10: 40, which decides, is 1.602.
    """

    looked: int
    passing: float
    failing: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """What people's verdicts on pairs of answers say of a gate.

    ``alike`` of the ``pairs`` have the same text twice; ``looked`` were looked at, ``open`` are the
    drawn ones that are still to be, ``next`` of them now: as many as may decide it. ``judged`` is
    the difference that the judge sees, ``corrected`` the same freed of the judge's errors,
    undefined where nothing measures these. ``steps`` are in the order of the pairs.
    """

    pairs: int
    alike: int
    looked: int
    open: int
    next: int
    judged: Estimate
    corrected: Estimate
    steps: tuple[AuditStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A slice's ``correct`` corrected for the judge's errors, as ``labelled`` items show them.

    ``by_people`` of its answers were decided by a person, and count as they are; ``constructed`` of
    the labelled answers were written to be hard, and are none of a model's.
    """

    slice: str
    correct: Estimate
    labelled: int
    sensitivity: float
    specificity: float
    by_people: int = 0
    constructed: int = 0

    @property
    def caution(self) -> str:
        """What else to know before the figure is used, empty where there is nothing."""
        said = []
        if self.by_people:
            said.append(f"{plural(self.by_people, 'answer')} by people as they are")
        if self.constructed:
            said.append(
                f"{self.constructed} of the labels are unit tests of the judge, constructed "
                "answers: they say nothing certain about its errors on this run's own"
            )
        return "; ".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Who graded, and how far that can be believed.

    ``graded`` counts graded items of the kinds that a judge decides, ``by_judge`` by who decided;
    ``settled`` of them needed no call to a judge's model. A model checked ``audited`` of the items
    that rules had settled, and disagreed over those of ``audit_disagreements`` (keys);
    ``disagreements`` are the keys of items over which a panel split. ``unmeasured`` are slices
    whose judge no labels of the run measure. ``audit`` is None unless rules stand before a model;
    ``panels`` has each slice that a panel judged; ``corrected`` each graded slice whose judge
    enough labelled items measure.
    """

    graded: int = 0
    settled: int = 0
    by_judge: Mapping[str, int] = field(default_factory=dict)
    calibrations: tuple[Calibration, ...] = ()
    unmeasured: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    audited: int = 0
    audit_disagreements: tuple[str, ...] = ()
    audit: Audit | None = None
    panels: tuple[PanelAgreement, ...] = ()
    corrected: tuple[Corrected, ...] = ()
