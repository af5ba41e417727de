"""What a run knows before its first test: the plan, the same in every process."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.plan import Plan
from evaluators.core import UsageError
from reports.plugin.discover import dataset_files
from reports.plugin.garbage import Unswept, no_collection
from reports.plugin.handover import WorkerInput, read_worker_input
from reports.plugin.options import Options, read_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The plan, and the file on which outcomes appear."""

    plan: Plan
    board: Path


SESSION = pytest.StashKey[Session]()


def begin(config: pytest.Config, here: Path) -> None:
    """Start a run in the controller, if its paths hold a dataset. Raises pytest.UsageError."""
    try:
        options = read_options(config, here)
        _check_paths(config, here)
        files = dataset_files(config.args, here, config.rootpath)
        if not files and not options.touched:
            return
        _begin(config, options, files)
    except UsageError as problem:
        raise pytest.UsageError(str(problem)) from None


def _check_paths(config: pytest.Config, here: Path) -> None:
    """Refuse a path that is not there: xdist's workers would do so without a word."""
    for argument in () if config.option.pyargs else config.args:
        if not (here / argument.partition("::")[0]).exists():
            msg = f"file or directory not found: {argument}"
            raise UsageError(msg)


def _check_folder(folder: Path) -> None:
    """Refuse a report folder that could not be written after everything is paid for."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        msg = f"--report-dir: {folder} cannot be written ({nearest} is in the way); name another"
        raise UsageError(msg)


def _begin(config: pytest.Config, options: Options, files: list[Path]) -> None:
    if not files:
        msg = "no dataset.yaml is in, under or beside the given paths; try `pytest cases/`"
        raise UsageError(msg)
    _check_folder(options.report_dir)
    if not (options.replay or options.dry_run or config.option.collectonly):
        from reports.plugin.early import start_early  # noqa: PLC0415  # brings the engine along

        start_early(config, options)
    from cases.planning import make_plan  # noqa: PLC0415  # workers are given the plan

    with no_collection():
        plan = make_plan(files, options.choice)
    if options.dry_run:
        board = _rehearse(config, options, plan)
    else:
        board = _control(config, options, plan, files)
    _join(config, Session(plan=plan, board=board))


def _control(config: pytest.Config, options: Options, plan: Plan, files: list[Path]) -> Path:
    from reports.plugin.controller import Controller  # noqa: PLC0415  # brings the engine along

    controller = Controller(config, options, plan, files)
    config.pluginmanager.register(controller, "qa-controller")
    config.pluginmanager.register(WorkerInput(plan, controller.board), "qa-handover")
    return controller.board


def _rehearse(config: pytest.Config, options: Options, plan: Plan) -> Path:
    from reports.plugin.rehearsal import DryRun  # noqa: PLC0415

    config.pluginmanager.register(DryRun(options, plan), "qa-rehearsal")
    return Path(os.devnull)  # no test will wait for an outcome


def join(config: pytest.Config) -> None:
    """Take part in the controller's run, in a worker."""
    with no_collection():
        taken = read_worker_input(config)
        if taken is not None:
            _join(config, Session(plan=taken.plan, board=taken.board))


def _join(config: pytest.Config, session: Session) -> None:
    config.stash[SESSION] = session
    config.pluginmanager.register(Unswept(), "qa-unswept")
    _declare_marks(config, session.plan)


def _declare_marks(config: pytest.Config, plan: Plan) -> None:
    for dataset in plan.datasets:
        config.addinivalue_line("markers", f"{dataset.name}: items of the dataset {dataset.name}")
    languages = {language for dataset in plan.datasets for language in dataset.slices}
    for language in sorted(languages):
        config.addinivalue_line("markers", f"{language}: items in the language {language}")
