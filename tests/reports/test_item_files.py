"""The files of items: records, labelled answers and readings come back as they were."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.evaluators.core import UsageError
from qagate.reports.render.writer import write
from qagate.reports.run.readings import Reading
from qagate.reports.run.report_folder import keep
from qagate.reports.run.run_json import load_report
from tests.support.samples import record, report

READING = Reading(
    old=(record(1, answer="old"),),
    old_then=(record(1, answer="old", grade="INCORRECT"),),
    new_then=(record(1, answer="new"),),
    lacking={"facts:en": "a canary could not be asked"},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A report with labelled answers and a reading of the baseline."""
    made = replace(report(), labels=(record(7, label="CORRECT"),), reading=READING)
    folder = tmp_path / "out"
    write(made, folder)
    return folder


def test_a_reading_comes_back(folder: Path) -> None:
    """All three parts, and what is lacking."""
    assert load_report(folder).reading == READING


def test_no_reading_of_an_anchor_is_none(folder: Path) -> None:
    """A run without an anchor read none."""
    assert load_report(folder).anchor_reading is None


def test_labelled_answers_come_back(folder: Path) -> None:
    """With their label and grade."""
    assert load_report(folder).labels == (record(7, label="CORRECT"),)


def test_a_promoted_run_has_the_same_items(folder: Path, tmp_path: Path) -> None:
    """Compressed, and without page and tables."""
    promoted = tmp_path / "v1"
    keep(folder, promoted, packed=True)
    assert not (promoted / "report.html").exists()
    kept = load_report(promoted)
    assert (kept.records, kept.labels, kept.reading) == (
        load_report(folder).records,
        load_report(folder).labels,
        READING,
    )


@pytest.mark.parametrize("name", ["records.jsonl", "labels.jsonl", "readings.jsonl"])
def test_a_changed_file_is_refused(folder: Path, name: str) -> None:
    """The checksum in run.json is that of the file as it was written."""
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(UsageError, match=f"{name}: altered"):
        load_report(folder)


@pytest.mark.parametrize("name", ["labels.jsonl", "readings.jsonl"])
def test_a_file_that_is_not_there_is_named(folder: Path, name: str) -> None:
    """Half a report is none."""
    (folder / name).unlink()
    with pytest.raises(UsageError, match=f"{name}: cannot be read"):
        load_report(folder)


def test_a_folder_of_another_form_is_one_line(folder: Path) -> None:
    """It names the form that it has, and what to give."""
    file = folder / "run.json"
    run = json.loads(file.read_text("utf-8"))
    run["schema_version"] = 2
    file.write_text(json.dumps(run), "utf-8")
    with pytest.raises(UsageError, match=r"'schema_version' is 2.*report folder"):
        load_report(folder)
