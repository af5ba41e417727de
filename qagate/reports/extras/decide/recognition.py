"""Which form the files of a result have, and the parts that they divide into.

A form is found by the content of the files alone. What no form knows is a table, if it is a list
of rows or holds one; everything else is refused by what to give in its place.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.evaluators.bounded_reading import ReadingBudget
from qagate.evaluators.core import UsageError
from qagate.evaluators.text import first_of, hint
from qagate.reports.extras.decide.containers import (
    SUFFIXES,
    Json,
    ResultFile,
    read_document,
)
from qagate.reports.extras.decide.foreign_run import Choice
from qagate.reports.extras.decide.form_functions import Part, functions_of
from qagate.reports.extras.decide.form_table import ANY_TABLE, ResultForm, forms
from qagate.reports.extras.decide.paths import field_path
from qagate.reports.extras.decide.scores import text_of

SUCCESS = "success"
"""The status of a log that is whole."""


def problem(path: Path, message: str) -> UsageError:
    """Return the error about a file, to be raised."""
    return UsageError(f"{path}: {message}")


# Files and their form


def files_of(path: Path) -> list[Path]:
    """Return the files of a result that are looked at. Raises UsageError for none."""
    if not path.is_dir():
        return [path]
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix in SUFFIXES and file.is_file()
    ]
    if not files:
        raise problem(path, f"no file ending in {', '.join(SUFFIXES)} there")
    return files


def recognised(
    path: Path, documents: Sequence[ResultFile], form_name: str, choice: Choice
) -> tuple[ResultForm, list[ResultFile]]:
    """Return the first form that any of the documents has, and those that have it."""
    for form in forms().values():
        if form_name not in ("", form.name):
            continue
        fitting = [document for document in documents if form.fits(document)]
        if not fitting:
            continue
        if form.instead:
            raise problem(fitting[0].path, form.instead)
        if len(fitting) > 1 and not form.several:
            raise problem(path, f"holds several results of {form.tool}; name one file")
        return form, fitting
    if form_name not in ("", ANY_TABLE):
        raise problem(path, f"not a result of {form_name}; leave --from out")
    if len(documents) > 1:
        raise problem(
            path, f"holds {len(documents)} files of no known tool; name one file"
        )
    return forms()[ANY_TABLE], [_as_table(documents[0], choice)]


def _as_table(document: ResultFile, choice: Choice) -> ResultFile:
    """Return the rows of a table, or of the one list of objects in an object."""
    if choice.rows:
        rows = field_path(choice.rows).value(document.head)
        if not _is_list_of_objects(rows):
            names = first_of(list(_lists_in(document.head)), 10) or "none"
            raise problem(
                document.path,
                f"--rows {choice.rows}: no list of objects there; there are: {names}",
            )
        return replace(document, rows=rows, first_row=rows[0])
    if document.rows is not None:
        return document
    lists = _lists_in(document.head)
    if len(lists) > 1:
        raise problem(
            document.path,
            f"holds the lists {first_of(list(lists), 10)}; say --rows NAME",
        )
    if not lists:
        raise problem(
            document.path,
            "holds no rows; give a CSV or JSONL with a row for each answer, and the "
            "columns id and score",
        )
    rows = next(iter(lists.values()))
    return replace(document, rows=rows, first_row=rows[0])


def _lists_in(head: Json, above: str = "") -> dict[str, list[Json]]:
    """Return the lists of objects in an object, or one level below, by path."""
    lists: dict[str, list[Json]] = {}
    for key, value in head.items():
        if _is_list_of_objects(value):
            lists[f"{above}{key}"] = value
        elif isinstance(value, Mapping) and not above:
            lists |= _lists_in(value, f"{key}.")
    return lists


def _is_list_of_objects(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(element, Mapping) for element in value)


# Parts


def parts_of(
    path: Path,
    form: ResultForm,
    documents: Sequence[ResultFile],
    choice: Choice,
    budget: ReadingBudget,
) -> list[Part]:
    """Return the tasks of a result, of the side that was chosen."""
    functions = functions_of(form.functions)
    if functions.parts is not None:
        parts = functions.parts(documents, lambda file: read_document(file, budget))
    else:
        parts = [_part(form, document) for document in documents]
    if "model" in form.head and form.several:
        models = {head_text(form, part, "model") for part in parts}
        chosen = _chosen_side(path, models, "model", choice)
        parts = [part for part in parts if head_text(form, part, "model") == chosen]
        parts = _one_log_a_task(form, parts)
    elif choice.side and "side" not in form.row:
        raise problem(
            path,
            f"--new and --old do nothing for a result of {form.name}; leave them out",
        )
    return parts


def _part(form: ResultForm, document: ResultFile) -> Part:
    rows: Iterable[Json]
    if document.rows is not None:
        rows = document.rows
    else:
        rows = []
        for rows_path in form.rows:
            listed = rows_path.value(document.head) or []
            rows += [row for row in listed if isinstance(row, Mapping)]
    task = ""
    if "task" in form.head:
        value = form.head["task"].value(document.head)
        task = "" if value is None else value
        if value is None and form.several:
            raise TypeError("the name of a task is no text: None")
    if not isinstance(task, str):
        raise TypeError(f"the name of a task is no text: {task!r:.40}")
    return Part(path=document.path, rows=rows, head=document.head, task=task)


def _one_log_a_task(form: ResultForm, parts: Sequence[Part]) -> list[Part]:
    """Return the parts without failed logs that were tried again.

    A task that was run with several sets of arguments becomes a task for each set.
    """
    by_task: dict[str, dict[str, list[Part]]] = defaultdict(lambda: defaultdict(list))
    for part in parts:
        by_task[part.task][head_text(form, part, "arguments")].append(part)
    kept = []
    for task, by_arguments in by_task.items():
        for arguments, tries in by_arguments.items():
            whole = [
                part for part in tries if head_text(form, part, "status") == SUCCESS
            ]
            name = task
            if len(by_arguments) > 1:
                name = f"{task} {arguments}"
            kept += [replace(part, task=name) for part in whole or tries]
    return kept


def head_text(form: ResultForm, part: Part, name: str) -> str:
    """Return what the head of a part says of something; empty for nothing."""
    if name not in form.head:
        return ""
    return text_of(form.head[name].value(part.head))


def _chosen_side(path: Path, sides: Iterable[str], what: str, choice: Choice) -> str:
    """Return the one side, or the chosen one. Raises UsageError where it must be said which."""
    known = sorted(set(sides))
    if choice.side and choice.side not in known:
        raise problem(path, f"no {what} {choice.side!r}; {hint(choice.side, known)}")
    if not choice.side and len(known) > 1:
        raise problem(
            path,
            f"results of several {what}s, {', '.join(known)}; "
            f"say which with --new or --old {what.upper()}",
        )
    return choice.side or "".join(known)
