"""Tables as spreadsheets and other tools write them are read; what is unclear is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.tables import normal, read_csv
from qagate.evaluators.core import UsageError
from tests.support.declaring import line, loaded

HERE = Path("a.csv")


def rows_of(text: str) -> list[dict[str, object]]:
    return [dict(record.values) for record in read_csv(HERE, text).records]


# Headers


@pytest.mark.parametrize(
    "name",
    [
        "Predicted  answers",
        "Predicted\tanswers",
        "Predicted\nanswers",
        "Predicted\r\nanswers",
        " predicted answers ",
        "Predicted\u00a0answers",
    ],
)
def test_any_white_space_in_a_header_is_one_space(tmp_path: Path, name: str) -> None:
    """Alt+Enter in Excel puts a line break into a name."""
    text = f'Question,Answers,"{name}"\nq,a,Sofia\n'
    assert loaded(tmp_path, text)[0].recorded == "Sofia"


@given(st.text(max_size=20))
def test_a_normal_name_is_normal(name: str) -> None:
    assert normal(normal(name)) == normal(name)


def test_a_look_alike_with_two_spaces_is_still_told(tmp_path: Path) -> None:
    """The first letter of the name is Cyrillic."""
    with pytest.raises(
        UsageError, match=r"is not 'Predicted answers': it holds U\+0420"
    ):
        loaded(tmp_path, "Question,Answers,Рredicted  answers\nq,a,p\n")


# What Excel adds


@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_line_may_say_what_separates(mark: str, newline: str) -> None:
    lines = [f"sep={mark}", f"q{mark}a", f"x{mark}y"]
    assert rows_of(newline.join(lines)) == [{"q": "x", "a": "y"}]


def test_rows_keep_their_lines_after_such_a_line() -> None:
    with pytest.raises(UsageError, match=r"a.csv:3: row 1: 3 cells for 2 columns"):
        read_csv(HERE, "sep=;\nq;a\nx;y;z\n")


def test_a_column_named_sep_is_a_column() -> None:
    assert rows_of("sep=x,a\n1,2\n") == [{"sep=x": "1", "a": "2"}]


def test_an_empty_tail_is_left_out() -> None:
    """Rows and columns that a spreadsheet once used."""
    text = "q;a;;\nx;y;;\nv;w;;\n;;;\n ; ;;\n"
    assert rows_of(text) == [{"q": "x", "a": "y"}, {"q": "v", "a": "w"}]


def test_an_empty_row_between_others_is_kept() -> None:
    """Something may be lost there, so the loader asks for it."""
    assert rows_of("q,a\nx,y\n,\nv,w\n")[1] == {"q": "", "a": ""}


def test_a_column_without_a_name_that_holds_something_is_kept() -> None:
    assert rows_of("q,a,\nx,y,\nv,w,1\n")[1] == {"q": "v", "a": "w", "": "1"}


# Quotes


@pytest.mark.parametrize(
    "text",
    [
        'q,a\n"x, 1" ,y\n',
        'q,a\n"x, 1"\t,y\n',
        'q,a\n "x, 1", "y"\n',
        'q,a\n"x, 1" , "y" \n',
        'q, "a" \n"x, 1",y',
    ],
)
def test_blanks_beside_quotes_are_left_out(text: str) -> None:
    assert rows_of(text) == [{"q": "x, 1", "a": "y"}]


def test_a_quoted_cell_between_tabs_may_have_blanks_beside_it() -> None:
    assert rows_of('q\ta\n"x" \t "y"\n') == [{"q": "x", "a": "y"}]


def test_a_quote_that_is_literal_stays() -> None:
    table = read_csv(HERE, 'q\ta\nx\t "y" \n', "\t", literal=True)
    assert table.records[0].values["a"] == ' "y" '


CELL = st.text(alphabet='ab, "\t\n', min_size=1, max_size=8)


@given(st.lists(CELL, min_size=2, max_size=4))
def test_what_stands_within_quotes_is_never_changed(cells: list[str]) -> None:
    """Not the blanks beside quotes and commas of a text, either."""
    quoted = ",".join('"' + cell.replace('"', '""') + '"' for cell in [*cells, "end"])
    header = ",".join(f"c{number}" for number in range(len(cells) + 1))
    (row,) = rows_of(f"{header}\n{quoted}\n")
    assert list(row.values()) == [*cells, "end"]


# Lists in a cell


@pytest.mark.parametrize(
    "cell",
    ["['Sofia', 'Sophia']", '["Sofia", "Sophia"]', " [ 'Sofia','Sophia', ] "],
)
@pytest.mark.parametrize("column", ["Answers", "Aliases"])
def test_a_list_in_a_cell_is_its_texts(tmp_path: Path, cell: str, column: str) -> None:
    """So pandas writes what was a list in the data set."""
    quoted = cell.replace('"', '""')
    text = f'Question,Answer,{column}\nq,Sofia,"{quoted}"\n'
    assert loaded(tmp_path, text)[0].golds == ("Sofia", "Sophia")


@pytest.mark.parametrize(
    "gold", ["[sic]", "[1, 2]", "[]x", "['a'] and ['b', c]", "['a'"]
)
def test_other_brackets_are_text(tmp_path: Path, gold: str) -> None:
    assert loaded(tmp_path, f'Question,Answers\nq,"{gold}"\n')[0].golds == (gold,)


def test_a_text_in_a_list_is_never_read_as_a_list(tmp_path: Path) -> None:
    """The way to say that a gold is to be written with its brackets."""
    text = line(answer=["['a']"])
    assert loaded(tmp_path, text, "jsonl")[0].golds == ("['a']",)


def test_no_aliases_are_an_empty_list(tmp_path: Path) -> None:
    assert loaded(tmp_path, "Question,Answer,Aliases\nq,a,[]\n")[0].golds == ("a",)
