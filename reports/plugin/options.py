"""The command line: pytest options under one heading, read into one frozen value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.plan import Choice, SliceFile
from evaluators.core import UsageError

GATES_OFF = ADJUDICATIONS_OFF = "off"
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}")

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
    ("tie-breaker", "SPEC", "a judge whose vote is added where a panel ties"),
    ("audit", "SHARE", "share of what the rules of lexical+SPEC settle that SPEC judges too, from "
     "0 to 1 (default: 0.05)"),
    ("calibration", "on|off", "whether an LLM judge is measured against the labelled items of the "
     "run's languages (default: on)"),
    ("adjudications", "FILE|off", "verdicts by people, which take the judge's place for the very "
     "answers that they judged (default: adjudications.yaml beside each dataset.yaml)"),
    ("ledger", "PATH", "where every call is kept (default: .qa/ledger.sqlite3)"),
    ("concurrency", "N", "calls in flight, for the whole run (default: 16)"),
    ("rpm", "N", "requests a minute, for the whole run (default: no limit)"),
    ("max-cost", "USD", "start no call that could take the run over this; the rest is MISSING "
     "(budget)"),
    ("deadline", "S", "seconds for the whole run; the rest is MISSING (deadline)"),
    ("report-dir", "DIR", "where the report goes (default: reports/out)"),
)  # fmt: skip
_REPEATABLE = (
    ("judge", "SPEC", "a SPEC as for --model; lexical: by rules, offline (default); lexical+SPEC: "
     "rules where they are sure, SPEC for the rest; python:MODULE:CLASS: a rule judge of your own, "
     "a class with `async def judge(self, case, answer, ask)`; repeat it for a panel"),
    ("items", "DATASET:LANG=FILE", "your own file in place of the bundled one; repeatable; only "
     "these slices run"),
    ("prompt", "DATASET:LANG=FILE", "another answer prompt; repeatable"),
)  # fmt: skip
_FLAGS = (
    ("replay", "no network: answer from the ledger; a call that is not there is an ERROR"),
    ("dry-run", "print items, calls, tokens, cost and what each gate could detect; call nothing"),
    ("reask-invalid", "ask a judge anew where all its replies in the ledger are unreadable"),
    ("allow-self-judge", "let a model judge its own answers"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for, checked as far as the words alone allow.

    ``touched`` says that at least one option of ours was given.
    """

    model: str
    judges: tuple[str, ...]
    tie_breaker: str
    audit: float | None
    calibration: bool
    adjudications: Path | None
    adjudications_off: bool
    choice: Choice
    baseline: Path | None
    gates_off: bool
    ledger: Path
    replay: bool
    reask_invalid: bool
    concurrency: int
    rpm: int | None
    max_cost: float | None
    deadline: float | None
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

    Raises UsageError naming the option that is wrong and what it was.
    """
    names = [name for name, *_ in (*_VALUES, *_REPEATABLE, *_FLAGS)]
    given = {name: config.getoption(_dest(name)) for name in names}
    values = {name: value for name, value in given.items() if value not in (None, False)}
    for name, value in values.items():
        if value == "" or (isinstance(value, list) and "" in value):
            msg = f"--{name}: empty; give a value or leave the option out"
            raise UsageError(msg)
    words = _Given(values, here)
    return Options(
        model=words.text("model", "recorded"),
        judges=words.texts("judge") or ("lexical",),
        tie_breaker=words.text("tie-breaker", ""),
        audit=words.share("audit"),
        calibration=words.switch("calibration"),
        adjudications=words.path("adjudications"),
        adjudications_off=words.text("adjudications", "") == ADJUDICATIONS_OFF,
        choice=words.choice(),
        baseline=words.path("baseline"),
        gates_off=words.text("gates", "") == GATES_OFF,
        ledger=words.path("ledger") or words.here / ".qa" / "ledger.sqlite3",
        replay="replay" in values,
        reask_invalid="reask-invalid" in values,
        concurrency=words.whole("concurrency", 16, low=1),
        rpm=words.whole("rpm", 1, low=1) if "rpm" in values else None,
        max_cost=words.positive("max-cost"),
        deadline=words.positive("deadline"),
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
            raise UsageError(msg)
        return int(text)

    def positive(self, name: str) -> float | None:
        if name not in self.values:
            return None
        text = self.text(name, "").strip()
        number = float(text) if _NUMBER.fullmatch(text) else 0.0
        if number <= 0:
            msg = f"--{name}: a number above 0 is needed, got {text!r}"
            raise UsageError(msg)
        return number

    def share(self, name: str) -> float | None:
        if name not in self.values:
            return None
        text = self.text(name, "").strip()
        share = float(text) if _NUMBER.fullmatch(text) else -1.0
        if not 0 <= share <= 1:
            msg = f"--{name}: a share from 0 to 1 is needed, got {text!r}"
            raise UsageError(msg)
        return share

    def switch(self, name: str) -> bool:
        word = self.text(name, "on")
        if word not in ("on", "off"):
            msg = f"--{name}: on or off is needed, got {word!r}"
            raise UsageError(msg)
        return word == "on"

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
                raise UsageError(msg)
        return found


def _slice_file(name: str, text: str, here: Path) -> SliceFile:
    slice_, equals, path = text.partition("=")
    dataset, colon, language = slice_.partition(":")
    if not (equals and colon and dataset and language and path):
        msg = f"--{name}: DATASET:LANG=FILE is needed (such as simpleqa:bg=my.csv), got {text!r}"
        raise UsageError(msg)
    return SliceFile(dataset=dataset, language=language, path=here / path)


def _dest(name: str) -> str:
    return "qa_" + name.replace("-", "_")
