"""The sheet of answers that people are to judge: what it shows of each, and what it does not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cases.review.adjudications import ABOUT
from cases.review.criteria import Criterion
from cases.review.issued import Asked, issue
from cases.review.sheet import Field, Sheet, SheetItem, choice_set
from cases.review.sheet_files import write_sheet
from evaluators.judges.factory import RUBRICS
from evaluators.kinds import KINDS
from evaluators.rubric import load_rubric
from reports.review.human_review import Pick
from reports.run import clean
from reports.run.record import Record
from reports.run.transcripts import Source, calls_of, keys_of

_LOOKED_INTO = 50  # answers whose calls are searched for a rubric
_COMMENT = 300  # characters of a question or an answer in a comment


def rubric_texts(picks: Sequence[Pick], transcripts: Source | None) -> dict[str, str]:
    """Return what the judges were told by the version of the rubric, as far as it is known.

    A bundled rubric that has this version still is known; of others what was sent to a model.
    """
    records = [one.record for one in picks[:_LOOKED_INTO]]
    calls = calls_of(transcripts, keys_of(records)).values() if transcripts else ()
    asked = [call.request for call in calls if call.request and call.request.messages]
    sent = {one.version: one.messages[0].content for one in asked}
    versions = {one.part.rubric.version for one in picks if one.part.rubric}
    known = {version: _bundled(version) or sent.get(version, "") for version in versions}
    return {version: text for version, text in known.items() if text}


def _bundled(version: str) -> str:
    name = version.partition("@")[0]
    path = RUBRICS / f"{name}.yaml"
    if path.parent != RUBRICS or not path.is_file():
        return ""
    rubric = load_rubric(path)
    return (rubric.system or rubric.user) if rubric.version == version else ""


def sheet_of(
    picks: Sequence[Pick], name: str = "review", rubrics: Mapping[str, str] | None = None
) -> Sheet:
    """Return the sheet of these answers.

    It shows neither what the judge said nor why an answer was picked, which may tell it: people
    come first. An item is shown with its question, context, expected answer, the answer to be
    judged, and what ``rubrics`` has for its rubric.
    """
    return Sheet(
        name=name,
        items=tuple(_item(one, rubrics or {}) for one in picks),
        choices={kind.choices: choice_set(kind.choices) for kind in KINDS.values() if kind.choices},
    )


def issue_to(
    folder: Path,
    picks: Sequence[Pick],
    name: str = "review",
    transcripts: Source | None = None,
) -> tuple[Path, ...]:
    """Write the form of these answers, its twin and what it asks; return the paths."""
    sheet = sheet_of(picks, name, rubric_texts(picks, transcripts))
    allowed = sheet.allowed
    asked = {
        one.id: Asked(
            choices=allowed[one.id],
            judged=one.record.result,
            upgrades=one.upgrades(allowed[one.id]),
            about=_about(one.record),
        )
        for one in picks
    }
    return *write_sheet(sheet, folder), issue(sheet, asked, folder)


def issue_criteria(
    folder: Path, picks: Sequence[Pick], criteria: Sequence[Criterion], run: str
) -> tuple[Path, ...]:
    """Write the form in which a run's answers are rated by each criterion; return the paths."""
    items, asked = [], {}
    for one in picks:
        shown = _item(one, {})
        for criterion in criteria:
            id_ = f"{one.id}#{criterion.name}"
            own = replace(shown, id=id_, choices=criterion.name, question=criterion.text)
            items.append(replace(own, page=one.id))
            choices = tuple(choice.value for choice in criterion.choices)
            asked[id_] = Asked(
                choices=choices,
                criterion=criterion.name,
                question=criterion.text,
                part=one.part.name,
                run=run,
            )
    choices_of = {criterion.name: criterion.choices for criterion in criteria}
    sheet = Sheet(name="criteria", items=tuple(items), choices=choices_of)
    return *write_sheet(sheet, folder), issue(sheet, asked, folder)


def _about(record: Record) -> tuple[str, ...]:
    """Return question and answer, a line each, for the comments of ``adjudications.yaml``."""
    said = zip(ABOUT, (record.question, record.answer or ""), strict=True)
    return tuple(f"{name}: {clean.cut(clean.line(text), _COMMENT)}" for name, text in said)


def _item(one: Pick, rubrics: Mapping[str, str]) -> SheetItem:
    record = one.record
    texts = {"context": record.context, "question": record.question}
    # A yes/no answer is read for what it says; the gold would only lead astray.
    texts["expected"] = "" if one.kind.words else record.expected
    shown = [Field(title=title, text=text) for title, text in texts.items() if text]
    return SheetItem(
        id=one.id,
        language=record.language,
        fields=(*shown, Field(title="answer", text=record.answer or "")),
        choices=one.kind.choices,
        group=f"{record.dataset}:{record.language}",
        rubric=rubrics.get(one.part.rubric.version, "") if one.part.rubric else "",
    )
