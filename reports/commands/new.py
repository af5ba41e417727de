"""``qagate new``: writes the files of a data set of your own, ready to run."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.config import LANGUAGE
from evaluators import command_line
from evaluators.core import UsageError
from evaluators.output import say
from evaluators.text import shown

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_RUBRICS = Path(command_line.__file__).parent / "rubrics"

MODULE = '''\
import pytest


@pytest.mark.qa("{name}")
def test_{name}(case, verdict):
    """{claim}"""
    assert verdict.passed, verdict.reason
'''
GATES = """\
gates:
  {gate}
  drop: {{max: 0.05}}    # with --baseline: what no language may lose
# baseline: required   # for CI, once there is one: a run without --baseline then decides nothing
"""
PROMPT = """\
name: answer
language: {language}
version: "1"
user: |
  {slots}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The files of a new data set of one kind."""

    claim: str
    """The docstring of its test."""
    settings: str
    """The first lines of dataset.yaml."""
    rubric: str
    data: str
    rows: str
    gate: str
    slots: str = "{question}"
    extra: str = ""


TEMPLATES: Mapping[str, Template] = {
    "graded": Template(
        claim="The answer is graded CORRECT.",
        settings="kind: graded\nrubric: simpleqa\n",
        rubric="simpleqa",
        data="csv",
        rows="id,Question,Answers,Predicted answers\nfirst,How many days has a week?,7,Seven.\n",
        gate="correct: {min: 0.9}",
    ),
    "rated": Template(
        claim="The answer is rated at the bar or above it.",
        settings="kind: rated\nrubric: eba\n",
        rubric="eba",
        data="yaml",
        rows=(
            "- id: first\n  question: How many days has a week?\n"
            "  context: A week is a period of seven days.\n  expected: A week has seven days.\n"
            "  predicted_answer: Seven days.\n"
        ),
        gate="mean_rating: {min: 7}",
        slots="{context}\n\n  {question}",
    ),
    "yes_no": Template(
        claim="The answer is the passage's own.",
        settings="kind: yes_no\n",
        rubric="",
        data="jsonl",
        rows=(
            '{"id": "first", "passage": "A week is a period of seven days.", '
            '"question": "has a week seven days", "answer": true, "predicted_answer": "yes"}\n'
        ),
        gate="accuracy: {min: 0.9}",
        slots="{context}\n\n  {question}",
        extra=", yes: 'yes', no: 'no'",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of a data set, print their paths and return the exit code."""
    parser = command_line.CommandParser(
        prog="qagate new",
        description="Write the files of a data set of your own: settings, data with one row to be "
        "replaced, an answer prompt, and the test module. They run as they are.",
        epilog="exit codes: 0 written, 4 wrong arguments or a folder that is there",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help="of the data set; also its folder's")
    parser.add_argument("--lang", metavar="LANG", default="en", help="its language (default: en)")
    parser.add_argument("--kind", choices=list(TEMPLATES), default="graded", help="(%(default)s)")
    parser.add_argument("--to", metavar="DIR", type=Path, default=Path(), help="where (default: .)")
    options = parser.parse_args(argv)
    name, language = options.name, options.lang
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{shown(name)}: a name of small letters, digits and '_' is needed, a letter first"
        )
    if not LANGUAGE.fullmatch(language):
        raise UsageError(f"--lang: a language code such as de is needed, got {shown(language)}")
    folder = options.to / name
    if folder.exists():
        raise UsageError(
            f"{folder}: is there already; choose another name, or write into it by hand"
        )
    folder.mkdir(parents=True)
    for file, text in _files(name, language, TEMPLATES[options.kind]).items():
        (folder / file).write_text(text, encoding="utf-8")
        say(sys.stdout, str(folder / file))
    say(sys.stdout, f"put your rows in place of the first one, then: qagate run {folder}")
    return 0


def _files(name: str, language: str, template: Template) -> dict[str, str]:
    """Return the files of a data set of this kind: their names and texts."""
    own = (_RUBRICS / f"{template.rubric}.{language}.yaml").is_file()
    foreign = "" if own or not template.rubric else ", rubric_language: en"
    data = f"{language}.{template.data}"
    return {
        "dataset.yaml": (
            f"{template.settings}{GATES.format(gate=template.gate)}languages:\n"
            f"  {language}: {{file: {data}{foreign}{template.extra}}}\n"
        ),
        data: template.rows,
        f"answer.{language}.yaml": PROMPT.format(language=language, slots=template.slots),
        f"test_{name}.py": MODULE.format(name=name, claim=template.claim),
    }
