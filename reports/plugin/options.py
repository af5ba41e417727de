"""What the command line asks for: our options, declared once for pytest and for argparse."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from cases.dataset import Selection
from cases.shards import parse_shard
from evaluators.core import UsageError
from evaluators.ledger_place import Place, read_place
from evaluators.models.keys import KEY_ENV, MODELS_FILE, read_key_names
from reports.plugin import batch_options
from reports.plugin.mistyped import Once, hint
from reports.plugin.option_values import (
    read_amount,
    read_labels,
    read_name,
    read_share,
    read_slice_files,
    read_whole,
)
from reports.verdict.promoted import find_run

OFF = "off"

_VALUES = (
    ("model", "SPEC", "model under test: provider:name[@URL], a name from evaluators/models.yaml, "
     "or recorded: the answers in the data files (default: recorded)"),
    ("models", "FILE", MODELS_FILE),
    ("languages", "LANG,LANG", "only these languages; be/test: that split of a frozen data set"),
    ("limit", "N", "at most N items a slice, chosen by a hash of id and seed: a sample, which "
     "decides only where a file pins it, as in `sample: {limit: N, seed: S}`"),
    ("first", "N", "only the first N items a slice: a look at them, which decides nothing"),
    ("shard", "K/N", "only the items whose hash falls into part K of N, as 2/8: a part decides "
     "nothing; `python -m reports merge` decides over the report folders of all N"),
    ("seed", "S", "seed of --limit (default: 0)"),
    ("repeats", "N", "ask the model N times an item (default: 1)"),
    ("baseline", "PATH", "an earlier report folder, its run.json, or a promoted run's name: paired "
     "comparison; write it as --baseline=PATH"),
    ("anchor", "PATH", "a fixed earlier report: drop and rise gates must pass beside it too"),
    ("gates", "FILE|off", "thresholds from a YAML file beside the datasets' own, or in place of "
     "those that it names; off: pytest's plain exit code"),
    ("tie-breaker", "SPEC", "a judge whose vote is added where a panel ties"),
    ("audit", "SHARE", "share of what the rules of lexical+SPEC settle that SPEC judges too, from "
     "0 to 1 (default: 0.05)"),
    ("calibration", "on|N|off", "whether an LLM judge is measured on the labelled items of the "
     "run's languages (default: on), or on N a language; off: its gates are INCONCLUSIVE"),
    ("adjudications", "FILE|off", "verdicts by people, which take the judge's place for the very "
     "answers that they judged (default: adjudications.yaml beside each dataset.yaml)"),
    ("ledger", "PATH", "every call's file (.qa/ledger.sqlite3), or postgresql://HOST/DATABASE"),
    ("fresh", "NAME", "for a release: ask all of it anew, whatever the ledger holds; the same NAME "
     "resumes such a run, and costs nothing twice"),
    ("concurrency", "N", "calls in flight, for the whole run (default: 16)"),
    ("rpm", "N", "requests a minute, for the whole run (default: no limit)"),
    ("max-cost", "USD", "start no call that could take the run over this; the rest is MISSING"),
    ("deadline", "S", "seconds for the whole run; the rest is MISSING (deadline)"),
    *batch_options.VALUES,
    ("report-dir", "DIR", "where the report goes (default: reports/out)"),
)  # fmt: skip
_REPEATABLE = (
    ("judge", "SPEC", "a SPEC as for --model; lexical: by rules, offline (default); lexical+SPEC: "
     "rules where they are sure, SPEC for the rest; python:MODULE:CLASS: a rule judge of your own, "
     "a class with `async def judge(self, case, answer, ask)`; repeat it for a panel"),
    ("items", "DATASET:LANG=FILE", "your own file, not the bundled one; only these slices run"),
    ("prompt", "DATASET:LANG=FILE", "another answer prompt; repeatable"),
    ("key-env", "URL=NAME", KEY_ENV),
)  # fmt: skip
_FILES = ("adjudications", "models")  # options that are a path, or nothing
_RUNS = ("baseline", "anchor")  # options that are a path or a promoted run's name, or nothing
_FLAGS = (
    ("until-decided", "ask in an order that the data fix, and stop a slice once all its gates, "
     "with `evidence: sequential`, are settled"),
    ("no-transcripts", "keep no prompts: neither in the ledger nor beside the report"),
    ("replay", "no network: answer from the ledger; a call that is not there is an ERROR"),
    ("dry-run", "print items, calls, tokens, cost and how gates may end; call nothing"),
    ("show-misses", "list each miss as pytest lists failures (so does -rf)"),
    ("reask-invalid", "ask a judge anew where all its replies in the ledger are unreadable"),
    ("allow-self-judge", "let a model judge its own answers"),
    *batch_options.FLAGS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for, checked as far as the words alone allow.

    ``here`` is the working folder. ``touched`` says that at least one option of ours was given.
    """

    here: Path
    model: str
    models: Path | None
    judges: tuple[str, ...]
    tie_breaker: str
    audit: float | None
    calibration: int | None
    adjudications: Path | None
    adjudications_off: bool
    choice: Selection
    key_names: Mapping[str, str]
    baseline: Path | None
    anchor: Path | None
    gates_off: bool
    ledger: Place
    fresh: str
    until_decided: bool
    no_transcripts: bool
    replay: bool
    reask_invalid: bool
    concurrency: int
    rpm: int | None
    max_cost: float | None
    deadline: float | None
    batch: bool
    batch_wait: float | None
    report_dir: Path
    dry_run: bool
    allow_self_judge: bool
    show_misses: bool
    touched: bool


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options. Their values stay text, so that a wrong one is an error of ours."""
    declare(parser.getgroup("qa", "question answering: may this model ship?").addoption)
    hint(parser, pluginmanager, [f"--{name}" for name, *_ in (*_VALUES, *_REPEATABLE, *_FLAGS)])


def declare(add: Callable[..., object]) -> None:
    """Declare the options to pytest, or to argparse, whose way to ``add`` one is the same."""
    for name, metavar, text in _VALUES:
        add(f"--{name}", dest=_dest(name), metavar=metavar, help=text, action=Once)
    for name, metavar, text in _REPEATABLE:
        add(f"--{name}", dest=_dest(name), metavar=metavar, help=text, action="append")
    for name, text in _FLAGS:
        add(f"--{name}", dest=_dest(name), help=text, action="store_true")


def _dest(name: str) -> str:
    return "qa_" + name.replace("-", "_")


class Chosen(Protocol):
    """A command line that was read, as pytest's Config is one."""

    def getoption(self, name: str) -> Any:
        """Return the value of an option."""


def read_options(config: Chosen, here: Path) -> Options:
    """Return the options of this run; relative paths start at ``here``, the working folder.

    Raises UsageError naming the option that is wrong and what it was.
    """
    given = _given(config)
    simple: dict[str, Any] = {name.replace("-", "_"): name in given for name, _ in _FLAGS}
    simple |= {name: here / given[name] if name in given else None for name in _FILES}
    simple |= {name: find_run(given[name], here) if name in given else None for name in _RUNS}

    def value(name: str, read: Callable[[str, str], Any], default: object = None) -> Any:
        return read(name, given[name]) if name in given else default

    if "until-decided" in given and "shard" in given:
        raise UsageError(
            "--until-decided: a shard decides nothing; leave out one of it and --shard"
        )
    return Options(
        here=here,
        model=given.get("model", "recorded"),
        judges=tuple(given.get("judge", ["lexical"])),
        tie_breaker=given.get("tie-breaker", ""),
        audit=value("audit", read_share),
        calibration=value("calibration", read_labels),
        adjudications_off=given.get("adjudications") == OFF,
        choice=_choice(given, here),
        gates_off=given.get("gates") == OFF,
        ledger=read_place(given.get("ledger", ".qa/ledger.sqlite3"), here),
        fresh=value("fresh", read_name, ""),
        key_names=read_key_names(given.get("key-env", ())),
        concurrency=value("concurrency", read_whole, 16),
        rpm=value("rpm", read_whole),
        max_cost=value("max-cost", read_amount),
        deadline=value("deadline", read_amount),
        report_dir=here / given.get("report-dir", "reports/out"),
        touched=bool(given),
        **batch_options.read_batch(given),
        **simple,
    )


def _choice(given: Mapping[str, Any], here: Path) -> Selection:
    languages = map(str.strip, given.get("languages", "").split(","))
    gates = given.get("gates", OFF)
    return Selection(
        items=read_slice_files("items", given, here),
        prompts=read_slice_files("prompt", given, here),
        languages=tuple(filter(None, languages)),
        limit=read_whole("limit", given["limit"]) if "limit" in given else None,
        first=read_whole("first", given["first"]) if "first" in given else None,
        shard=parse_shard(given["shard"]) if "shard" in given else None,
        seed=read_whole("seed", given.get("seed", "0"), low=0),
        repeats=read_whole("repeats", given.get("repeats", "1")),
        gates=None if gates == OFF else here / gates,
    )


def _given(config: Chosen) -> dict[str, Any]:
    """Return the options that were given: a text each, a list of texts, or True for a flag."""
    names = [name for name, *_ in (*_VALUES, *_REPEATABLE, *_FLAGS)]
    values = {name: config.getoption(_dest(name)) for name in names}
    given = {name: value for name, value in values.items() if value not in (None, False)}
    for name, value in given.items():
        if value == "" or (isinstance(value, list) and "" in value):
            raise UsageError(f"--{name}: empty; give a value or leave the option out")
    return given
