"""The options of a run: their names and help, and how pytest and ``qagate run`` learn them.

Each option is declared as a text or as a flag. What the text must look like is said in
``options.py``, so that every mistake is answered by a message of ours.
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pytest

from qagate.evaluators.models.keys import KEY_ENV
from qagate.evaluators.models.spec import MODELS_FILE
from qagate.reports.doors import FEATURES


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a run."""

    name: str
    """Without dashes before it, such as ``max-cost``."""
    metavar: str = ""
    """What stands for its value in the help; empty for a flag, which takes no value."""
    help: str
    is_repeatable: bool = False
    """Whether it may be given several times: its value is then a list."""

    @property
    def dest(self) -> str:
        """The name under which pytest and argparse keep its value."""
        return "qa_" + self.name.replace("-", "_")


OPTIONS = (
    Option(
        name="model",
        metavar="SPEC",
        help=(
            "model under test: provider:name[@URL], a name from "
            "evaluators/models.yaml, or recorded: the answers in the data files "
            "(default: recorded); recorded:RUN: the answers of an earlier run (see "
            "`qagate rejudge`)"
        ),
    ),
    Option(
        name="models",
        metavar="FILE",
        help=MODELS_FILE,
    ),
    Option(
        name="languages",
        metavar="LANG,LANG",
        help="only these languages; be/test: that split of a frozen data set",
    ),
    Option(
        name="limit",
        metavar="N",
        help=(
            "at most N items a slice, chosen by a hash of id and seed: a sample, which "
            "decides only where a file pins it, as in `sample: {limit: N, seed: S}`; "
            "first:N: the first N rows, which decide nothing"
        ),
    ),
    Option(
        name="shard",
        metavar="K/N",
        help=(
            "only the items whose hash falls into part K of N, such as 2/8, with that "
            "part of --concurrency, --rpm and --max-cost; `qagate merge` decides over "
            "all N reports"
        ),
    ),
    Option(
        name="shards-at-once",
        metavar="M",
        help=(
            "where only M of the N shards run at a time: these share --concurrency and "
            "--rpm, so that no quota lies idle (default: all N)"
        ),
    ),
    Option(
        name="seed",
        metavar="S",
        help="seed of --limit (default: 0)",
    ),
    Option(
        name="repeats",
        metavar="N",
        help="ask each item N times (default: 1)",
    ),
    Option(
        name="baseline",
        metavar="PATH",
        help=(
            "an earlier report folder, its run.json, or a promoted run's name: its answers "
            "are read anew and compared item by item; none: without one, although one "
            "was promoted; write it as --baseline=PATH"
        ),
    ),
    Option(
        name="accept-changed",
        metavar="slices=NAMES|gates=HASH",
        help=(
            "let a change since the baseline not hold the verdict up: slices that this "
            "run lacks (slices=simpleqa:be,eba:en), or gates that are gone, waived or "
            "laxer (gates=HASH, as the verdict prints it); counts on the command line "
            "alone, and stands in the last line; repeatable"
        ),
        is_repeatable=True,
    ),
    Option(
        name="monitor",
        help=(
            "a nightly look at the baseline's own model: asked anew, compared and "
            "gated as always, but no try of a release and never a baseline"
        ),
    ),
    Option(
        name="anchor",
        metavar="PATH",
        help="a fixed earlier report: drop and rise gates must pass against it too",
    ),
    Option(
        name="gates",
        metavar="FILE|off",
        help=(
            "thresholds from a YAML file: added to the datasets' own, or in place of "
            "those that it names; off: pytest's plain exit code"
        ),
    ),
    Option(
        name="adjudications",
        metavar="FILE|off",
        help=(
            "verdicts by people, which replace the judge's for the very answers that "
            "they judged (default: adjudications.yaml next to each dataset.yaml)"
        ),
    ),
    Option(
        name="ledger",
        metavar="PATH",
        help=(
            "the file that keeps every call (default: .qa/ledger.sqlite3), or "
            "postgresql://HOST/DATABASE"
        ),
    ),
    Option(
        name="fresh",
        metavar="NAME",
        help=(
            "for a release: ask everything anew, even what the ledger holds; the same "
            "NAME resumes such a run, and costs nothing twice"
        ),
    ),
    Option(
        name="concurrency",
        metavar="N",
        help="calls in flight, for the whole run (default: 16)",
    ),
    Option(
        name="rpm",
        metavar="N",
        help="requests a minute, for the whole run (default: no limit)",
    ),
    Option(
        name="max-cost",
        metavar="USD",
        help="start no call that could take the run over this; the rest is MISSING",
    ),
    Option(
        name="deadline",
        metavar="TIME",
        help="for the whole run, as 300 (seconds), 5m or 2h; the rest is MISSING (deadline)",
    ),
    Option(
        name="batch-wait",
        metavar="TIME",
        help=(
            "how long a run with --batch waits, as 2h, 30m, 90s or 0 (default: to the "
            "end); then exit 6, and the same command goes on"
        ),
    ),
    Option(
        name="report-dir",
        metavar="DIR",
        help="where the report goes (default: reports/out)",
    ),
    Option(
        name="judge",
        metavar="SPEC",
        help=(
            "a SPEC as for --model; lexical: by rules, offline (default); "
            "lexical+SPEC: rules where they are sure, SPEC for the rest; "
            "python:MODULE:CLASS: a rule judge of your own, a class with `async def "
            "judge(self, case, answer, ask)`; repeat it for a panel"
        ),
        is_repeatable=True,
    ),
    Option(
        name="items",
        metavar="DATASET:LANG=FILE",
        help="your own file, not the bundled one; only these slices run",
        is_repeatable=True,
    ),
    Option(
        name="recorded",
        metavar="DATASET:LANG=FILE",
        help="recorded answers in a file of their own, joined by id or question; repeatable",
        is_repeatable=True,
    ),
    Option(
        name="prompt",
        metavar="DATASET:LANG=FILE",
        help="another answer prompt; repeatable",
        is_repeatable=True,
    ),
    Option(
        name="key-env",
        metavar="URL=NAME",
        help=KEY_ENV,
        is_repeatable=True,
    ),
    Option(
        name="no-transcripts",
        help="keep no prompts: neither in the ledger nor in the report folder",
    ),
    Option(
        name="replay",
        help="no network: answer from the ledger; a call that is not there is an ERROR",
    ),
    Option(
        name="allow-self-judge",
        help="let a model judge its own answers",
    ),
    Option(
        name="batch",
        help=(
            "give calls to the providers' batch APIs at half the price; a wave takes "
            "up to a day: first all answers, then all judgements"
        ),
    ),
)
"""Those of every run, in the order of the help."""
FEATURE_OPTIONS = tuple(
    Option(name=name, help=feature.help) for name, feature in FEATURES.items()
)
"""A flag for each feature of the plugin; see ``doors.FEATURES``."""
NAMES = tuple(option.name for option in (*OPTIONS, *FEATURE_OPTIONS))
OTHER_NAMES = {
    "--reruns": "--repeats",
    "--count": "--repeats",
    "--lang": "--languages",
}
"""Options of other tools, or of a guess, with the option of ours that probably was meant."""


def declare_options(
    parser: pytest.Parser, given: Iterable[object], *, prefixed_only: bool = False
) -> None:
    """Declare the options to pytest.

    A usage error will name the options that the words ``given`` probably meant.
    """
    group = parser.getgroup("qa", "qagate: may this model ship?")
    declare(group.addoption, prefixed_only=prefixed_only)
    meant = _options_meant(str(word) for word in given)
    if meant:  # shown with a usage error only
        parser.extra_info["did you mean"] = ", ".join(meant)


def _options_meant(words: Iterable[str]) -> list[str]:
    """Return the options of ours that come near to words which are no options of ours."""
    short_names = [f"--{name}" for name in NAMES]
    twins = [f"--qa-{name}" for name in NAMES]
    meant: list[str] = []
    for word in words:
        given_name = word.partition("=")[0]
        is_ours = given_name in short_names or given_name in twins
        if is_ours or not given_name.startswith("--"):
            continue
        guess = OTHER_NAMES.get(given_name, given_name)
        for name in get_close_matches(guess, short_names, n=1, cutoff=0.7):
            if name not in meant:
                meant.append(name)
    return meant


def declare(add: Callable[..., object], *, prefixed_only: bool = False) -> None:
    """Declare the options to pytest, or to argparse, by the function that ``add``s one.

    Each has a twin ``--qa-NAME``; with ``prefixed_only`` the twin is its only name, for a
    project whose own options have the short names.
    """
    for option in (*OPTIONS, *FEATURE_OPTIONS):
        names = [f"--qa-{option.name}"]
        if not prefixed_only:
            names.insert(0, f"--{option.name}")
        if not option.metavar:
            add(*names, dest=option.dest, help=option.help, action="store_true")
            continue
        add(
            *names,
            dest=option.dest,
            metavar=option.metavar,
            help=option.help,
            action="append" if option.is_repeatable else _StoreOnce,
        )


class _StoreOnce(argparse.Action):
    """Takes one value; refuses another one, which alone would count."""

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


def given_options(value_of: Callable[[str], Any]) -> dict[str, Any]:
    """Return the options that were given, by name and unchecked.

    ``value_of`` returns what pytest or argparse keeps under a ``dest``. A value is a text,
    a list of texts, or True for a flag.
    """
    given = {}
    for option in (*OPTIONS, *FEATURE_OPTIONS):
        value = value_of(option.dest)
        if value is not None and value is not False:
            given[option.name] = value
    return given
