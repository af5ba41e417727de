"""The pytest plugin. It does nothing unless the paths of a run hold a ``dataset.yaml``.

The process that the user started is the controller: it validates, runs the engine and writes the
report. Tests, in xdist's workers or in the same process, wait for their own item.
"""

from qagate.reports.plugin import first_seconds

# isort: split
import argparse
import gc
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

try:
    import qagate.cases.dataset
    import qagate.evaluators.core  # noqa: F401
except ModuleNotFoundError as error:
    raise pytest.UsageError(
        f"{error.name} is not installed for {sys.executable}; install what qagate needs there"
    ) from None
from qagate.cases import discovery
from qagate.cases.dataset import DATASET_FILE
from qagate.door import PREFIX_HELP, PREFIX_SETTING, is_declaration, wrong_kind
from qagate.evaluators.core import RECORDED, UsageError, parse_judges
from qagate.evaluators.models.spec import Spec, parse
from qagate.evaluators.text import encodable, harmless, shown
from qagate.reports.plugin import option_table, worker
from qagate.reports.plugin import options as ours
from qagate.reports.plugin.worker import (
    pytest_collection_modifyitems,
    pytest_generate_tests,
)
from qagate.reports.run.baselines import BASELINES

_CONFIGURED = pytest.StashKey[bool]()

__all__ = ["pytest_collection_modifyitems", "pytest_generate_tests"]


def pytest_addoption(
    parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager
) -> None:
    """Declare the options, and what is done where pytest itself rejects a word."""
    config = pluginmanager.get_plugin("pytestconfig")
    if not isinstance(config, pytest.Config):
        option_table.declare_options(parser, ())
        return
    try:
        prefixed_only = bool(config.getini(PREFIX_SETTING))
    except ValueError:  # the door, which declares it, is no plugin of this run
        parser.addini(PREFIX_SETTING, PREFIX_HELP, type="bool", default=False)
        prefixed_only = False
    given, stash = config.invocation_params, config.stash

    def reject() -> None:  # pytest ends by an error before it configures a run
        if sys.exc_info()[0] and not stash.get(_CONFIGURED, False):
            withdraw(given.args, given.dir)

    config.add_cleanup(reject)
    option_table.declare_options(parser, given.args, prefixed_only=prefixed_only)


def withdraw(words: Sequence[object], here: Path) -> None:
    """Withdraw the verdict in the report folder of a run with these words that pytest rejected."""
    from qagate.reports.run.report_folder import claim  # noqa: PLC0415  # workers write none

    every = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, words)]
    given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    given.add_argument("--report-dir", default=ours.REPORT_DIR)
    known, others = given.parse_known_args(every)
    named = [one for one in others if one[:1] != "-"]
    with suppress(UsageError, OSError):
        paths = [one for one in named if (here / one.partition("::")[0]).exists()]
        if discovery.dataset_files(paths or ["."], here, Path(here.anchor)):
            with claim(here / known.report_dir):
                raise UsageError("rejected by pytest")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep a dry run in this one process: there is nothing to distribute."""
    if config.getoption("qa_dry_run"):
        config.option.numprocesses = None
        config.option.tx = []
        config.option.dist = "no"


def pytest_configure(config: pytest.Config) -> None:
    """Validate everything in the controller before any call; the user's errors are exit code 4."""
    config.stash[_CONFIGURED] = True  # from here on errors are ours
    config.addinivalue_line(
        "markers", "qa(dataset): one case for each item of a dataset"
    )
    config.pluginmanager.register(worker.Verdicts(), "qa-verdicts")
    first_seconds.take_over(_stop)
    config.add_cleanup(lambda: first_seconds.give_back(_stop))
    try:
        if hasattr(config, "workerinput"):
            given = worker.read_worker_input(config.workerinput)
        else:
            given = _begin(config, Path(config.invocation_params.dir))
    except UsageError as problem:
        raise pytest.UsageError(harmless(str(problem))) from None
    if given is None:
        return
    config.stash[worker.WORKER_INPUT] = given
    config.pluginmanager.register(worker.WorkerHooks(given), "qa-worker-hooks")
    for name in [dataset.name for dataset in given.plan.datasets]:
        config.addinivalue_line("markers", f"{name}: items of the dataset {name}")
    for language in sorted(
        {one for dataset in given.plan.datasets for one in dataset.slices}
    ):
        config.addinivalue_line(
            "markers", f"{language}: items in the language {language}"
        )


def _stop(number: int, frame: FrameType | None) -> None:
    pytest.exit(first_seconds.LINE, returncode=first_seconds.EXIT_CODE)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart() -> None:
    """Give Ctrl-C back to pytest, which ends a session properly."""
    first_seconds.give_back(_stop)


def _begin(config: pytest.Config, here: Path) -> worker.WorkerInput | None:
    for text in (*map(str, config.invocation_params.args), str(here)):
        if not encodable(text):  # pytest-xdist could not pass it on
            raise UsageError(
                f"{shown(text)}: the name is not UTF-8; rename it or use another path"
            )
    files = discovery.dataset_files(config.args, here, config.rootpath)
    is_asked = bool(option_table.given_options(config.getoption))
    with ExitStack() as claimed:
        if (files or is_asked) and not config.option.collectonly:
            _claim(config, here, claimed)
        options = ours.read_options(config.getoption, here)
        for word in () if config.option.pyargs else config.args:
            if not (
                here / word.partition("::")[0]
            ).exists():  # xdist's workers would pass over it
                raise UsageError(f"file or directory not found: {word}")
        given = _plan(config, options, files) if files else None
        if is_asked and not files:
            raise UsageError(_nothing_found(config.args, here))
        config.add_cleanup(claimed.pop_all().close)
    return given


def _nothing_found(words: Sequence[str], here: Path) -> str:
    for path in discovery.named_paths(words, here):
        folder = path.parent if path.is_file() else path
        declaration = folder / DATASET_FILE
        if declaration.is_file() and not is_declaration(declaration):
            return wrong_kind(declaration)
    where = "is in, under or next to the given paths"
    return f"no {DATASET_FILE} {where}; name a folder of them, as cases/"


def _claim(config: pytest.Config, here: Path, claimed: ExitStack) -> None:
    """Take the report folder before anything can fail: an earlier PASS must not outlive this."""
    from qagate.reports.run.report_folder import check_apart, claim  # noqa: PLC0415  # workers write none

    folder = here / (config.getoption("qa_report_dir") or ours.REPORT_DIR)
    for role in ("baseline", "anchor"):
        if name := config.getoption(f"qa_{role}"):
            for path in (here / name, here / BASELINES / name):
                check_apart(path, folder, role)
    if not config.getoption("qa_dry_run"):
        claimed.enter_context(claim(folder))


def _plan(
    config: pytest.Config, options: ours.RunOptions, files: list[Path]
) -> worker.WorkerInput:
    from qagate.cases.plan import make_plan  # noqa: PLC0415  # workers are given the plan
    from qagate.reports.plugin.lost_output import LostOutput  # noqa: PLC0415  # workers have no terminal

    config.pluginmanager.register(LostOutput(), "qa-lost-output")
    if not (options.replay or options.dry_run or config.option.collectonly):
        start_early(config, options)
    with worker.gc_paused():
        folders = (file.parent for file in files)
        labelled = discovery.labelled_files(
            folders, options.choice.items, config.rootpath
        )
        if options.answers is None:
            plan = make_plan(files, options.choice, labelled)
        else:
            from qagate.reports.plugin import rejudge  # noqa: PLC0415  # only for such a run

            options, plan = rejudge.planned(files, options, labelled)
    if options.until_decided:
        if options.gates_off:
            what = "--until-decided: nothing is decided with --gates off; leave one of them out"
            raise UsageError(what)
        from qagate.reports.extras.sequential.early_stopping import in_sequence  # noqa: PLC0415  # brings numpy along

        plan = in_sequence(plan, paired=bool(options.baseline or options.anchor))
    if options.dry_run:
        from qagate.reports.extras.odds.dry_run import DryRun  # noqa: PLC0415

        config.pluginmanager.register(
            DryRun(options, plan, config.rootpath), "qa-dry-run"
        )
        return worker.WorkerInput(
            plan=plan, outcome_store=Path(os.devnull)
        )  # no test will wait
    from qagate.reports.plugin.controller import Controller  # noqa: PLC0415  # brings the engine along

    controller = Controller(config, options, plan, files)
    given = worker.WorkerInput(plan=plan, outcome_store=controller.outcome_store)
    config.pluginmanager.register(controller, "qa-controller")
    return given


def start_early(config: pytest.Config, options: ours.RunOptions) -> None:
    """Start the engine's process if models will be asked: SDKs take most of a second to load."""
    from qagate.evaluators.models import load  # noqa: PLC0415  # workers load none
    from qagate.evaluators.models.catalogue import load_catalogue  # noqa: PLC0415
    from qagate.evaluators.runtime.process import fork_early  # noqa: PLC0415

    words = {options.model, *parse_judges(options.judges).models()} - {RECORDED}
    catalogue: Mapping[str, Spec] = {}
    specs = []
    with suppress(UsageError):  # wrong names are reported when all is checked
        catalogue = load_catalogue(own=options.models) if words else {}
    for word in sorted(words):
        with suppress(UsageError):
            specs.append(parse(word, catalogue))
    early = fork_early(partial(load, specs)) if specs else None
    if early is not None:
        config.stash[worker.EARLY_ENGINE] = early
        config.add_cleanup(early.abandon)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over attacks on the judge that no path of the run names."""
    if not collection_path.is_dir():
        return None
    named = discovery.named_paths(config.args, Path(config.invocation_params.dir))
    return discovery.is_left_out(collection_path, named) or None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let garbage collection skip the items, which live to the end."""
    pytest_unconfigure(session.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let pytest's five last garbage collections skip a run's items."""
    if worker.WORKER_INPUT in config.stash:
        gc.freeze()
