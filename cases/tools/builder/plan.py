"""What a step is, and what one command knows while it works."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cases.tools.builder.folder import Folder, Values
from cases.tools.builder.items import Item
from cases.tools.builder.office import ModelOffice
from cases.tools.builder.options import Options
from cases.tools.builder.recipe import Recipe
from cases.tools.builder.rules import Checker
from cases.tools.builder.sources import Say
from cases.tools.builder.spelling import known_language
from evaluators.core import UsageError
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, parse


@dataclass(frozen=True, kw_only=True)
class Build:
    """One command at work."""

    options: Options
    recipe: Recipe
    folder: Folder
    say: Say

    @cached_property
    def checker(self) -> Checker:
        """The rules of the language."""
        return Checker(recipe=self.recipe, language=known_language(self.recipe.language))

    @cached_property
    def catalogue(self) -> Mapping[str, Spec]:
        """The models of models.yaml."""
        return load_catalogue()

    def spec(self, option: str, text: object) -> Spec:
        """Return the model that an option names."""
        try:
            return parse(str(text), self.catalogue)
        except UsageError as problem:
            msg = f"--{option}: {problem}"
            raise UsageError(msg) from None

    def settle(
        self, step: str, defaults: Mapping[str, object], fixed: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the options of a step: as given, else as it was made with, else the default.

        ``fixed`` are versions of what the step reads. Raises UsageError where the step was made
        with anything else.
        """
        kept = self.folder.options(step) if self.folder.made(step) else {}
        values = {**self.remembered(step, defaults), **fixed}
        for name, value in values.items() if kept else ():
            if kept.get(name) != value:
                msg = (
                    f"{self.folder.file(step)}: made with another {name} ({kept.get(name)!r:.80}, "
                    f"now {value!r:.80}); give the same, take another --folder, or delete that file"
                )
                raise UsageError(msg)
        return values

    def remembered(self, step: str, defaults: Mapping[str, object]) -> dict[str, object]:
        """Return the options of a step as given, else as it was made with, else the default."""
        kept = self.folder.options(step) if self.folder.made(step) else {}
        given: dict[str, object] = dict(self.options.given)
        return {
            name: kept.get(name, default) if given[name] is None else given[name]
            for name, default in defaults.items()
        }


Report = Mapping[str, object]
"""The counts of all steps made so far."""

Work = Callable[[Build, Values, Sequence[Item], ModelOffice], list[Item]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the way from articles to a dataset.

    ``after`` is the step whose kept items it takes, empty for the first. ``settle`` returns what it
    works with and raises UsageError where something is missing; ``work`` does it. ``models``
    names those of its options that are SPECs. ``record`` returns what else settings.json is to say.
    ``finish`` puts in place what stands outside of the step's file, in every run anew. A step that
    needs ``people`` is done only where it is named. One that is ``renewed`` asks no model, and is
    made again where its options changed.
    """

    help: str
    after: str
    settle: Callable[[Build], Values]
    work: Work
    models: tuple[str, ...] = ()
    record: Callable[[Values], Values] = dict
    finish: Callable[[Build, Values, Report], None] | None = None
    people: bool = False
    renewed: bool = False
