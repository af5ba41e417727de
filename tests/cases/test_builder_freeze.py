"""Freezing into a folder: what is there is respected, what is written runs and is described."""

import json
from pathlib import Path

import pytest

from cases.config import load_dataset
from cases.loading import load_cases
from cases.tools.builder import freeze
from cases.tools.builder.datasheet import Facts, datasheet
from cases.tools.builder.work_folder import Item
from cases.tools.review.reviews import agreement
from evaluators.core import UsageError
from evaluators.output import write_texts
from tests.support.building import make_item, rows
from tests.support.building_people import Row, back_from_both, reviewed_site

LABELS = {"YES": "Так", "NO": "Не"}
ITEMS = [
    make_item(
        number,
        question=f"Ці праўда, што гэта {number}?",
        answer=("YES", "NO")[number % 2],
        split=("train", "test")[number // 2 % 2],
        generator={"model": "openai:x@http://10.0.0.1/v1", "returned": "x-1", "prompt": "g#1"},
        validator={"model": "anthropic:y", "prompt": "v#1"},
    )
    for number in range(8)
]


def freeze_into(folder: Path, *, force: bool = False, items: list[Item] = ITEMS) -> Path:
    """Write the data files and what else is needed; returns the main file."""
    data = freeze.data_files(folder, "be", freeze.rows_of(items, LABELS))
    write_texts(freeze.changed(data, force=force).items())
    write_texts(freeze.missing_files(folder, "be", LABELS, 0.6).items())
    return next(iter(data))


def test_a_new_folder_becomes_a_dataset(tmp_path: Path) -> None:
    """Settings, prompt and test module are put beside the data, and never written over."""
    folder = tmp_path / "mine"
    freeze_into(folder)
    slice_ = load_dataset(folder / "dataset.yaml").slices["be"]
    assert (slice_.yes, slice_.no, slice_.path) == ("Так", "Не", folder / "be.jsonl")
    assert slice_.prompt is not None
    cases = load_cases(slice_)
    assert [case.label for case in cases] == [item.answer for item in ITEMS]
    assert cases[0].metadata["split"] == "train"
    (folder / "dataset.yaml").write_text("mine", encoding="utf-8")
    assert freeze.missing_files(folder, "be", LABELS, 0.6) == {}


def test_a_language_without_a_prompt_gets_none(tmp_path: Path) -> None:
    """No prompt is made up: the settings then name none."""
    files = freeze.missing_files(tmp_path / "mine", "fr", {"YES": "Oui", "NO": "Non"}, 0.5)
    assert {path.name for path in files} == {"dataset.yaml", "test_mine.py"}
    assert "prompt" not in files[tmp_path / "mine" / "dataset.yaml"]


def test_files_with_other_content_need_force(tmp_path: Path) -> None:
    """The same content is left alone; other content is written over only with --force."""
    folder = tmp_path / "mine"
    main = freeze_into(folder)
    before = main.stat().st_mtime_ns
    freeze_into(folder)
    assert main.stat().st_mtime_ns == before
    fewer = ITEMS[:4]
    with pytest.raises(UsageError, match=r"be\.jsonl: is there already, with other content"):
        freeze_into(folder, items=fewer)
    freeze_into(folder, items=fewer, force=True)
    assert len(main.read_text("utf-8").splitlines()) == 4


def test_an_existing_dataset_keeps_its_file_name(tmp_path: Path) -> None:
    """Where dataset.yaml names a JSON list for the language, that is what is written."""
    folder = tmp_path / "boolq"
    folder.mkdir()
    text = "kind: yes_no\nlanguages:\n  be: {file: be.json, yes: Так, no: Не}\n"
    (folder / "dataset.yaml").write_text(text, encoding="utf-8")
    main = freeze_into(folder)
    assert main.name == "be.json"
    assert len(json.loads(main.read_text("utf-8"))) == len(ITEMS)
    (folder / "dataset.yaml").write_text(text.replace("be.json", "be.csv"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"be\.csv cannot be frozen into"):
        freeze_into(folder)


def test_somebody_elses_readme_is_left_alone(tmp_path: Path) -> None:
    """The datasheet then has the language in its name."""
    sheet = "# mine (be): datasheet\n"
    assert freeze.readme(tmp_path, sheet, "be").name == "README.md"
    (tmp_path / "README.md").write_text(f"{sheet}old", encoding="utf-8")
    assert freeze.readme(tmp_path, sheet, "be").name == "README.md"
    (tmp_path / "README.md").write_text("# Our data\n", encoding="utf-8")
    assert freeze.readme(tmp_path, sheet, "be").name == "README.be.md"


@pytest.mark.parametrize("blind", [True, False])
def test_a_datasheet_tells_what_there_is(blind: bool) -> None:
    """Sources, funnel, models, review and limits; nobody's name, no server's address."""
    said = [{"reviewer": "Ганна", "verdict": "YES", "edited": "", "comment": ""}]
    items = [*ITEMS[:-1], make_item(7, answer="NO", review={"said": said, "answer_before": "YES"})]
    text = datasheet(
        Facts(
            name="mine",
            language="be",
            labels=LABELS,
            items=items,
            options={
                "sample": {"files": {"/home/me/news.jsonl": "abc"}, "seed": 4, "recipe": "r1"},
                "generate": {"generator": "openai:x@http://10.0.0.1/v1"},
                "validate": {"validator": "anthropic:y", "blind": blind, "prompt": "answer.be#1"},
            },
            report={
                "steps": {
                    "sample": {"in": 9, "kept": 8, "dropped": 1, "dropped_why": {"length": 1}}
                },
                "question_only": {},
            },
            agreement=agreement([]),
            files={"be.jsonl": "123"},
        )
    )
    assert text.startswith("# mine (be): datasheet\n")
    assert "| sample | 9 | 8 | 1 | length 1 |" in text
    assert "| news | news.jsonl | " in text
    assert "/home/me" not in text
    assert "10.0.0.1" not in text
    assert "Ганна" not in text
    assert "`openai:x`" in text
    assert ("first answered by itself, with prompt `answer.be#1`" in text) is blind
    assert "Reviewers changed the answer of 1 and the wording of 0" in text
    assert "| all | 0 | undefined | undefined | – |" in text
    assert "7 of 8 items were seen by no person." in text
    assert "Not known: there are no items." in text


def test_a_source_that_gave_too_little_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A set that comes out smaller than wanted says so, and of which source."""
    with reviewed_site(tmp_path, count=4) as made:
        asked = rows(tmp_path / "work", "review")
        ours = [row for row in asked if row["origin"]["group"] == "encyclopaedia"]
        kept = {row["answer"]: row["id"] for row in ours}

        def fill(_: int, row: Row) -> Row:
            fine = [answer for answer, item in kept.items() if item == row["item"]]
            return {"verdict": fine[0] if fine else "UNCLEAR"}

        assert made.build("accept", *back_from_both(made, fill)) == 0
        capsys.readouterr()
        assert made.build("freeze", "--to", str(tmp_path / "mine")) == 0
    said = capsys.readouterr().err
    assert "freeze: encyclopaedia: only 2 of 4 items" in said
    assert "freeze: news: only 0 of 2 items" in said
