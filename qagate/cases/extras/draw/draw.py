"""Questions drawn from a table by a recipe; another seed draws others, which nobody has seen."""

import csv
import hashlib
import io
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise, permutations
from pathlib import Path

from qagate.cases.config import LANGUAGE
from qagate.cases.tables import TableRow, normal, read_table
from qagate.evaluators.output import plural
from qagate.evaluators.reading import NUMBER, Settings, load_settings
from qagate.evaluators.text import hint, shown

OFFERED = 4  # how many rows a question compares
TRIES = 5000
"""How often four rows are tried for one question before the table is taken for exhausted."""
LARGEST = 1e18
BLIND = ("fact_id", "Question")  # the columns of a closed-book trial
_TOP_KEYS = (
    *(
        "as_of",
        "source",
        "register",
        "row",
        "unique",
        "where",
        "words",
        "spell",
        "draw",
    ),
)
_REGISTER_KEYS = ("address", "licence", "retrieved", "sha256")
_PART_KEYS = (
    *("id", "kind", "count", "name", "by", "first", "apart", "within", "same", "where"),
    *("question", "answer", "forms", "tolerance", "columns"),
)
KINDS = ("value", "which", "order", "member")
"""What is asked: a cell of a row; which of four is first; all four in order; which of four has
the text that the question names in the column ``by``, which no other of the four has."""
FIRST = ("highest", "lowest", "latest", "earliest")
"""Which row comes first: ``latest`` and ``earliest`` are the words for dates."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SLOT = re.compile(r"\{(\w+)\}")

Drawn = dict[
    str, str
]  # one question in one language: a row of the file that is written, by column


@dataclass(frozen=True, slots=True)
class Rows:
    """The row, or the four rows, of one question."""

    shown: Sequence[TableRow]
    """As the question offers them."""
    ranked: Sequence[TableRow]
    """The one that is the gold first."""


class DrawRecipe:
    """What questions are drawn from a table."""

    def __init__(self, path: Path, table: Path) -> None:
        self.top, self.table = load_settings(path), read_table(table)
        self.top.check_keys(_TOP_KEYS, ("as_of", "draw"))
        self.top.part("register").check_keys(_REGISTER_KEYS)
        self._has_dates: dict[str, bool] = {}  # by normal column name

    def is_of_another_table(self) -> bool:
        """Return whether the recipe names its register's SHA-256, and the table has another."""
        wanted = self.top.part("register").text("sha256")
        held = hashlib.sha256(self.table.path.read_bytes()).hexdigest()
        return bool(wanted) and wanted.casefold() != held

    def draw(self, seed: int, count: int | None = None) -> dict[str, list[Drawn]]:
        """Return the questions by language, ``count`` of each part if given. Raises UsageError."""
        rows = [
            row for row in self.table.records if self._fits(self.top.part("where"), row)
        ]
        for column in self.top.words("unique"):
            texts = Counter(
                self._cell(r, column, self.top, "unique") for r in self.table.records
            )
            rows = [
                row
                for row in rows
                if texts[self._cell(row, column, self.top, "unique")] == 1
            ]
        found: dict[str, list[Drawn]] = {}
        parts = self.top.parts("draw")
        for part in parts:
            part.check_keys(_PART_KEYS, ("id", "kind", "question"))
            if part.one_of("kind", KINDS) != "value":
                part.check_keys(_PART_KEYS, ("by",))
            if "first" in part.values:
                part.one_of("first", FIRST)
            name = part.text("id")
            if [one.text("id") for one in parts].count(name) > 1:
                raise part.problem("id", f"{shown(name)} stands twice; rename one")
            wanted = count or part.whole("count", 1, 100_000) or 1
            drawn = self._drawn(part, rows, random.Random(f"{seed}:{name}"), wanted)
            for language in part.part("question").values:
                if not LANGUAGE.fullmatch(language):
                    what = "want a language code such as 'bg'"
                    raise part.part("question").problem(language, what)
                worded = (self._question(part, language, four) for four in drawn)
                found.setdefault(language, []).extend(worded)
        return found

    def _cell(self, row: TableRow, column: str, asked: Settings, key: str) -> str:
        if normal(column) not in self.table.names:
            what = f"{self.table.path} has no column {shown(column)}"
            raise asked.problem(
                key, f"{what}; {hint(column, self.table.names.values())}"
            )
        return str(row.values.get(normal(column)) or "").strip()

    def _holds_dates(self, column: str) -> bool:
        """Return whether a column is one of dates: any of its cells is an ISO date."""
        name = normal(column)
        if name not in self._has_dates:
            cells = (record.values.get(name) for record in self.table.records)
            self._has_dates[name] = any(_day(str(cell or "")) for cell in cells)
        return self._has_dates[name]

    def _measure(self, row: TableRow, column: str, asked: Settings, key: str) -> float:
        """Return what rows are compared by: a number, or the day's number where dates stand."""
        text = self._cell(row, column, asked, key)
        if self._holds_dates(column):
            day = _day(text)
            if day is None:
                what = f"a date such as 2019-07-03 is needed, not {shown(text)}"
                advice = "correct it, or add matches: '[0-9]{4}-[0-9]{2}-[0-9]{2}'"
                raise self.table.problem(row, normal(column), f"{what}; {advice}")
            return day
        if not NUMBER.fullmatch(text):
            what = f"a number is needed, not {shown(text)}; correct it, or add matches: '[0-9.]+'"
            raise self.table.problem(row, normal(column), what)
        return float(text)

    def _bound(self, condition: Settings, key: str, column: str) -> float | None:
        """Return what ``min`` or ``max`` says of a column; None where it says nothing."""
        if key not in condition.values or not self._holds_dates(column):
            return condition.number(key, -LARGEST, LARGEST)
        day = _day(condition.text(key))
        if day is None:
            what = f"{column} holds dates; a date such as 2019-07-03 is needed"
            raise condition.problem(key, what)
        return day

    def _fits(self, where: Settings, row: TableRow) -> bool:
        for column in where.values:
            condition = where.part(column)
            condition.check_keys(("min", "max", "any", "none", "matches"))
            text = self._cell(row, column, where, column)
            pattern = condition.pattern("matches", condition.text("matches", ".*"))
            listed = "any" not in condition.values or text in condition.words("any")
            if (
                not listed
                or text in condition.words("none")
                or not pattern.fullmatch(text)
            ):
                return False
            low = self._bound(condition, "min", column)
            high = self._bound(condition, "max", column)
            if low is not None or high is not None:
                value = self._measure(row, column, where, column)
                if (low is not None and value < low) or (
                    high is not None and value > high
                ):
                    return False
        return True

    def _drawn(
        self,
        part: Settings,
        rows: Sequence[TableRow],
        chance: random.Random,
        wanted: int,
    ) -> list[Rows]:
        """Return the row, or the four rows to compare, of each question; no row twice."""
        left = [row for row in rows if self._fits(part.part("where"), row)]
        chance.shuffle(left)
        column, size = part.text("same"), 1 if part.text("kind") == "value" else OFFERED
        groups: dict[str, list[TableRow]] = defaultdict(list)
        group_of = {}
        for row in left:
            group = groups[self._cell(row, column, part, "same") if column else ""]
            group.append(row)
            group_of[row.row] = group
        drawn: list[Rows] = []
        while len(drawn) < wanted:
            for _ in range(TRIES if left else 0):
                group = group_of[chance.choice(left).row]
                some = (
                    chance.sample(group, size) if len(group) >= size > 1 else left[:1]
                )
                if len(some) == size and (size == 1 or self._is_fit(part, some)):
                    break
            else:
                made = f"{len(drawn)} of {plural(wanted, 'question')} can be drawn"
                what = f"{made} from {self.table.path}; ask for fewer, or widen the conditions"
                raise part.problem("count", what)
            drawn.append(Rows(some, self._ranked(part, some, chance)))
            for row in some:
                left.remove(row)
                group_of[row.row].remove(row)
        return drawn

    def _is_fit(self, part: Settings, some: Sequence[TableRow]) -> bool:
        """Return whether what is asked is beyond doubt, and the rows near enough to be hard.

        No name that is asked for may stand in another, as ``Paris`` in ``New Paris``.
        """
        if part.text("kind") == "member":
            texts = {self._cell(row, part.text("by"), part, "by") for row in some}
            return len(texts) == OFFERED and not self._is_nested(part, some)
        values = [self._measure(r, part.text("by"), part, "by") for r in some]
        values.sort(reverse=self._falls(part))
        dates = self._holds_dates(part.text("by"))
        which = part.text("kind") == "which"

        def reach(
            key: str, one: float, two: float
        ) -> bool:  # ``20%`` is of the smaller one
            low, high = sorted((one, two))
            share = part.share_of(key)
            if share is not None and dates:
                raise part.problem(key, "dates lie days apart; write a number of days")
            if share is None:
                return high > low and high - low >= (
                    part.number(key, 0, LARGEST) or 0.0
                )
            return high > low > 0 and high / low - 1 >= share

        gaps = list(pairwise(values))[: 1 if which else None]
        far = "within" in part.values and reach("within", values[0], values[-1])
        if far or (which and self._is_nested(part, some)):
            return False
        return all(reach("apart", *gap) for gap in gaps)

    def _is_nested(self, part: Settings, some: Sequence[TableRow]) -> bool:
        """Return whether the name of one row stands in that of another, in any language."""
        names = part.values.get("name", "name")
        columns = (
            [names] if isinstance(names, str) else part.part("name").values.values()
        )
        for column in columns:
            held = [self._cell(row, f"{column}", part, "name") for row in some]
            pairs = permutations([name.casefold() for name in held], 2)
            if any(one in two for one, two in pairs):
                return True
        return False

    @staticmethod
    def _falls(part: Settings) -> bool:
        return part.text("first", "highest") in ("highest", "latest")

    def _ranked(
        self, part: Settings, some: Sequence[TableRow], chance: random.Random
    ) -> list[TableRow]:
        """Return rows so that what is asked for comes first; for an order all in that order."""
        kind, by = part.text("kind"), part.text("by")
        if kind == "value":
            return list(some)
        if kind == "member":
            return chance.sample(list(some), len(some))
        return sorted(
            some,
            key=lambda row: self._measure(row, by, part, "by"),
            reverse=self._falls(part),
        )

    def _question(self, part: Settings, language: str, drawn: Rows) -> Drawn:
        """Return the question about these rows in a language, with gold, source and date."""
        top, kind = self.top, part.text("kind")
        rows, ranked = drawn.shown, drawn.ranked
        names = (
            [] if kind == "value" else [self._name(part, language, row) for row in rows]
        )
        slots = dict(zip("abcd", names, strict=False))
        slots["options"] = ", ".join(
            f"{place}) {name}" for place, name in enumerate(names, 1)
        )

        def filled(key: str) -> str:
            texts = part.part(key)

            def value(slot: re.Match[str]) -> str:
                own = slots.get(slot[1])
                return own or self._worded(
                    language, ranked[0], slot[1], texts, language
                )

            return _SLOT.sub(value, texts.text(language))

        if kind == "order":
            gold = "".join(f"{rows.index(row) + 1}" for row in ranked)
        elif "answer" not in part.values:
            gold = self._name(part, language, ranked[0])
        elif language not in part.part("answer").values:
            raise part.problem("answer", f"nothing for language {language!r}; add it")
        else:
            gold = filled("answer")
        column = top.text("row")
        keys = [
            self._cell(row, column, top, "row") if column else f"{row.row}"
            for row in rows
        ]
        return {
            "fact_id": f"{part.text('id')}-{'-'.join(keys)}",
            "Question": filled("question"),
            "Answers": gold,
            "Aliases": filled("forms"),
            "tolerance": part.text("tolerance"),
            "source": f"{top.text('source', self.table.path.name)}: {', '.join(keys)}",
            "as_of": top.text("as_of"),
            **{
                name: part.part("columns").text(name)
                for name in part.part("columns").values
            },
        }

    def _name(self, part: Settings, language: str, row: TableRow) -> str:
        if isinstance(part.values.get("name", ""), str):
            return self._worded(language, row, part.text("name", "name"), part, "name")
        own = part.part("name")
        return self._worded(language, row, own.text(language), own, language)

    def _worded(
        self, language: str, row: TableRow, column: str, asked: Settings, key: str
    ) -> str:
        """Return a cell's text in a language: what ``words`` has for it, or as it is spelt."""
        text = self._cell(row, column, asked, key)
        if not text:
            what = "empty; fill it in, or leave the row out with matches: '.+'"
            raise self.table.problem(row, normal(column), what)
        words = self.top.part("words").part(language).part(column)
        if text in words.values:
            return words.text(text)
        spell = self.top.part("spell").part(language)
        keys = list(spell.values)
        if not keys or NUMBER.fullmatch(text):
            return text
        letters = spell.pattern(keys[0], "|".join(f"({one})" for one in keys))
        if letters.groups != len(keys):
            raise spell.problem(
                keys[0], "no pattern may hold a group; write (?:…) instead"
            )

        def written(found: re.Match[str]) -> str:  # the first pattern that fits counts
            new = str(spell.values[keys[(found.lastindex or 1) - 1]])
            return new[:1].upper() + new[1:] if found[0][:1].isupper() else new

        return letters.sub(written, text)


def _day(text: str) -> int | None:
    """Return the number of the day that an ISO date names; None for any other text."""
    if not _DATE.fullmatch(text.strip()):
        return None
    try:
        return date.fromisoformat(text.strip()).toordinal()
    except ValueError:  # such as 2019-02-30
        return None


def file_text(drawn: Sequence[Drawn], *, blind: bool) -> str:
    """Return questions as a CSV file; ``blind`` leaves out what tells an answer."""
    columns = dict.fromkeys(
        BLIND if blind else (column for one in drawn for column in one)
    )
    out = io.StringIO()
    writer = csv.DictWriter(
        out, list(columns), extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(drawn)
    return out.getvalue()
