"""What recorded replies cost, by the SPEC they were asked under."""

from collections.abc import Mapping
from datetime import date
from functools import cache

from evaluators.core import Reply, UsageError
from evaluators.ledger.upkeep import Cost
from evaluators.models.spec import Spec, parse
from evaluators.runtime.prices import Pricing, cost_of, pricing_of


def pricer(catalogue: Mapping[str, Spec], on: date) -> Cost:
    """Return what a reply costs at the prices of one day; unknown for a SPEC no longer known."""

    @cache
    def tariff(text: str) -> Pricing | None:
        try:
            return pricing_of(parse(text, catalogue), on)
        except UsageError:
            return None

    def cost(text: str, reply: Reply) -> float | None:
        return cost_of({text: tariff(text)}, text, reply)

    return cost
