"""A head start for the engine: what its calls need is loaded while the tests are being planned."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import pytest

from evaluators.answerers import RECORDED
from evaluators.core import UsageError
from evaluators.models import load
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, parse
from evaluators.runtime.hosting import EngineProcess, head_start
from reports.plugin.options import Options
from reports.plugin.run_models import judges_of

EARLY = pytest.StashKey[EngineProcess]()


def start_early(config: pytest.Config, options: Options) -> None:
    """Start the engine's process where models will be asked: an SDK takes most of a second.

    Nothing is checked here. The process ends with the session where it is given no job.
    """
    specs = _specs(options)
    early = head_start(partial(load, specs)) if specs else None
    if early is not None:
        config.stash[EARLY] = early
        config.add_cleanup(early.abandon)


def _specs(options: Options) -> list[Spec]:
    """Return the models that are named rightly; what is wrong is said once all is checked."""
    words = {options.model, *judges_of(options).models()} - {RECORDED}
    catalogue: Mapping[str, Spec] = {}
    if words:
        with suppress(UsageError):
            catalogue = load_catalogue()
    found = []
    for word in sorted(words):
        with suppress(UsageError):
            found.append(parse(word, catalogue))
    return found
