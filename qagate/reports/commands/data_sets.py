"""``qagate check``, ``download``, ``draw`` and ``new``: files of data sets, from first to last."""

import re
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, cast

from qagate.bundled import CASES
from qagate.cases.config import LANGUAGE
from qagate.cases.extras.check.checks import check_datasets, check_files
from qagate.cases.extras.download import public_files
from qagate.cases.extras.draw.draw import DrawRecipe, file_text
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say, write_texts
from qagate.evaluators.reading import load_yaml
from qagate.evaluators.rubric import RUBRICS
from qagate.evaluators.text import listed, shown
from qagate.reports.plugin.options import dataset_files

DONE, FOUND, USAGE = 0, 1, 4
TEXTS = Path(__file__).with_name("new.yaml")
_FOLDERS = ("out", "out.previous", "rejudged", "rejudged.previous")
IGNORED = (".qa/", *(f"**/reports/{name}/" for name in _FOLDERS))
"""What runs write, as ``.gitignore`` names it; promoted runs are to be committed."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_DOWNLOAD_CODES = """\
exit codes: 0 the file is there and right, 1 it could not be fetched or is not right,
4 wrong arguments, or a file that is not as the set says, 130 interrupted"""
Texts = Mapping[str, str]


def check(argv: Sequence[str]) -> int:
    """Check data sets, print findings and a summary, return the exit code. Raises UsageError."""
    parser = CommandParser(
        prog="qagate check",
        description="Find repeated items, leaks, wrong letters, and gates that can show nothing.",
        epilog="exit codes: 0 no errors (warnings are allowed unless --strict), 1 errors found, 4 "
        "wrong arguments, or a file that cannot be loaded at all",
    )
    add = parser.add_argument
    text = (
        "a dataset.yaml, or a folder with some below it (default: those below the working folder; "
        "the bundled ones where it has none)"
    )
    add("files", nargs="*", type=Path, metavar="FILE", help=text)
    text = "the files are data files: check them as items of this bundled dataset and language"
    add("--as", dest="as_", metavar="DATASET:LANG", default="", help=text)
    add("--strict", action="store_true", help="exit with 1 on warnings too")
    options = parser.parse_args(argv)
    paths, here = options.files, Path.cwd()
    if not (paths or options.as_):
        below = dataset_files(["."], here, here)
        paths = [one for one in below if not one.is_relative_to(CASES)]
        paths += [CASES.relative_to(here)] if len(paths) < len(below) else []
    result = check_files(paths, options.as_) if options.as_ else check_datasets(paths)
    found = sum(finding.severity == "error" for finding in result.findings)
    errors, warnings = found + len(result.refused), len(result.findings) - found
    refused = f", {len(result.refused)} not loaded" if result.refused else ""
    checked = (
        f"{plural(result.items, 'item')} in {plural(result.files, 'file')}{refused}"
    )
    summary = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}: {checked}"
    say(sys.stdout, *result.lines, *result.waived, *result.labelled, summary)
    say(sys.stderr, *result.refused)
    code = FOUND if errors or (options.strict and warnings) else DONE
    return USAGE if result.refused else code


def download(argv: Sequence[str]) -> int:
    """Fetch and verify a file, print how to use it, return 0. Raises UsageError, DownloadError."""
    benchmarks, sets = public_files.load_benchmarks(), public_files.load_labelled_sets()
    table = ["benchmarks:"]
    for name, bench in benchmarks.items():
        table.append(
            f"  {name:<12}{bench.licence}, for {bench.dataset}:{bench.language}"
        )
        table.append(f"{'':14}{bench.url}")
    table.append("answers that people labelled, for qagate calibrate:")
    for name, labelled in sets.items():
        table.append(f"  {name:<12}{labelled.citation}; licence: {labelled.licence}")
        golds = [labelled.golds.url] if labelled.golds else []
        table += (f"{'':14}{url}" for url in (labelled.url, *golds))
    parser = CommandParser(
        prog="qagate download",
        description="Fetch and verify a public benchmark, or answers that people labelled.",
        epilog="\n".join((*table, "", _DOWNLOAD_CODES)),
        formatter_class=RawDescriptionHelpFormatter,
    )
    add, to = parser.add_argument, public_files.DATA_FOLDER
    add(
        "name",
        metavar="NAME",
        choices=[*benchmarks, *sets],
        help="a benchmark or labelled set",
    )
    add("--to", metavar="FOLDER", type=Path, default=to, help="default: %(default)s")
    add("--sha256", metavar="HEX", default="", help="the hash that the file must have")
    add("--url", default="", help="another address of the same file")
    options = parser.parse_args(argv)
    sha256 = options.sha256.strip().lower()
    if options.sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        what = f"--sha256 {shown(options.sha256)}: 64 hexadecimal digits are needed"
        raise UsageError(f"download: {what}")
    public_files.check_address(options.url or "https://localhost")
    one = sets.get(options.name) or benchmarks[options.name]
    say(
        sys.stdout,
        one.obtain(options.to, options.url, sha256),
        *_next_steps(one, options.to),
    )
    return DONE


def _next_steps(
    one: public_files.Benchmark | public_files.LabelledSet, folder: Path
) -> list[str]:
    if isinstance(one, public_files.Benchmark):
        items = quote(f"{one.dataset}:{one.language}={folder / one.file}")
        return [f"pytest -n 8 cases/{one.dataset} --items {items} {one.run}"]
    lines = [one.golds.obtain(folder)] if one.golds else []
    path = one.path(folder)
    with public_files.file_errors(path):
        rows, left_out = public_files.bring_to_form(one, folder)
    questions = plural(len({row["question"] for row in rows}), "question")
    unused = (
        ", ".join(f"{count:,} for {why}" for why, count in left_out.items()) or "none"
    )
    found = f"{plural(len(rows), 'answer')} to {questions}; left out: {unused}"
    by_hand = [quote(f"{path}"), *(["--scale", one.scale] if one.scale else [])]
    words = [one.name] if folder == public_files.DATA_FOLDER else by_hand
    return [
        *lines,
        f"{path}: {found}; labelled by people ({one.citation})",
        f"qagate calibrate --judge PROVIDER:NAME {' '.join(words)}",
    ]


def draw(argv: Sequence[str]) -> int:
    """Draw questions, write a file a language, check them; return the code. Raises UsageError."""
    parser = CommandParser(
        prog="qagate draw",
        description="Draw questions with golds from a table (CSV, JSON, JSON lines or YAML), as a "
        "recipe says. The same seed draws the same questions, another one draws others.",
        epilog="exit codes: 0 drawn, 1 drawn, but with errors, 4 wrong arguments, recipe or table",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "table",
        metavar="TABLE",
        type=Path,
        help="the table, a row for each thing asked about",
    )
    add(
        "--recipe",
        metavar="FILE",
        type=Path,
        required=True,
        help="a YAML file; see docs/data.md",
    )
    add("--seed", metavar="N", type=int, default=0, help="default: %(default)s")
    add("--count", metavar="N", type=int, help="of each kind, in place of the recipe's")
    add(
        "--to",
        metavar="FOLDER",
        type=Path,
        default=Path("drawn"),
        help="default: %(default)s",
    )
    add(
        "--as",
        dest="dataset",
        metavar="DATASET",
        default="simpleqa",
        help="(%(default)s)",
    )
    add("--blind", action="store_true", help="questions alone, for a closed-book trial")
    options = parser.parse_args(argv)
    if options.count is not None and options.count < 1:
        raise UsageError(
            f"draw: --count {options.count}: 1 or more questions are needed"
        )
    drawn = DrawRecipe(options.recipe, options.table).draw(options.seed, options.count)
    ending, code = ".questions.csv" if options.blind else ".csv", DONE
    paths = {language: options.to / f"{language}{ending}" for language in drawn}
    if there := next((path for path in paths.values() if path.exists()), None):
        raise UsageError(f"{there}: is there already; name another folder with --to")
    for language, path in paths.items():
        write_texts([(path, file_text(drawn[language], blind=options.blind))])
        say(
            sys.stdout,
            f"{path}: {plural(len(drawn[language]), 'question')}, seed {options.seed}",
        )
    for language, path in () if options.blind else paths.items():
        result = check_files([path], f"{options.dataset}:{language}")
        say(sys.stdout, *result.lines)
        say(sys.stderr, *result.refused)
        items = quote(f"{options.dataset}:{language}={path}")
        run = (
            f"pytest -n 8 cases/{options.dataset} --items {items} --model PROVIDER:NAME"
        )
        say(sys.stdout, run)
        if result.refused or any(
            finding.severity == "error" for finding in result.findings
        ):
            code = FOUND
    return code


def new(argv: Sequence[str]) -> int:
    """Write the files of a data set, print their paths and return the exit code."""
    texts = cast("Mapping[str, Any]", load_yaml(TEXTS))
    options = _naming(argv, list(texts["kinds"]))
    folder = options.to / options.name
    if folder.exists():
        raise UsageError(
            f"{folder}: is there already; choose another name, or write into it by hand"
        )
    language = options.lang
    languages = texts["languages"]
    is_translated = language in languages
    example = languages[language] if is_translated else languages["en"]
    kind = texts["kinds"][options.kind]
    rubric = kind["rubric"]
    in_english = rubric and not (RUBRICS / f"{rubric}.{language}.yaml").is_file()
    names = {
        "name": options.name,
        "language": language,
        "rubric_language": ", rubric_language: en" if in_english else "",
    }
    files = _files(texts["files"], kind, {**example, **names})
    write_texts((folder / file, text) for file, text in files.items())
    for file, text in files.items():
        advice = "" if is_translated else _translation_advice(text, example)
        say(sys.stdout, f"{folder / file}{advice}")
    if in_english:
        say(
            sys.stdout,
            f"the judge reads English rules: there is no {rubric}.{language}.yaml",
        )
    if added := _ignore(options.to):
        say(sys.stdout, added)
    say(sys.stdout, f"put your rows in place of these, then: qagate run {folder}")
    return DONE


def _translation_advice(text: str, english: Texts) -> str:
    """Return which lines of a file hold texts of the English example; empty where none does."""
    phrases = [
        english["question"],
        english["context"],
        english["expected"],
        english["wrong"],
        english["claim"],
        "yes: ",
    ]
    numbers = []
    for number, line in enumerate(text.splitlines(), start=1):
        if any(phrase in line for phrase in phrases):
            numbers.append(str(number))
    if not numbers:
        return ""
    noun = "lines" if len(numbers) > 1 else "line"
    return f": translate {noun} {', '.join(numbers)}"


def _naming(argv: Sequence[str], kinds: Sequence[str]) -> Namespace:
    parser = CommandParser(
        prog="qagate new",
        description="Write the files of a data set of your own: settings, data with a row to be "
        "replaced, an answer prompt, and the test module; with --kind judged, labelled answers "
        "that measure a judge. They run as they are, and decide nothing without your rows.",
        epilog="exit codes: 0 written, 4 wrong arguments or a folder that is there",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="of the data set; also its folder's")
    add("--lang", metavar="LANG", default="en", help="its language (default: en)")
    add("--kind", choices=kinds, default="graded", help="(%(default)s)")
    add("--to", metavar="DIR", type=Path, default=Path(), help="where (default: .)")
    options = parser.parse_args(argv)
    if not _NAME.fullmatch(options.name):
        what = "a name of small letters, digits and '_' is needed, a letter first"
        raise UsageError(f"{shown(options.name)}: {what}")
    if not LANGUAGE.fullmatch(options.lang):
        raise UsageError(
            f"--lang: a language code such as de is needed, got {shown(options.lang)}"
        )
    return options


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
    home = next(
        (one for one in (whole, *whole.parents) if (one / ".git").exists()), whole
    )
    file = home / ".gitignore"
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    known = {line.strip().removeprefix("**/") for line in before.splitlines()}
    missing = [line for line in IGNORED if line.removeprefix("**/") not in known]
    if not missing:
        return ""
    start = f"{before}\n" if before and not before.endswith("\n") else before
    file.write_text(start + "".join(f"{line}\n" for line in missing), encoding="utf-8")
    return f"{file}: ignores {listed(missing)}"
