"""What the attacks came to: how often the judge was fooled, and which right answers it lost."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from evaluators.attacks.pack import Probe
from evaluators.calibration.card import figure_text, table
from evaluators.calibration.figures import Figure, share
from evaluators.core import CORRECT, Outcome
from evaluators.models.secrets import mask, one_line

REASON = 160  # characters of a judge's reason that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One probe and how its judging ended."""

    probe: Probe
    outcome: Outcome

    @property
    def failed(self) -> bool:
        """Whether no verdict came."""
        return self.outcome.verdict is None or self.outcome.verdict.grade is None

    @property
    def graded_correct(self) -> bool:
        """Whether the judge called the answer CORRECT."""
        return (
            not self.failed
            and self.outcome.verdict is not None
            and (self.outcome.verdict.grade == CORRECT)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """The figures. ``success`` is the share of attacks graded CORRECT, of those with a verdict.

    ``controls_lost`` is the share of controls that were not; ``errors`` counts, by kind, what got
    no verdict. ``fooled`` and ``lost`` name the probes.
    """

    success: Figure
    by_kind: Mapping[str, Figure]
    by_language: Mapping[str, Figure]
    controls_lost: Figure
    errors: Mapping[str, int]
    fooled: tuple[Tried, ...]
    lost: tuple[Tried, ...]


def attacked(tried: Sequence[Tried]) -> Attacked:
    """Return the figures over all probes."""
    known = [one for one in tried if not one.failed]
    attacks = [one for one in known if not one.probe.control]
    controls = [one for one in known if one.probe.control]
    lost = tuple(one for one in controls if not one.graded_correct)
    return Attacked(
        success=_success(attacks),
        by_kind=_grouped(attacks, lambda one: one.probe.kind),
        by_language=_grouped(attacks, lambda one: one.probe.case.language),
        controls_lost=_share(controls, lambda one: not one.graded_correct),
        errors=Counter(one.outcome.kind or one.outcome.state for one in tried if one.failed),
        fooled=tuple(one for one in attacks if one.graded_correct),
        lost=lost,
    )


def result_text(judge: str, found: Attacked) -> str:
    """Return the figures as Markdown that reads well as plain text."""
    errors = ", ".join(f"{kind} {count}" for kind, count in sorted(found.errors.items()))
    rows = [
        ("attacks graded CORRECT", figure_text(found.success)),
        ("controls not graded CORRECT", figure_text(found.controls_lost)),
        (
            "errors, counted apart",
            f"{sum(found.errors.values())}{f' ({errors})' if errors else ''}",
        ),
    ]
    lines = [
        f"# Attacks on {one_line(mask(judge)).replace('`', '')}",
        "",
        *table(("", "share [95 % interval]"), rows),
        "",
        *table(("kind of attack", "graded CORRECT"), _rows(found.by_kind)),
        "",
        *table(("language", "graded CORRECT"), _rows(found.by_language)),
        *_named("Attacks that were graded CORRECT", found.fooled),
        *_named("Controls that were not graded CORRECT", found.lost),
    ]
    return "\n".join(lines)


def result_json(judge: str, found: Attacked) -> dict[str, object]:
    """Return the figures as a value for JSON."""
    return {
        "judge": judge,
        "success": asdict(found.success),
        "by_kind": {name: asdict(figure) for name, figure in found.by_kind.items()},
        "by_language": {name: asdict(figure) for name, figure in found.by_language.items()},
        "controls_lost": asdict(found.controls_lost),
        "errors": dict(found.errors),
        "fooled": [one.probe.case.id for one in found.fooled],
        "lost": [one.probe.case.id for one in found.lost],
    }


def _success(attacks: Sequence[Tried]) -> Figure:
    return _share(attacks, lambda one: one.graded_correct)


def _share(tried: Sequence[Tried], hit: Callable[[Tried], bool]) -> Figure:
    return share([hit(one) for one in tried], [one.probe.case.id for one in tried])


def _grouped(attacks: Sequence[Tried], name: Callable[[Tried], str]) -> dict[str, Figure]:
    names = dict.fromkeys(name(one) for one in attacks)
    return {each: _success([one for one in attacks if name(one) == each]) for each in names}


def _rows(figures: Mapping[str, Figure]) -> Iterable[tuple[str, str]]:
    return ((name, figure_text(figure)) for name, figure in figures.items())


def _named(title: str, tried: Sequence[Tried]) -> list[str]:
    if not tried:
        return []
    return ["", f"{title}:", *(f"- {one.probe.case.id}: {_reason(one)}" for one in tried)]


def _reason(one: Tried) -> str:
    verdict = one.outcome.verdict
    said = f"{verdict.grade}, {verdict.reason}" if verdict else ""
    return one_line(mask(said), REASON)
