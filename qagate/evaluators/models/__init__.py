"""Models behind APIs. Their HTTP client and SDKs take a second to load, so a first call does it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from qagate.evaluators import doors
from qagate.evaluators.core import Limits, Model, Reply, Request
from qagate.evaluators.models.keys import no_key_sent
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.negotiation import AS_MOST, Negotiable, Negotiated
from qagate.evaluators.text import Key

if TYPE_CHECKING:
    from qagate.evaluators.models.batched import BatchedModel


def connect(spec: Spec, key: Key | None = None) -> Model:
    """Return a Spec's model, unconnected. Raises UsageError for a function not imported."""
    if spec.function:
        spec.function.load()
    return LazyModel(spec, key)


def load(specs: Iterable[Spec]) -> None:
    """Load what the first calls of these models need."""
    for spec in specs:
        if spec.function:
            spec.function.load()
            doors.load_function_model()
            continue
        if spec.adapter.sdk:
            import_module(spec.adapter.sdk)
        import_module("qagate.evaluators.models.api")


class LazyModel:
    """A model that loads its client with the first call."""

    def __init__(self, spec: Spec, key: Key | None) -> None:
        self._negotiated = AS_MOST
        self._spec = spec
        self._key = key
        self._loaded: doors.ConnectedModel | None = None
        self._batched: BatchedModel | None = None

    def __repr__(self) -> str:
        return f"LazyModel({self.spec!r})"

    @property
    def spec(self) -> str:
        """The SPEC that names it, without its key."""
        return self._spec.text

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells it from every other model."""
        return self._spec.identity

    @property
    def negotiated(self) -> Negotiated:
        """How it is written to, alone and in batches; whoever negotiates sets it."""
        return self._negotiated

    @negotiated.setter
    def negotiated(self, negotiated: Negotiated) -> None:
        self._negotiated = negotiated
        if isinstance(self._loaded, Negotiable):
            self._loaded.negotiated = negotiated
        if self._batched is not None:
            self._batched.negotiated = negotiated

    @property
    def limits(self) -> Limits:
        """How it may be asked."""
        advice = no_key_sent(self._spec, self._key)
        if self._spec.function or self._spec.http:
            advice = (
                "check the function" if self._spec.function else "check the service"
            )
        limits = self._spec.limits
        if "temperature" in self._negotiated.omit:
            limits = replace(limits, is_random=True)
        return replace(limits, advice=advice) if advice else limits

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries. Raises only CallErrors."""
        if self._loaded is None:
            self._loaded = self._load()
        return await self._loaded.complete(request)

    def _load(self) -> doors.ConnectedModel:
        if self._spec.function:
            make_model = doors.load_function_model()
            return make_model(self.spec, self._spec.function, self._spec.deadline)
        from qagate.evaluators.models.api import ApiModel

        model = ApiModel(self._spec, self._key)
        model.negotiated = self._negotiated
        return model

    @property
    def has_batches(self) -> bool:
        """Whether its API takes calls in batches."""
        return self._spec.batching is not None

    def batches(self) -> "BatchedModel":
        """Return its calls in batches."""
        if self._batched is None:
            from qagate.evaluators.models.batched import BatchedModel

            self._batched = BatchedModel(self._spec, self._key)
            self._batched.negotiated = self._negotiated
        return self._batched

    async def close(self) -> None:
        """Close the connections of the running loop."""
        if self._batched is not None:
            await self._batched.close()
        if self._loaded is not None:
            await self._loaded.close()
