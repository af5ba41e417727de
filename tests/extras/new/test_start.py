"""``qagate start``: what it asks, what it writes, and what it refuses."""

import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.extras.check.command import main as check
from qagate.cases.extras.new.workflow import requirement_of, workflow_text
from qagate.cases.loading import load_cases
from qagate.command import main
from qagate.evaluators.core import Case
from qagate.evaluators.models.catalogue import load_catalogue
from tests.support.fixtures import Captured, Patch
from tests.support.projects import ROOT, Project

POLISH = "Nr;Pytanie;Odpowiedź\r\n7;Ile dni ma tydzień?;7\r\n8;Ile to pół tuzina?;6\r\n"
MODELS = ("--model", "openai:gpt-4.1", "--judge", "anthropic:claude-opus-4-1")
Start = Callable[..., int]


class Terminal(io.StringIO):
    """What a person types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def start(tmp_path: Path, monkeypatch: Patch) -> Start:
    """Return the command in an empty repository, with what a person types, if anybody is there."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def run(*words: str, typed: Sequence[str] | None = None) -> int:
        lines = "".join(f"{line}\n" for line in typed or ())
        stream = io.StringIO() if typed is None else Terminal(lines)
        monkeypatch.setattr(sys, "stdin", stream)
        return main(["start", *words])

    return run


def sheet(text: str, encoding: str = "utf-8", name: str = "pytania.csv") -> str:
    Path(name).write_bytes(text.encode(encoding))
    return name


def cases(folder: str = "pytania", language: str = "pl") -> list[Case]:
    return load_cases(load_dataset(Path(folder, "dataset.yaml")).slices[language])


def written() -> list[str]:
    files = [path for path in Path().rglob("*") if path.is_file()]
    return sorted(str(path) for path in files)


# What it asks


def test_it_asks_for_all_that_no_option_says(start: Start) -> None:
    typed = [
        sheet(POLISH),
        "",  # the name of the file is that of the set
        "",  # the language of the headings is that of the questions
        "openai:old@https://gateway.example/v1",
        "GATEWAY_KEY",
        "2 8",
        "anthropic:claude-opus-4-1",
        "yes",
    ]
    assert start(typed=typed) == 0
    assert written() == [
        ".github/workflows/qa.yml",
        ".gitignore",
        "pytania.csv",
        "pytania/answer.pl.yaml",
        "pytania/dataset.schema.json",
        "pytania/dataset.yaml",
        "pytania/models.schema.json",
        "pytania/models.yaml",
        "pytania/pl.csv",
        "pytania/test_pytania.py",
    ]


def test_a_wrong_answer_is_asked_again(start: Start, capsys: Captured) -> None:
    name, language = ["Moje-pytania", "moje"], ["polski!", "pl"]
    assert start(sheet(POLISH), *MODELS, typed=[*name, *language, "maybe", "y"]) == 0
    said = capsys.readouterr().out
    assert "'Moje-pytania': a name of small letters" in said
    assert "a language code such as de is needed, got 'polski!'" in said
    assert "type yes or no" in said
    assert [case.id for case in cases("moje")] == ["7", "8"]


def test_nothing_is_written_if_a_person_says_no(start: Start) -> None:
    assert start(sheet(POLISH), *MODELS, typed=["", "", "no"]) == 0
    assert written() == ["pytania.csv"]


def test_nothing_is_written_if_the_answers_end(start: Start, capsys: Captured) -> None:
    assert start(sheet(POLISH), *MODELS, typed=[""]) == 4
    assert "no answer to" in capsys.readouterr().err
    assert written() == ["pytania.csv"]


MISSING = {
    "file": ([], "FILE is needed"),
    "language": (["q.csv"], "--lang LANG is needed, such as --lang pl"),
    "model": (["q.csv", "--lang", "en"], "--model SPEC is needed"),
    "judge": (["q.csv", "--lang", "en", *MODELS[:2]], "--judge SPEC is needed"),
}


@pytest.mark.parametrize(("words", "message"), MISSING.values(), ids=list(MISSING))
def test_without_a_terminal_it_names_the_option(
    start: Start, words: list[str], message: str, capsys: Captured
) -> None:
    sheet("question,answer\nq,a\n", name="q.csv")
    assert start(*words) == 4
    assert message in capsys.readouterr().err
    assert written() == ["q.csv"]


# The spreadsheet


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("declared", ["", "sep="])
def test_excel_separates_as_its_country_does(
    start: Start, separator: str, declared: str
) -> None:
    first = f"{declared}{separator}\r\n" if declared else ""
    text = first + POLISH.replace(";", separator)
    assert start(sheet(text), "--lang", "pl", *MODELS) == 0
    assert [case.expected for case in cases()] == ["7", "6"]


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8-sig", "pytania.csv"), ("utf-16", "pytania.txt")]
)
def test_a_file_that_says_its_encoding_is_read(
    start: Start, encoding: str, name: str
) -> None:
    file = sheet(POLISH.replace(";", "\t"), encoding, name)
    assert start(file, "--lang", "pl", *MODELS) == 0
    assert cases()[0].question == "Ile dni ma tydzień?"


def test_a_person_sees_three_rows_in_each_code_page(
    start: Start, capsys: Captured
) -> None:
    file = sheet(POLISH, "cp1250")
    assert start(file, *MODELS, typed=["1", "", "", ""]) == 0
    said = capsys.readouterr().out
    assert (
        "cp1250: Nr;Pytanie;Odpowiedź  /  7;Ile dni ma tydzień?;7  /  8;Ile to pół"
        in said
    )
    assert cases()[0].question == "Ile dni ma tydzień?"


def test_the_code_page_of_the_language_comes_first(
    start: Start, capsys: Captured
) -> None:
    file = sheet("Въпрос;Отговор\nКолко?;7\n", "cp1251")
    assert start(file, "--lang", "bg", *MODELS, typed=["cp1251", "", ""]) == 0
    assert "1  cp1251: Въпрос;Отговор" in capsys.readouterr().out
    assert cases(language="bg")[0].question == "Колко?"


def test_code_pages_that_read_the_same_are_one_choice(
    start: Start, capsys: Captured
) -> None:
    file = sheet("Frage;Antwort\nWie grüßt man?;so\n", "cp1252")
    assert (
        start(file, "--lang", "de", *MODELS, "--unmeasured", typed=["1", "", ""]) == 0
    )
    said = capsys.readouterr().out
    assert said.count("Wie grüßt man?") == 1
    assert "1  cp1252: Wie grüßt man?" in said


ENCODINGS = {
    "none": ([], "pytania.csv: not UTF-8; save it in Excel as 'CSV UTF-8', or name"),
    "unknown": (["--encoding", "cp9"], "--encoding 'cp9': not known"),
    "wrong": (["--encoding", "utf-8"], "pytania.csv:1: byte 0x9f is none of utf-8"),
}


@pytest.mark.parametrize(("words", "message"), ENCODINGS.values(), ids=list(ENCODINGS))
def test_an_encoding_is_never_guessed(
    start: Start, words: list[str], message: str, capsys: Captured
) -> None:
    file = sheet(POLISH, "cp1250")
    assert start(file, "--lang", "pl", *MODELS, *words) == 4
    assert message in capsys.readouterr().err


def test_an_encoding_may_be_given(start: Start) -> None:
    file = sheet(POLISH, "cp1250")
    assert start(file, "--lang", "pl", *MODELS, "--encoding", "cp1250") == 0
    assert cases()[1].question == "Ile to pół tuzina?"


@pytest.mark.parametrize(
    ("name", "message"),
    [("q.xlsx", "save the sheet as 'CSV UTF-8"), ("q.json", "begin with qagate new")],
)
def test_a_file_of_another_kind_is_refused(
    start: Start, name: str, message: str, capsys: Captured
) -> None:
    assert start(sheet("x", name=name), "--lang", "pl", *MODELS) == 4
    assert message in capsys.readouterr().err


def test_own_numbers_are_ids(start: Start) -> None:
    assert start(sheet(POLISH), "--lang", "pl", *MODELS) == 0
    assert [case.id for case in cases()] == ["7", "8"]


def test_numbers_that_stand_twice_are_no_ids(start: Start) -> None:
    file = sheet(POLISH.replace("8;", "7;"))
    assert start(file, "--lang", "pl", *MODELS) == 0
    assert "7" not in [case.id for case in cases()]


def test_the_headings_stay_and_are_named(start: Start) -> None:
    assert start(sheet(POLISH), "--lang", "pl", *MODELS) == 0
    text = Path("pytania/dataset.yaml").read_text("utf-8")
    assert 'columns: {question: "Pytanie", answer: "Odpowiedź", id: "Nr"}' in text
    assert Path("pytania/pl.csv").read_text("utf-8").startswith("Nr;Pytanie;Odp")


def test_our_own_names_of_columns_need_no_line(start: Start) -> None:
    file = sheet("question,answer\nq,a\n")
    assert start(file, "--lang", "en", *MODELS) == 0
    assert "columns:" not in Path("pytania/dataset.yaml").read_text("utf-8")


def test_a_person_names_a_column_by_number_or_heading(
    start: Start, capsys: Captured
) -> None:
    file = sheet("A1,B1,C1\nx,how many?,seven\n")
    assert start(file, "--lang", "en", *MODELS, typed=["2", "9", "c1", "", ""]) == 0
    said = capsys.readouterr().out
    assert "2  B1: how many?" in said
    assert "type a number from 1 to 2" in said
    (case,) = cases(language="en")
    assert (case.question, case.expected) == ("how many?", "seven")


COLUMNS = {
    "not named": ([], "which column is the question? Say --column question=HEADING"),
    "no such heading": (["question=B"], "--column question=B: did you mean 'B1'"),
    "no such name": (["questio=B1"], "--column questio: did you mean 'question'"),
    "no equals": (["question"], "--column: NAME=HEADING is needed, got question"),
}


@pytest.mark.parametrize(("given", "message"), COLUMNS.values(), ids=list(COLUMNS))
def test_columns_without_a_terminal(
    start: Start, given: list[str], message: str, capsys: Captured
) -> None:
    words = [word for text in given for word in ("--column", text)]
    assert start(sheet("A1,B1\nx,y\n"), "--lang", "en", *MODELS, *words) == 4
    assert message in capsys.readouterr().err


def test_a_column_may_be_given_by_its_heading(start: Start) -> None:
    file = sheet("A1,B1\nx,y\n")
    words = ["--column", "question=B1", "--column", "answer=A1"]
    assert start(file, "--lang", "en", *MODELS, *words) == 0
    (case,) = cases(language="en")
    assert (case.question, case.expected) == ("y", "x")


def test_a_column_of_languages_makes_a_file_each(start: Start) -> None:
    file = sheet("question,answer,Language\na?,x,PL\nb?,y,hu\nc?,z,pl\n")
    assert start(file, *MODELS) == 0
    assert [case.question for case in cases()] == ["a?", "c?"]
    assert [case.question for case in cases(language="hu")] == ["b?"]


def test_a_word_that_is_no_language_is_refused_by_its_row(
    start: Start, capsys: Captured
) -> None:
    file = sheet("question,answer,Language\na?,x,pl\nb?,y,Polish!\n")
    assert start(file, *MODELS) == 4
    assert "pytania.csv:3: row 2, column 'Language'" in capsys.readouterr().err


def test_a_wrong_row_is_told_as_one_of_the_spreadsheet(
    start: Start, capsys: Captured
) -> None:
    file = sheet(POLISH.replace(";6", ";"))
    assert start(file, "--lang", "pl", *MODELS) == 4
    said = capsys.readouterr().err
    assert said.startswith("pytania.csv:3: row 2, column 'Odpowiedź': empty")
    assert written() == ["pytania.csv"]


def test_a_wrong_row_of_one_language_says_so(start: Start, capsys: Captured) -> None:
    file = sheet("question,answer,Language\na?,x,pl\nb?,,hu\n")
    assert start(file, *MODELS) == 4
    assert "pytania.csv, the rows in hu:2: row 1" in capsys.readouterr().err


# The judge


LABELLED = "question,answer,response,grade\na?,x,x,CORRECT\nb?,y,z,INCORRECT\n"


def test_labels_of_the_spreadsheet_measure_the_judge(start: Start) -> None:
    assert start(sheet(LABELLED), "--lang", "de", *MODELS) == 0
    labelled = cases("pytania_labels", "de")
    assert [(case.recorded, case.label) for case in labelled] == [
        ("x", "CORRECT"),
        ("z", "INCORRECT"),
    ]
    assert [case.recorded for case in cases(language="de")] == ["x", "z"]


def test_labels_may_have_own_headings_and_be_ratings(start: Start) -> None:
    file = sheet("Frage,Kontext,Antwort,Modellantwort,Bewertung\na?,c,x,y,8\n")
    assert start(file, "--kind", "rated", *MODELS, "--lang", "de") == 0
    (labelled,) = cases("pytania_labels", "de")
    assert (labelled.expected, labelled.recorded, labelled.label) == ("x", "y", "8")


def test_where_no_labels_are_the_run_is_labelled_first(
    start: Start, capsys: Captured
) -> None:
    file = sheet("question,answer\na?,x\n")
    assert start(file, "--lang", "de", *MODELS) == 0
    assert "judge: unmeasured" not in Path("pytania/dataset.yaml").read_text("utf-8")
    assert (
        "qagate label reports/out    # your labels measure" in capsys.readouterr().out
    )


@pytest.mark.parametrize("typed", [["unmeasured", ""], None])
def test_a_judge_may_decide_unmeasured_if_a_person_says_so(
    start: Start, typed: list[str] | None
) -> None:
    file = sheet("question,answer\na?,x\n")
    words = [] if typed else ["--unmeasured"]
    name = ["--name", "pytania"]
    assert start(file, "--lang", "de", *name, *MODELS, *words, typed=typed) == 0
    assert "\njudge: unmeasured" in Path("pytania/dataset.yaml").read_text("utf-8")


def test_where_bundled_labels_measure_the_judge_nobody_is_asked(
    start: Start, capsys: Captured
) -> None:
    assert start(sheet(POLISH), "--lang", "pl", *MODELS, "--unmeasured") == 0
    assert "judge: unmeasured" not in Path("pytania/dataset.yaml").read_text("utf-8")
    assert "the labels that come with qagate measure" in capsys.readouterr().out


def test_code_needs_no_judge(start: Start) -> None:
    file = sheet("question,option_a,option_b,answer\na?,x,y,A\n")
    words = ["--kind", "choice", "--lang", "en", *MODELS[:2]]
    assert start(file, *words) == 0
    assert list(load_catalogue(Path("pytania/models.yaml"))) == ["product"]


# The models file


def test_a_server_of_ones_own_has_its_key_and_its_price(start: Start) -> None:
    words = ["--model", "openai:old@https://gateway.example/v1"]
    words += ["--model-key", "GATEWAY_KEY", "--model-price", "2,8"]
    assert start(sheet(POLISH), "--lang", "pl", *words, *MODELS[2:]) == 0
    product = load_catalogue(Path("pytania/models.yaml"))["product"]
    assert product.base_url == "https://gateway.example/v1"
    assert product.api_key_env == "GATEWAY_KEY"
    assert product.prices is not None
    assert (product.prices.input, product.prices.output) == (2, 8)


def test_a_price_may_be_unknown(start: Start) -> None:
    words = ["--model", "openai:old@http://127.0.0.1:9/v1", *MODELS[2:]]
    assert start(sheet(POLISH), "--lang", "pl", *words) == 0
    assert load_catalogue(Path("pytania/models.yaml"))["product"].prices is None
    assert "--max-cost" not in Path(".github/workflows/qa.yml").read_text("utf-8")


WRONG_MODELS = {
    "a function": (["--model", "python:my:answer"], "only a server has an entry"),
    "no model": (["--model", "gpt"], "unknown model"),
    "a key": (["--model-key", "sk-123!"], "what you gave is not shown"),
    "one price": (["--model-price", "2"], "two numbers, in and out"),
    "no price": (["--model-price", "2,-1"], "0 or more: got '2,-1'"),
    "another's key": (
        ["--model", "openai:x@https://host.example", "--model-key", "OPENAI_API_KEY"],
        "OPENAI_API_KEY goes to https://api.openai.com",
    ),
}


@pytest.mark.parametrize(
    ("words", "message"), WRONG_MODELS.values(), ids=list(WRONG_MODELS)
)
def test_a_wrong_model_is_refused(
    start: Start, words: list[str], message: str, capsys: Captured
) -> None:
    assert start(sheet(POLISH), "--lang", "pl", *MODELS, *words) == 4
    assert message in capsys.readouterr().err
    assert written() == ["pytania.csv"]


# The workflow


def test_the_workflow_is_our_recipe() -> None:
    """One text: the recipe in the repository is what the command writes."""
    recipe = (ROOT / ".github" / "examples" / "github-actions.yml").read_text("utf-8")
    command = [
        "pytest -n 8 cases/ --model openai:NEW --judge openai:JUDGE --max-cost 400"
    ]
    command.append("--baseline=last-release $FRESH")
    install = "pip install --no-compile --require-hashes -r requirements.lock"
    assert workflow_text(install, command, ["OPENAI_API_KEY"]) == recipe


def test_the_workflow_runs_the_set_from_the_top(start: Start) -> None:
    file = sheet(POLISH)
    assert start(file, "--lang", "pl", "--to", "tests/qa", *MODELS) == 0
    text = Path(".github/workflows/qa.yml").read_text("utf-8")
    assert (
        "qagate run tests/qa/pytania --models=tests/qa/pytania/models.yaml --model product "
        "--judge judge --max-cost 20\n          --baseline=last-release $FRESH\n"
        in text
    )
    assert "ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}" in text


def test_a_workflow_that_is_there_stays(start: Start, capsys: Captured) -> None:
    workflow = Path(".github/workflows/qa.yml")
    workflow.parent.mkdir(parents=True)
    workflow.write_text("name: mine\n")
    assert start(sheet(POLISH), "--lang", "pl", *MODELS) == 0
    assert workflow.read_text() == "name: mine\n"
    assert "is there already and stays as it is" in capsys.readouterr().out


def test_no_workflow_is_written_if_none_is_wanted(start: Start) -> None:
    assert start(sheet(POLISH), "--lang", "pl", *MODELS, "--no-workflow") == 0
    assert not Path(".github").exists()


def installed(folder: Path, origin: str | None) -> Distribution:
    """Return a distribution that was installed from ``origin``, the text of direct_url.json."""
    info = folder / "qagate-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: qagate\nVersion: 0.1.0\n"
        "Project-URL: Issues, https://host.example/issues\n"
        "Project-URL: Homepage, https://host.example/qagate\n"
    )
    if origin is not None:
        (info / "direct_url.json").write_text(origin)
    return Distribution.at(info)


REQUIREMENTS = {
    "index": (None, "qagate==0.1.0"),
    "repository": (
        '{"url": "https://host.example/fork", "vcs_info": {"commit_id": "0a1b"}}',
        "qagate @ git+https://host.example/fork@0a1b",
    ),
    "wheel": (
        '{"url": "file:///tmp/qagate.whl", "archive_info": {}}',
        "qagate @ git+https://host.example/qagate@v0.1.0",
    ),
    "folder without git": (
        '{"url": "file:///nowhere/qagate", "dir_info": {}}',
        "qagate @ git+https://host.example/qagate@v0.1.0",
    ),
}


@pytest.mark.parametrize(
    ("origin", "requirement"), REQUIREMENTS.values(), ids=list(REQUIREMENTS)
)
def test_the_install_line_names_this_version(
    tmp_path: Path, origin: str | None, requirement: str
) -> None:
    assert requirement_of(installed(tmp_path, origin)) == requirement


def test_the_install_line_names_the_commit_of_a_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    git = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=b@c"]
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    asked = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    origin = f'{{"url": "file://{checkout}", "dir_info": {{"editable": true}}}}'
    requirement = requirement_of(installed(tmp_path, origin))
    assert requirement.endswith(f"@{asked.stdout.strip()}")


# What it says, and what it leaves as it is


def test_the_margin_is_one_that_the_rows_can_show(
    start: Start, capsys: Captured
) -> None:
    rows = "".join(f"{number}?,a\n" for number in range(100))
    assert start(sheet(f"question,answer\n{rows}"), "--lang", "en", *MODELS) == 0
    assert "drop: {max: 0.10}" in Path("pytania/dataset.yaml").read_text("utf-8")
    assert "en: 100 questions can show a drop of" in capsys.readouterr().out


def test_a_folder_that_is_there_stays(start: Start, capsys: Captured) -> None:
    Path("pytania").mkdir()
    assert start(sheet(POLISH), "--lang", "pl", *MODELS) == 4
    assert "pytania: is there already" in capsys.readouterr().err
    assert list(Path("pytania").iterdir()) == []


def test_a_file_name_that_names_no_set_asks_for_one(
    start: Start, capsys: Captured
) -> None:
    file = sheet(POLISH, name="2026.csv")
    assert start(file, "--lang", "pl", *MODELS) == 4
    assert "2026.csv: its name does not name a data set" in capsys.readouterr().err


KINDS = {
    "graded": "question,context,answer\na?,read this,x\nb?,and this,y\n",
    "rated": "question,context,expected\na?,c,x\nb?,c,y\n",
    "yes_no": "question,passage,answer\na?,c,true\nb?,d,false\n",
    "choice": "question,option_a,option_b,answer\na?,x,y,A\nb?,x,y,B\n",
}


@pytest.mark.parametrize(
    "kind",
    [
        "graded",
        pytest.param("rated", marks=pytest.mark.slow),
        pytest.param("yes_no", marks=pytest.mark.slow),
        "choice",
    ],
)
def test_what_it_writes_passes_check_and_dry_run(
    start: Start, project: Project, kind: str, capsys: Captured
) -> None:
    judge = MODELS[2:] if kind in ("graded", "rated") else ()
    file = sheet(KINDS[kind])
    words = ["--kind", kind, "--lang", "en", "--no-workflow", *MODELS[:2], *judge]
    assert start(file, *words, "--to", str(project.path)) == 0
    assert check([str(project.path / "pytania")]) == 0
    models = ["--models=pytania/models.yaml", "--model", "product"]
    judged = ["--judge", "judge"] if judge else []
    result = project.run_in_process("pytania", "--dry-run", *models, *judged)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*pytania:en*2 items*"])


def test_a_context_is_shown_to_the_model(start: Start) -> None:
    assert start(sheet(KINDS["graded"]), "--lang", "en", *MODELS) == 0
    assert "{context}" in Path("pytania/answer.en.yaml").read_text("utf-8")
