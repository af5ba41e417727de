"""A head start for the engine: what its calls need is loaded while the tests are being planned."""

from contextlib import suppress
from functools import partial

import pytest

from evaluators.core import UsageProblem
from evaluators.hosting import EngineProcess, head_start
from evaluators.judges.naming import BEFORE
from evaluators.models import load
from evaluators.models.catalogue import RESERVED, load_catalogue
from evaluators.models.spec import Spec, parse
from reports.plugin.options import Options

EARLY = pytest.StashKey[EngineProcess]()


def start_early(config: pytest.Config, options: Options) -> None:
    """Start the engine's process where models will be asked: an SDK takes most of a second.

    Nothing is checked here. The process ends with the session where it is given no job.
    """
    if options.replay or options.dry_run or config.option.collectonly:
        return
    specs = _specs(options)
    early = head_start(partial(load, specs)) if specs else None
    if early is not None:
        config.stash[EARLY] = early
        config.add_cleanup(early.abandon)


def _specs(options: Options) -> list[Spec]:
    """Return the models that are named rightly; what is wrong is said once all is checked."""
    words = {options.model, *options.judges, options.tie_breaker or options.model} - RESERVED
    found = []
    with suppress(UsageProblem):
        catalogue = load_catalogue() if words else {}
        found += [parse(word.rpartition(BEFORE)[2], catalogue) for word in sorted(words)]
    return found
