"""The models file of a new data set: who answers and who judges, with key name and price."""

from dataclasses import dataclass
from datetime import UTC, datetime

from qagate.cases.extras.new.asking import Asker
from qagate.cases.extras.new.schema import editor_line
from qagate.evaluators.core import UsageError
from qagate.evaluators.models.keys import VARIABLE
from qagate.evaluators.models.pricing import pricing_of
from qagate.evaluators.models.spec import Prices, Spec, check_judge, parse

MODELS_FILE = "models.yaml"
SCHEMA_FILE = "models.schema.json"
PRODUCT = "product"
"""The entry of the model that the product runs on: whoever changes it releases a model."""
JUDGE = "judge"
HEAD = """\
# Who answers and who judges. A change of `product` is an upgrade, which the gate decides over.
# Keys never stand here: api_key_env names the variable that holds one.
"""
PRICES_FORM = "two numbers, in and out, such as '2 8'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One entry of the models file."""

    name: str
    spec: Spec
    key_variable: str
    """The environment variable that holds its key; empty if it needs none."""
    prices: Prices | None
    """Those that were given; None where published ones, or none, are known."""
    is_priced: bool
    """Whether its price is known, by either."""

    @property
    def lines(self) -> list[str]:
        """The entry as lines of YAML."""
        lines = [
            f"{self.name}:",
            f"  provider: {self.spec.provider}",
            f'  model: "{self.spec.name}"',
        ]
        if not self.spec.is_at_provider:
            lines.append(f"  base_url: {self.spec.base_url}")
        if self.key_variable:
            lines.append(f"  api_key_env: {self.key_variable}")
        if self.prices is not None:
            prices = f"{{input: {self.prices.input:g}, output: {self.prices.output:g}}}"
            lines.append(f"  prices: {prices}    # USD per million tokens")
        elif self.is_priced:
            lines.append(
                "  # its prices are published; yours: prices: {input: , output: }"
            )
        else:
            lines.append("  # prices: {input: , output: }    # USD per million tokens")
        return lines


def models_text(entries: list[ModelEntry]) -> str:
    """Return the text of the models file."""
    parts = ["\n".join(entry.lines) for entry in entries]
    return f"{editor_line(SCHEMA_FILE)}\n{HEAD}\n" + "\n\n".join(parts) + "\n"


def ask_model(
    name: str,
    question: str,
    asker: Asker,
    *,
    spec: str | None,
    key: str | None,
    prices: str | None,
) -> ModelEntry:
    """Return a model as given by options, and as a person says where an option is missing.

    A server of one's own may need a key and has a price that nobody publishes; both may be left
    out. Raises UsageError.
    """
    option = "--model" if name == PRODUCT else "--judge"
    if spec is None:
        spec = asker.ask(
            f"{question} openai:NAME, anthropic:NAME, or openai:NAME@https://HOST/v1 of your own",
            otherwise=f"{option} SPEC is needed, such as {option} openai:gpt-4.1",
            check=lambda text: _parsed(text, name),
        )
    parsed = _parsed(spec, name)
    if key is None:
        key = parsed.api_key_env
    if not key and not parsed.is_loopback:
        key = asker.ask(
            f"Which environment variable holds the key of {parsed.base_url}? (empty: none)",
            otherwise=f"{option}-key NAME is needed",
            check=_check_variable,
            default="",
        )
    _check_variable(key)
    is_published = pricing_of(parsed, datetime.now(UTC).date()) is not None
    if prices is None and not is_published:
        prices = asker.ask(
            f"What do a million tokens of {parsed.name} cost in USD: {PRICES_FORM}? "
            "(empty: not known)",
            otherwise=f"{option}-price IN,OUT is needed",
            check=_prices_of,
            default="",
        )
    given_prices = _prices_of(prices or "")
    return ModelEntry(
        name=name,
        spec=parsed,
        key_variable=key,
        prices=given_prices,
        is_priced=is_published or given_prices is not None,
    )


def _parsed(text: str, name: str) -> Spec:
    """Return what a SPEC means. Raises UsageError, also for a judge that cannot judge."""
    spec = parse(text, {})
    if spec.function is not None:
        raise UsageError(
            f"{text}: only a server has an entry in a models file; write openai:NAME@URL here, "
            "and give a function to the run itself"
        )
    return check_judge(spec) if name == JUDGE else spec


def _check_variable(name: str) -> None:
    if name and not VARIABLE.fullmatch(name):
        raise UsageError(
            "the name of an environment variable is needed (what you gave is not shown)"
        )


def _prices_of(text: str) -> Prices | None:
    """Return the prices in a text; None for an empty one. Raises UsageError."""
    if not text.strip():
        return None
    words = text.replace(",", " ").split()
    try:
        input_price, output_price = (float(word) for word in words)
    except ValueError:
        raise UsageError(f"{PRICES_FORM}: got {text!r}") from None
    if not (0 <= input_price < float("inf") and 0 <= output_price < float("inf")):
        raise UsageError(f"{PRICES_FORM}, 0 or more: got {text!r}")
    return Prices(input=input_price, output=output_price)
