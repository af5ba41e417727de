"""Questions drawn from a table by a recipe; another seed draws others, which nobody has seen."""

import csv
import io
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
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
_TOP_KEYS = ("as_of", "source", "row", "unique", "where", "words", "spell", "draw")
_PART_KEYS = (
    *("id", "kind", "count", "name", "by", "first", "apart", "within", "same", "where"),
    *("question", "answer", "forms", "tolerance", "columns"),
)
_SLOT = re.compile(r"\{(\w+)\}")

Drawn = dict[
    str, str
]  # one question in one language: a row of the file that is written, by column


class DrawRecipe:
    """What questions are drawn from a table."""

    def __init__(self, path: Path, table: Path) -> None:
        self.top, self.table = load_settings(path), read_table(table)
        self.top.check_keys(_TOP_KEYS, ("as_of", "draw"))

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
            if part.one_of("kind", ("value", "which", "order")) != "value":
                part.check_keys(_PART_KEYS, ("by",))
            if "first" in part.values:
                part.one_of("first", ("highest", "lowest"))
            name = part.text("id")
            if [one.text("id") for one in parts].count(name) > 1:
                raise part.problem("id", f"{shown(name)} stands twice; rename one")
            wanted = count or part.whole("count", 1, 100_000) or 1
            drawn = self._drawn(part, rows, random.Random(f"{seed}:{name}"), wanted)
            for language in part.part("question").values:
                if not LANGUAGE.fullmatch(language):
                    what = "want a language code such as 'bg'"
                    raise part.part("question").problem(language, what)
                worded = (self._question(part, language, some) for some in drawn)
                found.setdefault(language, []).extend(worded)
        return found

    def _cell(self, row: TableRow, column: str, asked: Settings, key: str) -> str:
        if normal(column) not in self.table.names:
            what = f"{self.table.path} has no column {shown(column)}"
            raise asked.problem(
                key, f"{what}; {hint(column, self.table.names.values())}"
            )
        return str(row.values.get(normal(column)) or "").strip()

    def _number(self, row: TableRow, column: str, asked: Settings, key: str) -> float:
        text = self._cell(row, column, asked, key)
        if not NUMBER.fullmatch(text):
            what = f"a number is needed, not {shown(text)}; correct it, or add matches: '[0-9.]+'"
            raise self.table.problem(row, normal(column), what)
        return float(text)

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
            low, high = (
                condition.number(key, -LARGEST, LARGEST) for key in ("min", "max")
            )
            if low is not None or high is not None:
                value = self._number(row, column, where, column)
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
    ) -> list[Sequence[TableRow]]:
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
        drawn: list[Sequence[TableRow]] = []
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
            drawn.append(some)
            for row in some:
                left.remove(row)
                group_of[row.row].remove(row)
        return drawn

    def _is_fit(self, part: Settings, some: Sequence[TableRow]) -> bool:
        """Return whether what is asked is beyond doubt, and the rows near enough to be hard.

        No name that is asked for may stand in another, as ``Paris`` in ``New Paris``.
        """
        values = [
            self._number(r, part.text("by"), part, "by")
            for r in self._ranked(part, some)
        ]
        which, names = part.text("kind") == "which", part.values.get("name", "name")

        def reach(
            key: str, one: float, two: float
        ) -> bool:  # ``20%`` is of the smaller one
            low, high = sorted((one, two))
            share = part.share_of(key)
            if share is None:
                return high > low and high - low >= (
                    part.number(key, 0, LARGEST) or 0.0
                )
            return high > low > 0 and high / low - 1 >= share

        gaps = list(pairwise(values))[: 1 if which else None]
        far = "within" in part.values and reach("within", values[0], values[-1])
        columns = (
            [names] if isinstance(names, str) else part.part("name").values.values()
        )
        nested = False
        for column in columns if which else ():
            own = [
                self._cell(row, f"{column}", part, "name").casefold() for row in some
            ]
            nested = nested or any(one in two for one, two in permutations(own, 2))
        return not far and not nested and all(reach("apart", *gap) for gap in gaps)

    def _ranked(self, part: Settings, some: Sequence[TableRow]) -> list[TableRow]:
        """Return rows in the order that is asked for: from the highest, or from the lowest."""
        falls, by = part.text("first", "highest") == "highest", part.text("by")
        return sorted(
            some, key=lambda row: self._number(row, by, part, "by"), reverse=falls
        )

    def _question(
        self, part: Settings, language: str, rows: Sequence[TableRow]
    ) -> Drawn:
        """Return the question about these rows in a language, with gold, source and date."""
        top, kind = self.top, part.text("kind")
        ranked = list(rows) if kind == "value" else self._ranked(part, rows)
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
