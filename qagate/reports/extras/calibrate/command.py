"""``qagate calibrate`` and ``qagate attack``: ordinary runs over labelled answers or attacks."""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.doors import load_labelled_sets
from qagate.cases.label_columns import find_columns, label_texts, language_of
from qagate.cases.labels import BITS, LabelReading, is_number
from qagate.cases.tables import read_table
from qagate.evaluators.core import UsageError
from qagate.evaluators.judges.factory import DEFAULT_RUBRIC, rubric_for
from qagate.evaluators.output import say, write_texts
from qagate.evaluators.rubric import Style
from qagate.evaluators.statistics.metrics import floor_ends
from qagate.evaluators.text import hint
from qagate.reports.commands.run import RunParser
from qagate.reports.commands.run import main as run
from qagate.reports.render.markdown import JUDGE_TITLE, judge_card

WRITTEN = (0, 1, 2, 6)  # exit codes of runs with a report
FOLDER = Path(".qa/calibrate")
ATTACKS = CASES / "attacks"
PATHS = {
    "all": (ATTACKS,),
    "graded": (ATTACKS / "test_attacks.py", ATTACKS / "gold_inside"),
    "rated": (ATTACKS / "attacks_eba",),
}
JUDGES = CASES / "judges"
FLOORS = {
    "graded": JUDGES / DATASET_FILE,
    "rated": JUDGES / "judges_eba" / DATASET_FILE,
}
"""The bundled labelled sets, whose floor holds here too."""
TEST = """\
import pytest


@pytest.mark.qa
def test_label(case, verdict):
    assert verdict.passed, verdict.reason
"""


def main(argv: Sequence[str]) -> int:
    """Run a judged data set made of the file, print the card, and return the run's exit code."""
    options, words = _parser().parse_with_run(argv)
    sets, path = load_labelled_sets(), options.file
    named = None if path.exists() else sets.get(str(path))
    if not (
        named or path.exists() or path.suffix
    ):  # what can only be a file is looked for later
        what = f"no such file, and no set of this name; {hint(str(path), sets)}"
        raise UsageError(f"{path}: {what}")
    if named and not named.path().exists():
        raise UsageError(
            f"{named.path()} is not there; fetch it: qagate download {named.name}"
        )
    path = (named.path() if named else path).resolve()
    options.scale = options.scale or (named.scale if named else "")
    name = re.sub(r"\W", "_", path.name.partition(".")[0], flags=re.ASCII)
    folder = (FOLDER / (name if name[:1].isalpha() else f"labelled_{name}")).resolve()
    settings = json.dumps(_settings(options, path), ensure_ascii=False)
    ini = (
        "[pytest]\naddopts = --import-mode=importlib\n"  # several have a test_label.py
    )
    texts = {DATASET_FILE: settings, "test_label.py": TEST, "pytest.ini": ini}
    write_texts((folder / file, text) for file, text in texts.items())
    if options.limit:
        words = [f"--limit={options.limit}", "--seed=0", *words]
    code = run(
        [
            f"--rootdir={folder}",
            f"--report-dir={options.report_dir}",
            *words,
            str(folder),
        ]
    )
    summary = options.report_dir / "summary.md"
    text = (
        summary.read_text(encoding="utf-8")
        if code in WRITTEN and summary.exists()
        else ""
    )
    if card := judge_card(text):
        say(sys.stdout, f"{JUDGE_TITLE}:", "", card)
    return code


def _parser() -> RunParser:
    parser = RunParser(
        prog="qagate calibrate",
        description="Measure a judge against labelled answers. Takes all options of a run as well.",
        epilog="exit codes are those of a run: 0 the judge reaches the floor, 1 it does not",
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE",
        help="CSV or JSONL with columns question, gold (or answer), predicted_answer, and label or "
             "label_1, label_2 …; optionally aliases, tolerance, language, context; or a set that "
             f"people labelled: {', '.join(load_labelled_sets())} (qagate download)")  # fmt: skip
    add(
        "--kind", choices=("graded", "rated"), help="default: what the labels look like"
    )
    add(
        "--language",
        default="en",
        metavar="xx",
        help="of rows that name none; default: en",
    )
    add(
        "--scale",
        default="",
        metavar="WORST:BEST",
        help="of the ratings; default: 1:10",
    )
    text = "lowest rating that passes; default: the rubric's"
    add("--pass-bar", type=int, metavar="N", help=text)
    add("--two-way", action="store_true", help="tell only right from not right")
    add("--label", default="", metavar="COLUMN", help="the column with the label")
    add(
        "--rater",
        action="append",
        default=[],
        metavar="COLUMN",
        help="one person's labels",
    )
    add(
        "--rubric",
        default="",
        metavar="NAME",
        help="a bundled rubric, or the path of one",
    )
    add(
        "--limit",
        type=int,
        metavar="N",
        help="at most N answers a language, chosen by a hash",
    )
    text, folder = "default: %(default)s", Path("reports/calibrate")
    add("--report-dir", type=Path, default=folder, metavar="DIR", help=text)
    return parser


def _settings(options: argparse.Namespace, path: Path) -> dict[str, object]:
    """Return what ``dataset.yaml`` has to say of the file; its gates are the bundled floor."""
    reading = LabelReading(
        column=options.label, raters=tuple(options.rater), language=options.language
    )
    labels = {
        "column": reading.column,
        "raters": reading.raters,
        "language": reading.language,
        "scale": options.scale,
        "two_way": options.two_way,
    }
    table = read_table(path)
    columns = find_columns(table, reading)
    texts = label_texts(table, columns)
    numbers = all(map(is_number, texts))
    style: Style = options.kind or ("rated" if options.scale or numbers else "graded")
    if not (options.kind or options.scale) and numbers and texts <= BITS.keys():
        what = f"{path.name}: labels 0 and 1 may be grades or ratings; give --kind graded or rated"
        raise UsageError(what)
    if options.two_way and style == "rated":
        raise UsageError("--two-way: ratings are not grades; leave it out")
    rubric = options.rubric or DEFAULT_RUBRIC[style]
    floor = load_dataset(FLOORS[style]).slices["en"].floor
    gates = {}
    for name, bar in floor.items():
        ends = zip(("min", "max"), floor_ends(name, bar), strict=True)
        gates[name] = {key: end for key, end in ends if end is not None}
    languages = {}
    for code in dict.fromkeys(
        language_of(row, columns, reading, "en") for row in table.records
    ):
        borrowed = rubric_for(rubric, code, style).language
        languages[code] = {
            "file": str(path),
            "gates": gates,
            "rubric_language": borrowed,
        }
    settings = {
        "rubric": str(Path(rubric).resolve()) if Path(rubric).suffix else rubric,
        "labels": {key: value for key, value in labels.items() if value},
        "floor": floor,
        "pass_bar": options.pass_bar,
        "sample": {"limit": options.limit, "seed": 0} if options.limit else None,
        "languages": languages,
    }
    return {
        "kind": "judged",
        **{key: value for key, value in settings.items() if value},
    }


def attack(argv: Sequence[str]) -> int:
    """Run the attacks with the words of a run, and return its exit code."""
    parser = RunParser(
        prog="qagate attack",
        description="Put attacks, and odd right answers as controls, to a judge: the same as "
        "`pytest cases/attacks --judge SPEC`. Takes all options of a run as well.",
        epilog="exit codes are those of a run: 1 where more attacks pass than the gates allow",
    )
    add = parser.add_argument
    add(
        "--kind",
        choices=tuple(PATHS),
        default="all",
        help="judges of grades, raters, or both",
    )
    add(
        "--report-dir",
        default="reports/attack",
        metavar="DIR",
        help="default: %(default)s",
    )
    options, words = parser.parse_known_args(argv)
    own = [f"--rootdir={ATTACKS}", f"--report-dir={options.report_dir}"]
    return run([*own, *words, *map(str, PATHS[options.kind])])
