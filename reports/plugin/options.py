"""The command line: pytest options under one heading, read into one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.plan import Choice, SliceFile
from evaluators.core import UsageProblem

GATES_OFF = "off"

_VALUES = (
    ("model", "SPEC", "model under test: provider:name[@URL], a name from evaluators/models.yaml, "
     "or recorded: the answers in the data files (default: recorded)"),
    ("languages", "LANG,LANG", "only these languages"),
    ("limit", "N", "at most N items a slice, chosen by a hash of id and seed"),
    ("seed", "S", "seed of --limit (default: 0)"),
    ("repeats", "N", "ask the model N times an item (default: 1)"),
    ("baseline", "PATH", "an earlier report folder or its run.json: paired comparison; "
     "write it as --baseline=PATH"),
    ("gates", "FILE|off", "thresholds from a YAML file in place of the datasets' own; "
     "off: pytest's plain exit code"),
    ("ledger", "PATH", "where every call is kept (default: .qa/ledger.sqlite3)"),
    ("concurrency", "N", "calls in flight, for the whole run (default: 16)"),
    ("report-dir", "DIR", "where the report goes (default: reports/out)"),
)  # fmt: skip
_REPEATABLE = (
    ("judge", "SPEC", "a SPEC as for --model, or lexical: by rules, offline (default: lexical)"),
    ("items", "DATASET:LANG=FILE", "your own file in place of the bundled one; repeatable; only "
     "these slices run"),
    ("prompt", "DATASET:LANG=FILE", "another answer prompt; repeatable"),
)  # fmt: skip
_FLAGS = (
    ("replay", "no network: answer from the ledger; a call that is not there is an ERROR"),
    ("dry-run", "print the plan and call nothing"),
    ("allow-self-judge", "let a model judge its own answers"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for, checked as far as the words alone allow.

    ``touched`` says that at least one option of ours was given.
    """

    model: str
    judges: tuple[str, ...]
    choice: Choice
    baseline: Path | None
    gates_off: bool
    ledger: Path
    replay: bool
    concurrency: int
    report_dir: Path
    dry_run: bool
    allow_self_judge: bool
    touched: bool


def add_options(parser: pytest.Parser) -> None:
    """Declare the options. Their values stay text, so that a wrong one is an error of ours."""
    group = parser.getgroup("qa", "question answering: may this model ship?")
    for name, metavar, text in _VALUES:
        group.addoption(f"--{name}", dest=_dest(name), metavar=metavar, help=text)
    for name, metavar, text in _REPEATABLE:
        group.addoption(f"--{name}", dest=_dest(name), metavar=metavar, help=text, action="append")
    for name, text in _FLAGS:
        group.addoption(f"--{name}", dest=_dest(name), help=text, action="store_true")


def read_options(config: pytest.Config, here: Path) -> Options:
    """Return the options of this run; relative paths start at ``here``, the working folder.

    Raises UsageProblem naming the option that is wrong and what it was.
    """
    names = [name for name, *_ in (*_VALUES, *_REPEATABLE, *_FLAGS)]
    given = {name: config.getoption(_dest(name)) for name in names}
    values = {name: value for name, value in given.items() if value not in (None, False)}
    for name, value in values.items():
        if value == "" or (isinstance(value, list) and "" in value):
            msg = f"--{name}: empty; give a value or leave the option out"
            raise UsageProblem(msg)
    words = _Given(values, here)
    return Options(
        model=words.text("model", "recorded"),
        judges=words.texts("judge") or ("lexical",),
        choice=words.choice(),
        baseline=words.path("baseline"),
        gates_off=words.text("gates", "") == GATES_OFF,
        ledger=words.path("ledger") or words.here / ".qa" / "ledger.sqlite3",
        replay="replay" in values,
        concurrency=words.whole("concurrency", 16, low=1),
        report_dir=words.path("report-dir") or words.here / "reports" / "out",
        dry_run="dry-run" in values,
        allow_self_judge="allow-self-judge" in values,
        touched=bool(values),
    )


@dataclass(frozen=True, slots=True)
class _Given:
    values: Mapping[str, object]
    here: Path

    def text(self, name: str, default: str) -> str:
        return str(self.values.get(name, default))

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.values.get(name, [])
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def path(self, name: str) -> Path | None:
        return self.here / str(self.values[name]) if name in self.values else None

    def whole(self, name: str, default: int, *, low: int) -> int:
        text = self.text(name, str(default)).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) < low:
            msg = f"--{name}: a whole number of at least {low} is needed, got {text!r}"
            raise UsageProblem(msg)
        return int(text)

    def choice(self) -> Choice:
        off = self.text("gates", "") == GATES_OFF
        return Choice(
            items=self._files("items"),
            prompts=self._files("prompt"),
            languages=tuple(filter(None, map(str.strip, self.text("languages", "").split(",")))),
            limit=self.whole("limit", 1, low=1) if "limit" in self.values else None,
            seed=self.whole("seed", 0, low=0),
            repeats=self.whole("repeats", 1, low=1),
            gates=None if off else self.path("gates"),
        )

    def _files(self, name: str) -> tuple[SliceFile, ...]:
        found = tuple(_slice_file(name, text, self.here) for text in self.texts(name))
        slices = [(one.dataset, one.language) for one in found]
        for one in slices:
            if slices.count(one) > 1:
                msg = f"--{name}: {':'.join(one)} is given twice; give it once"
                raise UsageProblem(msg)
        return found


def _slice_file(name: str, text: str, here: Path) -> SliceFile:
    slice_, equals, path = text.partition("=")
    dataset, colon, language = slice_.partition(":")
    if not (equals and colon and dataset and language and path):
        msg = f"--{name}: DATASET:LANG=FILE is needed (such as simpleqa:bg=my.csv), got {text!r}"
        raise UsageProblem(msg)
    return SliceFile(dataset=dataset, language=language, path=here / path)


def _dest(name: str) -> str:
    return "qa_" + name.replace("-", "_")
