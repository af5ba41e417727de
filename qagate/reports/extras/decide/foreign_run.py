"""What every result of another tool is read into: tasks, and a sample for each answer.

Nothing here knows a tool. ``reading.py`` makes it by a form, ``decisive.py`` says which score of a
task decides, and ``imported_run.py`` makes a run of ours of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qagate.cases.labels import Scale

Measured = Mapping[str, str]
"""How a task was measured, by field: grader, threshold, arguments … What is not said is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line says about how to read a result."""

    metrics: tuple[str, ...] = ()
    """The scores that decide: of each task the first that it has."""
    slice: str = ""
    """The path of what divides a task into slices."""
    cluster: str = ""
    """The path of what dependent samples share."""
    scale: Scale | None = None
    """The scale of the deciding score, and so which way is better."""
    side: str = ""
    """The provider, model or prompt to read, where a file holds several."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Paths by what they hold; they replace those of the form."""
    words: Mapping[str, float] = field(default_factory=dict)
    """What the user's own words for scores are worth."""
    rows: str = ""
    """The path of the list of rows in an object; empty where the form knows it."""

    @property
    def said_of_scores(self) -> tuple[str, ...]:
        """The options that say what a score is worth; other ones would turn a verdict."""
        options = []
        if self.scale is not None:
            options.append(f"--scale {self.scale.worst:g}:{self.scale.best:g}")
        for word, worth in self.words.items():
            options.append(f"--score {word}={worth:g}")
        return tuple(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSample:
    """One answer, with the scores that it got."""

    task: str
    id: str
    scores: Mapping[str, float | None]
    """By name. None, or no entry, is no score: never 0."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why scores are missing, by name, where the tool says it."""
    repeat: int = 1
    """Which time the item was asked, from 1."""
    question: str = ""
    expected: str = ""
    answer: str | None = None
    content: str = ""
    """A hash of what was asked and expected, where texts alone do not tell items apart."""
    declined: bool = False
    """Whether the tool says that it holds no answer: a score of 0 all the same."""
    error: str = ""
    """Why no score of it counts."""
    reason: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    slice: object = None
    """What stands at the path of ``--slice``."""
    cluster: object = None
    """What stands at the path of ``--cluster``."""
    seconds: float = 0.0
    cost: float | None = None
    """In USD."""
    tokens: tuple[int, int] | None = None
    """Sent and received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreName:
    """A score of a task, as the samples of one result show it."""

    name: str
    less_is_better: bool | None = None
    """None where neither the tool nor the words of its values say it."""
    contradictory: bool = False
    """Whether the tool says both of it."""
    looks_less: bool = False
    """Whether its name is one of which less usually is better: nobody says so, so it is asked."""
    odd_word: str = ""
    """The first value that is neither a number nor a word for a score."""
    has_numbers: bool = True
    """Whether it is a number in any sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFigure:
    """A figure that the tool itself states over a task, to be recomputed from the samples."""

    score: str
    """The score that it is of."""
    text: str
    """What the tool calls it, for instance ``accuracy of match``."""
    value: float
    aggregation: str = "mean"
    """How samples make it: ``mean`` or ``count``; any other word cannot be recomputed here."""
    reducer: str = "mean"
    """How the repeats of an item become one value: ``mean``, ``max``, ``mode``, ``at_least_2`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTask:
    """A task of a result: what is known of it beside its samples."""

    name: str
    scores: Mapping[str, ScoreName]
    main: str = ""
    """The score that the tool itself decides by; empty where it has none."""
    planned: int = 0
    """How many answers were to be scored; 0 where the tool does not say."""
    measured: Measured = field(default_factory=dict)
    stated: tuple[StatedFigure, ...] = ()
    group: str = ""
    """The tool's own group of tasks that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """A result of another tool."""

    path: Path
    form: str
    tool: str
    model: str
    samples: tuple[ScoredSample, ...]
    tasks: Mapping[str, ForeignTask]
    version: str = ""
    """Of the tool."""
    date: str = ""
    """When it was made, as the tool writes it; empty if unknown."""
    template: str = ""
    """The chat template that prompts were put into; empty for none, or if unknown."""
    run_id: str = ""
    """What names the run, with its side; empty if the tool gives it no name."""
    notes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    """What ``--column`` names and no row has."""
