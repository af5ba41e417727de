"""The one engine that reads the result of any tool: files, their form, rows, samples.

``read_run`` finds the form of the files (``recognition.py``), which divide into parts, mostly a
task each, and makes a sample of each row (``row_reader.py``). Two rules hold for every form. A
score that is missing is no score: never 0, never right, and no reason to refuse the file. And the
same item again is a repeat of it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from qagate.evaluators.bounded_reading import ReadingBudget
from qagate.evaluators.text import digest, hint
from qagate.reports.extras.decide.containers import Json, read_document
from qagate.reports.extras.decide.foreign_run import (
    Choice,
    ForeignRun,
    ForeignTask,
    ScoredSample,
    ScoreName,
)
from qagate.reports.extras.decide.form_functions import Part, measured_text
from qagate.reports.extras.decide.form_table import ANY_TABLE, OF_ROW, ResultForm
from qagate.reports.extras.decide.paths import FieldPath, field_path
from qagate.reports.extras.decide.recognition import (
    SUCCESS,
    files_of,
    head_text,
    parts_of,
    problem,
    recognised,
)
from qagate.reports.extras.decide.row_reader import ID_DIGITS, RowReader
from qagate.reports.extras.decide.scores import (
    DECLINED,
    fits,
    is_missing,
    looks_less,
    looks_more,
    number,
    says_direction,
    text_of,
)
from qagate.reports.run.report_folder import RUN_FILE

MAX_MEASURED_VALUES = 20
"""Of one field of how a task was measured, over all its rows."""
CONTENT_DIGITS = 8
"""Of the hash that tells two items of one id apart."""
SCORE_OF_MODEL = "result"
"""What the score is called in both runs where a column is called like its model."""
NO_REPEAT = -1
"""Of a row that does not say which time its item was asked."""
UNREADABLE = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    IndexError,
    ArithmeticError,
    RecursionError,
)
"""What a damaged result may raise where its form is only half there."""


def read_run(path: Path, form_name: str, choice: Choice) -> ForeignRun:
    """Return the run in a file or folder, of this form; empty finds it. Raises UsageError."""
    if path.name == RUN_FILE or (path / RUN_FILE).is_file():
        raise problem(
            path, "a run of qagate itself; say `qagate gate RUN --baseline OLD`"
        )
    budget = ReadingBudget()
    documents = [read_document(file, budget) for file in files_of(path)]
    form, fitting = recognised(path, documents, form_name, choice)
    try:
        parts = parts_of(path, form, fitting, choice, budget)
        run = _RunReader(path=path, form=form, choice=choice).run(parts)
    except MemoryError:
        raise problem(path, "too large for the memory; give a part of it") from None
    except UNREADABLE as error:
        what = f"not as {form.tool} writes it ({type(error).__name__}: {error})"
        raise problem(
            path, f"{what:.200}; give the file whole, or as a table"
        ) from None
    if not run.samples:
        raise problem(path, "holds no sample; write the log with its samples")
    return run


@dataclass(slots=True)
class _ScoreColumn:
    """What all values of one score together show."""

    name: str
    is_directed: bool = True
    """Whether each value is a word such as ``correct``, of which more is better."""
    numbers: int = 0
    odd_word: str = ""

    def add(self, raw: object, value: float | None) -> None:
        """Take one value into account."""
        if value is not None:
            self.numbers += 1
            self.is_directed = self.is_directed and says_direction(raw)
        elif not self.odd_word and not is_missing(raw):
            self.odd_word = text_of(raw)[:40] or str(raw)[:40]


@dataclass(slots=True)
class _TaskTally:
    """What the rows of a task show beside their samples."""

    columns: dict[str, _ScoreColumn] = field(default_factory=dict)
    measured: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


@dataclass(kw_only=True)
class _RunReader:
    """Reads the parts of one result by its form."""

    path: Path
    form: ResultForm
    choice: Choice
    rows: RowReader = field(init=False)
    tallies: dict[str, _TaskTally] = field(
        default_factory=lambda: defaultdict(_TaskTally)
    )
    """By task."""
    rows_of_part: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How many rows there were of a task, id and part."""
    side: str = ""
    """The provider, model or prompt whose rows are read, where rows name one."""

    def __post_init__(self) -> None:
        self.rows = RowReader(form=self.form, choice=self.choice)

    def run(self, parts: Sequence[Part]) -> ForeignRun:
        """Return the run in these parts."""
        samples: list[ScoredSample] = []
        tasks: dict[str, ForeignTask] = {}
        notes: list[str] = []
        for part in parts:
            of_part = _told_apart(self._samples(part))
            for name in dict.fromkeys(sample.task for sample in of_part):
                if name in tasks:
                    raise problem(
                        part.path, f"a second log of task {name}; name one log"
                    )
                tasks[name] = self._task(part, name)
            samples += of_part
            status = head_text(self.form, part, "status")
            if status not in ("", SUCCESS):
                notes.append(f"{part.path}: the log's status is {status}")
        lacks = [
            f"{role}={text}"
            for role, text in self.choice.columns.items()
            if role not in self.rows.seen_roles
        ]
        for column in lacks:
            notes.append(f"--column {column}: {self.path} has no such column")
        first = parts[0]
        run_id = head_text(self.form, first, "run")
        return ForeignRun(
            path=self.path,
            form=self.form.name,
            tool=self.form.tool,
            model=head_text(self.form, first, "model") or self.side,
            samples=tuple(samples),
            tasks=tasks,
            version=head_text(self.form, first, "version"),
            date=head_text(self.form, first, "date"),
            template=head_text(self.form, first, "template"),
            run_id=f"{run_id} {self.side}".strip() if run_id else "",
            notes=tuple(notes),
            lacks=tuple(lacks),
        )

    # The samples of a part

    def _samples(self, part: Part) -> list[ScoredSample]:
        """Return a sample for each answer; rows that hold parts of one are put together."""
        rows = part.rows
        sides = self.form.row.get("side", ())
        several_prompts = False
        if sides:
            rows = listed = list(rows)
            if self._has_columns_by_model(listed, sides):
                self._read_columns_of_model(listed)
            else:
                rows, several_prompts = self._of_one_side(listed, sides)
            self._check_columns(part, listed)
        samples: dict[object, ScoredSample] = {}
        for place, row in enumerate(rows):
            sample = self._sample(part, row)
            if several_prompts:
                prompt = text_of(sides[1].value(row))
                sample = replace(sample, id=digest([sample.id, prompt])[:ID_DIGITS])
            key = self._key(row, sample, place)
            first = samples.get(key)
            if first is not None:
                sample = replace(
                    first,
                    scores={**first.scores, **sample.scores},
                    faults={**first.faults, **sample.faults},
                )
            samples[key] = sample
        return list(samples.values())

    def _key(self, row: Json, sample: ScoredSample, place: int) -> object:
        """Return what is equal for the rows of one sample, whose scores are divided among rows.

        The parts of a sample differ in a field of the form (the harness's filter): the first
        row of each part is of the first answer to the item, and so on.
        """
        part_paths = self.form.row.get("part")
        if not part_paths:
            return place
        part_of_sample = sample.task, sample.id, text_of(part_paths[0].value(row))
        count = self.rows_of_part[part_of_sample]
        self.rows_of_part[part_of_sample] += 1
        return sample.task, sample.id, count

    def _of_one_side(
        self, rows: Sequence[Json], sides: Sequence[FieldPath]
    ) -> tuple[list[Json], bool]:
        """Return the rows of the chosen provider or prompt, and whether prompts still differ."""
        chosen = self.choice.side
        what = "provider" if len(sides) > 1 else "model"
        kept = []
        names_by_place: list[set[str]] = [set() for _ in sides]
        all_models: set[str] = set()
        for row in rows:
            names = [text_of(path.value(row)) for path in sides]
            all_models.add(names[0])
            if chosen and chosen not in names:
                continue
            kept.append(row)
            for place, name in enumerate(names):
                names_by_place[place].add(name)
        if chosen and not kept:
            raise problem(
                self.path, f"no {what} {chosen!r}; {hint(chosen, sorted(all_models))}"
            )
        models = sorted(names_by_place[0])
        if len(models) > 1:
            raise problem(
                self.path,
                f"results of several {what}s, {', '.join(models)}; "
                f"say which with --new or --old {what.upper()}",
            )
        self.side = chosen or "".join(models)
        return kept, any(len(names) > 1 for names in names_by_place[1:])

    def _has_columns_by_model(
        self, rows: Sequence[Json], sides: Sequence[FieldPath]
    ) -> bool:
        """Whether a model is asked for, and no row names one: then columns have to."""
        if self.form.name != ANY_TABLE or not self.choice.side:
            return False
        return not any(path.value(row) for row in rows for path in sides)

    def _read_columns_of_model(self, rows: Sequence[Json]) -> None:
        """Take a model's own columns for the columns of its side, by the ``--column`` options.

        ``*`` in such a path stands for the model; without ``--column score=PATH`` the column with
        the scores has the model's bare name. Raises UsageError where there is no such column.
        """
        model = self.choice.side
        patterns = {"score": "*", **self.choice.columns}
        columns = {}
        for role, pattern in patterns.items():
            columns[role] = pattern.replace("*", model)
        score_path = field_path(columns["score"])
        if not any(self.rows.find(row, score_path) for row in rows):
            names = list(dict.fromkeys(str(key) for row in rows[:100] for key in row))
            raise problem(
                self.path,
                f"no row names a model, and there is no column {columns['score']!r}; "
                f"{hint(columns['score'], names)}",
            )
        self.side = model
        self.choice = replace(self.choice, columns=columns)
        # What both models' columns have in common names the score: `acc` of `acc_*`.
        common_name = patterns["score"].replace("*", "").strip("_-./ ")
        score_name = common_name or SCORE_OF_MODEL
        self.rows = RowReader(form=self.form, choice=self.choice, score_name=score_name)

    def _check_columns(self, part: Part, rows: Sequence[Json]) -> None:
        """Raise UsageError where a table lacks what every table needs."""
        if self.form.name != ANY_TABLE or not rows:
            return
        names = ", ".join(dict.fromkeys(str(key) for row in rows[:100] for key in row))
        needed = {"id": self.rows.paths("id"), "score": self.rows.score_paths()}
        for role, paths in needed.items():
            if not any(self.rows.find(row, path) for row in rows for path in paths):
                name = self.choice.columns.get(role, role)
                raise problem(
                    part.path,
                    f"no column {name!r}; say --column {role}=NAME, of {names[:400]}",
                )

    def _sample(self, part: Part, row: Json) -> ScoredSample:
        rows = self.rows
        task = rows.text(row, "task") or part.task or self.form.name.partition("_")[0]
        given = rows.given(part, row)
        not_graded = rows.not_graded(row)
        raw_scores = rows.raw_scores(row, not_graded)
        scores = self._scores(task, raw_scores)
        for name, text in rows.measured(row):
            values = self.tallies[task].measured[name]
            if len(values) < MAX_MEASURED_VALUES:
                values.add(text)
        metadata = rows.metadata(row)
        content = rows.content_of(row, given)
        answer = given.get("answer") or rows.value(row, "answer")
        repeat = number(rows.value(row, "repeat"))
        sent = number(given.get("sent") or rows.value(row, "sent"))
        received = number(given.get("received") or rows.value(row, "received"))
        tokens = None
        if sent is not None and received is not None:
            tokens = int(sent), int(received)
        return ScoredSample(
            task=task,
            id=rows.id_of(row, given) or content[:ID_DIGITS],
            scores=scores,
            faults=rows.faults(row, not_graded),
            repeat=NO_REPEAT if repeat is None else int(repeat),
            question=rows.text(row, "question", given),
            expected=rows.text(row, "expected", given),
            answer=None if answer is None else text_of(answer),
            content=content,
            declined=any(map(_is_decline, raw_scores.values())),
            error=rows.error(row),
            reason=rows.text(row, "reason"),
            metadata=metadata,
            slice=rows.at(self.choice.slice, row, metadata),
            cluster=rows.at(self.choice.cluster, row, metadata),
            seconds=number(rows.value(row, "seconds")) or 0.0,
            cost=number(rows.value(row, "cost")),
            tokens=tokens,
        )

    def _scores(
        self, task: str, raw_scores: Mapping[str, object]
    ) -> dict[str, float | None]:
        scores = {}
        columns = self.tallies[task].columns
        for name, raw in raw_scores.items():
            value = number(raw, self.choice.words)
            if name not in columns:
                columns[name] = _ScoreColumn(name)
            columns[name].add(raw, value)
            scores[name] = value
        return scores

    # What is known of a task

    def _task(self, part: Part, name: str) -> ForeignTask:
        functions = self.rows.functions
        columns = self.tallies[name].columns
        said_by_tool: Mapping[str, bool | None] = {}
        if functions.less is not None:
            said_by_tool = functions.less(part)
        scores = {}
        for key, column in columns.items():
            scores[key] = self._score_name(column, said_by_tool)
        return ForeignTask(
            name=name,
            scores=scores,
            main=self._main(part, columns),
            planned=functions.planned(part) if functions.planned else 0,
            measured=self._measured(part, name),
            stated=tuple(functions.stated(part)) if functions.stated else (),
            group=functions.group(part) if functions.group else "",
        )

    def _main(self, part: Part, columns: Mapping[str, _ScoreColumn]) -> str:
        if "score" in self.choice.columns:
            return ""
        spellings: Sequence[str] = (self.form.main,)
        if self.rows.functions.main is not None:
            spellings = self.rows.functions.main(part)
        for spelling in spellings:
            if spelling in columns:
                return spelling
        return ""

    def _measured(self, part: Part, name: str) -> dict[str, str]:
        """Return how a task was measured: by its rows, its head and the form's function."""
        measured = {}
        for key, values in self.tallies[name].measured.items():
            measured[key] = "; ".join(sorted(values))
        for key, texts in self.form.measured.items():
            in_head = [text for text in texts if not text.startswith(OF_ROW)]
            said = [
                measured_text(field_path(text).value(part.head)) for text in in_head
            ]
            if any(said):
                measured[key] = "; ".join(text for text in said if text)
        if self.rows.functions.measured is not None:
            for key, value in self.rows.functions.measured(part).items():
                measured[key] = measured_text(value)
        return {key: text for key, text in measured.items() if text}

    def _score_name(
        self, column: _ScoreColumn, said_by_tool: Mapping[str, bool | None]
    ) -> ScoreName:
        name = column.name
        said_name = name if name in said_by_tool else name.partition(",")[0]
        less = said_by_tool.get(said_name)
        contradictory = said_name in said_by_tool and less is None
        if less is None and fits(name, self.form.less):
            less = True
        elif less is None and self._is_plainly_more(column):
            less = False
        return ScoreName(
            name=name,
            less_is_better=less,
            contradictory=contradictory,
            looks_less=less is None and looks_less(name),
            odd_word=column.odd_word,
            has_numbers=column.numbers > 0,
        )

    def _is_plainly_more(self, column: _ScoreColumn) -> bool:
        """Whether the form, the words of its values or its name say that more is better."""
        name = column.name
        if fits(name, self.form.more) or name in self.rows.more_is_better:
            return True
        if looks_less(name):
            return False
        return (column.is_directed and column.numbers > 0) or looks_more(name)


def _is_decline(value: object) -> bool:
    return isinstance(value, str) and value.strip().casefold() in DECLINED


def _told_apart(samples: Sequence[ScoredSample]) -> list[ScoredSample]:
    """Return samples with an id for each item and a number, from 1, for each time it was asked.

    An item is its id with question and target: two items of one id get ids of their own.
    """
    contents = defaultdict[tuple[str, str], set[str]](set)
    lowest: dict[str, int] = {}
    for sample in samples:
        contents[sample.task, sample.id].add(sample.content)
        if sample.repeat != NO_REPEAT:
            lowest[sample.task] = min(
                sample.repeat, lowest.get(sample.task, sample.repeat)
            )
    taken: set[tuple[str, str, int]] = set()
    told_apart = []
    for sample in samples:
        id_ = sample.id
        if len(contents[sample.task, sample.id]) > 1:
            id_ = f"{id_}-{sample.content[:CONTENT_DIGITS]}"
        repeat = sample.repeat
        if repeat != NO_REPEAT and lowest[sample.task] == 0:
            repeat += 1
        repeat = max(repeat, 1)
        while (sample.task, id_, repeat) in taken:
            repeat += 1
        taken.add((sample.task, id_, repeat))
        told_apart.append(replace(sample, id=id_, repeat=repeat))
    return told_apart
