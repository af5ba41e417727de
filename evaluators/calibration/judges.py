"""The judge that is measured: ``--judge`` read, checked and connected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.calibration.labelled import Style
from evaluators.core import Judge, Model, UsageError
from evaluators.judges.cascade import CascadeJudge
from evaluators.judges.choice import ChoiceJudge, empty_answer_verdict
from evaluators.judges.lexical.lexical_judge import LexicalJudge
from evaluators.judges.naming import BEFORE
from evaluators.judges.overlap import OverlapRater
from evaluators.judges.panel import PanelJudge
from evaluators.judges.rating import RatingJudge, empty_answer_rating
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec, parse
from evaluators.rubric import Rubric, load_rubric, load_template

LEXICAL = "lexical"
RUBRICS = Path(__file__).parents[1] / "rubrics"
DEFAULT_RUBRIC: Mapping[Style, str] = {"graded": "simpleqa", "rated": "eba"}
FALLBACK = "en"

Make = Callable[[Style, Rubric], Judge]
"""Return the judge of one style that asks by this rubric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFactory:
    """A judge ready to be measured: how to make it, and the models behind it with their prices."""

    name: str
    make: Make
    models: tuple[Model, ...]
    specs: tuple[Spec, ...]


def connect_bench(names: Sequence[str], key_of: Callable[[Spec], Key | None]) -> JudgeFactory:
    """Return the judge of ``--judge``: ``lexical``, a model's SPEC, ``lexical+SPEC``, or several.

    Several are a panel that votes. ``key_of`` gives a model's key, None where nothing is sent.
    Raises UsageError for a SPEC that names nothing, or a judge named twice.
    """
    if len(set(names)) < len(names):
        msg = f"--judge: the same judge twice: {', '.join(names)}; name each once"
        raise UsageError(msg)
    catalogue = load_catalogue() if set(names) - {LEXICAL} else {}
    texts = [_model_of(name) for name in names]
    specs = tuple(_parsed(text, catalogue) for text in dict.fromkeys(texts) if text)
    models = {spec.text: connect(spec, key_of(spec)) for spec in specs}
    makers = [_maker(name, models) for name in names]
    make = makers[0] if len(makers) == 1 else _panel(names, makers)
    return JudgeFactory(name=" ".join(names), make=make, models=tuple(models.values()), specs=specs)


def rubric_for(name: str, language: str, style: Style) -> Rubric:
    """Return the rubric of this name, or in this file, for a language.

    A bundled rubric that lacks the language serves in English. Raises UsageError where there is
    none, or where its replies are not of this style.
    """
    if Path(name).suffix:
        rubric = load_template(Path(name), language, "rate" if style == "rated" else "letter")
    else:
        rubric = load_rubric(_bundled(name, language))
    if (rubric.protocol == "rate") != (style == "rated"):
        other = "ratings" if rubric.protocol == "rate" else "grades"
        msg = f"--rubric {name}: it asks for {other}, and the labels are {style}; give another"
        raise UsageError(msg)
    return rubric


def _bundled(name: str, language: str) -> Path:
    for code in (language, language.partition("-")[0], FALLBACK):
        path = RUBRICS / f"{name}.{code}.yaml"
        if path.is_file():
            return path
    known = sorted({path.name.split(".")[0] for path in RUBRICS.glob("*.*.yaml")})
    msg = f"--rubric {name!r}: not known; known: {', '.join(known)}, or the path of a rubric file"
    raise UsageError(msg)


def _model_of(name: str) -> str:
    head, plus, rest = name.partition(BEFORE)
    if name == LEXICAL:
        return ""
    return rest if plus and head == LEXICAL else name


def _parsed(text: str, catalogue: Mapping[str, Spec]) -> Spec:
    try:
        return parse(text, catalogue)
    except UsageError as problem:
        offline = f"offline: {LEXICAL}; before a model: {LEXICAL}{BEFORE}SPEC"
        msg = f"--judge: {problem}; {offline}"
        raise UsageError(msg) from None


def _maker(name: str, models: Mapping[str, Model]) -> Make:
    text = _model_of(name)
    if not text:
        return lambda style, rubric: OverlapRater() if style == "rated" else LexicalJudge()
    model = models[text]
    if text == name:
        return lambda style, rubric: _asking(style, rubric, model)
    return lambda style, rubric: _cascade(style, rubric, model)


def _asking(style: Style, rubric: Rubric, model: Model) -> Judge:
    if style == "rated":
        return RatingJudge(model=model, rubric=rubric)
    return ChoiceJudge(model=model, rubric=rubric)


def _cascade(style: Style, rubric: Rubric, model: Model) -> Judge:
    """Audit nothing: the given labels tell more. Shared words settle no rating."""
    asking = _asking(style, rubric, model)
    if style == "rated":
        return asking
    return CascadeJudge(rules=LexicalJudge(), model=asking, audit=0.0)


def _panel(names: Sequence[str], makers: Sequence[Make]) -> Make:
    for name in names:
        if BEFORE in name and _model_of(name) != name:
            msg = f"--judge {name}: rules before a model are no member of a panel"
            raise UsageError(msg)

    def make(style: Style, rubric: Rubric) -> Judge:
        return PanelJudge(
            judges=tuple(maker(style, rubric) for maker in makers),
            rating=style == "rated",
            spared=empty_answer_rating if style == "rated" else empty_answer_verdict,
        )

    return make
