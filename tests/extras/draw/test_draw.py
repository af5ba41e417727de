"""`qagate draw`: questions from a table are right, are drawn again by their seed, and load."""

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.bundled import CASES
from qagate.cases.config import load_dataset, with_items
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.extras.draw.command import main
from qagate.cases.extras.draw.draw import Drawn, DrawRecipe, file_text
from qagate.cases.loading import load_cases
from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import load_settings
from tests.support.fixtures import Captured
from tests.support.tables import kept, tabled

HARD = CASES / "simpleqa" / "simpleqa_hard"
HEAD = "code,name,region,people\n"
TOP = "as_of: 2024-12-31\nsource: Town register\nrow: code\n"
WHICH: str = kept(__file__, "which")
ORDER: str = kept(__file__, "order")
VALUE: str = kept(__file__, "value")
MEMBER: str = kept(__file__, "member")
SPELT: str = kept(__file__, "spelt")
EARLIEST: str = kept(__file__, "earliest")
LATEST_FIRST: str = kept(__file__, "latest_first")


def table(rows: int = 40) -> str:
    lines = (
        f"t{n},Town{chr(65 + n % 26)}{chr(97 + n // 26)},r{n % 4},{100 + n * 137 % 5000}"
        for n in range(rows)
    )
    return HEAD + "\n".join(lines) + "\n"


def recipe(folder: Path, draw: str, rows: str = "", top: str = TOP) -> DrawRecipe:
    (folder / "towns.csv").write_text(rows or table(), encoding="utf-8")
    (folder / "recipe.yaml").write_text(top + draw, encoding="utf-8")
    return DrawRecipe(folder / "recipe.yaml", folder / "towns.csv")


def people(made: DrawRecipe, drawn: Drawn) -> list[int]:
    """Return the numbers of the rows that a question names as its source, in its order."""
    found = {
        row.values["code"]: int(str(row.values["people"])) for row in made.table.records
    }
    return [
        found[key]
        for key in drawn["source"].removeprefix("Town register: ").split(", ")
    ]


def names(question: str) -> list[str]:
    return re.findall(r"Town\w+", question)


@pytest.mark.untraced
@given(
    seed=st.integers(), numbers=st.lists(st.integers(1, 9999), min_size=24, max_size=40)
)
def test_the_gold_is_the_row_with_the_highest_number(
    tmp_path_factory: pytest.TempPathFactory, seed: int, numbers: Sequence[int]
) -> None:
    """For any table and seed: the first is beyond doubt, and no row is used twice."""
    rows = "".join(
        f"t{n},Town{n:02d}x,r,{number}\n" for n, number in enumerate(numbers)
    )
    made = recipe(tmp_path_factory.mktemp("draw"), WHICH, HEAD + rows)
    try:
        found = made.draw(seed, 2)["en"]
    except UsageError:  # too few are far enough apart
        return
    for one in found:
        values = people(made, one)
        first, second, *_ = sorted(values, reverse=True)
        assert names(one["Question"])[values.index(first)] == one["Answers"]
        assert first >= 1.19999 * second
    used = [name for one in found for name in names(one["Question"])]
    assert len(used) == len({*used}) == 8


def test_an_order_is_the_places_of_the_options(tmp_path: Path) -> None:
    """The digits lead from the lowest to the highest, all in one region, in the limits."""
    made = recipe(tmp_path, ORDER)
    for one in made.draw(5)["en"]:
        values = people(made, one)
        ordered = [values[int(place) - 1] for place in one["Answers"]]
        assert ordered == sorted(values)
        assert all(two - first >= 10 for first, two in pairwise(ordered))
        assert ordered[-1] - ordered[0] < 2000
        regions = {f"r{int(key[1:]) % 4}" for key in one["fact_id"].split("-")[1:]}
        assert regions == {one["Question"][-3:-1]}


def test_the_one_question_that_a_table_has_is_found(tmp_path: Path) -> None:
    """For any seed; never with a name within another name."""
    rows = "".join(f"t{n},T{n},r,{n * (10 if n < 5 else 1000)}\n" for n in range(1, 13))
    draw = ORDER.replace("count: 3", "count: 1").replace("within: 2000", "within: 35")
    made = recipe(tmp_path, draw, HEAD + rows)
    assert all(len(made.draw(seed)["en"]) == 1 for seed in range(5))
    rows = "a,York,r,10\nb,New York,r,99\nc,Bath,r,30\nd,Leeds,r,50\n"
    with pytest.raises(UsageError, match="0 of 1 question can be drawn"):
        recipe(tmp_path, WHICH, HEAD + rows).draw(1, 1)


def test_a_seed_draws_the_same_questions_and_another_one_others(tmp_path: Path) -> None:
    """In every language the same facts, with the columns that a data set needs."""
    made = recipe(tmp_path, WHICH)
    first, again, other = made.draw(1), made.draw(1), made.draw(2)
    assert first == again
    assert {one["fact_id"] for one in first["en"]}.isdisjoint(
        one["fact_id"] for one in other["en"]
    )
    assert [one["fact_id"] for one in first["en"]] == [
        one["fact_id"] for one in first["de"]
    ]
    assert {(one["as_of"], one["part"]) for one in first["de"]} == {
        ("2024-12-31", "hard")
    }


def test_what_a_file_of_questions_holds(tmp_path: Path) -> None:
    """Items with forms and tolerance like any other; a blind one questions alone."""
    made = recipe(tmp_path, VALUE)
    drawn = made.draw(3)["en"]
    path = tmp_path / "en.csv"
    path.write_text(file_text(drawn, blind=False), encoding="utf-8")
    dataset = load_dataset(CASES / "simpleqa" / DATASET_FILE)
    cases = load_cases(with_items(dataset, "en", path).slices["en"])
    for case, one in zip(cases, drawn, strict=True):
        number = people(made, one)[0]
        assert case.golds[:3] == (f"{number}", f"{number} people", f"{number} souls")
        assert ".." in case.golds[3]
    drawn = recipe(tmp_path, ORDER).draw(1)["en"]
    rows = list(csv.DictReader(file_text(drawn, blind=True).splitlines()))
    assert [[*row] for row in rows] == [["fact_id", "Question"]] * 3
    assert [row["Question"] for row in rows] == [one["Question"] for one in drawn]


def test_conditions_leave_rows_out(tmp_path: Path) -> None:
    """A name that stands twice, listed values, bounds, and texts that do not match."""
    rows = (
        "a,Paris,r1,500\nb,Paris,r2,40\nc,Rome,r1,many\nd,Bonn,r1,300\n"
        "e,Lyon,r3,900\nf,X1,r1,7\n"
    )
    top = TOP + (
        "unique: [name]\nwhere:\n  region: {any: [r1, r3]}\n  name: {none: [Lyon], "
        "matches: '[a-z]+'}\n  people: {matches: '[0-9]+', min: 1, max: 400}\n"
    )
    made = recipe(tmp_path, VALUE.replace("count: 3", "count: 1"), HEAD + rows, top)
    assert [one["Question"] for one in made.draw(9)["en"]] == [
        "How many people live in Bonn?"
    ]


@given(seed=st.integers(), days=st.lists(st.dates(), min_size=12, max_size=24))
def test_the_gold_is_the_row_with_the_earliest_date(
    tmp_path_factory: pytest.TempPathFactory, seed: int, days: Sequence[date]
) -> None:
    """Dates are compared as days: the first lies as many before the second as ``apart`` says."""
    rows = "".join(f"t{n},Town{n:02d}x,r,{day}\n" for n, day in enumerate(days))
    made = recipe(tmp_path_factory.mktemp("draw"), EARLIEST, HEAD + rows)
    try:
        (question,) = made.draw(seed, 1)["en"]
    except UsageError:  # too few are far enough apart
        return
    founded = {f"Town{n:02d}x": day for n, day in enumerate(days)}
    offered = names(question["Question"])
    first, second, *_ = sorted(founded[name] for name in offered)
    assert founded[question["Answers"]] == first
    assert (second - first).days >= 30


def test_four_dates_are_put_in_order(tmp_path: Path) -> None:
    """From the latest; bounds are dates too, and a year alone is left out by its form."""
    rows = (
        "a,Ayr,r,1899-12-31\nb,Bonn,r,2001-01-09\nc,Cork,r,2001-01-10\nd,Dijon,r,1999\n"
    )
    rows += "e,Esch,r,1950-06-01\nf,Faro,r,1901-01-01\ng,Graz,r,1800-01-01\n"
    made = recipe(tmp_path, LATEST_FIRST, HEAD + rows)
    (question,) = made.draw(3)["en"]
    options = re.findall(r"\d\) (\w+)", question["Question"])
    ordered = [options[int(place) - 1] for place in question["Answers"]]
    assert ordered == ["Cork", "Bonn", "Esch", "Faro"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("apart: 30", "apart: 20%", "key 'apart': dates lie days apart"),
        ("apart: 30", "where: {people: {min: 1900}}", "key 'min': people holds dates"),
        ("t3,Town03x,r,2003-01-01", "t3,Town03x,r,2003-02-30", "not '2003-02-30'"),
        ("t3,Town03x,r,2003-01-01", "t3,Town03x,r,2003", "row 4, .* a date such as"),
    ],
    ids=["percentage", "year as bound", "no such day", "year among dates"],
)
def test_a_date_is_never_compared_with_something_else(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """File, line and what is needed, for what is not a date where dates stand."""
    rows = "".join(f"t{n},Town{n:02d}x,r,200{n}-01-01\n" for n in range(4))
    made = recipe(tmp_path, EARLIEST.replace(old, new), HEAD + rows.replace(old, new))
    with pytest.raises(UsageError, match=message):
        made.draw(1, 1)


def test_one_of_four_lies_where_the_question_says(tmp_path: Path) -> None:
    """The gold, and no other of the four, is of the region that is named; it stands anywhere."""
    made = recipe(tmp_path, MEMBER)
    regions = {row.values["name"]: row.values["region"] for row in made.table.records}
    places = set()
    for seed in range(8):
        for question in made.draw(seed)["en"]:
            offered = names(question["Question"])
            asked = question["Question"].split(" lies in ")[1].split(":")[0]
            there = [name for name in offered if regions[name] == asked]
            assert there == [question["Answers"]]
            places.add(offered.index(question["Answers"]))
    assert places == {0, 1, 2, 3}
    with pytest.raises(UsageError, match="0 of 1 question can be drawn"):
        recipe(
            tmp_path, MEMBER.replace("by: region", "by: region\n    same: region")
        ).draw(1, 1)


BULGARIAN = "ekatte,name,province,people\n" + "".join(
    f"{n},{name},Търговище,{450 * 2**n}\n"
    for n, name in enumerate(["Еница", "Вълчитрън", "Дивдядево", "Жаравина"])
)


def test_names_are_spelt_by_rule_and_words(tmp_path: Path) -> None:
    """The first pattern that fits counts, capitals stay; a listed word stands as it is listed."""
    (question,) = recipe(tmp_path, SPELT, BULGARIAN, "as_of: 2024-12-31\n").draw(1)[
        "en"
    ]
    assert "in Targovishte" in question["Question"]
    for name in ("Enitsa", "Valchitran", "Divdyadevo", "Zharavina"):
        assert name in question["Question"]
    assert question["Answers"] == "Zharavina"


def test_a_table_that_is_not_the_recipes_register_is_named(
    tmp_path: Path, capsys: Captured
) -> None:
    """Its golds are those of another table; the same table says nothing."""
    words = [f"{tmp_path / 'towns.csv'}", "--recipe", f"{tmp_path / 'recipe.yaml'}"]
    held = hashlib.sha256(table().encode()).hexdigest()
    for sha256, told in ((held, False), ("0" * 64, True)):
        register = (
            f"register: {{address: 'https://towns.example', sha256: '{sha256}'}}\n"
        )
        recipe(tmp_path, WHICH, top=TOP + register)
        assert main([*words, "--to", f"{tmp_path / sha256[:4]}"]) == 0
        assert ("is not the register that" in capsys.readouterr().err) is told


def test_the_recipe_of_the_documents_draws(tmp_path: Path) -> None:
    """Every key that it shows is read; its table has the columns that it names."""
    text = Path("docs/data.md").read_text(encoding="utf-8")
    shown = text[text.index("# towns.yaml") :].split("```")[0]
    rows = "".join(f"t{n},Town{n:03d}x,r{n % 3},{1000 + n * n}\n" for n in range(90))
    found = recipe(
        tmp_path, shown.replace("count: 60", "count: 5"), HEAD + rows, ""
    ).draw(7)["en"]
    assert len(found) == 5
    assert all(
        one["Answers"] in one["Question"] and one["part"] == "hard" for one in found
    )


@pytest.mark.parametrize("language", ["en", "bg", "pl", "hu", "be"])
def test_bundled_hard_items_are_of_their_recipes(language: str) -> None:
    """As many as the recipes say, with ids, sources and dates; a gold is among its options once."""
    text = (HARD / f"{language}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    wanted = Counter[str]()
    for path in sorted((HARD / "recipes").glob("*.yaml")):
        made = load_settings(path)
        made.part("register").check_keys(
            ("address", "licence", "retrieved", "sha256"),
            ("address", "licence", "retrieved", "sha256"),
        )
        for part in made.parts("draw"):
            if language in part.part("question").values:
                wanted[part.text("id")] = part.whole("count", 1, 1000) or 0
    ids = sorted(wanted, key=len, reverse=True)
    drawn = Counter(
        next(name for name in ids if row["fact_id"].startswith(f"{name}-"))
        for row in rows
    )
    assert drawn == wanted
    assert sum(wanted.values()) >= 300
    for row in rows:
        if row["kind"].startswith("order"):
            assert sorted(row["Answers"]) == [*"1234"]
        elif row["kind"].startswith("which"):
            options = re.split(r", | (?:or|или|czy|vagy|ці) ", row["Question"][:-1])
            options = [option.split(": ")[-1] for option in options[-4:]]
            assert options.count(row["Answers"]) == 1


@tabled("old", "new", "message")
def test_a_wrong_recipe(
    tmp_path: Path, capsys: Captured, old: str, new: str, message: str
) -> None:
    """File, line, key, what was got and what to do; nothing is written."""
    recipe(tmp_path, WHICH)
    path = tmp_path / "recipe.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=message) as error:
        main(
            [
                str(tmp_path / "towns.csv"),
                "--recipe",
                str(path),
                "--to",
                str(tmp_path / "out"),
            ]
        )
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().out == ""


def test_the_command_writes_checks_and_says_how_to_run(
    tmp_path: Path, capsys: Captured
) -> None:
    """A file for each language; a second time it would write over what may have been edited."""
    recipe(tmp_path, WHICH)
    words = [f"{tmp_path / 'towns.csv'}", "--recipe", f"{tmp_path / 'recipe.yaml'}"]
    words += ["--to", f"{tmp_path / 'out'}", "--seed", "4"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"{tmp_path / 'out' / 'de.csv'}: 3 questions, seed 4" in out
    assert f"--items simpleqa:en={tmp_path / 'out' / 'en.csv'}" in out
    with pytest.raises(UsageError, match="is there already; name another folder"):
        main(words)
    with pytest.raises(UsageError, match="--count 0"):
        main([*words, "--count", "0"])
    assert main([*words, "--blind"]) == 0
    assert "Answers" not in (tmp_path / "out" / "en.questions.csv").read_text(
        encoding="utf-8"
    )


def test_what_check_finds_ends_the_command_with_1(
    tmp_path: Path, capsys: Captured
) -> None:
    """A gold of another script, for instance; an empty one is none, and its row is named."""
    draw = VALUE.replace("count: 3", "count: 1").replace("tolerance: 5 %", "")
    recipe(tmp_path, draw, HEAD + "a,Bоnn,r,5\n")  # with a Cyrillic letter
    words = [f"{tmp_path / 'towns.csv'}", "--recipe", f"{tmp_path / 'recipe.yaml'}"]
    assert main([*words, "--to", f"{tmp_path / 'out'}"]) == 1
    assert "mixes scripts" in capsys.readouterr().out
    made = recipe(tmp_path, VALUE.replace("count: 3", "count: 1"), HEAD + "a,Bonn,r,\n")
    with pytest.raises(UsageError, match="row 1, column 'people': empty; fill it in"):
        made.draw(1)
