"""The start of a run, in the process that the user started: from its words to its plan.

All that can be wrong is found here, before the first call. The order matters. The report
folder is taken first, so that an earlier PASS cannot outlive an error. The engine's process
is started next: SDKs take most of a second to load, and the plan is made meanwhile.
"""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from qagate.cases import discovery
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.plan import make_plan
from qagate.door import is_declaration, wrong_kind
from qagate.evaluators.core import RECORDED, UsageError, parse_judges
from qagate.evaluators.models.spec import Spec, parse
from qagate.evaluators.text import encodable, shown
from qagate.reports.doors import FEATURES, load_feature
from qagate.reports.plugin import worker
from qagate.reports.plugin.crash_guard import add_cleanup
from qagate.reports.plugin.feature import Feature
from qagate.reports.plugin.lost_output import LostOutput
from qagate.reports.plugin.option_table import given_options
from qagate.reports.plugin.options import (
    NO_BASELINE,
    REPORT_DIR,
    RunOptions,
    read_options,
)
from qagate.reports.plugin.typed_command import typed_command
from qagate.reports.run.baselines import BASELINES
from qagate.reports.run.report_folder import ClaimedFolder, check_apart, claim

NOWHERE = Path(os.devnull)
"""Where a rehearsal's outcomes appear: no test waits for one."""


def begin(config: pytest.Config) -> worker.WorkerInput | None:
    """Return what the tests of this run need; None where it is no run of ours.

    Registers the controller, or the features that take its place. Raises UsageError.
    """
    here = config.invocation_params.dir
    _check_encoding(config)
    features = _load_features(config)
    files = discovery.dataset_files(config.args, here, config.rootpath)
    is_asked_for = bool(given_options(config.getoption))
    claimed: ClaimedFolder | None = None
    with ExitStack() as claims:
        if (files or is_asked_for) and not config.option.collectonly:
            _check_apart_from_earlier_runs(config)
            if not _rehearsals(features):
                command = typed_command(config.invocation_params.args)
                claimed = claims.enter_context(claim(_report_folder(config), command))
        options = read_options(config.getoption, here)
        _check_accepted_here(config)
        _check_paths(config)
        worker_input = None
        if files:
            worker_input = _plan(config, options, files, features)
        elif is_asked_for:
            raise UsageError(_no_dataset_found(config))
        if claimed is not None:
            claimed.begin()
        # From here on the folder is held until the session ends.
        add_cleanup(config, claims.pop_all().close)
    return worker_input


def _check_encoding(config: pytest.Config) -> None:
    """Raise UsageError for a path that pytest-xdist could not pass on to its workers."""
    invocation = config.invocation_params
    for text in (*map(str, invocation.args), str(invocation.dir)):
        if not encodable(text):
            raise UsageError(
                f"{shown(text)}: the name is not UTF-8; rename it or use another path"
            )


def _check_accepted_here(config: pytest.Config) -> None:
    """Raise UsageError for ``--accept-changed`` from anywhere but the command line.

    In a file or a variable it would accept changes that nobody has seen.
    """
    words = [str(word) for word in config.invocation_params.args]
    for value in config.getoption("qa_accept_changed") or ():
        is_typed = value in words or any(word.endswith(f"={value}") for word in words)
        if not is_typed:
            raise UsageError(
                f"--accept-changed {shown(value)}: it counts on the command line alone; take it "
                "out of addopts, PYTEST_ADDOPTS or the file that gives it"
            )


def _check_paths(config: pytest.Config) -> None:
    """Raise UsageError for a path that is not there: xdist's workers would pass over it."""
    if config.option.pyargs:
        return
    here = config.invocation_params.dir
    for word in config.args:
        path = here / word.partition("::")[0]
        if not path.exists():
            raise UsageError(f"file or directory not found: {word}")


def _no_dataset_found(config: pytest.Config) -> str:
    """Return the message of a run with options of ours, but without a data set."""
    for path in discovery.named_paths(config.args, config.invocation_params.dir):
        folder = path.parent if path.is_file() else path
        declaration = folder / DATASET_FILE
        if declaration.is_file() and not is_declaration(declaration):
            return wrong_kind(declaration)
    return (
        f"no {DATASET_FILE} is in, under or next to the given paths; "
        "name a folder of them, as cases/"
    )


# The features


def _load_features(config: pytest.Config) -> list[Feature]:
    """Return the features that the user asked for, registered with pytest."""
    features = []
    given = given_options(config.getoption)
    for name in FEATURES:
        if name in given:
            feature = load_feature(name)
            config.pluginmanager.register(feature, f"qa-{name}")
            features.append(feature)
    return features


def _rehearsals(features: Sequence[Feature]) -> list[Feature]:
    return [feature for feature in features if feature.is_rehearsal]


# The report folder


def _report_folder(config: pytest.Config) -> Path:
    name = config.getoption("qa_report_dir") or REPORT_DIR
    return config.invocation_params.dir / name


def _check_apart_from_earlier_runs(config: pytest.Config) -> None:
    """Raise UsageError if the report would overwrite the baseline or the anchor."""
    here = config.invocation_params.dir
    for role in ("baseline", "anchor"):
        name = config.getoption(f"qa_{role}")
        if name and name != NO_BASELINE:
            for path in (here / name, here / BASELINES / name):
                check_apart(path, _report_folder(config), role)


def withdraw(words: Sequence[object], here: Path) -> None:
    """Mark the report in the folder of a run that pytest rejected, or withdraw it in CI.

    ``words`` are those of its command line; pytest has read none of them.
    """
    from_environment = shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--report-dir", default=REPORT_DIR)
    options, others = parser.parse_known_args([*from_environment, *map(str, words)])
    with suppress(UsageError, OSError):
        paths = []
        for word in others:
            is_option = word.startswith("-")
            if not is_option and (here / word.partition("::")[0]).exists():
                paths.append(word)
        if discovery.dataset_files(paths or ["."], here, Path(here.anchor)):
            with claim(here / options.report_dir, typed_command(words)):
                raise UsageError("rejected by pytest")


# The plan


def _plan(
    config: pytest.Config,
    options: RunOptions,
    files: Sequence[Path],
    features: Sequence[Feature],
) -> worker.WorkerInput:
    """Make the plan, and register what runs it or, in a rehearsal, shows it."""
    rehearsals = _rehearsals(features)
    config.pluginmanager.register(LostOutput(), "qa-lost-output")
    if not (options.replay or rehearsals or config.option.collectonly):
        start_early(config, options)
    with worker.gc_paused():
        folders = [file.parent for file in files]
        labelled = discovery.labelled_files(
            folders, options.choice.items, config.rootpath
        )
        if options.answers is None:
            plan = make_plan(files, options.choice, labelled)
        else:
            from qagate.reports.plugin import rejudge  # noqa: PLC0415  # only for such a run

            options, plan = rejudge.planned(files, options, labelled)
    for feature in features:
        plan = feature.order(plan, options)
    if rehearsals:
        for feature in rehearsals:
            feature.rehearse(options, plan, config.rootpath)
        return worker.WorkerInput(plan=plan, outcome_store=NOWHERE)
    from qagate.reports.plugin.controller import Controller  # noqa: PLC0415  # brings the engine along

    controller = Controller(config, options, plan, files, features)
    config.pluginmanager.register(controller, "qa-controller")
    return worker.WorkerInput(plan=plan, outcome_store=controller.outcome_store)


def start_early(config: pytest.Config, options: RunOptions) -> None:
    """Start the engine's process, if models will be asked, to load their SDKs."""
    from qagate.evaluators.models import load as load_sdks  # noqa: PLC0415  # a replay loads none
    from qagate.evaluators.models.catalogue import load_catalogue  # noqa: PLC0415
    from qagate.evaluators.runtime.process import fork_early  # noqa: PLC0415

    words = {options.model, *parse_judges(options.judges).models()} - {RECORDED}
    if not words:
        return
    catalogue: Mapping[str, Spec] = {}
    with suppress(UsageError):  # what is wrong is reported when all is checked
        catalogue = load_catalogue(own=options.models)
    specs = []
    for word in sorted(words):
        with suppress(UsageError):
            specs.append(parse(word, catalogue))
    if not specs:
        return
    early_engine = fork_early(partial(load_sdks, specs))
    if early_engine is not None:
        config.stash[worker.EARLY_ENGINE] = early_engine
        add_cleanup(config, early_engine.abandon)
