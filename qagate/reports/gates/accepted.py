"""What the user accepted on the command line itself, for this run alone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The changes since the baseline that need not hold the verdict up."""

    slices: tuple[str, ...] = ()
    """Slices of the baseline that this run lacks (``--accept-changed slices=NAMES``)."""
    gates: str = ""
    """The hash of the gates that are gone, waived or laxer (``--accept-changed gates=HASH``)."""

    @property
    def text(self) -> str:
        """The options in words for the last line; empty if nothing was accepted."""
        parts = []
        if self.slices:
            parts.append(f"slices={','.join(self.slices)}")
        if self.gates:
            parts.append(f"gates={self.gates}")
        return f"accepted as changed: {' '.join(parts)}" if parts else ""


NOTHING_ACCEPTED = Accepted()
