"""``qagate label``: people label answers of a run, and their labels measure its judge from then on.

The command draws answers and writes a page, or asks in the terminal. ``--accept`` takes in the
files that the page saved. Either way the labels become the labelled set of the data set.
"""

import argparse
import getpass
import json
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from qagate.bundled import CASES, bundled_dataset
from qagate.cases.config import with_items
from qagate.cases.dataset import DATASET_FILE, Dataset, Slice
from qagate.cases.discovery import dataset_files
from qagate.cases.extras.review.goals import Draw, progress_of
from qagate.cases.extras.review.page import form_page
from qagate.cases.extras.review.reviews import Review, check_rows, read_rows
from qagate.cases.extras.review.sheet import (
    UNCLEAR,
    Question,
    Sheet,
    SheetItem,
    name_fault,
    verdict_question,
)
from qagate.cases.labels import TIED
from qagate.evaluators.core import GRADES, UsageError
from qagate.evaluators.kinds import is_right
from qagate.evaluators.output import plural, say, write_texts
from qagate.evaluators.statistics.agreement import agreement_among
from qagate.evaluators.text import hint, listed
from qagate.reports.commands import given_runs as runs
from qagate.reports.extras.label.drawing import (
    Drawing,
    LabelAnswer,
    answers_of,
    draw_answers,
    shares_of,
    stratum_of,
    with_reading,
)
from qagate.reports.extras.label.labelled_set import (
    LabelRow,
    PeoplesLabels,
    file_of_labels,
    find_datasets,
    folder_of_labels,
    labels_in,
    load_label_rows,
    with_labels,
    write_labels,
)
from qagate.reports.extras.label.terminal import TerminalLabels, keys_of
from qagate.reports.gates.decide import INCONCLUSIVE, OK
from qagate.reports.run import clean
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import folder_of
from qagate.reports.run.run_json import load_report

NAME = "label"
"""Of the sheet: the page is ``label.html``, and it saves ``label.ANNA.json``."""
MOST_KEYS = 9
"""Labels of a rubric's own that single digits can give."""


def main(argv: Sequence[str]) -> int:
    """Write the page, ask in the terminal, or take in what people said; return the exit code."""
    options = _parser().parse_args(argv)
    if options.terminal and options.accept:
        raise UsageError("label: --terminal and --accept: give one of the two")
    if options.name is not None and not options.terminal:
        raise UsageError(
            "label: --name: only for --terminal; the page asks for the name itself"
        )
    labelling = _open(options)
    if options.accept:
        return _take_in(labelling, _reviews(labelling, options.accept))
    if options.terminal:
        return _in_terminal(labelling, options.name)
    return _write_page(labelling)


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """The answers of one or two runs that people label, and where their labels go."""

    report: Report
    run: Path
    answers: Sequence[LabelAnswer]
    datasets: Mapping[str, Dataset]
    """Those with the answers, as they are declared today, by name."""
    slices: Mapping[str, Slice]
    """The slices to label, by name."""
    to: Path | None
    """The folder of the labels, where the usual one does not do."""
    seed: int
    command: str
    """The command with the options that say which answers are meant."""

    def folder(self, slice_: Slice) -> Path:
        """Return the folder of the labels of a slice."""
        if self.to is not None:
            return self.to
        dataset = self.datasets[slice_.dataset]
        here = Path.cwd().resolve()
        folder = dataset.folder.resolve()
        if folder.is_relative_to(CASES.resolve()) and not folder.is_relative_to(here):
            bundled = "judges_eba" if slice_.kind.rated else "judges"
            raise UsageError(
                f"{dataset.name} comes with this package, where your labels would be lost; keep "
                f"them with --to mine, and give a run --items {bundled}:LANG=mine/LANG.jsonl"
            )
        return folder_of_labels(dataset)

    def rows(self, slice_: Slice) -> list[LabelRow]:
        """Return the labels of a slice that there are."""
        return load_label_rows(file_of_labels(self.folder(slice_), slice_.language))

    def of_slice(self, slice_: Slice) -> list[LabelAnswer]:
        """Return the answers of a slice."""
        return [answer for answer in self.answers if answer.slice_.name == slice_.name]

    @cached_property
    def by_id(self) -> Mapping[str, LabelAnswer]:
        """The answers by their id; the same answer of two runs stands once."""
        by_id: dict[str, LabelAnswer] = {}
        for answer in self.answers:
            by_id.setdefault(answer.id, answer)
        return by_id

    def drawing(self, slice_: Slice) -> Drawing:
        """Return the answers of a slice to label, beside those that have a label."""
        labels = labels_in(self.rows(slice_))
        return draw_answers(slice_, self.of_slice(slice_), labels, self.seed)

    def sheet(self, reviewer: str = "") -> Sheet:
        """Return the answers to label as a sheet. Raises UsageError where nothing is left."""
        items: list[SheetItem] = []
        goals = {}
        for slice_ in self.slices.values():
            drawing = self.drawing(slice_)
            # In the order in which they are met, so that a number says nothing of the grade.
            strata = dict.fromkeys(
                answer.stratum for answer in (*drawing.first, *drawing.spare)
            )
            numbers = {name: number for number, name in enumerate(strata)}
            progress = progress_of(drawing.goals, ())
            if not progress.lacking:
                continue
            goals[slice_.name] = drawing.goals
            for answer in drawing.first:
                items.append(_sheet_item(answer, numbers, is_spare=False))
            for answer in drawing.spare:
                items.append(_sheet_item(answer, numbers, is_spare=True))
        if not items:
            raise UsageError(
                f"{self.run}: nothing to label: each class of {', '.join(self.slices)} has enough "
                "labels, or as many as it has answers"
            )
        return Sheet(
            name=NAME,
            items=tuple(items),
            reviewer=reviewer,
            goals=goals,
            command=f"{self.command} --accept FILE",
        )


# What is labelled


def _open(options: argparse.Namespace) -> Labelling:
    """Return what the options name. Raises UsageError."""
    run: Path = options.run
    report = load_report(run)
    datasets = _datasets_of(report, options.data)
    slices = _slices_of(report, datasets, options.languages)
    answers = answers_of(report.records, slices, _run_id(report))
    command = ["qagate", "label", str(run)]
    if options.baseline is not None:
        baseline = runs.read_baseline(options.baseline, [report])
        assert baseline is not None
        earlier = answers_of(baseline.records, slices, _run_id(baseline.report))
        if report.reading is not None:
            earlier = with_reading(earlier, report.reading.old)
        answers += earlier
        command.append(f"--baseline={options.baseline}")
    if options.data is not None:
        command.append(f"--data={options.data}")
    if options.to is not None:
        command.append(f"--to={options.to}")
    if not answers:
        raise UsageError(
            f"{run}: no answer of {', '.join(slices)} has a grade; run it with a judge first"
        )
    return Labelling(
        report=report,
        run=run,
        answers=answers,
        datasets=datasets,
        slices=slices,
        to=options.to,
        seed=options.seed,
        command=shlex.join(command),
    )


def _run_id(report: Report) -> str:
    return str(report.run.get("id", ""))


def _datasets_of(report: Report, data: Path | None) -> dict[str, Dataset]:
    """Return the data sets of a run that a judge reads, as they are declared today.

    They are looked for under ``data``, else under the paths of the run's command and here.
    """
    names = [dataset.name for dataset in report.datasets if dataset.kind.by_rubric]
    if not names:
        raise UsageError(
            "label: code grades all answers of this run; there is no judge to measure"
        )
    here = Path.cwd()
    if data is not None:
        places = [str(data)]
    else:
        words = shlex.split(str(report.run.get("command", "")))
        places = [word for word in words if (here / word.partition("::")[0]).exists()]
        places.append(".")
    files = []
    for place in places:
        files += dataset_files([place], here, Path(here.anchor))
    for name in names:
        folder = bundled_dataset(name)
        if folder is not None:
            files.append(folder / DATASET_FILE)
    datasets = find_datasets(names, files)
    missing = [name for name in names if name not in datasets]
    if missing:
        raise UsageError(
            f"label: no dataset.yaml of {', '.join(missing)} is found; say where with --data DIR"
        )
    return datasets


def _slices_of(
    report: Report, datasets: Mapping[str, Dataset], languages: Collection[str]
) -> dict[str, Slice]:
    """Return the slices of a run to label, as they are declared today."""
    slices = {}
    there = []
    for dataset_then in report.datasets:
        dataset = datasets.get(dataset_then.name)
        if dataset is None:
            continue
        for language, slice_then in dataset_then.slices.items():
            there.append(language)
            if languages and language not in languages:
                continue
            if language not in dataset.slices:  # languages.default served it
                path = dataset.folder / slice_then.path.name
                dataset = with_items(dataset, language, path)
            slices[slice_then.name] = dataset.slices[language]
    if not slices:
        given = ", ".join(languages)
        raise UsageError(f"--languages {given}: {hint(given, sorted(there))}")
    return slices


def _sheet_item(
    answer: LabelAnswer, numbers: Mapping[str, int], *, is_spare: bool
) -> SheetItem:
    """Return an answer as people see it: nothing of the judge, nor which run it is from."""
    record = answer.record
    texts = {
        "context": record.context,
        "question": record.question,
        "expected": record.expected,
    }
    fields = {title: text for title, text in texts.items() if text}
    rubric = answer.slice_.rubric
    return SheetItem(
        id=answer.id,
        language=record.language,
        fields={**fields, "answer": record.answer or ""},
        questions=(_question(answer.slice_),),
        rubric=(rubric.system or rubric.user) if rubric else "",
        drawn=Draw(
            part=answer.slice_.name,
            stratum=numbers[answer.stratum],
            is_spare=is_spare,
        ),
    )


def _question(slice_: Slice) -> Question:
    """Return what people may say of an answer, each by one key."""
    if slice_.kind.rated or slice_.labels == GRADES:
        return verdict_question(slice_.kind.choices)
    if len(slice_.labels) > MOST_KEYS:
        raise UsageError(
            f"{slice_.name}: its rubric has {len(slice_.labels)} labels, and there are keys for "
            f"{MOST_KEYS}; fill in a file of labels instead: qagate new NAME --kind judged"
        )
    keys = {label: str(number) for number, label in enumerate(slice_.labels, start=1)}
    return Question(keys={**keys, UNCLEAR: "u"})


# The page


def _write_page(labelling: Labelling) -> int:
    sheet = labelling.sheet()
    page = folder_of(labelling.run) / f"{NAME}.html"
    write_texts([(page, form_page(sheet))])
    lines = [f"{page}: open it in a browser; one key labels an answer"]
    for name, goals in sheet.goals.items():
        progress = progress_of(goals, ())
        lines.append(
            f"  {name}: {progress.done} of {progress.wanted} labels; {_lacking(progress.lacking)}"
        )
    lines.append(
        "two people may label the same page: give both files to --accept, which says how far they "
        "agree"
    )
    lines.append(f"then: {sheet.command}")
    say(sys.stdout, *map(clean.line, lines))
    return OK


def _lacking(lacking: Mapping[str, int]) -> str:
    missing = [f"{count} × {name}" for name, count in lacking.items()]
    return f"still needed: {', '.join(missing)}"


# The terminal


def _in_terminal(labelling: Labelling, given_name: str | None) -> int:
    """Ask for labels by single keys, keep each at once, and take them in at the end."""
    name = given_name or getpass.getuser()
    fault = name_fault(name)
    if fault:
        raise UsageError(f"label: --name: {fault}")
    sheet = labelling.sheet(reviewer=name)
    path = folder_of(labelling.run) / f"{NAME}.{_file_word(name)}.json"
    verdicts = _saved_verdicts(path, sheet)

    def save() -> None:
        rows = [
            {"item": item, "verdict": verdict, "edited": "", "comment": ""}
            for item, verdict in verdicts.items()
        ]
        saved = {"sheet": sheet.digest, "reviewer": name, "rows": rows}
        write_texts([(path, json.dumps(saved, ensure_ascii=False, indent=1) + "\n")])

    TerminalLabels(sheet, verdicts).run(keys_of(), sys.stdout, save)
    if not verdicts:
        say(sys.stdout, "no label was given; nothing is written")
        return INCONCLUSIVE
    return _take_in(labelling, _reviews(labelling, [path]))


def _file_word(name: str) -> str:
    letters = [letter if letter.isalnum() else "-" for letter in name]
    return "".join(letters).strip("-") or "reviewer"


def _saved_verdicts(path: Path, sheet: Sheet) -> dict[str, str]:
    """Return what was said earlier of the items of a sheet."""
    if not path.exists():
        return {}
    allowed = sheet.allowed
    return {
        review.item: review.verdict
        for review in read_rows([path])
        if review.verdict in allowed.get(review.item, ())
    }


# What people said


def _reviews(labelling: Labelling, files: Iterable[Path]) -> tuple[Review, ...]:
    """Return what people said in these files. Raises UsageError for what no answer is asked."""
    rows = list(read_rows(files))
    allowed = {
        id_: tuple(_question(answer.slice_).keys)
        for id_, answer in labelling.by_id.items()
    }
    unknown = dict.fromkeys(row.item for row in rows if row.item not in allowed)
    if unknown:
        raise UsageError(
            f"{labelling.run}: has no answer {listed(unknown)}; give the run, and the --baseline, "
            "whose page was labelled"
        )
    return check_rows(rows, allowed)


def _take_in(labelling: Labelling, reviews: Sequence[Review]) -> int:
    """Put what people said into the labelled sets, say what they show; return the exit code."""
    by_slice = _labels_by_slice(labelling, reviews)
    if not by_slice:
        raise UsageError("label: no label in these files; label some answers first")
    lines = _agreement_lines(by_slice)
    is_short = False
    for name, labels in by_slice.items():
        slice_ = labelling.slices[name]
        rows = with_labels(labelling.rows(slice_), labels)
        path = write_labels(
            labelling.folder(slice_), labelling.datasets[slice_.dataset], slice_, rows
        )
        goals = labelling.drawing(slice_).goals
        progress = progress_of(goals, ())
        lines += _lines_about(labelling, slice_, rows)
        lines.append(f"{_near(path)}: measures the judge of {name} from now on")
        if progress.lacking:
            is_short = True
            lines.append(
                f"{name}: {progress.done} of {progress.wanted} labels; "
                f"{_lacking(progress.lacking)}: {labelling.command}"
            )
    unclear = sum(review.verdict == UNCLEAR for review in reviews)
    if unclear:
        lines.append(
            f"left out: {plural(unclear, 'answer')} that somebody found unclear"
        )
    again = str(labelling.report.run.get("command", ""))
    if again:
        lines.append(f"next: {again}    # measures the judge by these labels")
    say(sys.stdout, *map(clean.line, lines))
    return INCONCLUSIVE if is_short else OK


def _near(path: Path) -> Path:
    """Return a path as seen from the working folder, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _labels_by_slice(
    labelling: Labelling, reviews: Iterable[Review]
) -> dict[str, list[PeoplesLabels]]:
    """Return what people said of each answer, by slice; without what they found unclear."""
    by_rater: dict[str, dict[str, str]] = defaultdict(dict)
    for review in reviews:
        if review.verdict and review.verdict != UNCLEAR:
            by_rater[review.item][review.reviewer] = review.verdict
    runs_of: dict[str, list[str]] = defaultdict(list)
    for answer in labelling.answers:
        if answer.run not in runs_of[answer.id]:
            runs_of[answer.id].append(answer.run)
    shares = shares_of(labelling.answers)
    by_slice: dict[str, list[PeoplesLabels]] = defaultdict(list)
    for id_, labels in by_rater.items():
        answer = labelling.by_id[id_]
        name = answer.slice_.name
        labelled = PeoplesLabels(
            answer=answer,
            runs=tuple(runs_of[id_]),
            share=shares[name, answer.stratum],
            by_rater=labels,
        )
        by_slice[name].append(labelled)
    return by_slice


def _agreement_lines(by_slice: Mapping[str, Sequence[PeoplesLabels]]) -> list[str]:
    """Return how many labels each person gave, and how far two or more agree, by slice."""
    lines = []
    for name, labels in by_slice.items():
        counts: Counter[str] = Counter()
        for labelled in labels:
            counts.update(labelled.by_rater.keys())
        given = [f"{rater} {count:,}" for rater, count in counts.items()]
        lines.append(f"{name}: labels by {', '.join(given)}")
        clusters = [
            labelled.answer.slice_.cluster_of(labelled.answer.record)
            for labelled in labels
        ]
        agreement = agreement_among(
            [labelled.by_rater for labelled in labels], clusters, group=name
        )
        lines += agreement.lines("answer")
    return lines


def _lines_about(
    labelling: Labelling, slice_: Slice, rows: Sequence[LabelRow]
) -> list[str]:
    """Return how many labels of each class there are, and with how many the judge agreed."""
    labels = labels_in(rows)
    tied = [row_id for row_id, label in labels.items() if label == TIED]
    counts = Counter(stratum_of(slice_, label) for label in labels.values())
    by_class = [f"{count} {name}" for name, count in counts.items() if name]
    if tied:
        by_class.append(f"{len(tied)} on which people differ, which count for none")
    judged = {answer.row_id: answer.judged for answer in labelling.of_slice(slice_)}
    agreements = [
        _agrees(slice_, judged[row_id], label)
        for row_id, label in labels.items()
        if row_id in judged and label != TIED
    ]
    return [
        f"{slice_.name}: {plural(len(labels), 'labelled answer')}: {', '.join(by_class)}",
        f"{slice_.name}: the judge agrees with {sum(agreements)} of {len(agreements)}; rare grades "
        "were drawn more often, so this is no estimate for all answers",
    ]


def _agrees(slice_: Slice, judged: str, label: str) -> bool:
    """Return whether a grade is the label, or a rating is on the same side of the bar."""
    if not slice_.kind.rated:
        return judged == label
    passing = (slice_.passing, slice_.pass_bar)
    return label.isdigit() and is_right(judged, *passing) == is_right(label, *passing)


def _parser() -> runs.RecordedRunParser:
    parser = runs.RecordedRunParser(
        NAME,
        "Label answers of a run, so that your labels measure its judge. 30 answers of each of the "
        "judge's grades are drawn (of ratings, 30 on each side of the bar), and more until each "
        "class has 30 labels. Writes an offline page, or asks here (--terminal); nobody sees what "
        "the judge said.",
        "0 done; 3 could not be written; 4 wrong arguments or unreadable files; 6 labels of a "
        "class are still needed (those given are written)",
    )
    parser.add_last_run()
    parser.add_argument(
        "--accept",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="take in what the page saved, of one person or more: write the labels into the data "
        "set's folder, and say how far people agree",
    )
    parser.add_argument(
        "--terminal",
        action="store_true",
        help="label here, by single keys; what is given is kept at once, and the same command "
        "goes on",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="with --terminal: who labels (default: your user name)",
    )
    parser.add_argument(
        "--baseline",
        metavar="RUN",
        help="draw from the answers of this run too; nobody sees which run gave an answer",
    )
    parser.add_argument(
        "--languages",
        metavar="xx,yy",
        type=lambda text: tuple(text.split(",")),
        default=(),
        help="label only these (default: all of the run)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        help="where the data set is (default: where the run's command says, or here)",
    )
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=runs.output_folder,
        help="the folder of the labels (default: NAME_labels in the data set's folder)",
    )
    parser.add_argument(
        "--seed",
        metavar="S",
        type=int,
        default=0,
        help="of what is drawn (default: %(default)s)",
    )
    return parser
