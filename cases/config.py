"""``dataset.yaml`` and gates files, as Dataset, Slice and Rule."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from cases.dataset import Dataset, Slice, Threshold
from cases.tables import normal
from cases.templates import find_prompt, find_rubric
from cases.thresholds import (
    KEY as METRICS_KEY,
)
from cases.thresholds import (
    check_measures,
    metric_rules,
    metrics_of,
    pooled_rule,
    ranges,
    rules_of,
)
from evaluators.core import Kind, UsageError
from evaluators.extra_metrics import GEVAL, METRICS
from evaluators.settings import Settings, load_settings
from evaluators.statistics.metrics import DROP, LABEL_SHARE, MAX_PENALTY, RATE, Range, gate_ranges
from evaluators.text import hint, shown

FILE = "dataset.yaml"
RUBRICS = Path(__file__).parents[1] / "evaluators" / "rubrics"
STAND_IN = "default"
FALLBACK_LANGUAGE = "en"
PASS_BAR = 6
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

# Keys that a language may have; of these, the dataset itself may give the ones shared by all.
LANGUAGE_KEYS = (
    *("file", "gates", "prompt", "rubric", "rubric_language", "pass_bar", "yes", "no", "floor"),
    METRICS_KEY,
)
SHARED_KEYS = ("prompt", "rubric", "rubric_language", "pass_bar", "floor", METRICS_KEY)
DATASET_KEYS = (
    *("kind", "languages", "by", "penalty", DROP, "holm", "require_calibration"),
    *SHARED_KEYS,
)
# Keys that mean nothing to the other kinds.
KIND_KEYS: Mapping[str, Kind] = {
    "penalty": "graded",
    "pass_bar": "rated",
    "yes": "yes_no",
    "no": "yes_no",
    "floor": "judged",
}

Gates = Mapping[str, Mapping[str, tuple[Threshold, ...]]]
"""Rules by dataset and language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What every slice of one file shares."""

    top: Settings
    kind: Kind
    rubrics: Path

    @property
    def name(self) -> str:
        """The dataset's name: its folder's."""
        return self.top.path.resolve().parent.name


def load_dataset(path: Path, rubrics: Path = RUBRICS) -> Dataset:
    """Return the dataset that a ``dataset.yaml`` declares, named after its folder.

    ``rubrics`` is the folder of the bundled rubrics and prompts. Raises UsageError naming file,
    line and key for anything unknown, missing or out of range; data files are not opened.
    """
    source = _source(path, rubrics)
    languages = _languages(source)
    if STAND_IN in languages.values:
        _stand_in(source, FALLBACK_LANGUAGE, path)  # so that its errors do not wait for --items
    slices = {
        language: _slice(source, language, languages.part(language))
        for language in languages.values
        if language != STAND_IN
    }
    top = source.top
    return Dataset(
        name=source.name,
        folder=path.parent,
        kind=source.kind,
        slices=slices,
        pooled=_pooled(source),
        holm=top.flag("holm"),
        require_calibration=top.flag("require_calibration"),
    )


def with_items(dataset: Dataset, language: str, file: Path, rubrics: Path = RUBRICS) -> Dataset:
    """Return the dataset with this file as the items of a language.

    A language that is not listed gets what ``languages.default`` says: no gates, the English
    rubric unless another is named, ``declared=False``.
    """
    if language in dataset.slices:
        own = replace(dataset.slices[language], path=file)
    else:
        own = _stand_in(_source(dataset.folder / FILE, rubrics), language, file)
    return replace(dataset, slices={**dataset.slices, language: own})


def load_gates(path: Path) -> Gates:
    """Return the rules of a gates file: ``dataset: {language: {measure: {min: …}}}``.

    Raises UsageError naming file, line and key.
    """
    every = {name: limits for kind in get_args(Kind) for name, limits in gate_ranges(kind).items()}
    every.update(dict.fromkeys(METRICS, RATE))
    top = load_settings(path)
    datasets = {name: top.part(name) for name in top.values}
    return {
        name: {language: _gates(languages.part(language), every) for language in languages.values}
        for name, languages in datasets.items()
    }


def _gates(part: Settings, measures: Mapping[str, Range]) -> tuple[Threshold, ...]:
    own = {name: RATE for name in part.values if name.startswith((GEVAL, LABEL_SHARE))}
    return rules_of(part, {**measures, **own})


def with_gates(dataset: Dataset, gates: Gates) -> Dataset:
    """Return the dataset with these gates in place of all its own.

    Raises UsageError for a language that it does not have, or a measure of another kind.
    """
    own = gates.get(dataset.name, {})
    for language, rules in own.items():
        slice_ = dataset.slices.get(language)
        extra = ranges(slice_.metrics) if slice_ else {}
        if slice_:
            extra |= gate_ranges(dataset.kind, slice_.labels)
        problem = check_measures(rules, dataset.kind, extra)
        if slice_ is None:
            problem = f"no such language here; {hint(language, dataset.slices)}"
        if problem:
            msg = f"--gates: {dataset.name}: {language}: {problem}"
            raise UsageError(msg)
    slices = {
        language: replace(slice_, rules=own.get(language, ()))
        for language, slice_ in dataset.slices.items()
    }
    return replace(dataset, slices=slices, pooled=())


def _source(path: Path, rubrics: Path) -> _Source:
    top = load_settings(path)
    top.check_keys(DATASET_KEYS)
    word = top.text("kind")
    kind = next((kind for kind in get_args(Kind) if kind == word), None)
    if kind is None:
        raise top.problem(key="kind", what=f"got {shown(word)}; {hint(word, get_args(Kind))}")
    source = _Source(top=top, kind=kind, rubrics=rubrics)
    if not NAME.fullmatch(source.name):
        what = f"folder {shown(source.name)} names the dataset: letters, digits and _ only"
        raise top.problem(key="kind", what=what)
    _check_kind(source, top)
    return source


def _check_kind(source: _Source, settings: Settings) -> None:
    for key in settings.values:
        if KIND_KEYS.get(key, source.kind) != source.kind:
            what = f"only for kind {KIND_KEYS[key]}; this is {source.kind}; take it out"
            raise settings.problem(key, what)


def _languages(source: _Source) -> Settings:
    languages = source.top.part("languages")
    if not set(languages.values) - {STAND_IN}:
        what = "name at least one, for instance 'en: {file: en.csv}'"
        raise source.top.problem(key="languages", what=what)
    for language in languages.values:
        if language != STAND_IN and not LANGUAGE.fullmatch(language):
            raise languages.problem(language, "want a language code such as 'bg', or 'default'")
    return languages


def _slice(source: _Source, language: str, own: Settings) -> Slice:
    own.check_keys(LANGUAGE_KEYS)
    file = own.text("file")
    if not file:
        raise own.problem(key="file", what="missing; name the data file, relative to this one")
    bare = _bare(source, own, language, source.top.path.parent / file)
    gates = own.part("gates")
    known = {**gate_ranges(source.kind, bare.labels), **ranges(bare.metrics)}
    beside = metric_rules(_holder(source, own, METRICS_KEY), gates)
    return replace(bare, rules=(*rules_of(gates, known), *beside))


def _stand_in(source: _Source, language: str, file: Path) -> Slice:
    if not LANGUAGE.fullmatch(language):
        msg = f"--items: {shown(language)} is not a language code such as 'bg'"
        raise UsageError(msg)
    own = _languages(source).part(STAND_IN)
    own.check_keys([key for key in LANGUAGE_KEYS if key not in ("file", "gates")])
    return replace(_bare(source, own, language, file), declared=False)


def _bare(source: _Source, own: Settings, language: str, file: Path) -> Slice:
    """Return a slice without rules. What a language does not say, the dataset may."""
    _check_kind(source, own)
    spoken = _rubric_language(source, own, language)
    prompt = _holder(source, own, "prompt")
    rubric = _holder(source, own, "rubric")
    return Slice(
        dataset=source.name,
        language=language,
        kind=source.kind,
        path=file,
        prompt=find_prompt(prompt, source.rubrics, (language, spoken)),
        rubric=find_rubric(rubric, source.rubrics, spoken, source.kind),
        pass_bar=_holder(source, own, "pass_bar").whole("pass_bar", 1, 10) or PASS_BAR,
        penalty=_penalty(source),
        by=tuple(normal(name) for name in source.top.words("by")),
        yes=_word(source, own, "yes"),
        no=_word(source, own, "no"),
        floor=_floor(source, own),
        metrics=metrics_of(_holder(source, own, METRICS_KEY), source.kind),
    )


def _holder(source: _Source, own: Settings, key: str) -> Settings:
    return own if key in own.values else source.top


def _rubric_language(source: _Source, own: Settings, language: str) -> str:
    holder = _holder(source, own, "rubric_language")
    listed = source.top.part("languages").values
    spoken = holder.text("rubric_language", language if language in listed else FALLBACK_LANGUAGE)
    if not LANGUAGE.fullmatch(spoken):
        what = f"want a language code such as 'en', got {shown(spoken)}"
        raise holder.problem(key="rubric_language", what=what)
    return spoken


def _penalty(source: _Source) -> float:
    value = source.top.number("penalty", 0, MAX_PENALTY)
    return 1.0 if value is None else value


def _word(source: _Source, own: Settings, key: str) -> str:
    word = own.text(key)
    if source.kind == "yes_no" and not word:
        raise own.problem(key, f"missing; give the language's word for {key}")
    return word.strip()


def _floor(source: _Source, own: Settings) -> dict[str, float]:
    floor = _holder(source, own, "floor").part("floor")
    ranges = gate_ranges("judged")
    floor.check_keys(ranges)
    bars = {key: floor.number(key, *ranges[key]) for key in floor.values}
    return {key: bar for key, bar in bars.items() if bar is not None}


def _pooled(source: _Source) -> tuple[Threshold, ...]:
    if DROP not in source.top.values:
        return ()
    if DROP not in gate_ranges(source.kind):
        raise source.top.problem(DROP, f"not a measure of kind {source.kind}")
    return (pooled_rule(source.top, gate_ranges(source.kind)[DROP]),)
