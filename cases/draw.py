"""Questions drawn from a table by a recipe; another seed draws others, which nobody has seen."""

import csv
import io
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path
from typing import Literal

from cases.config import LANGUAGE
from cases.tables import Table, TableRow, normal, read_table
from evaluators.output import plural
from evaluators.reading import NUMBER, Settings, load_settings
from evaluators.text import hint, shown

QuestionKind = Literal["value", "which", "order"]
KINDS: tuple[QuestionKind, ...] = ("value", "which", "order")
OFFERED = 4
"""How many rows a question compares."""
TRIES = 300
"""How often four rows are tried for one question before the table is taken for exhausted."""
LARGEST = 1e18
BLIND = ("fact_id", "Question")
"""The columns of a closed-book trial."""
_TOP_KEYS = ("as_of", "source", "row", "unique", "where", "words", "spell", "draw")
_PART_KEYS = (
    *("id", "kind", "count", "name", "by", "first", "apart", "within", "same", "where"),
    *("question", "answer", "forms", "tolerance", "columns"),
)
_SLOT = re.compile(r"\{(\w+)\}")

Drawn = dict[str, str]
"""One question in one language: a row of the file that is written, by column."""


@dataclass(frozen=True, slots=True)
class DrawRecipe:
    """What questions are drawn from a table."""

    top: Settings
    table: Table

    @classmethod
    def load(cls, path: Path, table: Path) -> "DrawRecipe":
        """Return the recipe in a YAML file, for this table. Raises UsageError."""
        top = load_settings(path)
        top.check_keys(_TOP_KEYS, ("as_of", "draw"))
        return cls(top, read_table(table))

    def draw(self, seed: int, count: int | None = None) -> dict[str, list[Drawn]]:
        """Return the questions by language; ``count`` is of each part, in place of the recipe's.

        Raises UsageError for anything wrong in recipe or table, and for too few rows.
        """
        rows = [row for row in self._unique() if self.fits(self.top.part("where"), row)]
        found: dict[str, list[Drawn]] = {}
        names: set[str] = set()
        for own in self.top.parts("draw"):
            own.check_keys(_PART_KEYS, ("id", "kind", "question"))
            if own.text("id") in names:
                raise own.problem("id", f"{shown(own.text('id'))} stands twice; rename one")
            names.add(own.text("id"))
            part = _Part(self, own, own.one_of("kind", KINDS))
            wanted = count or own.whole("count", 1, 100_000) or 1
            drawn = part.draw(rows, random.Random(f"{seed}:{own.text('id')}"), wanted)
            for language in own.part("question").values:
                worded = _Worded(part, language)
                found.setdefault(language, []).extend(map(worded.question, drawn))
        return found

    def cell(self, row: TableRow, column: str, asked: Settings, key: str) -> str:
        """Return a cell's text. Raises UsageError for a column that the table does not have."""
        if normal(column) not in self.table.names:
            what = f"{self.table.path} has no column {shown(column)}"
            raise asked.problem(key, f"{what}; {hint(column, self.table.names.values())}")
        return str(row.values.get(normal(column)) or "").strip()

    def number(self, row: TableRow, column: str, asked: Settings, key: str) -> float:
        """Return a cell's number. Raises UsageError for any other text."""
        text = self.cell(row, column, asked, key)
        if not NUMBER.fullmatch(text):
            what = f"a number is needed, not {shown(text)}; correct it, or add matches: '[0-9.]+'"
            raise self.table.problem(row, normal(column), what)
        return float(text)

    def fits(self, where: Settings, row: TableRow) -> bool:
        """Return whether a row meets every condition of a ``where``."""
        return all(self._meets(where, column, row) for column in where.values)

    def _meets(self, where: Settings, column: str, row: TableRow) -> bool:
        condition = where.part(column)
        condition.check_keys(("min", "max", "any", "none", "matches"))
        text = self.cell(row, column, where, column)
        pattern = _pattern(condition, "matches", condition.text("matches", ".*"))
        if "any" in condition.values and text not in condition.words("any"):
            return False
        if text in condition.words("none") or not pattern.fullmatch(text):
            return False
        low, high = (condition.number(key, -LARGEST, LARGEST) for key in ("min", "max"))
        if low is None and high is None:
            return True
        value = self.number(row, column, where, column)
        return (low is None or value >= low) and (high is None or value <= high)

    def _unique(self) -> list[TableRow]:
        """Return the rows whose values in the ``unique`` columns stand in no other row."""
        rows = self.table.records
        for column in self.top.words("unique"):
            texts = {
                row.row: self.cell(row, column, self.top, "unique") for row in self.table.records
            }
            counts = Counter(texts.values())
            rows = [row for row in rows if counts[texts[row.row]] == 1]
        return rows


@dataclass(frozen=True, slots=True)
class _Part:
    """One entry of ``draw``: questions of one kind about one column."""

    recipe: DrawRecipe
    own: Settings
    kind: QuestionKind

    def draw(
        self, rows: Sequence[TableRow], chance: random.Random, wanted: int
    ) -> list[tuple[TableRow, ...]]:
        """Return the rows of each question, none used twice. Raises UsageError for too few."""
        left = [row for row in rows if self.recipe.fits(self.own.part("where"), row)]
        chance.shuffle(left)
        drawn: list[tuple[TableRow, ...]] = []
        while len(drawn) < wanted and (some := self._next(left, chance)):
            drawn.append(some)
            used = {row.row for row in some}
            left = [row for row in left if row.row not in used]
        if len(drawn) < wanted:
            made = f"{len(drawn)} of {plural(wanted, 'question')} can be drawn"
            what = f"{made} from {self.recipe.table.path}; ask for fewer, or widen the conditions"
            raise self.own.problem("count", what)
        return drawn

    def _next(self, left: Sequence[TableRow], chance: random.Random) -> tuple[TableRow, ...]:
        """Return the rows of another question; empty where none is found."""
        if self.kind == "value":
            return tuple(left[:1])
        for _ in range(TRIES if left else 0):
            shared = self._shared(chance.choice(left))
            group = [row for row in left if self._shared(row) == shared]
            some = chance.sample(group, OFFERED) if len(group) >= OFFERED else []
            if some and self._is_apart(some) and not self._share_a_name(some):
                return tuple(some)
        return ()

    def _shared(self, row: TableRow) -> str:
        """Return what all rows of a question have in common."""
        column = self.own.text("same")
        return self.recipe.cell(row, column, self.own, "same") if column else ""

    def _is_apart(self, some: Sequence[TableRow]) -> bool:
        """Return whether what is asked is beyond doubt, and the rows near enough to be hard."""
        values = [self._number(row) for row in self.ranked(some)]
        gaps = list(pairwise(values))[: 1 if self.kind == "which" else None]
        far = "within" in self.own.values and self._reaches("within", values[0], values[-1])
        return not far and all(self._reaches("apart", *gap) for gap in gaps)

    def _share_a_name(self, some: Sequence[TableRow]) -> bool:
        """Return whether a name that is asked for stands in another, as ``Paris`` in ``New Paris``.

        Nobody could tell which of the two an answer means. An order is told by digits.
        """
        names = self.own.values.get("name", "name")
        columns = [names] if isinstance(names, str) else self.own.part("name").values.values()
        texts = [
            [self.recipe.cell(row, f"{column}", self.own, "name").casefold() for row in some]
            for column in (columns if self.kind == "which" else ())
        ]
        return any(one in two for own in texts for one, two in permutations(own, 2))

    def _reaches(self, key: str, one: float, two: float) -> bool:
        """Return whether numbers differ by what the key says: ``20%`` is of the smaller one."""
        low, high = sorted((one, two))
        share = self.own.share_of(key)
        if share is None:
            return high > low and high - low >= (self.own.number(key, 0, LARGEST) or 0.0)
        return high > low > 0 and high / low - 1 >= share

    def ranked(self, some: Sequence[TableRow]) -> list[TableRow]:
        """Return rows in the order that is asked for: from the highest, or from the lowest."""
        known = ("highest", "lowest")
        first = self.own.one_of("first", known) if "first" in self.own.values else known[0]
        return sorted(some, key=self._number, reverse=first == known[0])

    def _number(self, row: TableRow) -> float:
        self.own.check_keys(_PART_KEYS, ("by",))
        return self.recipe.number(row, self.own.text("by"), self.own, "by")


@dataclass(frozen=True, slots=True)
class _Worded:
    """Puts questions of one part into one language."""

    part: _Part
    language: str

    def question(self, rows: Sequence[TableRow]) -> Drawn:
        """Return the question about these rows, with gold, source and date."""
        part, own, top = self.part, self.part.own, self.part.recipe.top
        if not LANGUAGE.fullmatch(self.language):
            raise own.part("question").problem(self.language, "want a language code such as 'bg'")
        best = rows[0] if part.kind == "value" else part.ranked(rows)[0]
        gold = self._filled("answer", best, rows) if "answer" in own.values else self._name(best)
        if part.kind == "order":
            gold = "".join(f"{rows.index(row) + 1}" for row in part.ranked(rows))
        column = top.text("row")
        keys = [
            part.recipe.cell(row, column, top, "row") if column else f"{row.row}" for row in rows
        ]
        return {
            "fact_id": f"{own.text('id')}-{'-'.join(keys)}",
            "Question": self._filled("question", best, rows),
            "Answers": gold,
            "Aliases": self._filled("forms", best, rows),
            "tolerance": own.text("tolerance"),
            "source": f"{top.text('source', part.recipe.table.path.name)}: {', '.join(keys)}",
            "as_of": top.text("as_of"),
            **{name: own.part("columns").text(name) for name in own.part("columns").values},
        }

    def _name(self, row: TableRow) -> str:
        """Return what a row is called in this language."""
        names = self.part.own.values.get("name", "name")
        if isinstance(names, str):
            return self._cell(row, names, self.part.own, "name")
        own = self.part.own.part("name")
        return self._cell(row, own.text(self.language), own, self.language)

    def _cell(self, row: TableRow, column: str, asked: Settings, key: str) -> str:
        """Return a cell's text in this language: what ``words`` has for it, or as it is spelt."""
        recipe = self.part.recipe
        text = recipe.cell(row, column, asked, key)
        if not text:
            what = "empty; fill it in, or leave the row out with matches: '.+'"
            raise recipe.table.problem(row, normal(column), what)
        words = recipe.top.part("words").part(self.language).part(column)
        return words.text(text) if text in words.values else self._spelt(text)

    def _spelt(self, text: str) -> str:
        """Return a text in the letters of this language: the first pattern that fits counts."""
        spell = self.part.recipe.top.part("spell").part(self.language)
        keys = list(spell.values)
        if not keys or NUMBER.fullmatch(text):
            return text
        letters = _pattern(spell, keys[0], "|".join(f"({key})" for key in keys))
        if letters.groups != len(keys):
            raise spell.problem(keys[0], "no pattern may hold a group; write (?:…) instead")

        def written(found: re.Match[str]) -> str:
            new = str(spell.values[keys[(found.lastindex or 1) - 1]])
            return new[:1].upper() + new[1:] if found[0][:1].isupper() else new

        return letters.sub(written, text)

    def _filled(self, key: str, best: TableRow, rows: Sequence[TableRow]) -> str:
        """Return this language's text under a key of the recipe, its slots filled."""
        texts = self.part.own.part(key)
        if key == "answer" and self.language not in texts.values:
            raise self.part.own.problem(key, f"nothing for language {self.language!r}; add it")
        names = [] if self.part.kind == "value" else [self._name(row) for row in rows]
        given = dict(zip("abcd", names, strict=False))
        given["options"] = ", ".join(f"{place}) {name}" for place, name in enumerate(names, 1))
        return _SLOT.sub(
            lambda slot: given.get(slot[1]) or self._cell(best, slot[1], texts, self.language),
            texts.text(self.language),
        )


def _pattern(settings: Settings, key: str, text: str) -> re.Pattern[str]:
    """Return a regular expression of a recipe. Raises UsageError for one that is none."""
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise settings.problem(key, f"not a regular expression: {error}") from None


def file_text(drawn: Sequence[Drawn], *, blind: bool) -> str:
    """Return questions as a CSV file; ``blind`` leaves out what tells an answer."""
    columns = dict.fromkeys(BLIND if blind else (column for one in drawn for column in one))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(drawn)
    return out.getvalue()
