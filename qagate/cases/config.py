"""``dataset.yaml`` and gates files as Dataset and Slice: each setting checked, rubrics found."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from qagate.bundled import BUNDLED_LABELS
from qagate.cases import thresholds
from qagate.cases.dataset import (
    DATASET_FILE,
    MAX_AGE_SECONDS,
    Dataset,
    Retired,
    Sampling,
    Slice,
    Threshold,
)
from qagate.cases.labels import LabelReading, Scale
from qagate.cases.rows import LAYOUTS
from qagate.cases.tables import normal
from qagate.cases.thresholds import METRICS_KEY, ranges_of, read_gates
from qagate.evaluators import rubric as rubric_files
from qagate.evaluators.core import UsageError
from qagate.evaluators.durations import seconds_of
from qagate.evaluators.kinds import KINDS, Kind
from qagate.evaluators.metric_specs import CHECK_PREFIX, DEEPEVAL_METRICS, GEVAL_PREFIX
from qagate.evaluators.reading import Map, Settings, load_settings
from qagate.evaluators.rubric import RUBRICS, Prompt, Protocol, Rubric
from qagate.evaluators.statistics import metrics as metric_rules
from qagate.evaluators.statistics.metrics import DROP, RATE, RISE, Range
from qagate.evaluators.text import hint, shown

REPLACE = "replace"
_GATES_FILE_KEYS = (DROP, RISE, "sample")
"""What a gates file may say of a data set besides the gates of its languages."""
Gates = tuple[Threshold, ...]
DEFAULT = "default"
"""The key of what serves a language that ``languages`` does not list."""
FALLBACK_LANGUAGE = "en"
MAX_SEED = 10**9
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
PLACE = "{lang}"

SHARED_KEYS = (
    "prompt",
    "rubric",
    "rubric_language",
    "function_description",
    "choice_scores",
    "pass_bar",
    "floor",
    "floor_limit",
    "offline_floor",
    "columns",
    METRICS_KEY,
)
"""Keys of a language that the data set may give for all of them."""
LABEL_KEYS = ("column", "raters", "scale", "two_way", "language")
RETIRED_KEYS = ("ids", "reason")
LANGUAGE_KEYS = ("file", "gates", "yes", "no", "retired", *SHARED_KEYS)
DATASET_KEYS = (
    "kind",
    "languages",
    "gates",
    "by",
    "penalty",
    DROP,
    RISE,
    "holm",
    "cluster",
    "sample",
    "judge",
    "health",
    "check",
    "labels",
    "attacks",
    "order",
    "max_age",
    "shuffle",
    "index_from",
    thresholds.CHECKS_KEY,
    "baseline",
    *SHARED_KEYS,
)


def load_dataset(path: Path, rubrics: Path = RUBRICS) -> Dataset:
    """Return the data set that a ``dataset.yaml`` declares, named after its folder; reads no data.

    ``rubrics`` holds the bundled rubrics and prompts. Raises UsageError naming file, line and key.
    """
    file = _DatasetFile(path, rubrics)
    top = file.top
    if DEFAULT in file.languages.values:
        # Only for its errors: they must not wait until --items needs it.
        file.default(FALLBACK_LANGUAGE, path)
    slices = {}
    for language in file.languages.values:
        if language != DEFAULT:
            slices[language] = file.declared(language)
    common_ranges = _common_ranges(slices.values())
    if "judge" in top.values:
        if not file.kind.by_rubric:
            message = f"no judge reads the answers of kind {file.kind}"
            raise top.problem("judge", message)
        top.one_of("judge", ("unmeasured",))
    if "baseline" in top.values:
        top.one_of("baseline", ("required",))
    if "health" in top.values:
        if not file.kind.answered:
            raise top.problem("health", "no model answers labelled items; take it out")
        top.one_of("health", ("off",))
    dataset = Dataset(
        name=file.name,
        folder=path.parent,
        kind=file.kind,
        slices=slices,
        pooled=thresholds.read_pooled(top, common_ranges),
        holm=top.flag("holm"),
        sampling=thresholds.read_sampling(top),
        judge_unmeasured="judge" in top.values,
        health_off="health" in top.values,
        baseline_required="baseline" in top.values,
    )
    thresholds.check_shares(dataset, top)
    return dataset


def _common_ranges(slices: Iterable[Slice]) -> dict[str, Range]:
    """Return what gates over all languages may name: what each of the slices has."""
    *ranges_of_others, common = [ranges_of(slice_) for slice_ in slices]
    for ranges in ranges_of_others:
        common = {name: common[name] for name in common if name in ranges}
    return common


def with_items(
    dataset: Dataset, language: str, path: Path, rubrics: Path = RUBRICS
) -> Dataset:
    """Return the data set with this file for a language; an unlisted one has no gates."""
    if language in dataset.slices:
        slice_ = replace(dataset.slices[language], path=path, bundled=False)
    else:
        file = _DatasetFile(dataset.folder / DATASET_FILE, rubrics)
        slice_ = file.default(language, path)
    return replace(dataset, slices={**dataset.slices, language: slice_})


class _DatasetFile:
    """A ``dataset.yaml`` that is being read.

    A language has settings of its own, and may leave SHARED_KEYS to those at the top of the
    file. What it cannot read raises UsageError, with the line of the key that is wrong.
    """

    def __init__(self, path: Path, rubrics: Path) -> None:
        self.rubrics = rubrics
        self.top = load_settings(path)
        self.top.check_keys(DATASET_KEYS)
        self.kind = self._read_kind()
        self.name = path.resolve().parent.name
        if not NAME.fullmatch(self.name):
            message = (
                f"folder {shown(self.name)} names the dataset: "
                "letters, digits and _ only"
            )
            raise self.top.problem("kind", message)
        self._check_keys_of_kind(self.top)
        self.languages = self.top.part("languages")
        self._check_languages()

    def _read_kind(self) -> Kind:
        name = self.top.text("kind")
        if name not in KINDS:
            message = f"got {shown(name)}; {hint(name, KINDS)}"
            raise self.top.problem("kind", message)
        return KINDS[name]

    def _check_languages(self) -> None:
        """Raise UsageError for a file without languages, and for a wrong language code."""
        listed = [name for name in self.languages.values if name != DEFAULT]
        if not listed:
            message = "name at least one, for instance 'en: {file: en.csv}'"
            raise self.top.problem("languages", message)
        for language in listed:
            if not LANGUAGE.fullmatch(language):
                message = "want a language code such as 'bg', or 'default'"
                raise self.languages.problem(language, message)

    def _check_keys_of_kind(self, settings: Settings) -> None:
        """Raise UsageError for a key that only data sets of another kind have."""
        for key in settings.values:
            owners = [kind for kind in KINDS.values() if key in kind.keys]
            if owners and self.kind not in owners:
                message = f"only for kind {owners[0]}; this is {self.kind}; take it out"
                raise settings.problem(key, message)

    def declared(self, language: str) -> Slice:
        """Return the slice of a language that the file lists, with its gates.

        Its own gates replace those of the same name that the file has for every language.
        """
        settings = self.languages.part(language)
        settings.check_keys(LANGUAGE_KEYS)
        data_file = settings.text("file")
        if not data_file:
            message = "missing; name the data file, relative to this one"
            raise settings.problem("file", message)
        path = self.top.path.parent / data_file
        slice_ = self._slice_without_gates(settings, language, path)
        shared_part = self.top.part("gates")
        language_part = settings.part("gates")
        metrics_holder = self.top
        if METRICS_KEY in settings.values:
            metrics_holder = settings
        metric_bars = thresholds.read_metric_bars(
            metrics_holder, shared_part, language_part
        )
        ranges = ranges_of(slice_)
        language_gates = read_gates(language_part, ranges)
        replaced = {gate.name for gate in language_gates}
        shared_gates = [
            gate
            for gate in read_gates(shared_part, ranges)
            if gate.name not in replaced
        ]
        gates = (*shared_gates, *language_gates, *metric_bars)
        return replace(slice_, thresholds=gates)

    def default(self, language: str, path: Path) -> Slice:
        """Return a language that the file does not list, with the user's data file."""
        if not LANGUAGE.fullmatch(language):
            message = f"{shown(language)} is not a language code such as 'bg'"
            raise UsageError(f"--items: {message}")
        settings = self.languages.part(DEFAULT)
        settings.check_keys(
            [key for key in LANGUAGE_KEYS if key not in ("file", "gates")]
        )
        slice_ = self._slice_without_gates(settings, language, path)
        return replace(slice_, declared=False)

    def _slice_without_gates(
        self, settings: Settings, language: str, path: Path
    ) -> Slice:
        """Return a slice as the settings of its language, and those of the file, declare it."""
        top = self.top
        kind = self.kind
        self._check_keys_of_kind(settings)
        settings_of: dict[str, Settings] = {}  # by key: those that count for it
        for key in SHARED_KEYS:
            settings_of[key] = settings if key in settings.values else top
        rubric_language = self._rubric_language(
            settings_of["rubric_language"], language
        )
        for key in ("yes", "no"):
            if key in kind.keys and not settings.text(key):
                message = f"missing; give the language's word for {key}"
                raise settings.problem(key, message)
        penalty = top.number("penalty", 0, metric_rules.MAX_PENALTY)
        if penalty is None:
            penalty = 1.0
        rubric = _find_rubric(
            settings_of["rubric"], kind, self.rubrics, rubric_language
        )
        rubric = _adapted(rubric, settings_of)
        languages = (language, rubric_language)
        prompt = _find_prompt(settings_of["prompt"], self.rubrics, languages)
        shuffle = top.whole("shuffle", 0, MAX_SEED)
        pass_bar = settings_of["pass_bar"].whole("pass_bar", 1, 10)
        if pass_bar is None:
            pass_bar = rubric.pass_bar if rubric else rubric_files.PASS_BAR
        return Slice(
            dataset=self.name,
            language=language,
            kind=kind,
            path=path,
            prompt=prompt,
            rubric=rubric,
            pass_bar=pass_bar,
            penalty=penalty,
            by=tuple(normal(name) for name in top.words("by")),
            yes=settings.text("yes").strip(),
            no=settings.text("no").strip(),
            shuffle=1 if shuffle is None else shuffle,
            index_from=top.whole("index_from", 0, 1),
            metrics=thresholds.read_metrics(settings_of[METRICS_KEY], kind),
            checks=thresholds.read_checks(top, kind),
            cluster=normal(top.text("cluster")),
            headings=_headings(settings_of["columns"], kind),
            label_reading=_label_reading(top.part("labels")),
            attacks=top.flag("attacks"),
            order=top.text("order"),
            retired=_retired(settings),
            bundled=path.resolve().is_relative_to(BUNDLED_LABELS),
            max_age_seconds=_max_age(top),
            floor=_floors(settings_of["floor"], "floor"),
            floor_limit=_floors(settings_of["floor_limit"], "floor_limit"),
            offline_floor=_floors(settings_of["offline_floor"], "offline_floor"),
        )

    def _rubric_language(self, settings: Settings, language: str) -> str:
        """Return the language of a slice's rubric: its own, unless the settings name another.

        A language that the file does not list has a rubric in FALLBACK_LANGUAGE.
        """
        usual = FALLBACK_LANGUAGE
        if language in self.languages.values:
            usual = language
        rubric_language = settings.text("rubric_language", usual)
        if not LANGUAGE.fullmatch(rubric_language):
            message = f"want a language code such as 'en', got {shown(rubric_language)}"
            raise settings.problem("rubric_language", message)
        return rubric_language


def _retired(settings: Settings) -> Retired:
    """Return the items that a language retires, and why. Raises UsageError without a reason."""
    if "retired" not in settings.values:
        return Retired()
    part = settings.part("retired")
    part.check_keys(RETIRED_KEYS, required=RETIRED_KEYS)
    return Retired(ids=part.words("ids"), reason=part.text("reason"))


def _max_age(top: Settings) -> float:
    """Return how old kept answers may be, in seconds. Raises UsageError."""
    text = top.text("max_age")
    if not text:
        return MAX_AGE_SECONDS
    seconds = seconds_of(text)
    if seconds is None:
        message = f"want a time such as 3d, 12h or 0, got {shown(text)}"
        raise top.problem("max_age", message)
    return seconds


def _floors(settings: Settings, key: str) -> dict[str, float]:
    """Return the floors of a judge that stand under a key, by metric. Raises UsageError."""
    part = settings.part(key)
    ranges = metric_rules.floor_ranges()
    part.check_keys(ranges)
    floors = {}
    for name in part.values:
        lowest, highest = ranges[name]
        floors[name] = part.number(name, lowest, highest) or 0.0
    return floors


def _headings(settings: Settings, kind: Kind) -> dict[str, str]:
    """Return what ``columns:`` says a file calls our columns, by our name. Raises UsageError."""
    part = settings.part("columns")
    part.check_keys(sorted(LAYOUTS[kind].used))
    headings = {name: part.text(name) for name in part.values}
    name_of_heading: dict[str, str] = {}
    for name, heading in headings.items():
        first = name_of_heading.setdefault(normal(heading), name)
        if first != name:
            message = (
                f"{shown(heading)} is named as {first} too; a column is one of them"
            )
            raise part.problem(name, message)
    return headings


def _label_reading(labels: Settings) -> LabelReading:
    """Return how ``labels:`` says to read people's labels; every key may be absent.

    Raises UsageError.
    """
    labels.check_keys(LABEL_KEYS)
    scale = None
    if "scale" in labels.values:
        try:
            scale = Scale.parse(labels.text("scale"))
        except ValueError as error:
            raise labels.problem(key="scale", message=str(error)) from None
    return LabelReading(
        column=labels.text("column"),
        raters=labels.words("raters"),
        scale=scale,
        two_way=labels.flag("two_way"),
        language=labels.text("language"),
    )


def _find_rubric(
    settings: Settings, kind: Kind, rubrics: Path, language: str
) -> Rubric | None:
    """Return the rubric named: a path (with ``{lang}``) or ``<name>.<language>.yaml``."""
    name = settings.text("rubric").replace(PLACE, language)
    if not name:
        return None
    if _is_path(name):
        path = settings.path.parent / name
        protocol: Protocol = "rate" if kind.rated else "letter"
        rubric = rubric_files.load_template(path, language, protocol)
    else:
        path = _path_of_rubric(settings, rubrics, name, language)
        rubric = rubric_files.load_rubric(path)
        rubric_files.check_language(rubric, language, f"{path}")
    if kind.by_rubric and (rubric.style == "rated") != kind.rated:
        message = (
            f"{rubric.name!r} has protocol {rubric.protocol!r}, which a {kind} dataset "
            "cannot use; name another rubric"
        )
        raise settings.problem("rubric", message)
    return rubric


def _path_of_rubric(
    settings: Settings, rubrics: Path, name: str, language: str
) -> Path:
    """Return a rubric's file, next to the data set's or bundled. Raises UsageError."""
    file_name = f"{name}.{language}.yaml"
    for folder in (settings.path.parent, rubrics):
        path = folder / file_name
        if path.is_file():
            return path
    stems = sorted(path.stem for path in rubrics.glob("*.*.yaml"))
    prefix = f"{name}."
    languages = [stem.removeprefix(prefix) for stem in stems if stem.startswith(prefix)]
    available = f"rubrics: {', '.join(stems)}"
    if languages:
        available = f"there is {', '.join(languages)}"
    else:
        guess = hint(name, {stem.partition(".")[0] for stem in stems})
        if guess.startswith("did you mean"):
            available = guess
    message = (
        f"no rubric {name!r} in language {language!r} ({available}); "
        f"add {file_name} or set rubric_language"
    )
    raise settings.problem("rubric", message)


def _adapted(rubric: Rubric | None, holder: Mapping[str, Settings]) -> Rubric | None:
    """Return the rubric with what the settings say of its function and its scores.

    ``holder`` has, by key, the settings that count: the language's own, or the data set's.
    Raises UsageError.
    """
    description, scores = "function_description", "choice_scores"
    given = [key for key in (description, scores) if key in holder[key].values]
    if rubric is None:
        if given:
            key = given[0]
            raise holder[key].problem(key, "there is no rubric; take it out")
        return None
    if description in given:
        settings = holder[description]
        if rubric.protocol not in rubric_files.CALLED:
            message = (
                f"by protocol {rubric.protocol!r} the judge calls no function; "
                "name the file like 'mine.en.tool.txt'"
            )
            raise settings.problem(description, message)
        rubric = rubric_files.described(rubric, settings.text(description))
    if scores in given:
        score_of_grade = rubric_files.read_scores(holder[scores], scores, rubric)
        rubric = replace(rubric, scores=score_of_grade)
    return rubric


def _find_prompt(
    settings: Settings, rubrics: Path, languages: Sequence[str]
) -> Prompt | None:
    """Return the prompt named, as a rubric is, in the first language that has it, if any.

    A plain text names no language of its own: it has that of the slice.
    """
    name = settings.text("prompt")
    folders = (settings.path.parent, rubrics) if name else (settings.path.parent,)
    for language in languages:
        file = f"{name or 'answer'}.{language}.yaml"
        if _is_path(name):
            file = name.replace(PLACE, language)
        for folder in folders:
            path = folder / file
            if not path.is_file():
                continue
            prompt = rubric_files.load_prompt(path, language)
            if prompt.language not in languages:
                rubric_files.check_language(prompt, languages[0], f"{path}")
            return prompt
    if name:
        message = (
            f"no prompt {name!r} in language {languages[0]!r}; "
            "looked next to this file and among the bundled ones"
        )
        raise settings.problem("prompt", message)
    return None


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith((".yaml", ".yml", ".txt"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetGates:
    """What a gates file says of one data set."""

    languages: Mapping[str, Gates] = field(default_factory=dict)
    pooled: Gates = ()
    sampling: Sampling | None = None
    settings: Settings = field(
        default_factory=lambda: Settings(Path("--gates"), "", Map(1))
    )
    """The part of the file that says so, for error messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatesFile:
    """The gates by data set, in addition to those of the data sets, or in place of them."""

    datasets: Mapping[str, DatasetGates]
    replaces_all: bool = False
    """Whether no other gate of any data set stays."""

    def put_into(self, datasets: Sequence[Dataset], where: str) -> tuple[Dataset, ...]:
        """Return the data sets with these gates. Raises UsageError where none of them is named.

        ``where`` is the gates file, for the error.
        """
        names = [dataset.name for dataset in datasets]
        if self.datasets.keys().isdisjoint(names):
            raise UsageError(
                f"{where}: no gate for any dataset of this run ({', '.join(names)}); "
                "name one of them"
            )
        first, *others = [with_gates(dataset, self) for dataset in datasets]
        # The misspelt are in no data set of this run: the first one carries their notes.
        left_out = (*first.left_out, *self._perhaps_misspelt(names))
        return (replace(first, left_out=left_out), *others)

    def _perhaps_misspelt(self, names: Sequence[str]) -> list[str]:
        """Return a note for each data set that is not run but named much like one that is."""
        by_folded = {name.casefold(): name for name in names}
        notes = []
        for name in sorted(self.datasets.keys() - names):
            close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.8)
            if close:
                notes.append(
                    f"those of {name}, which is not in this run "
                    f"(did you mean {by_folded[close[0]]}?)"
                )
        return notes


def load_gates(path: Path, own: Sequence[str] = ()) -> GatesFile:
    """Return the gates of a file: ``dataset: {language: {metric: {min: …}}}``.

    ``own`` are more metrics, 0 to 1, that it may name. A data set may also have pooled ``drop`` and
    ``rise`` and a ``sample``; the file may have ``replace: all``. Raises UsageError.
    """
    top = load_settings(path)
    word = top.text(REPLACE, "all")
    if word != "all":
        raise top.problem(
            REPLACE, f"'all' is needed, not {word!r}; or take the line out"
        )
    metrics: dict[str, Range] = {}
    for kind in KINDS.values():
        metrics.update(kind.ranges())
    for metric in (*DEEPEVAL_METRICS, *own):
        metrics[metric] = RATE
    datasets = {}
    for name in top.values:
        if name != REPLACE:
            datasets[name] = _read_dataset_gates(top.part(name), name, metrics)
    return GatesFile(datasets=datasets, replaces_all=REPLACE in top.values)


def _read_dataset_gates(
    part: Settings, name: str, metrics: Mapping[str, Range]
) -> DatasetGates:
    keys = [key for key in part.values if key not in _GATES_FILE_KEYS]
    for key in keys:
        if key in DATASET_KEYS:
            raise part.problem(
                key, f"not for a gates file; it belongs in the {DATASET_FILE} of {name}"
            )
    parts = {language: part.part(language) for language in keys}
    languages = {}
    for language, gates in parts.items():
        languages[language] = read_gates(gates, _with_declared(metrics, gates))
    return DatasetGates(
        languages=languages,
        pooled=thresholds.read_pooled(part, _with_declared(metrics, part)),
        sampling=thresholds.read_sampling(part),
        settings=part,
    )


def _with_declared(metrics: Mapping[str, Range], part: Settings) -> dict[str, Range]:
    """Return every metric, and those named here that only a user's own data set can have."""
    names = list(part.values)
    for change in (DROP, RISE):
        if change in part.values:
            names += part.part(change).values
    ranges = dict(metrics)
    for name in names:
        if name.startswith((GEVAL_PREFIX, metric_rules.LABEL_SHARE, CHECK_PREFIX)):
            ranges[name] = RATE
    return ranges


def with_gates(dataset: Dataset, gates: GatesFile) -> Dataset:
    """Return the data set with these gates, ``left_out`` and ``laxer`` noted. Raises UsageError."""
    new = gates.datasets.get(dataset.name, DatasetGates())
    for language in new.languages:
        if language not in dataset.slices:
            raise new.settings.problem(
                language,
                f"no such language here; {hint(language, dataset.slices)}",
            )
    for language, slice_ in dataset.slices.items():
        for gate in new.languages.get(language, ()):
            _check_fit(gate, slice_, new.settings.part(language))
        for gate in new.pooled:
            _check_fit(gate, slice_, new.settings)

    left_out, laxer = list(dataset.left_out), list(dataset.laxer)
    slices = {}
    for language, slice_ in dataset.slices.items():
        change = _GateChange(
            place=slice_.name,
            before=slice_.thresholds,
            new=new.languages.get(language, ()),
            replaces_all=gates.replaces_all,
        )
        slices[language] = replace(slice_, thresholds=change.after)
        left_out += change.left_out
        laxer += change.laxer
    pooled = _GateChange(
        place=f"{dataset.name}:*",
        before=dataset.pooled,
        new=new.pooled,
        replaces_all=gates.replaces_all,
    )
    left_out += pooled.left_out
    laxer += pooled.laxer
    changed = replace(
        dataset,
        slices=slices,
        pooled=pooled.after,
        sampling=new.sampling or dataset.sampling,
        left_out=tuple(left_out),
        laxer=tuple(laxer),
    )
    thresholds.check_shares(changed, new.settings)
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class _GateChange:
    """What a gates file does to the gates of a slice, or to the pooled ones of a data set."""

    place: str
    before: Gates
    new: Gates
    replaces_all: bool

    @property
    def after(self) -> Gates:
        if self.replaces_all:
            return self.new
        return (*self._untouched, *self.new)

    @property
    def left_out(self) -> list[str]:
        if not self.replaces_all:
            return []
        return [f"{self.place} {gate.name} {gate.bar}" for gate in self._untouched]

    @property
    def laxer(self) -> list[str]:
        lines = []
        for old in self.before:
            in_place = [gate for gate in self.new if gate.name == old.name]
            if in_place and all(gate.is_laxer(old) for gate in in_place):
                lines.append(f"{self.place} {in_place[0].text} in place of {old.text}")
        return lines

    @property
    def _untouched(self) -> list[Threshold]:
        """The gates of before that no new one is about."""
        names = {gate.name for gate in self.new}
        return [gate for gate in self.before if gate.name not in names]


def _check_fit(threshold: Threshold, slice_: Slice, part: Settings) -> None:
    metrics, name = ranges_of(slice_), threshold.of or threshold.measure
    place = part.part(threshold.measure) if threshold.of else part
    if metric_rules.is_repeated(name) and not threshold.of:
        metrics[name] = RATE
    if threshold.paired and DROP not in metrics:
        place, name = part, threshold.measure
    if name not in metrics:
        what = f"no metric of {slice_.name} (kind {slice_.kind}); {hint(name, metrics)}"
        raise place.problem(name, what)
    low, high = (
        (0.0, metrics[name][1] - metrics[name][0]) if threshold.of else metrics[name]
    )
    for bar in (threshold.min, threshold.max):
        if bar is not None and not low <= bar <= high:
            raise place.problem(name, f"{bar:g} is not within {low:g} to {high:g}")
