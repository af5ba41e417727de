"""The collector of garbage kept away while what is made stays alive to the end anyway.

Its passes over thousands of new items, none of which it can free, were a fifth of a worker's start.
"""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def no_collection() -> Iterator[None]:
    """Return a context in which the collector of garbage rests; it stays off where it was off."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Unswept:
    """Lets the collector rest while pytest makes its items."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Make the items without it."""
        with no_collection():
            return (yield)
