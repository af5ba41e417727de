"""``qagate new``: writes the files of a data set of your own, ready to run."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cases.config import LANGUAGE
from evaluators import command_line
from evaluators.core import UsageError
from evaluators.output import say, write_texts
from evaluators.reading import load_yaml
from evaluators.text import listed, shown

TEXTS = Path(__file__).with_name("new.yaml")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_RUBRICS = Path(command_line.__file__).parent / "rubrics"
IGNORED = (".qa/", *(f"**/reports/{name}/" for name in ("out", "out.previous", "rejudged")))
"""What runs write, as ``.gitignore`` names it; promoted runs are to be committed."""
Texts = Mapping[str, str]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of a data set, print their paths and return the exit code."""
    known = cast("Mapping[str, Any]", load_yaml(TEXTS))
    options = _parser(known["kinds"]).parse_args(argv)
    name, language = options.name, options.lang
    if not _NAME.fullmatch(name):
        what = f"{shown(name)}: a name of small letters, digits and '_' is needed, a letter first"
        raise UsageError(what)
    if not LANGUAGE.fullmatch(language):
        raise UsageError(f"--lang: a language code such as de is needed, got {shown(language)}")
    folder = options.to / name
    if folder.exists():
        what = f"{folder}: is there already; choose another name, or write into it by hand"
        raise UsageError(what)
    kind, languages = known["kinds"][options.kind], known["languages"]
    own, rubric = languages.get(language, languages["en"]), kind["rubric"]
    in_english = rubric and not (_RUBRICS / f"{rubric}.{language}.yaml").is_file()
    names = {"name": name, "language": language}
    names["rubric_language"] = ", rubric_language: en" if in_english else ""
    words = [own[key] for key in ("question", "context", "expected", "wrong", "claim")] + ["yes: "]
    files = _files(known["files"], kind, {**own, **names})
    write_texts((folder / file, text) for file, text in files.items())
    for file, text in files.items():
        lines = enumerate([] if language in languages else text.splitlines(), start=1)
        here = [str(number) for number, line in lines if any(word in line for word in words)]
        todo = f": translate line{'s' * (len(here) > 1)} {', '.join(here)}" if here else ""
        say(sys.stdout, f"{folder / file}{todo}")
    if in_english:
        say(sys.stdout, f"the judge reads English rules: there is no {rubric}.{language}.yaml")
    if added := _ignore(options.to):
        say(sys.stdout, added)
    say(sys.stdout, f"put your rows in place of these, then: qagate run {folder}")
    return 0


def _parser(kinds: Iterable[str]) -> command_line.CommandParser:
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
    parser.add_argument("--kind", choices=list(kinds), default="graded", help="(%(default)s)")
    parser.add_argument("--to", metavar="DIR", type=Path, default=Path(), help="where (default: .)")
    return parser


def _files(files: Texts, kind: Texts, words: Texts) -> dict[str, str]:
    name, language, asks = words["name"], words["language"], kind["slots"]
    data = f"{language}.{kind['data']}"
    extra = words["rubric_language"] + kind["extra"].format(**words)
    prompt = files["prompt"].format(language=language, slots=asks)
    return {
        "dataset.yaml": f"{kind['settings']}gates:\n  {kind['gate']}\n"
        f"{files['changes'] if asks else ''}languages:\n  {language}: {{file: {data}{extra}}}\n",
        data: kind["rows"].format(**words),
        **({f"answer.{language}.yaml": prompt} if asks else {}),
        f"test_{name}.py": files["module"].format(name=name, claim=kind["claim"]),
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
