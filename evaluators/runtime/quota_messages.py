"""What a run reports to its quota, what it is granted, and how often that happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field

INTERVAL = 0.5  # seconds between a run's reports
BUSIEST = 50.0  # reports a second of all runs together
MISSED = 6  # reports after which a run is taken as dead
MONEY = "--max-cost"
ROUNDING = 1e-9  # USD; sums of floats may miss a limit by this much that they reach on paper


def interval(runs: int) -> float:
    """Return the seconds between two reports of one of so many runs."""
    return max(INTERVAL, runs / BUSIEST)


def lease(runs: int) -> float:
    """Return the seconds after its report in which one of so many runs may use what it has."""
    return MISSED * interval(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a run wants of one limit: ``most`` as it knows the limit itself, None for none.

    Of a rate ``wanted`` is an amount a second, of calls in flight their number; ``kept`` are those
    that it has leased and does not give back.
    """

    most: float | None
    wanted: float
    kept: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyNeed:
    """What a run has ``spent`` in USD, what it keeps of its lease, and what it wants beside that.

    ``first`` is what the next waiting call needs: less would be of no use. ``most`` None is a run
    without a budget.
    """

    most: float | None = None
    spent: float = 0.0
    kept: float = 0.0
    wanted: float = 0.0
    first: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNews:
    """How long, in seconds, a server is to be left alone, as it ``announced`` and as was decided.

    ``down`` is since how long it has failed all calls, if one at a time tries it; None if it works.
    """

    pause: float = 0.0
    announced: float = 0.0
    down: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one run has and wants; ``leaves`` is its last one."""

    run: str
    rates: Mapping[str, Need] = field(default_factory=dict)
    calls: Mapping[str, Need] = field(default_factory=dict)
    money: MoneyNeed = field(default_factory=MoneyNeed)
    servers: Mapping[str, ServerNews] = field(default_factory=dict)
    leaves: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """When, by the database's clock, a run gains an ``amount`` each; the rate is a second's."""

    rate: float
    amount: float
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a run may do until its next report, at the time ``now`` of the database.

    ``rates`` lacks those that nobody limits. Of calls in flight it has what it may have now and
    the share to shrink to. ``money`` is its lease, ``elsewhere`` what others have spent. ``most``
    is each limit that holds, ``runs`` how many share it, ``refusal`` why this run may do nothing.
    """

    now: float
    rates: Mapping[str, Slots] = field(default_factory=dict)
    calls: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    money: float = 0.0
    elsewhere: float = 0.0
    servers: Mapping[str, ServerNews] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    runs: int = 1
    refusal: str = ""
