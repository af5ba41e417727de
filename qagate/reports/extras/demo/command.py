"""``qagate demo``: a first verdict in a minute, without a key and without a network.

The demonstration takes the bundled yes/no questions in Belarusian and English and writes
made-up answers of two models into copies of them. The old model is right on eleven of
twelve items. The new one answers as well in English, but in Belarusian it takes many a no
for a yes. Both are graded by the product itself, exactly as recorded answers of your own
are: nothing of the verdict is prepared.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import qagate
from qagate.bundled import bundled_dataset
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.output import say

DATASET = "boolq"
LOST_LANGUAGE = "be"
WORDS = {"be": ("Так", "Не"), "en": ("Yes", "No")}
"""Yes and no in each language of the data set."""
BASELINE = "old-model"
"""The name of the old model's run."""
ONE_IN = 12
"""One answer in so many of the old model is wrong."""
KEPT_ONE_IN = 3
"""One right no in so many is still right in the language that the new model lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The part of a row that decides what the made-up models answer."""

    number: int
    """Its place in the data file, from 0."""
    language: str
    is_yes: bool
    """Whether the right answer is yes."""

    @property
    def word_for_right(self) -> str:
        """The right answer."""
        yes, no = WORDS[self.language]
        return yes if self.is_yes else no

    @property
    def word_for_wrong(self) -> str:
        """The wrong answer."""
        yes, no = WORDS[self.language]
        return no if self.is_yes else yes


def old_answer(item: Item) -> str:
    """Return what the old model says."""
    if item.number % ONE_IN == 0:
        return item.word_for_wrong
    return item.word_for_right


def new_answer(item: Item) -> str:
    """Return what the new model says: as good in English, and wrong on most noes in Belarusian."""
    if item.number % ONE_IN == 1:
        return item.word_for_wrong
    is_lost = item.language == LOST_LANGUAGE and not item.is_yes
    if is_lost and item.number % KEPT_ONE_IN != 0:
        return item.word_for_wrong
    return item.word_for_right


def main(argv: Sequence[str]) -> int:
    """Write the demonstration, run both models, and return the exit code of the gate."""
    options = _read_options(argv)
    folder: Path = options.folder
    if folder.exists():
        raise UsageError(
            f"{folder}: is there already; delete it, or name another folder"
        )
    data = folder / DATASET
    bundled = bundled_dataset(DATASET)
    if bundled is None:
        raise QAError(f"the bundled data set {DATASET} is missing; install qagate anew")
    shutil.copytree(
        bundled, data, ignore=shutil.ignore_patterns("built", "__pycache__")
    )
    say(
        sys.stdout,
        f"Two models answer yes/no questions in Belarusian and English ({data}).",
    )
    say(
        sys.stdout, "The answers are made up; the verdict is not. No key, no network.\n"
    )

    _write_answers(data, is_new=False)
    say(sys.stdout, f"$ qagate run {DATASET} && qagate promote {BASELINE}")
    run_quietly(folder, ["run", DATASET])
    run_quietly(folder, ["promote", BASELINE])

    _write_answers(data, is_new=True)
    say(sys.stdout, f"$ qagate run {DATASET} --baseline={BASELINE}")
    code = _command(folder, ["run", "-q", DATASET, f"--baseline={BASELINE}"]).returncode
    say(sys.stdout, f"\nexit code {code}: so your CI would stop this upgrade")
    say(sys.stdout, "next: qagate start FILE.csv, for questions of your own")
    return code


def _read_options(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(
        prog="qagate demo",
        description="See a verdict in a minute, offline: an old and a new model answer the same "
        "questions, and the new one has lost a language. Writes the data, both runs and the page "
        "into a folder that you may delete.",
        epilog="exit codes: that of the gates, here 1: the model may not ship",
    )
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        type=Path,
        default=Path("qagate-demo"),
        help="where to write (default: %(default)s)",
    )
    return parser.parse_args(argv)


def _write_answers(data: Path, *, is_new: bool) -> None:
    """Write the answers of one model into the data files."""
    for language, (yes, _) in WORDS.items():
        path = data / f"{language}.json"
        rows = json.loads(path.read_text("utf-8"))
        for number, row in enumerate(rows):
            item = Item(number=number, language=language, is_yes=row["answer"] == yes)
            row["predicted_answer"] = new_answer(item) if is_new else old_answer(item)
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=1), "utf-8")


def _command(
    folder: Path, words: Sequence[str], *, captured: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command of this very qagate, wherever it was started from."""
    sys.stdout.flush()  # what was said stands before what the command says
    places = [str(Path(qagate.__file__).parent.parent), os.environ.get("PYTHONPATH")]
    search_path = os.pathsep.join(place for place in places if place)
    return subprocess.run(
        [sys.executable, "-m", "qagate", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search_path},
        text=True,
        capture_output=captured,
        check=False,
    )


def run_quietly(folder: Path, words: Sequence[str]) -> None:
    """Run a command of which only a failure is worth showing."""
    ended = _command(folder, words, captured=True)
    if ended.returncode != 0:
        lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        last_line = lines[-1] if lines else "it said nothing"
        command = " ".join(words)
        raise QAError(f"`qagate {command}` ended in {ended.returncode}: {last_line}")
