"""What a run is told: its options, read from one table into one record."""

import argparse
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from qagate.cases.dataset import DATASET_FILE, Plan, Selection, SliceFiles, parse_shard
from qagate.cases.discovery import named_paths
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import RECORDED, LedgerPlace, UsageError, read_place
from qagate.evaluators.models.keys import KEY_ENV, read_key_names
from qagate.evaluators.models.spec import MODELS_FILE
from qagate.evaluators.reading import project_settings
from qagate.evaluators.text import harmless, shown
from qagate.reports.doors import FEATURES
from qagate.reports.run.baselines import find_run

BY_HAND = ("keyword", "deselect", "lf", "stepwise")  # options that leave out any test
CHOOSING = ("markexpr", "ignore", "ignore_glob", *BY_HAND)
"""pytest's options by which a user chooses tests."""
OFF = "off"
REPORT_DIR = "reports/out"
_NAME = r"[A-Za-z0-9_.-]{1,64}", "a name of letters, digits, '.', '_' and '-'"
_SECONDS: Mapping[str, float] = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for, checked as far as the words alone allow."""

    here: Path
    """The working folder."""
    choice: Selection
    model: str
    answers: Path | None
    """The run whose answers are judged anew; None where a model is asked, or the data has them."""
    models: Path | None
    judges: tuple[str, ...]
    allow_self_judge: bool
    calibration: int | None
    """Labelled items a language that measure the judge; None for all, 0 for none."""
    adjudications: Path | None
    adjudications_off: bool
    key_names: Mapping[str, str]
    """Names of environment variables with keys, by base URL."""
    baseline: Path | None
    anchor: Path | None
    gates_off: bool
    ledger: LedgerPlace
    fresh: str
    no_transcripts: bool
    replay: bool
    concurrency: int
    """Calls in flight; like ``rpm`` and ``max_cost`` this shard's share of what was given."""
    rpm: int | None
    """Requests a minute."""
    max_cost: float | None
    """USD."""
    deadline: float | None
    """Seconds for the whole run."""
    batch: bool
    batch_wait: float | None
    """Seconds; None waits to the end."""
    report_dir: Path
    features: tuple[str, ...]
    """The features of the plugin that were asked for, by the names of their options."""


# Values: the text that was given, or an error that says what is needed


def _read(name: str, text: str, pattern: str, needed: str) -> re.Match[str]:
    if found := re.fullmatch(pattern, text):
        return found
    raise UsageError(f"--{name}: {needed} is needed, got {shown(text)}")


def read_whole(name: str, text: str, low: int = 1) -> int:
    """Return a whole number of at most nine digits, and of at least ``low``: 0 or 1."""
    pattern = "(?=0*[1-9])[0-9]{1,9}" if low else "[0-9]{1,9}"
    return int(
        _read(name, text.strip(), pattern, f"a whole number of at least {low}")[0]
    )


def _amount(name: str, text: str) -> float:
    pattern = r"(?=[0.]*[1-9])(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"
    return float(_read(name, text.strip(), pattern, "a number above 0")[0])


def _labels(name: str, word: str) -> int | None:
    if word in ("on", OFF):
        return None if word == "on" else 0
    return read_whole(name, _read(name, word, "[0-9]+", "on, off or a whole number")[0])


def _release(name: str, text: str) -> str:
    return _read(name, text, *_NAME)[0]


def _seconds(name: str, text: str) -> float:
    pattern = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smhd]?)"
    found = _read(name, text.strip(), pattern, "a time such as 2h, 30m, 90s or 0")
    return float(found[1]) * _SECONDS[found[2]]


def _slice_files(name: str, texts: Collection[str], here: Path) -> SliceFiles:
    found: dict[tuple[str, str], Path] = {}
    needed = "DATASET:LANG=FILE, such as simpleqa:bg=my.csv,"
    for text in texts:
        given = _read(name, text, "(([^:=]+):([^=]+))=((?s:.+))", needed)
        if (given[2], given[3]) in found:
            raise UsageError(f"--{name}: {given[1]} is given twice; give it once")
        found[given[2], given[3]] = here / given[4]
    return found


# The table: name, placeholder (none for a flag), help

_ONCE = (
    ("model", "SPEC", "model under test: provider:name[@URL], a name from evaluators/models.yaml, "
     "or recorded: the answers in the data files (default: recorded); recorded:RUN: the answers "
     "of an earlier run (see `qagate rejudge`)"),
    ("models", "FILE", MODELS_FILE),
    ("languages", "LANG,LANG", "only these languages; be/test: that split of a frozen data set"),
    ("limit", "N", "at most N items a slice, chosen by a hash of id and seed: a sample, which "
     "decides only where a file pins it, as in `sample: {limit: N, seed: S}`; first:N: the first "
     "N rows, which decide nothing"),
    ("shard", "K/N", "only the items whose hash falls into part K of N, such as 2/8, with that "
     "part of --concurrency, --rpm and --max-cost; `qagate merge` decides over all N reports"),
    ("seed", "S", "seed of --limit (default: 0)"),
    ("repeats", "N", "ask each item N times (default: 1)"),
    ("baseline", "PATH", "an earlier report folder, its run.json, or a promoted run's name: paired "
     "comparison; write it as --baseline=PATH"),
    ("anchor", "PATH", "a fixed earlier report: drop and rise gates must pass against it too"),
    ("gates", "FILE|off", "thresholds from a YAML file: added to the datasets' own, or in place of "
     "those that it names; off: pytest's plain exit code"),
    ("calibration", "on|N|off", "on how many labelled items of each language an LLM judge is "
     "measured: all (on, the default), N, or none (off: its gates are INCONCLUSIVE)"),
    ("adjudications", "FILE|off", "verdicts by people, which replace the judge's for the very "
     "answers that they judged (default: adjudications.yaml next to each dataset.yaml)"),
    ("ledger", "PATH", "the file that keeps every call (default: .qa/ledger.sqlite3), or "
     "postgresql://HOST/DATABASE"),
    ("fresh", "NAME", "for a release: ask everything anew, even what the ledger holds; the same "
     "NAME resumes such a run, and costs nothing twice"),
    ("concurrency", "N", "calls in flight, for the whole run (default: 16)"),
    ("rpm", "N", "requests a minute, for the whole run (default: no limit)"),
    ("max-cost", "USD", "start no call that could take the run over this; the rest is MISSING"),
    ("deadline", "S", "seconds for the whole run; the rest is MISSING (deadline)"),
    ("batch-wait", "TIME", "how long a run with --batch waits, as 2h, 30m, 90s or 0 (default: to "
     "the end); then exit 6, and the same command goes on"),
    ("report-dir", "DIR", "where the report goes (default: reports/out)"),
)  # fmt: skip
_REPEATED = (
    ("judge", "SPEC", "a SPEC as for --model; lexical: by rules, offline (default); lexical+SPEC: "
     "rules where they are sure, SPEC for the rest; python:MODULE:CLASS: a rule judge of your own, "
     "a class with `async def judge(self, case, answer, ask)`; repeat it for a panel"),
    ("items", "DATASET:LANG=FILE", "your own file, not the bundled one; only these slices run"),
    ("prompt", "DATASET:LANG=FILE", "another answer prompt; repeatable"),
    ("key-env", "URL=NAME", KEY_ENV),
)  # fmt: skip
_FLAGS = (
    ("no-transcripts", "keep no prompts: neither in the ledger nor in the report folder"),
    ("replay", "no network: answer from the ledger; a call that is not there is an ERROR"),
    ("allow-self-judge", "let a model judge its own answers"),
    ("batch", "give calls to the providers' batch APIs at half the price; a wave takes up to a "
     "day: first all answers, then all judgements"),
)  # fmt: skip
NAMES = (*(name for name, *_ in (*_ONCE, *_REPEATED, *_FLAGS)), *FEATURES)
_ELSEWHERE = {"--reruns": "--repeats", "--count": "--repeats", "--lang": "--languages"}
"""Options of other tools, or of a guess, with the option of ours that probably was meant."""


def declare_options(
    parser: pytest.Parser, given: Iterable[object], *, prefixed_only: bool = False
) -> None:
    """Declare the options to pytest, as text: errors are ours.

    A usage error names the options that the words ``given`` probably meant.
    """
    group = parser.getgroup("qa", "qagate: may this model ship?")
    declare(group.addoption, prefixed_only=prefixed_only)
    short = [f"--{name}" for name in NAMES]
    twins = [f"--qa-{name}" for name in NAMES]
    meant: dict[str, None] = {}
    for argument in given:
        word = str(argument).partition("=")[0]
        if not word.startswith("--") or word in short or word in twins:
            continue
        guess = _ELSEWHERE.get(word, word)
        for name in get_close_matches(guess, short, n=1, cutoff=0.7):
            meant[name] = None
    if meant:  # shown with a usage error only
        parser.extra_info["did you mean"] = ", ".join(meant)


def declare(add: Callable[..., object], *, prefixed_only: bool = False) -> None:
    """Declare the options to pytest, or to argparse, by the function that ``add``s one.

    Each has a twin ``--qa-NAME``; with ``prefixed_only`` the twin is its only name, for a
    project whose own options have the short names.
    """

    def names(name: str) -> list[str]:
        if prefixed_only:
            return [f"--qa-{name}"]
        return [f"--{name}", f"--qa-{name}"]

    for name, metavar, text in _ONCE:
        add(*names(name), dest=_dest(name), metavar=metavar, help=text, action=_Once)
    for name, metavar, text in _REPEATED:
        add(*names(name), dest=_dest(name), metavar=metavar, help=text, action="append")
    for name, text in _FLAGS:
        add(*names(name), dest=_dest(name), help=text, action="store_true")
    for name, feature in FEATURES.items():
        add(*names(name), dest=_dest(name), help=feature.help, action="store_true")


def _dest(name: str) -> str:
    return "qa_" + name.replace("-", "_")


class _Once(argparse.Action):
    """Takes one value; refuses a second one, which alone would count."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) not in (None, values):
            raise argparse.ArgumentError(
                None,
                f"{option}: given twice, the second time as {values!r}; "
                "a run takes one, so run twice",
            )
        setattr(namespace, self.dest, values)


def read_words(words: Sequence[str], here: Path) -> tuple[RunOptions, list[str]]:
    """Return the options of a command line without pytest, and the words that are not ours."""
    parser = CommandParser(prog="qagate run", allow_abbrev=False, add_help=False)
    declare(parser.add_argument)
    ours, others = parser.parse_known_args(words)
    return read_options(partial(getattr, ours), here), others


def read_options(option: Callable[[str], Any], here: Path) -> RunOptions:
    """Return the options of this run, with paths from ``here``. Raises UsageError naming them."""
    given = _given(option)

    def value(name: str, read: Callable[[str, str], T], default: D) -> T | D:
        return read(name, given[name]) if name in given else default

    def path(name: str) -> Path | None:
        return here / given[name] if name in given else None

    def run(name: str) -> Path | None:
        return find_run(given[name], here) if name in given else None

    def share(limit: int) -> int:
        return choice.shard.share(limit) if choice.shard else limit

    choice = _choice(given, here)
    max_cost = value("max-cost", _amount, None)
    if max_cost is not None and choice.shard:
        max_cost /= choice.shard.of
    model: str = given.get("model", RECORDED)
    answers = None
    if model.startswith(f"{RECORDED}:"):
        answers = find_run(model.removeprefix(f"{RECORDED}:"), here)
        model = RECORDED
    return RunOptions(
        here=here,
        choice=choice,
        model=model,
        answers=answers,
        models=path("models"),
        judges=tuple(given.get("judge", ["lexical"])),
        allow_self_judge="allow-self-judge" in given,
        calibration=value("calibration", _labels, None),
        adjudications=path("adjudications"),
        adjudications_off=given.get("adjudications") == OFF,
        key_names=read_key_names(given.get("key-env", ())),
        baseline=run("baseline"),
        anchor=run("anchor"),
        gates_off=given.get("gates") == OFF,
        ledger=read_place(given.get("ledger", ".qa/ledger.sqlite3"), here),
        fresh=value("fresh", _release, ""),
        no_transcripts="no-transcripts" in given,
        replay="replay" in given,
        concurrency=share(value("concurrency", read_whole, 16)),
        rpm=share(read_whole("rpm", given["rpm"])) if "rpm" in given else None,
        max_cost=max_cost,
        deadline=value("deadline", _amount, None),
        batch="batch" in given,
        batch_wait=value("batch-wait", _seconds, None),
        report_dir=here / given.get("report-dir", REPORT_DIR),
        features=tuple(name for name in FEATURES if name in given),
    )


def shares(options: RunOptions) -> list[str]:
    """Return a line that says which part of the run's limits a shard has; none for a run."""
    if options.choice.shard is None:
        return []
    limits = {
        "--concurrency": options.concurrency,
        "--rpm": options.rpm,
        "--max-cost": options.max_cost,
    }
    given = [f"{name} {limit:.12g}" for name, limit in limits.items() if limit]
    shard = options.choice.shard
    return [f"shard {shard.held[0]} of {shard.of}: {', '.join(given)}"]


def _choice(given: Mapping[str, Any], here: Path) -> Selection:
    gates, limit = given.get("gates", OFF), given.get("limit", "")
    rows = _read("limit", limit, r"(\s*first\s*:)?([^:]*)", "N or first:N")
    items = read_whole("limit", rows[2]) if "limit" in given else None
    return Selection(
        items=_slice_files("items", given.get("items", ()), here),
        prompts=_slice_files("prompt", given.get("prompt", ()), here),
        languages=tuple(
            filter(None, map(str.strip, given.get("languages", "").split(",")))
        ),
        shard=parse_shard(given["shard"]) if "shard" in given else None,
        seed=read_whole("seed", given.get("seed", "0"), low=0),
        repeats=read_whole("repeats", given.get("repeats", "1")),
        gates=None if gates == OFF else here / gates,
        limit=None if rows[1] else items,
        first=items if rows[1] else None,
        baseline_required="baseline" in project_settings(here).values,
    )


def given_options(option: Callable[[str], Any]) -> dict[str, Any]:
    """Return the options that were given, unchecked."""
    values = {name: option(_dest(name)) for name in NAMES}
    return {name: value for name, value in values.items() if value not in (None, False)}


def _given(option: Callable[[str], Any]) -> dict[str, Any]:
    given = given_options(option)
    for name, value in given.items():
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(one, str) and not one.strip(" ,") for one in texts):
            raise UsageError(f"--{name}: empty; give a value or leave the option out")
    for name, feature in FEATURES.items():
        for other, why in feature.conflicts.items():
            if name in given and other in given:
                raise UsageError(f"--{name}: {why}")
    if "batch-wait" in given and "batch" not in given:
        raise UsageError(
            "--batch-wait: does nothing without --batch; add it, or leave this out"
        )
    return given


def check_collected(
    config: pytest.Config, plan: Plan, found: Collection[str]
) -> tuple[str, ...]:
    """Return the slices that paths and ``-m`` choose, but of which no test is left.

    A labelled data set without a test measures the judge of others. Raises UsageError for a data
    set under one of the run's folders without a test, where no option leaves any out.
    """
    by_hand, given = (
        any(getattr(config.option, name, None) for name in names)
        for names in (BY_HAND, CHOOSING)
    )
    if not by_hand and (given or config.option.pyargs):
        return ()
    named = named_paths(config.args, Path(config.invocation_params.dir))
    asked, left_out, lost = (
        {plan.items[key].slice.name for key in found},
        dict[str, None](),
        [],
    )
    for one in plan.datasets:
        labels = not one.kind.answered and not any(
            part.attacks for part in one.slices.values()
        )
        home, slices = (
            one.folder.resolve(),
            [item.slice.name for item in plan.tests(one)],
        )
        is_under = any(home.is_relative_to(path) for path in named)
        if (labels and found) or not (
            is_under or home in [path.parent for path in named]
        ):
            continue
        left_out |= dict.fromkeys(name for name in slices if name not in asked)
        if slices and is_under and asked.isdisjoint(slices):
            lost.append(
                f'{one.folder / DATASET_FILE}: no test with @pytest.mark.qa("{one.name}")'
            )
    if lost and not by_hand:
        where = "add its test module (test_*.py), or leave it out by path or -m"
        raise pytest.UsageError(harmless(f"{', '.join(lost)} was collected; {where}"))
    return tuple(left_out)
