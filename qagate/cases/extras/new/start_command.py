"""``qagate start``: from a spreadsheet to a gate.

The command asks what no option says, and writes all files of a gate at once: the data set, the
models file and the workflow. They are first read in a folder aside, so that nothing is written
where a row is wrong. No file is overwritten.
"""

import math
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from qagate.bundled import BUNDLED_LABELS
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.extras.new.asking import Asker
from qagate.cases.extras.new.files import (
    Margin,
    NewDataset,
    NewTexts,
    check_language,
    check_name,
    is_judged_in_english,
    load_texts,
)
from qagate.cases.extras.new.models_file import (
    JUDGE,
    MODELS_FILE,
    PRODUCT,
    SCHEMA_FILE,
    ModelEntry,
    ask_model,
    models_text,
)
from qagate.cases.extras.new.repository import ignore_in_git, top_of_repository
from qagate.cases.extras.new.schema import models_schema, schema_text
from qagate.cases.extras.new.spreadsheet import (
    LABEL_FIELD,
    LanguagePart,
    Spreadsheet,
    read_sheet,
    read_spreadsheet,
)
from qagate.cases.extras.new.workflow import (
    BASELINE,
    WORKFLOW,
    install_command,
    workflow_text,
)
from qagate.cases.loading import load_cases
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import KINDS, Kind
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.output import plural, say, write_texts
from qagate.evaluators.statistics.paired import TENTH, confirmed_margin, shown_by
from qagate.evaluators.text import listed

DONE = 0
KIND_NAMES = ("graded", "rated", "yes_no", "choice")
MARGIN_STEP = 0.05
WIDEST_MARGIN = 0.5
MAX_COST_IN_CI = "20"
"""USD of one run: a limit for the team to set. Only models with a price can keep one."""
LABEL_NOW = "label"
UNMEASURED = "unmeasured"
MEASURES = {
    LABEL_NOW: "label answers of the first run, a key each; until then the gate decides nothing",
    UNMEASURED: "let a judge decide whose errors nobody knows; each last line says so",
}
"""What may be done where no labels measure the judge."""
LABELS_OF_OTHERS = (
    "if you like: so far the labels that come with qagate measure the judge"
)


def main(argv: Sequence[str]) -> int:
    """Ask, write the files of a gate, say what comes next, and return the exit code."""
    options = _parser().parse_args(argv)
    answers = sys.stdin if sys.stdin is not None and sys.stdin.isatty() else None
    asker = Asker(answers=answers, out=sys.stdout)
    start = _ask(options, asker)
    texts = load_texts()
    files = start.files(texts)
    _check(start, files)
    if not asker.agree(
        f"Write {plural(len(files), 'file')} into {start.folder}?",
        otherwise="",
        default=True,
    ):
        asker.tell("nothing is written")
        return DONE
    write_texts(files.items(), to_commit=True)
    _tell(start, files)
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a person, or the options, said."""

    file: Path
    to: Path
    """Where the folder of the data set goes."""
    sheet: Spreadsheet
    parts: Mapping[str, LanguagePart]
    """The rows of each language."""
    name: str
    kind: Kind
    product: ModelEntry
    judge: ModelEntry | None
    """None where code reads the answers."""
    is_measured: bool
    """Whether labels measure the judge already: bundled ones, or those of the spreadsheet."""
    judge_unmeasured: bool
    has_workflow: bool

    @property
    def folder(self) -> Path:
        """The folder of the data set."""
        return self.to / self.name

    @property
    def labels_folder(self) -> Path:
        """The folder of the labelled answers of the spreadsheet."""
        return self.to / f"{self.name}_labels"

    @property
    def has_labels(self) -> bool:
        """Whether the spreadsheet has answers of a model with a label each."""
        return self.judge is not None and self.sheet.has_labels

    @property
    def data(self) -> dict[str, str]:
        """The text of each language's data file."""
        return {language: part.text for language, part in self.parts.items()}

    @property
    def models(self) -> list[ModelEntry]:
        """The entries of the models file."""
        if self.judge is None:
            return [self.product]
        return [self.product, self.judge]

    @property
    def keys(self) -> list[str]:
        """The environment variables that hold keys."""
        names = [model.key_variable for model in self.models if model.key_variable]
        return list(dict.fromkeys(names))

    @property
    def top(self) -> Path:
        """The top of the repository that the workflow is for."""
        return top_of_repository(self.to)

    def run_words(self, here: Path) -> list[str]:
        """Return the words of the run, as they are typed in a folder."""
        folder = self.folder.resolve()
        if folder.is_relative_to(here.resolve()):
            folder = folder.relative_to(here.resolve())
        words = ["qagate", "run", str(folder)]
        words += [f"--models={folder / MODELS_FILE}", "--model", PRODUCT]
        if self.judge is not None:
            words += ["--judge", JUDGE]
        return words

    @property
    def margin(self) -> Margin:
        """The smallest drop, in steps of five points, that the rows of each language can show."""
        fewest = min(part.rows for part in self.parts.values())
        confirmed = confirmed_margin(fewest, TENTH) or WIDEST_MARGIN
        steps = math.ceil(confirmed / MARGIN_STEP - 1e-9)
        size = min(steps * MARGIN_STEP, WIDEST_MARGIN)
        return Margin(
            size=size,
            advice=f"the least that {plural(fewest, 'row')} can show, in 0.05s",
        )

    def files(self, texts: NewTexts) -> dict[Path, str]:
        """Return the text of each file that is to be written."""
        dataset = NewDataset(
            name=self.name,
            kind=str(self.kind),
            data=self.data,
            suffix="csv",
            headings=self.sheet.headings,
            margin=self.margin,
            has_context="context" in self.sheet.columns,
            judge_unmeasured=self.judge_unmeasured,
        )
        files = {
            self.folder / name: text for name, text in dataset.texts(texts).items()
        }
        files[self.folder / MODELS_FILE] = models_text(self.models)
        files[self.folder / SCHEMA_FILE] = schema_text(models_schema())
        if self.has_labels:
            for name, text in self._labelled().texts(texts).items():
                files[self.labels_folder / name] = text
        if self.has_workflow:
            files[self.top / WORKFLOW] = workflow_text(
                install_command(), self._command_in_ci(), self.keys
            )
        return files

    def _labelled(self) -> NewDataset:
        """Return the labelled set of a spreadsheet with labels; it measures the judge."""
        headings = dict(self.sheet.headings)
        gold = headings.pop("expected", None)
        if gold is not None:
            headings["answer"] = gold
        label = self.sheet.columns[LABEL_FIELD]
        if label != LABEL_FIELD:
            headings[LABEL_FIELD] = self.sheet.table.names[label]
        kind = "judged-ratings" if self.kind.rated else "judged"
        return NewDataset(
            name=self.labels_folder.name,
            kind=kind,
            data=self.data,
            suffix="csv",
            headings=headings,
        )

    def _command_in_ci(self) -> list[str]:
        """Return the lines of the command in the workflow."""
        words = self.run_words(self.top)
        if all(model.is_priced for model in self.models):
            words += ["--max-cost", MAX_COST_IN_CI]
        return [shlex.join(words), f"--baseline={BASELINE} $FRESH"]


# What is asked


def _ask(options: Namespace, asker: Asker) -> Start:
    """Return what the options say, and a person where they do not. Raises UsageError."""
    file = options.file
    if file is None:
        file = Path(
            asker.ask(
                "Which file has your questions? A CSV that a spreadsheet wrote",
                otherwise="FILE is needed: a CSV that a spreadsheet wrote; see qagate start --help",
                check=_check_file,
            )
        )
    kind = KINDS[options.kind]
    if options.lang is not None:
        check_language(options.lang, "--lang")
    text = read_spreadsheet(file, options.encoding, options.lang, asker)
    sheet = read_sheet(file, text, kind, _columns_given(options.column), asker)
    for field, column in sheet.columns.items():
        name = {"gold": "answer", "recorded": "answer of a model"}.get(field, field)
        asker.tell(f"  {name}: column {sheet.table.names[column]}")
    name = _ask_name(options, file, asker)
    parts = _ask_languages(options, sheet, asker)
    languages = list(parts)
    product = ask_model(
        PRODUCT,
        "Which model does your product run on today?",
        asker,
        spec=options.model,
        key=options.model_key,
        prices=options.model_price,
    )
    judge = None
    if kind.by_rubric:
        judge = ask_model(
            JUDGE,
            "Which model judges the answers? Best one of another provider.",
            asker,
            spec=options.judge,
            key=options.judge_key,
            prices=options.judge_price,
        )
    is_measured = sheet.has_labels or _are_measured(options.kind, languages)
    judge_unmeasured = False
    if judge is not None and not is_measured:
        judge_unmeasured = _ask_measure(options, languages, asker) == UNMEASURED
    return Start(
        file=file,
        to=options.to,
        sheet=sheet,
        parts=parts,
        name=name,
        kind=kind,
        product=product,
        judge=judge,
        is_measured=is_measured,
        judge_unmeasured=judge_unmeasured,
        has_workflow=_has_workflow(options, asker),
    )


def _check_file(text: str) -> None:
    if not Path(text).is_file():
        raise UsageError(f"{text}: there is no such file")


def _columns_given(texts: Sequence[str]) -> dict[str, str]:
    """Return the headings that ``--column NAME=HEADING`` names, by our name."""
    given = {}
    for text in texts:
        name, equals, heading = text.partition("=")
        if not equals or not heading.strip():
            raise UsageError(f"--column: NAME=HEADING is needed, got {text}")
        given[name.strip()] = heading.strip()
    return given


def _ask_name(options: Namespace, file: Path, asker: Asker) -> str:
    """Return a name whose folder is not there yet. Raises UsageError."""

    def check(name: str) -> None:
        check_name(name)
        for folder in (options.to / name, options.to / f"{name}_labels"):
            if folder.exists():
                raise UsageError(f"{folder}: is there already; choose another name")

    if options.name is not None:
        check(options.name)
        return str(options.name)
    words = re.sub(r"[^a-z0-9]+", "_", file.stem.lower(), flags=re.ASCII).strip("_")
    default: str | None = words[:40]
    try:
        check_name(words[:40])
    except UsageError:
        default = None
    return asker.ask(
        "What is the data set called? Its folder has that name",
        otherwise=f"{file}: its name does not name a data set; say --name NAME",
        check=check,
        default=default,
    )


def _ask_languages(
    options: Namespace, sheet: Spreadsheet, asker: Asker
) -> dict[str, LanguagePart]:
    """Return the rows of each language: of a column's, or of one that is given or asked for."""
    language = options.lang
    if language is None and sheet.has_languages:
        return sheet.by_language()
    if language is None:
        language = asker.ask(
            "Which language are the questions in? A code, such as pl",
            otherwise="--lang LANG is needed, such as --lang pl",
            check=lambda code: check_language(code, "language"),
            default=sheet.language,
        )
    return {language: sheet.whole()}


def _are_measured(kind_name: str, languages: Sequence[str]) -> bool:
    """Return whether bundled labels measure a judge by the rubric of the kind in each language."""
    rubric = load_texts().kinds[kind_name].rubric
    measured = set()
    for file in BUNDLED_LABELS.rglob(DATASET_FILE):
        for language, slice_ in load_dataset(file).slices.items():
            if slice_.rubric is not None and slice_.rubric.name == rubric:
                measured.add(language)
    return measured.issuperset(languages)


def _ask_measure(options: Namespace, languages: Sequence[str], asker: Asker) -> str:
    """Return what is done where no labels measure the judge."""
    if options.unmeasured:
        return UNMEASURED
    return asker.choose(
        f"No labels say how often a judge errs in {listed(languages)}. What shall be done?",
        MEASURES,
        otherwise="",
        default=LABEL_NOW,
    )


def _has_workflow(options: Namespace, asker: Asker) -> bool:
    """Return whether a workflow is to be written: one that is there is left as it is."""
    if options.no_workflow:
        return False
    workflow = top_of_repository(options.to) / WORKFLOW
    if workflow.exists():
        asker.tell(f"{workflow}: is there already and stays as it is")
        return False
    return True


# What is checked and told


def _check(start: Start, files: Mapping[Path, str]) -> None:
    """Raise UsageError for what a run would refuse: the files are read in a folder aside."""
    with TemporaryDirectory(prefix="qagate-start-") as folder:
        aside = Path(folder)
        for path, text in files.items():
            if path.is_relative_to(start.to):
                write_texts([(aside / path.relative_to(start.to), text)])
        try:
            for declared in sorted(aside.glob(f"*/{DATASET_FILE}")):
                for slice_ in load_dataset(declared).slices.values():
                    load_cases(slice_)
            load_catalogue(aside / start.name / MODELS_FILE)
        except UsageError as error:
            raise UsageError(_about_the_file(str(error), start, aside)) from None


def _about_the_file(message: str, start: Start, aside: Path) -> str:
    """Return a message about a file aside as one about the file that the person knows."""
    for folder in (start.name, start.labels_folder.name):
        for language in start.parts:
            place = f"{aside / folder / language}.csv"
            known = f"{start.file}"
            if len(start.parts) > 1:
                known = f"{start.file}, the rows in {language}"
            message = message.replace(place, known)
    return message.replace(f"{aside}/", "")


def _tell(start: Start, files: Mapping[Path, str]) -> None:
    """Say what was written, what these data can show, and what comes next."""
    lines = [f"{path}" for path in files]
    ignored = ignore_in_git(start.to)
    if ignored:
        lines.append(ignored)
    lines.append("")
    for language, part in start.parts.items():
        lines.append(
            f"{language}: {plural(part.rows, 'question')} can show {shown_by(part.rows)}"
        )
    lines.append(
        f"drop: the gate allows {start.margin.size:.2f}; more rows allow less "
        f"({start.folder / DATASET_FILE})"
    )
    texts = load_texts()
    if start.judge is not None:
        kind = texts.kinds[str(start.kind)]
        in_english = [code for code in start.parts if is_judged_in_english(kind, code)]
        if in_english:
            lines.append(f"the judge reads English rules for {listed(in_english)}")
    lines += ["", "next:", *_next(start)]
    say(sys.stdout, *lines)


def _next(start: Start) -> list[str]:
    """Return the commands from here to the gate in CI."""
    run = shlex.join(start.run_words(Path.cwd()))
    commands = [(f"export {key}=…", "or a line in .env") for key in start.keys]
    commands += [
        (f"{run} --dry-run", "what it costs and how the gates may end; free"),
        (run, ""),
    ]
    if start.judge is not None and not (start.is_measured or start.judge_unmeasured):
        commands += [
            ("qagate label reports/out", "your labels measure the judge"),
            (run, "again: the replies are kept and cost nothing"),
        ]
    elif (
        start.judge is not None and not start.judge_unmeasured and not start.has_labels
    ):
        commands.append(("qagate label reports/out", LABELS_OF_OTHERS))
    commands.append((f"qagate promote {BASELINE}", "once it passes"))
    if start.has_workflow:
        places = [start.folder, WORKFLOW.parent, ".gitignore", "reports/baselines"]
        added = shlex.join(str(place) for place in places)
        commands.append((f"git add {added} && git commit", ""))
        secrets = " and ".join(start.keys)
        if secrets:
            commands.append(
                (
                    f"put {secrets} into the environment qa",
                    "GitHub: Settings > Environments",
                )
            )
        commands.append(
            (
                f"change {PRODUCT} in {start.folder / MODELS_FILE} and open a pull request",
                "",
            )
        )
    return [f"  {text}{f'    # {note}' if note else ''}" for text, note in commands]


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="qagate start",
        description="From a spreadsheet to a gate: asks for what no option says, then writes the "
        "data set, the models file and the workflow, and says what your questions can show. No "
        "file is overwritten.",
        epilog="example: qagate start questions.csv --lang pl --model openai:gpt-4.1 --judge "
        "anthropic:claude-opus-4-1. exit codes: 0 written, 4 wrong arguments, a row that cannot be "
        "read, or an option that is missing where nobody can be asked",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, nargs="?", help="the spreadsheet, as CSV")
    add("--name", help="of the data set and its folder (default: the file's)")
    add("--lang", metavar="LANG", help="the language of the questions, such as pl")
    add("--kind", choices=KIND_NAMES, default="graded", help="(%(default)s)")
    add(
        "--encoding", metavar="NAME", help="of a file that is not UTF-8, such as cp1250"
    )
    add(
        "--column",
        metavar="NAME=HEADING",
        action="append",
        default=[],
        help="what your file calls a column, such as question=Pytanie; again for each",
    )
    for role, meaning in ((PRODUCT, "under test"), (JUDGE, "that judges")):
        option = "--model" if role == PRODUCT else "--judge"
        add(option, metavar="SPEC", help=f"the model {meaning}")
        add(f"{option}-key", metavar="NAME", help="the variable that holds its key")
        add(
            f"{option}-price",
            metavar="IN,OUT",
            help="USD per million tokens, where no price is published",
        )
    add(
        "--unmeasured",
        action="store_true",
        help="let a judge decide that no labels measure; each last line says so",
    )
    add("--no-workflow", action="store_true", help="write no GitHub workflow")
    add("--to", metavar="DIR", type=Path, default=Path(), help="where (default: .)")
    return parser
