"""``qagate new``: writes the files of a data set of your own, ready to run."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cases.config import LANGUAGE
from evaluators import command_line
from evaluators.core import UsageError
from evaluators.output import say
from evaluators.text import listed, shown

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
"""
CHANGES = """\
  drop: {max: 0.05}    # with --baseline: what no language may lose
# baseline: required   # for CI, once there is one: a run without --baseline then decides nothing
"""
PROMPT = """\
name: answer
language: {language}
version: "1"
user: |
  {slots}
"""
IGNORED = (".qa/", *(f"**/reports/{name}/" for name in ("out", "out.previous", "rejudged")))
"""What runs write, as ``.gitignore`` names it; promoted runs are to be committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTexts:
    """The first row of a new data set, in one language."""

    question: str
    context: str
    expected: str
    wrong: str
    unknown: str
    claim: str
    """The question of kind ``yes_no``."""
    yes: str
    no: str

    def lines_of(self, text: str) -> list[int]:
        """Return the lines of a file's text that have words of this language."""
        words = (self.question, self.context, self.expected, self.wrong, self.claim, "yes: ")
        lines = enumerate(text.splitlines(), start=1)
        return [number for number, line in lines if any(word in line for word in words)]


TEXTS: Mapping[str, NewTexts] = {
    "en": NewTexts(
        question="How many days has a week?",
        context="A week is a period of seven days.",
        expected="A week has seven days.",
        wrong="A week has eight days.",
        unknown="I do not know.",
        claim="has a week seven days",
        yes="yes",
        no="no",
    ),
    "bg": NewTexts(
        question="Колко дни има една седмица?",
        context="Седмицата е период от седем дни.",
        expected="Седмицата има седем дни.",
        wrong="Седмицата има осем дни.",
        unknown="Не знам.",
        claim="има ли седмицата седем дни",
        yes="да",
        no="не",
    ),
    "pl": NewTexts(
        question="Ile dni ma tydzień?",
        context="Tydzień to okres siedmiu dni.",
        expected="Tydzień ma siedem dni.",
        wrong="Tydzień ma osiem dni.",
        unknown="Nie wiem.",
        claim="czy tydzień ma siedem dni",
        yes="tak",
        no="nie",
    ),
    "hu": NewTexts(
        question="Hány napból áll egy hét?",
        context="A hét hét egymást követő napból álló időszak.",
        expected="Egy hét hét napból áll.",
        wrong="Egy hét nyolc napból áll.",
        unknown="Nem tudom.",
        claim="hét napból áll-e egy hét",
        yes="igen",
        no="nem",
    ),
    "be": NewTexts(
        question="Колькі дзён у тыдні?",
        context="Тыдзень — гэта перыяд з сямі дзён.",
        expected="У тыдні сем дзён.",
        wrong="У тыдні восем дзён.",
        unknown="Не ведаю.",
        claim="ці ў тыдні сем дзён",
        yes="так",
        no="не",
    ),
    "de": NewTexts(
        question="Wie viele Tage hat eine Woche?",
        context="Eine Woche ist ein Zeitraum von sieben Tagen.",
        expected="Eine Woche hat sieben Tage.",
        wrong="Eine Woche hat acht Tage.",
        unknown="Das weiß ich nicht.",
        claim="hat eine Woche sieben Tage",
        yes="ja",
        no="nein",
    ),
}


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
    """The first rows, with the names of texts in braces."""
    gate: str
    """Whether it holds is shown by many rows, not by one."""
    slots: str = "{question}"
    """Of the answer prompt; empty where nothing is asked."""
    extra: str = ""


TEMPLATES: Mapping[str, Template] = {
    "graded": Template(
        claim="The answer is graded CORRECT.",
        settings="kind: graded\nrubric: simpleqa\n",
        rubric="simpleqa",
        data="csv",
        rows="id,Question,Answers,Predicted answers\nfirst,{question},7,7\n",
        gate="correct: {min: 0.9, evidence: confident}",
    ),
    "rated": Template(
        claim="The answer is rated at the bar or above it.",
        settings="kind: rated\nrubric: eba\n",
        rubric="eba",
        data="yaml",
        rows=(
            "- id: first\n  question: {question}\n  context: {context}\n"
            "  expected: {expected}\n  predicted_answer: {expected}\n"
        ),
        gate="mean_rating: {min: 7, evidence: confident}",
        slots="{context}\n\n  {question}",
    ),
    "yes_no": Template(
        claim="The answer is the passage's own.",
        settings="kind: yes_no\n",
        rubric="",
        data="csv",
        rows="id,passage,question,answer,predicted_answer\nfirst,{context},{claim},true,{yes}\n",
        gate="accuracy: {min: 0.9, evidence: confident}",
        slots="{context}\n\n  {question}",
        extra=", yes: '{yes}', no: '{no}'",
    ),
    "judged": Template(
        claim="The judge gives the answer its label.",
        settings=(
            "kind: judged    # measures a judge: label 30 answers or more yourselves\n"
            "rubric: simpleqa\n"
            "floor: {agreement: 0.9}    # a model that agrees less decides nothing\n"
        ),
        rubric="simpleqa",
        data="csv",
        rows=(
            "id,question,answer,predicted_answer,label\n"
            "first,{question},7,{expected},CORRECT\nsecond,{question},7,{wrong},INCORRECT\n"
            "third,{question},7,{unknown},NOT_ATTEMPTED\n"
        ),
        gate="agreement: {min: 0.9, evidence: confident}",
        slots="",
    ),
    "judged-ratings": Template(
        claim="The judge rates the answer as its label does.",
        settings=(
            "kind: judged    # measures a judge: rate 30 answers or more yourselves\nrubric: eba\n"
            "floor: {quadratic_kappa: 0.8, mean_difference: 0.5, pass_agreement: 0.9}\n"
        ),
        rubric="eba",
        data="csv",
        rows=(
            "id,question,context,answer,predicted_answer,label\n"
            "first,{question},{context},{expected},{expected},10\n"
            "second,{question},{context},{expected},{wrong},1\n"
            "third,{question},{context},{expected},{unknown},2\n"
        ),
        gate="pass_agreement: {min: 0.9, evidence: confident}",
        slots="",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of a data set, print their paths and return the exit code."""
    parser = command_line.CommandParser(
        prog="qagate new",
        description="Write the files of a data set of your own: settings, data with a row to be "
        "replaced, an answer prompt, and the test module; with --kind judged, labelled answers "
        "that measure a judge. They run as they are, and decide nothing without your rows.",
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
    kind, texts = TEMPLATES[options.kind], TEXTS.get(language, TEXTS["en"])
    for file, text in _files(name, language, kind, texts).items():
        (folder / file).write_text(text, encoding="utf-8")
        here = [] if language in TEXTS else texts.lines_of(text)
        todo = f": translate line {', '.join(map(str, here))}" if here else ""
        say(sys.stdout, f"{folder / file}{todo}")
    if kind.rubric and not _has_rubric(kind, language):
        say(sys.stdout, f"its rubric is in English: there is no {kind.rubric}.{language}.yaml")
    if added := _ignore(options.to):
        say(sys.stdout, added)
    say(sys.stdout, f"put your rows in place of these, then: qagate run {folder}")
    return 0


def _has_rubric(template: Template, language: str) -> bool:
    return (_RUBRICS / f"{template.rubric}.{language}.yaml").is_file()


def _files(name: str, language: str, template: Template, texts: NewTexts) -> dict[str, str]:
    """Return the files of a data set of this kind: their names and texts."""
    has_rubric = not template.rubric or _has_rubric(template, language)
    data, words = f"{language}.{template.data}", asdict(texts)
    extra = f"{'' if has_rubric else ', rubric_language: en'}{template.extra.format(**words)}"
    prompt = PROMPT.format(language=language, slots=template.slots)
    return {
        "dataset.yaml": (
            f"{template.settings}{GATES.format(gate=template.gate)}"
            f"{CHANGES if template.slots else ''}"
            f"languages:\n  {language}: {{file: {data}{extra}}}\n"
        ),
        data: template.rows.format(**words),
        **({f"answer.{language}.yaml": prompt} if template.slots else {}),
        f"test_{name}.py": MODULE.format(name=name, claim=template.claim),
    }


def _ignore(folder: Path) -> str:
    """Let git ignore what runs write, in the repository's ``.gitignore``; return what was done."""
    whole = folder.resolve()
    home = next((one for one in (whole, *whole.parents) if (one / ".git").exists()), whole)
    file = home / ".gitignore"
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    known = {line.strip().removeprefix("**/") for line in before.splitlines()}
    missing = [line for line in IGNORED if line.removeprefix("**/") not in known]
    if not missing:
        return ""
    start = f"{before}\n" if before and not before.endswith("\n") else before
    file.write_text(start + "".join(f"{line}\n" for line in missing), encoding="utf-8")
    return f"{file}: ignores {listed(missing)}"
