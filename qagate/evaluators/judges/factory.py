"""Makes judges from ``--judge``: models connected once, then a judge for each place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from qagate.evaluators import doors
from qagate.evaluators.core import (
    GRADES,
    LEXICAL,
    PYTHON,
    Judge,
    JudgeSpec,
    Model,
    PanelSpec,
    UsageError,
)
from qagate.evaluators.judges import offline, rubric_judge
from qagate.evaluators.languages.word_lists import own_files
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.spec import Spec, check_judge, parse
from qagate.evaluators.models.urls import with_one_loopback_name
from qagate.evaluators.models.versions import may_be_one_model
from qagate.evaluators.rubric import (
    RUBRICS,
    Protocol,
    Rubric,
    Style,
    load_rubric,
    load_template,
)
from qagate.evaluators.text import Key

DEFAULT_RUBRIC: Mapping[Style, str] = {"graded": "simpleqa", "rated": "eba"}
"""The bundled rubric of a data set that names none."""

FALLBACK = "en"
"""The language of a bundled rubric that is not written in an item's language."""

KeyOf = Callable[[Spec], Key | None]
"""Returns a model's key; None if nothing is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a judge serves: grades or ratings, by a rubric, in one of several repeats."""

    style: Style
    rubric: Rubric | None = None
    repeat: int = 1
    """Counts from 1."""
    labelled: bool = False
    """Whether labelled answers measure the judge here: of a cascade they measure the model."""
    name: str = ""
    """Names the place in errors."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The grades that a verdict may have here."""
        return self.rubric.labels if self.rubric else GRADES


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFactory:
    """Judges with their models connected."""

    spec: PanelSpec
    models: Mapping[str, Model]
    """By SPEC, as in ``specs``."""
    specs: Mapping[str, Spec]

    @property
    def first_model(self) -> Model | None:
        """The first model that may judge; None if only rules judge."""
        specs = self.spec.models()
        return self.models[specs[0]] if specs else None

    def build(self, place: Place) -> Judge:
        """Return the judge of a place. Raises UsageError if the judge cannot serve there."""
        members = tuple(self._member(member, place) for member in self.spec.members)
        if not self.spec.is_panel:
            return members[0]
        make_panel = doors.load_panel()
        return make_panel(judges=members)

    def _member(self, judge: JudgeSpec, place: Place) -> Judge:
        rules_fit = judge.rules != LEXICAL or place.labels == GRADES
        if not judge.model:
            if place.style == "graded" and not rules_fit:
                raise UsageError(
                    f"{place.name}: --judge {judge.rules} gives {', '.join(GRADES)}, and the "
                    f"rubric has the labels {', '.join(place.labels)}; name a judge that gives "
                    "these"
                )
            return offline.offline_judge(judge.rules, place.style, place.labels)
        model = self._rubric_judge(judge, place)
        if not judge.is_cascade or place.style == "rated" or not rules_fit:
            return model  # the rules of a cascade may not be able to settle anything
        rules = offline.offline_judge(judge.rules, place.style, place.labels)
        make_cascade = doors.load_cascade()
        return make_cascade(rules=rules, model=model, rules_settle=not place.labelled)

    def _rubric_judge(self, judge: JudgeSpec, place: Place) -> rubric_judge.RubricJudge:
        if place.rubric is None or place.rubric.style != place.style:
            wanted = "ratings" if place.style == "rated" else "grades"
            raise UsageError(
                f"{place.name}: an LLM judge needs a rubric; name one in its dataset.yaml that "
                f"asks for {wanted}"
            )
        return rubric_judge.RubricJudge(
            model=self.models[judge.model], rubric=place.rubric, repeat=place.repeat
        )


def connect_judges(spec: PanelSpec, key_of: KeyOf) -> JudgeFactory:
    """Return the judges, with one model for each SPEC; nothing is sent yet.

    A SPEC may be a name in the bundled models.yaml, but none in a models file of the user.
    Raises UsageError for an unknown SPEC, a panel that cannot vote, or a missing key.
    """
    bundled = load_catalogue() if spec.models() else {}
    specs = resolve_judges(spec, bundled)
    check_panel(spec, specs)
    models = {}
    for text, model_spec in specs.items():
        models[text] = connect(model_spec, key_of(model_spec))
    return JudgeFactory(spec=spec, models=models, specs=specs)


def resolve_judges(spec: PanelSpec, catalogue: Mapping[str, Spec]) -> dict[str, Spec]:
    """Return the models' specs by SPEC. Raises UsageError for an unknown model or rules.

    ``catalogue`` has models by their own names.
    """
    specs = {}
    for member in spec.members:
        if member.rules.startswith(PYTHON):
            offline.load_class(member.rules)
        elif member.rules:
            own_files()
        if not member.model:
            continue
        try:
            specs[member.model] = check_judge(parse(member.model, catalogue))
        except UsageError as problem:
            raise UsageError(
                f"--judge: {problem}; offline: {LEXICAL}; before a model: "
                f"{LEXICAL}+SPEC; rules of your own: {PYTHON}MODULE:CLASS"
            ) from None
    return specs


def check_panel(spec: PanelSpec, specs: Mapping[str, Spec]) -> None:
    """Raise UsageError for judges that cannot vote together, or a model named twice."""
    if not spec.is_panel:
        return
    for member in spec.members:
        if member.is_cascade:
            raise UsageError(
                f"--judge {member.name}: rules before a model are no member of a panel; name "
                f"{member.model} alone, or the rules as a judge of their own"
            )
    for first, second in combinations(spec.members, 2):
        if _identity(first, specs) == _identity(second, specs):
            raise UsageError(
                f"--judge {second.name}: the same judge as --judge {first.name}; name it once"
            )


def _identity(judge: JudgeSpec, specs: Mapping[str, Spec]) -> str | tuple[str, str]:
    """Return what two names of one judge have in common: the model's address, or the rules."""
    if judge.model in specs:
        return address(specs[judge.model])
    return judge.name


def address(spec: Spec) -> tuple[str, str]:
    """Return the URL and name of a model: equal for two SPECs of one model, over any API.

    This machine has one name, whether a SPEC says ``localhost`` or ``127.0.0.1``.
    """
    return with_one_loopback_name(spec.base_url), spec.name


def is_same_model(first: Spec, second: Spec) -> bool:
    """Return whether two SPECs may be one model: at one address, by any names of theirs.

    A name without a date means any dated one. A model has the names under which its replies
    may come, too.
    """
    first_url, _ = address(first)
    second_url, _ = address(second)
    if first_url != second_url:
        return False
    names = product((first.name, *first.answers_as), (second.name, *second.answers_as))
    return any(may_be_one_model(name, other) for name, other in names if name != "*")


def rubric_for(name: str, language: str, style: Style | None = None) -> Rubric:
    """Return the rubric with this name, or in this file, for a language.

    A bundled rubric that lacks the language is used in English. Raises UsageError for an unknown
    rubric, or one of another style.
    """
    if Path(name).suffix:
        protocol: Protocol = "rate" if style == "rated" else "letter"
        rubric = load_template(Path(name), language, protocol)
    else:
        rubric = _bundled_rubric(name, language)
    if style and rubric.style != style:
        other = "ratings" if rubric.style == "rated" else "grades"
        raise UsageError(
            f"--rubric {name}: it asks for {other}, and the labels are {style}; give another"
        )
    return rubric


def _bundled_rubric(name: str, language: str) -> Rubric:
    """Return a bundled rubric in a language such as ``en-GB``, in ``en``, or in English."""
    without_country, _, _ = language.partition("-")
    for code in (language, without_country, FALLBACK):
        path = RUBRICS / f"{name}.{code}.yaml"
        if path.is_file():
            return load_rubric(path)
    names = {path.name.split(".")[0] for path in RUBRICS.glob("*.*.yaml")}
    known = ", ".join([*sorted(names), "or the path of a rubric file"])
    raise UsageError(f"--rubric {name!r}: not known; known: {known}")
