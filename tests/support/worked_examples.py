"""The worked examples: what a judge of the default rubric has to say, language by language."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evaluators.core import Case
from evaluators.reading import load_yaml

FILE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedExample:
    """An answer to a question and the grade it deserves; ``rule`` is the kind of decision."""

    language: str
    question: str
    gold: str
    answer: str
    grade: str
    rule: str

    @property
    def case(self) -> Case:
        """The question as an item."""
        return Case(
            id=self.question,
            dataset="worked",
            language=self.language,
            row=1,
            question=self.question,
            golds=(self.gold,),
        )


def worked_examples() -> list[WorkedExample]:
    """Return every example of the file, in its order."""
    groups = cast("Mapping[str, list[Mapping[str, Any]]]", load_yaml(FILE))
    return [
        WorkedExample(language=language, question=group["question"], gold=group["gold"], **answer)
        for language, items in groups.items()
        for group in items
        for answer in group["answers"]
    ]
