"""Claims about the sheet that goes out: its items and choices, the form's page, the CSV twin."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from cases.review.form import (
    CELL,
    FOLDER,
    cell,
    csv_twin,
    form_page,
    texts_in,
    visible,
    write_sheet,
)
from cases.review.sheet import UNCLEAR, verdict_question
from evaluators.core import QAError, UsageError
from evaluators.output import unguarded
from tests.support.hostile import HOSTILE, needs_kit
from tests.support.reviewing import sheet, sheet_item
from tests.support.tables import tabled

SETS = ("grade", "rating", "yes_no", "question")
BLOCK = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)

LANGUAGES = sorted(path.stem for path in (FOLDER / "texts").glob("*.yaml"))


def data_of(page: str) -> dict[str, list[dict[str, object]]]:
    """Return the form's data as a browser reads it: up to the first end of a script."""
    found = BLOCK.search(page)
    assert found
    loaded: dict[str, list[dict[str, object]]] = json.loads(found[1])
    return loaded


@pytest.mark.parametrize("name", SETS)
def test_every_choice_has_a_key_of_its_own_and_a_label_in_every_language(name: str) -> None:
    """No reviewer meets a verdict without words; digits label ratings themselves."""
    keys = verdict_question(name).keys
    assert len(set(keys.values())) == len(keys)
    assert all(re.fullmatch("[a-df-ln-z0-9]", key) for key in keys.values()), "E, M have a meaning"
    for language in LANGUAGES:
        verdicts = texts_in(language).verdicts
        assert all(value in verdicts or value.isdigit() for value in keys)


def test_every_language_says_everything_that_english_says() -> None:
    """The same keys, and the same places for numbers, in every language."""
    english = texts_in("en")
    assert {"be", "bg", "en", "hu", "pl"} <= set(LANGUAGES)
    for language in LANGUAGES:
        one = texts_in(language)
        assert (one.form.keys(), one.titles.keys()) == (english.form.keys(), english.titles.keys())
        assert one.verdicts.keys() == english.verdicts.keys()
        assert one.reasons.keys() == english.reasons.keys()
        assert set(one.rules) == set(SETS)
        for key, text in one.form.items():
            assert re.findall(r"\{\w+\}", text) == re.findall(r"\{\w+\}", english.form[key])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_name_verdicts_as_the_form_does(language: str) -> None:
    """Every verdict but a rating and "unclear" has its rule, under the label of its button."""
    texts = texts_in(language)
    for name in SETS:
        quoted = re.findall('[„«"]([^“”»"„«]+)[“”»"]', texts.rules[name])
        assert set(quoted) <= set(texts.verdicts.values())
        values = {value for value in verdict_question(name).values if not value.isdigit()}
        wanted = values if name == "question" else values - {UNCLEAR}
        assert {texts.verdicts[value] for value in wanted} == set(quoted)


@pytest.mark.parametrize("language", ["xx", "", "../en", "__proto__"])
def test_a_language_without_texts_is_served_in_english(language: str) -> None:
    """Its name never becomes a path."""
    assert texts_in(language) == texts_in("en")


def test_a_sheet_names_what_is_wrong_with_it() -> None:
    """Two equal ids, a name that is no file's."""
    with pytest.raises(UsageError, match="item 'a' stands twice"):
        sheet(sheet_item("a"), sheet_item("a"))
    with pytest.raises(UsageError, match="cannot name a file"):
        sheet(name="../up")


def test_the_digest_follows_items_and_the_text_to_edit() -> None:
    """What is kept in a browser for one sheet is never taken for another's."""
    made = {sheet(*some).digest for some in ([sheet_item("a")], [sheet_item("a", edit="x")], [])}
    assert len(made) == 3
    assert sheet(sheet_item("a")).allowed == {"a": ("YES", "NO", "UNCLEAR", "BAD_LANGUAGE")}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_place_in_the_page(text: str) -> None:
    """Script, markup and template signs reach the reader as text, hidden characters written out."""
    fields = {text: text}
    page = form_page(sheet(sheet_item("a", fields=fields, reasons=(text,), edit=text)))
    (item,) = data_of(page)["items"]
    assert item["fields"] == [{"title": visible(text), "text": visible(text)}]
    assert (item["note"], item["edit"]) == (visible(text), visible(text))
    assert page == form_page(sheet(sheet_item("a", fields=fields, reasons=(text,), edit=text)))
    assert page.count("<script") == 2
    assert "\u202e" not in page
    assert page.encode()


def test_the_attacks_of_the_robustness_kit_stay_in_the_data_block() -> None:
    """Every predicted answer among them reads back from one page as it was, made visible."""
    lines = (needs_kit() / "attacks.jsonl").read_text(encoding="utf-8").split("\n")
    answers = [str(json.loads(line)["predicted"]) for line in lines if line]
    items = (sheet_item(f"i{n}", fields={"answer": text}) for n, text in enumerate(answers))
    page = form_page(sheet(*items))
    found = [item["fields"] for item in data_of(page)["items"]]
    title = texts_in("be").titles["answer"]
    assert found == [[{"title": title, "text": visible(text)}] for text in answers]
    assert page.count("<script") == 2


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    """The policy names hashes alone, and there is no address in the page."""
    page = form_page(sheet(sheet_item("a")))
    assert "default-src 'none'; script-src 'sha256-" in page.replace("&#39;", "'")
    assert "http" not in page.replace("http-equiv", "")
    assert '<html lang="be">' in page
    assert "unsafe" not in page


def test_the_twin_has_the_same_items() -> None:
    """A row an item, columns of items that lack a text empty."""
    shown = [{"answer": text} for text in HOSTILE]
    items = [sheet_item(f"i{n}", fields=one, edit=None) for n, one in enumerate(shown)]
    text = csv_twin(sheet(*items, sheet_item("last"), reviewer="Ана"))
    header = "item,language,shown: answer,shown: question,why,rules,to_edit,choices"
    assert text.startswith('\ufeff"' + header.replace(",", '","'))
    rows = list(csv.DictReader(io.StringIO(text[1:], newline="")))
    assert [row["item"] for row in rows] == [*(item.id for item in items), "last"]
    assert (rows[-1]["shown: answer"], rows[-1]["to_edit"]) == ("", "Ці last?")
    assert {row["reviewer"] for row in rows} == {"Ана"}


@tabled("text")
def test_a_guarded_cell_reads_back_as_it_was(text: str) -> None:
    """The guard is taken off again, and a quote of the writer's own is not."""
    assert unguarded(cell(text)) == text


def test_what_is_hidden_is_written_out_and_what_is_too_long_is_cut() -> None:
    """Line ends stay, keys do not."""
    assert visible("a\r\nb\u200b\ud800\r") == "a\nb\\u200b\\ud800\\u000d"
    assert "sk-test" not in visible("sk-test-0a1b2c3d4e5f6071")
    assert len(cell("x" * 40_000)) == CELL + 4


def test_reasons_are_told_in_the_items_language() -> None:
    """In the form and in its twin, with the rules; a reason of the sheet's own as it stands.

    An empty sheet is in English, and one that edits nothing has no such column.
    """
    assert '<html lang="en">' in form_page(sheet())
    assert "to_edit" not in csv_twin(sheet(sheet_item("a", edit=None)))
    made = sheet(sheet_item("a", reasons=("sample", "наша ўласная")))
    told = "выпадковая выбарка для кантролю; наша ўласная"
    assert data_of(form_page(made))["items"][0]["note"] == told
    assert f',"{told}",' in csv_twin(made)
    rules = texts_in("be").rules["question"]
    assert data_of(form_page(made))["items"][0]["rules"] == rules
    assert rules in csv_twin(made)


def test_both_files_are_written_or_the_reason_is_said(tmp_path: Path) -> None:
    """A folder is made where there is none; a file in the way is named."""
    paths = write_sheet(sheet(sheet_item("a")), tmp_path / "new")
    assert [path.name for path in paths] == ["sheet.html", "sheet.csv"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["sheet.csv", "sheet.html"]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(QAError, match=r"sheet\.html: cannot be written"):
        write_sheet(sheet(sheet_item("a")), tmp_path / "file")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_may_be_edited_is_called_the_question(language: str) -> None:
    """The field to edit bears the question's name, so that nobody takes it for the passage."""
    one = texts_in(language)
    assert one.form["edit"].startswith(one.titles["question"])
    assert not one.form["edit"].startswith(one.titles["context"])
