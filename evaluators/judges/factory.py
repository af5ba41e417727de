"""From what ``--judge`` names to judges: models connected once, then a judge for each place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluators.core import GRADES, Judge, Model, UsageError
from evaluators.judge_spec import BEFORE, LEXICAL, PYTHON, JudgeSpec, PanelSpec
from evaluators.judges.ensemble import AUDIT, CascadeJudge, PanelJudge, Spared
from evaluators.judges.llm import (
    ChoiceJudge,
    RatingJudge,
    empty_answer_rating,
    empty_answer_verdict,
)
from evaluators.judges.offline import can_settle, files_of, load_class, offline_judge
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, check_judge, parse
from evaluators.reading import file_hash
from evaluators.rubric import Rubric, Style, load_rubric, load_template
from evaluators.secrets import Key
from evaluators.text import digest

RUBRICS = Path(__file__).parents[1] / "rubrics"
DEFAULT_RUBRIC: Mapping[Style, str] = {"graded": "simpleqa", "rated": "eba"}
FALLBACK = "en"
KeyOf = Callable[[Spec], Key | None]
"""Give a model's key; None where nothing is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a judge is built for: grades or ratings by a rubric, in one of several repeats.

    ``repeat`` counts from 1. ``name`` says in errors what lacks a rubric. ``audited`` False puts
    nothing that rules settle to the model as well: given labels tell more.
    """

    style: Style
    rubric: Rubric | None = None
    repeat: int = 1
    audited: bool = True
    name: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The grades that a verdict may have here."""
        return self.rubric.labels if self.rubric else GRADES


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFactory:
    """Judges with their models connected. ``models`` and ``specs`` are by the models' SPECs.

    ``seed`` draws what a cascade's model judges besides what its rules settle.
    """

    spec: PanelSpec
    models: Mapping[str, Model]
    specs: Mapping[str, Spec]
    seed: int = 0

    @property
    def name(self) -> str:
        """The SPECs of the judges, with a space between them."""
        return self.spec.name

    @property
    def first_model(self) -> Model | None:
        """The first model that may judge, None for rules alone."""
        asked = (self.models[one.model] for one in self.spec.members if one.model)
        return next(asked, None)

    @property
    def version(self) -> str:
        """A hash of what the judges are: their models' identities, and the rules' own files."""
        rules = {
            path.name: file_hash(path) for one in self.spec.members if one.rules
            for path in files_of(one.rules)
        }  # fmt: skip
        identities = [dict(self.models[text].identity) for text in self.spec.models()]
        return digest([self.name, identities, rules])[:12]

    def build(self, place: Place) -> Judge:
        """Return the judge of a place. Raises UsageError where it lacks what a judge needs."""
        if not self.spec.is_panel:
            return self._member(self.spec.members[0], place)
        return PanelJudge(
            judges=tuple(self._member(member, place) for member in self.spec.members),
            rating=place.style == "rated",
            spared=_spared(place),
        )

    def _member(self, one: JudgeSpec, place: Place) -> Judge:
        """Return one judge; a cascade's model alone where its rules can settle nothing."""
        if one.is_offline:
            if place.style == "graded" and not can_settle(one.rules, place.style, place.labels):
                raise UsageError(
                    f"{place.name}: --judge {one.rules} gives {', '.join(GRADES)}, and the rubric "
                    f"has the labels {', '.join(place.labels)}; name a judge that gives these"
                )
            return offline_judge(one.rules, place.style, place.labels)
        model = self._llm(self.models[one.model], place)
        if not one.is_cascade or not can_settle(one.rules, place.style, place.labels):
            return model
        rules = offline_judge(one.rules, place.style, place.labels)
        audit = AUDIT if place.audited else 0.0
        return CascadeJudge(rules=rules, model=model, audit=audit, seed=self.seed)

    def _llm(self, model: Model, place: Place) -> Judge:
        if place.rubric is None:
            raise UsageError(
                f"{place.name}: an LLM judge needs a rubric; name one in its dataset.yaml"
            )
        kind = RatingJudge if place.style == "rated" else ChoiceJudge
        return kind(model=model, rubric=place.rubric, repeat=place.repeat)


def _spared(place: Place) -> Spared | None:
    if place.style == "rated":
        return empty_answer_rating
    return None if place.labels != GRADES else empty_answer_verdict


def connect_judges(
    spec: PanelSpec, key_of: KeyOf, catalogue: Mapping[str, Spec] | None = None
) -> JudgeFactory:
    """Return the judges, each model connected once.

    ``catalogue`` holds the models that have a name of their own, None for the bundled ones.
    Raises UsageError for a SPEC that names nothing, a panel that cannot vote, or a missing key.
    """
    specs = resolve_judges(spec, catalogue)
    check_panel(spec, specs)
    models = {text: connect(one, key_of(one)) for text, one in specs.items()}
    return JudgeFactory(spec=spec, models=models, specs=specs)


def resolve_judges(spec: PanelSpec, catalogue: Mapping[str, Spec] | None = None) -> dict[str, Spec]:
    """Return what the judges' models are connected to, by SPEC.

    Raises UsageError for a SPEC that names no model, and for rules that cannot be loaded.
    """
    if catalogue is None:
        catalogue = load_catalogue() if spec.models() else {}
    found = {}
    for one in spec.members:
        if one.rules.startswith(PYTHON):
            load_class(one.rules)
        if not one.model:
            continue
        try:
            found[one.model] = check_judge(parse(one.model, catalogue))
        except UsageError as problem:
            raise UsageError(
                f"--judge: {problem}; offline: {LEXICAL}; before a model: "
                f"{LEXICAL}{BEFORE}SPEC; rules of your own: {PYTHON}MODULE:CLASS"
            ) from None
    return found


def check_panel(spec: PanelSpec, specs: Mapping[str, Spec]) -> None:
    """Raise UsageError for judges that cannot vote together, or a model named twice."""
    spec.check_panel({text: address(one) for text, one in specs.items()})


def address(spec: Spec) -> tuple[str, str]:
    """Return what two SPECs of the same model have in common, whichever API each asks it by."""
    return spec.base_url, spec.name


def rubric_for(name: str, language: str, style: Style | None = None) -> Rubric:
    """Return the rubric of this name, or in this file, for a language.

    A bundled rubric that lacks the language serves in English. Raises UsageError if there is none,
    or if its replies are not of this style.
    """
    if Path(name).suffix:
        rubric = load_template(Path(name), language, "rate" if style == "rated" else "letter")
    else:
        rubric = load_rubric(_bundled(name, language))
    if style and rubric.style != style:
        other = "ratings" if rubric.style == "rated" else "grades"
        raise UsageError(
            f"--rubric {name}: it asks for {other}, and the labels are {style}; give another"
        )
    return rubric


def _bundled(name: str, language: str) -> Path:
    for code in (language, language.partition("-")[0], FALLBACK):
        path = RUBRICS / f"{name}.{code}.yaml"
        if path.is_file():
            return path
    known = sorted({path.name.split(".")[0] for path in RUBRICS.glob("*.*.yaml")})
    raise UsageError(
        f"--rubric {name!r}: not known; known: {', '.join(known)}, or the path of a rubric file"
    )
