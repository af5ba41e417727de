"""What replies took: tokens, time and money, and which run paid for them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What some replies took. ``cost`` is in USD, None where a price is unknown.

    ``seconds`` add up the calls as they were when they were made, by whichever run.
    ``cache_read_tokens`` are those of the ``input_tokens`` that a provider had in its cache.
    ``requests`` counts what this run sent, ``spent`` is what these cost, ``earlier`` counts the
    replies that an earlier run paid for, ``imported`` those of them that came by ``ledger import``.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0
    requests: int = 0
    spent: float = 0.0
    earlier: int = 0
    imported: int = 0
    cache_read_tokens: int = 0

    @property
    def is_counted(self) -> bool:
        """Whether a server said how many tokens it took; without that no cost is known either."""
        return bool(self.input_tokens or self.output_tokens)

    def __add__(self, other: "Usage") -> "Usage":
        unknown = self.cost is None or other.cost is None
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            cost=None if unknown else (self.cost or 0.0) + (other.cost or 0.0),
            requests=self.requests + other.requests,
            spent=self.spent + other.spent,
            earlier=self.earlier + other.earlier,
            imported=self.imported + other.imported,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
        )
