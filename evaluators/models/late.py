"""A model that costs nothing until it is asked.

An HTTP client takes a fifth of a second to load and an SDK half of one; pytest needs neither.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from evaluators.core import Reply, Request
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec
from evaluators.runtime.limits import Limits

if TYPE_CHECKING:
    from evaluators.models.api import ApiModel

DIALECTS: Mapping[str, str] = {
    "openai": "evaluators.models.openai",
    "anthropic": "evaluators.models.anthropic",
}
"""The module that speaks each provider's API, as its ``DIALECT``."""

SDKS: Mapping[str, str] = {"openai": "openai", "anthropic": "anthropic"}
"""The package of each provider."""


class LazyModel:
    """A model known by its Spec; what speaks to it is loaded by its first call."""

    def __init__(self, spec: Spec, key: Key | None) -> None:
        self._spec = spec
        self._key = key
        self._made: ApiModel | None = None

    def __repr__(self) -> str:
        return f"LateModel({self.spec!r})"

    @property
    def spec(self) -> str:
        """The SPEC that names it, without any key."""
        return self._spec.text

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells it from every other model."""
        return self._spec.identity

    @property
    def limits(self) -> Limits:
        """How it may be asked."""
        return self._spec.limits

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries. Raises only CallErrors."""
        if self._made is None:
            from evaluators.models.api import ApiModel  # noqa: PLC0415

            dialect = import_module(DIALECTS[self._spec.provider]).DIALECT
            self._made = ApiModel(self._spec, self._key, dialect)
        return await self._made.complete(request)

    async def close(self) -> None:
        """Give the connections of the running loop back."""
        if self._made is not None:
            await self._made.close()
