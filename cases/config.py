"""``dataset.yaml`` as Dataset and Slice: every setting checked, prompts and rubrics found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cases import thresholds
from cases.dataset import Dataset, Slice
from cases.labels import LabelReading, Scale
from cases.tables import normal
from cases.thresholds import METRICS_KEY, ranges_of
from evaluators import rubric as rubric_files
from evaluators.core import UsageError
from evaluators.kinds import KINDS, Kind
from evaluators.reading import Settings, load_settings
from evaluators.rubric import Prompt, Protocol, Rubric
from evaluators.statistics.metrics import DROP, MAX_PENALTY, RISE, floor_ranges
from evaluators.text import hint, shown

FILE = "dataset.yaml"
RUBRICS = Path(__file__).parents[1] / "evaluators" / "rubrics"
DEFAULT = "default"
"""The key of what serves a language that ``languages`` does not list."""
FALLBACK_LANGUAGE = "en"
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
TEMPLATE_SUFFIXES = (".yaml", ".yml", ".txt")
PLACE = "{lang}"

SHARED_KEYS = (
    *("prompt", "rubric", "rubric_language", "function_description", "choice_scores", "pass_bar"),
    *("floor", "floor_limit", "offline_floor", METRICS_KEY),
)
"""Keys of a language that the data set may give for all of them."""
LABEL_KEYS = ("column", "raters", "scale", "two_way", "language")
LANGUAGE_KEYS = ("file", "gates", "yes", "no", *SHARED_KEYS)
DATASET_KEYS = (
    *("kind", "languages", "gates", "by", "penalty", DROP, RISE, "holm", "require_calibration"),
    "baseline",
    *("cluster", "sample", "judge", "check", "labels", "attacks", "order", thresholds.CHECKS_KEY),
    *SHARED_KEYS,
)


def load_dataset(path: Path, rubrics: Path = RUBRICS) -> Dataset:
    """Return the data set that a ``dataset.yaml`` declares, named after its folder; reads no data.

    ``rubrics`` holds the bundled rubrics and prompts. Raises UsageError naming file, line and key.
    """
    file = _file(path, rubrics)
    if DEFAULT in file.languages.values:
        _default_slice(file, FALLBACK_LANGUAGE, path)  # so that its errors do not wait for --items
    languages = [language for language in file.languages.values if language != DEFAULT]
    slices = {language: _slice(file, language) for language in languages}
    shared = set.intersection(*(set(ranges_of(one)) for one in slices.values()))
    ranges = {name: limits for one in slices.values() for name, limits in ranges_of(one).items()}
    common = {name: limits for name, limits in ranges.items() if name in shared}
    unmeasured = "judge" in file.top.values
    if unmeasured and not file.kind.by_rubric:
        raise file.top.problem("judge", f"no judge reads the answers of kind {file.kind}")
    if unmeasured:
        file.top.one_of("judge", ("unmeasured",))
    if required := "baseline" in file.top.values:
        file.top.one_of("baseline", ("required",))
    dataset = Dataset(
        name=file.name,
        folder=path.parent,
        kind=file.kind,
        slices=slices,
        pooled=thresholds.read_pooled(file.top, common),
        holm=file.top.flag("holm"),
        require_calibration=file.top.flag("require_calibration"),
        sampling=thresholds.read_sampling(file.top),
        judge_unmeasured=unmeasured,
        baseline_required=required,
    )
    thresholds.check_shares(dataset, file.top)
    return dataset


def with_items(dataset: Dataset, language: str, path: Path, rubrics: Path = RUBRICS) -> Dataset:
    """Return the data set with this file for a language; an unlisted one has no gates."""
    if language in dataset.slices:
        own = replace(dataset.slices[language], path=path)
    else:
        own = _default_slice(_file(dataset.folder / FILE, rubrics), language, path)
    return replace(dataset, slices={**dataset.slices, language: own})


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A ``dataset.yaml`` that is being read: what all its slices share."""

    top: Settings
    kind: Kind
    rubrics: Path

    @property
    def name(self) -> str:
        """The data set's name: its folder's."""
        return self.top.path.resolve().parent.name

    @property
    def languages(self) -> Settings:
        """The settings of each language."""
        return self.top.part("languages")

    def holder(self, own: Settings, key: str) -> Settings:
        """Return the settings that give a key: the language's own, or else the data set's."""
        return own if key in own.values else self.top


def _file(path: Path, rubrics: Path) -> _File:
    top = load_settings(path)
    top.check_keys(DATASET_KEYS)
    word = top.text("kind")
    if word not in KINDS:
        raise top.problem(key="kind", what=f"got {shown(word)}; {hint(word, KINDS)}")
    file = _File(top=top, kind=KINDS[word], rubrics=rubrics)
    if not NAME.fullmatch(file.name):
        what = f"folder {shown(file.name)} names the dataset: letters, digits and _ only"
        raise top.problem(key="kind", what=what)
    _check_kind(file, top)
    if not set(file.languages.values) - {DEFAULT}:
        raise top.problem("languages", "name at least one, for instance 'en: {file: en.csv}'")
    for language in file.languages.values:
        if language != DEFAULT and not LANGUAGE.fullmatch(language):
            what = "want a language code such as 'bg', or 'default'"
            raise file.languages.problem(language, what)
    return file


def _check_kind(file: _File, settings: Settings) -> None:
    for key in settings.values:
        owners = [kind for kind in KINDS.values() if key in kind.keys]
        if owners and file.kind not in owners:
            what = f"only for kind {owners[0]}; this is {file.kind}; take it out"
            raise settings.problem(key, what)


def _slice(file: _File, language: str) -> Slice:
    own = file.languages.part(language)
    own.check_keys(LANGUAGE_KEYS)
    path = own.text("file")
    if not path:
        raise own.problem(key="file", what="missing; name the data file, relative to this one")
    bare = _bare(file, own, language, file.top.path.parent / path)
    shared, gates = (one.part("gates") for one in (file.top, own))
    bars = thresholds.read_metric_bars(file.holder(own, METRICS_KEY), shared, gates)
    read = partial(thresholds.read_gates, metrics=ranges_of(bare))
    mine = read(gates)  # a metric's own gates replace those for every language
    others = [one for one in read(shared) if one.name not in {own.name for own in mine}]
    return replace(bare, thresholds=(*others, *mine, *bars))


def _default_slice(file: _File, language: str, path: Path) -> Slice:
    if not LANGUAGE.fullmatch(language):
        raise UsageError(f"--items: {shown(language)} is not a language code such as 'bg'")
    own = file.languages.part(DEFAULT)
    own.check_keys([key for key in LANGUAGE_KEYS if key not in ("file", "gates")])
    return replace(_bare(file, own, language, path), declared=False)


def _bare(file: _File, own: Settings, language: str, path: Path) -> Slice:
    _check_kind(file, own)
    holder = file.holder(own, "rubric_language")
    known = language if language in file.languages.values else FALLBACK_LANGUAGE
    spoken = holder.text("rubric_language", known)
    if not LANGUAGE.fullmatch(spoken):
        what = f"want a language code such as 'en', got {shown(spoken)}"
        raise holder.problem("rubric_language", what)
    prompt, rubric = (file.holder(own, key) for key in ("prompt", "rubric"))
    penalty = file.top.number("penalty", 0, MAX_PENALTY)
    found = _adapted(_find_rubric(rubric, file, spoken), file, own)
    usual_bar = found.pass_bar if found else rubric_files.PASS_BAR
    return Slice(
        dataset=file.name,
        language=language,
        kind=file.kind,
        path=path,
        prompt=_find_prompt(prompt, file.rubrics, (language, spoken)),
        rubric=found,
        pass_bar=file.holder(own, "pass_bar").whole("pass_bar", 1, 10) or usual_bar,
        penalty=1.0 if penalty is None else penalty,
        by=tuple(normal(name) for name in file.top.words("by")),
        yes=_word(file, own, "yes"),
        no=_word(file, own, "no"),
        floor=_floor(file, own, "floor"),
        floor_limit=_floor(file, own, "floor_limit"),
        offline_floor=_floor(file, own, "offline_floor"),
        metrics=thresholds.read_metrics(file.holder(own, METRICS_KEY), file.kind),
        checks=thresholds.read_checks(file.top, file.kind),
        cluster=normal(file.top.text("cluster")),
        label_reading=_label_reading(file.top.part("labels")),
        attacks=file.top.flag("attacks"),
        order=file.top.text("order"),
    )


def _word(file: _File, own: Settings, key: str) -> str:
    word = own.text(key)
    if key in file.kind.keys and not word:
        raise own.problem(key, f"missing; give the language's word for {key}")
    return word.strip()


def _floor(file: _File, own: Settings, key: str) -> dict[str, float]:
    floor = file.holder(own, key).part(key)
    floor.check_keys(floor_ranges())
    bars = {name: floor.number(name, *floor_ranges()[name]) for name in floor.values}
    return {name: bar for name, bar in bars.items() if bar is not None}


def _label_reading(part: Settings) -> LabelReading:
    part.check_keys(LABEL_KEYS)
    try:
        scale = Scale.parse(part.text("scale")) if "scale" in part.values else None
    except ValueError as error:
        raise part.problem(key="scale", what=str(error)) from None
    return LabelReading(
        column=part.text("column"),
        raters=part.words("raters"),
        scale=scale,
        two_way=part.flag("two_way"),
        language=part.text("language"),
    )


def _find_rubric(settings: Settings, file: _File, language: str) -> Rubric | None:
    """Return the rubric named: a path (with ``{lang}``) or ``<name>.<language>.yaml``."""
    name = settings.text("rubric").replace(PLACE, language)
    if not name:
        return None
    if _is_path(name):
        protocol: Protocol = "rate" if file.kind.rated else "letter"
        rubric = rubric_files.load_template(settings.path.parent / name, language, protocol)
    else:
        wanted = f"{name}.{language}.yaml"
        paths = [folder / wanted for folder in (settings.path.parent, file.rubrics)]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            stems = sorted(path.stem for path in file.rubrics.glob("*.*.yaml"))
            own = [stem.removeprefix(f"{name}.") for stem in stems if stem.startswith(f"{name}.")]
            there = f"there is {', '.join(own)}" if own else f"rubrics: {', '.join(stems)}"
            what = f"no rubric {name!r} in language {language!r} ({there})"
            raise settings.problem("rubric", f"{what}; add {wanted} or set rubric_language")
        rubric = rubric_files.load_rubric(path)
        rubric_files.check_language(rubric, language, f"{path}")
    if not file.kind.accepts(rubric.protocol):
        what = f"{rubric.name!r} has protocol {rubric.protocol!r}, which a {file.kind} dataset"
        raise settings.problem(key="rubric", what=f"{what} cannot use; name another rubric")
    return rubric


def _adapted(rubric: Rubric | None, file: _File, own: Settings) -> Rubric | None:
    """Return the rubric with what the settings say of its function and its scores."""
    for key in ("function_description", "choice_scores"):
        holder = file.holder(own, key)
        if key not in holder.values:
            continue
        if rubric is None:
            raise holder.problem(key, "there is no rubric; take it out")
        if key == "choice_scores":
            rubric = replace(rubric, scores=rubric_files.read_scores(holder, key, rubric))
        elif rubric.protocol in rubric_files.CALLED:
            rubric = rubric_files.described(rubric, holder.text(key))
        else:
            what = f"by protocol {rubric.protocol!r} the judge calls no function"
            raise holder.problem(key, f"{what}; name the file like 'mine.en.tool.txt'")
    return rubric


def _find_prompt(settings: Settings, rubrics: Path, languages: Sequence[str]) -> Prompt | None:
    """Return the prompt named, as a rubric is, in the first language that has it, if any."""
    name = settings.text("prompt")
    folders = (settings.path.parent, rubrics) if name else (settings.path.parent,)
    files = (
        name.replace(PLACE, language) if _is_path(name) else f"{name or 'answer'}.{language}.yaml"
        for language in languages
    )
    paths = (folder / file for file in files for folder in folders)
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        if not name:
            return None
        what = f"no prompt {name!r} in language {languages[0]!r}; looked next to this file and"
        raise settings.problem("prompt", f"{what} among the bundled ones")
    prompt = rubric_files.load_prompt(path)
    if prompt.language not in languages:
        rubric_files.check_language(prompt, languages[0], f"{path}")
    return prompt


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(TEMPLATE_SUFFIXES)
