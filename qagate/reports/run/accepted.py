"""What the user accepted on the command line itself, for this run alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The changes since the baseline that need not hold the verdict up."""

    slices: tuple[str, ...] = ()
    """Slices of the baseline that this run lacks (``--accept-changed slices=NAMES``)."""
    gates: str = ""
    """The hash of the gates that are gone, waived or laxer (``--accept-changed gates=HASH``)."""
    measured: Mapping[str, str] = field(default_factory=dict)
    """How results of another tool were measured otherwise, by field: what it is now
    (``qagate decide --accept-changed FIELD=NEW``)."""
    read_as: tuple[str, ...] = ()
    """The options that say what another tool's scores are worth: only the command line knows."""
    no_baseline: bool = False
    """Whether no baseline was wanted, although one may be known (``--baseline=none``)."""

    @property
    def text(self) -> str:
        """The options in words for the last line; empty if nothing was accepted."""
        parts = []
        if self.no_baseline:
            parts.append("--baseline=none")
        if self.slices:
            parts.append(f"slices={','.join(self.slices)}")
        if self.gates:
            parts.append(f"gates={self.gates}")
        parts += [f"{name}={value}" for name, value in self.measured.items()]
        parts += self.read_as
        return f"accepted: {', '.join(parts)}" if parts else ""


def read_accepted(texts: Sequence[str], *, no_baseline: bool) -> Accepted:
    """Return what ``--accept-changed`` accepts. Raises UsageError for another form."""
    slices: dict[str, None] = {}
    gates = ""
    for text in texts:
        name, equals, value = text.partition("=")
        names = [part.strip() for part in value.split(",") if part.strip()]
        if name == "slices" and names:
            slices |= dict.fromkeys(names)
        elif name == "gates" and equals and value and not gates:
            gates = value
        else:
            raise UsageError(
                f"--accept-changed: slices=NAMES or gates=HASH is needed, got {shown(text)}; "
                "the verdict prints what to give"
            )
    return Accepted(slices=tuple(slices), gates=gates, no_baseline=no_baseline)


NOTHING_ACCEPTED = Accepted()
