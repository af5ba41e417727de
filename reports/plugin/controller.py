"""The controller's hooks: start the engine, listen to the tests, write the report, set the code."""

import os
import shlex
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cases.plan import Plan
from evaluators.core import QAError
from reports.plugin import ci
from reports.plugin.book import SessionResults, key_of
from reports.plugin.calibrator import Patient, find_labelled
from reports.plugin.early import EARLY
from reports.plugin.options import Options
from reports.plugin.progress import Progress
from reports.plugin.reruns import refuse_reruns, rerun_settings
from reports.plugin.run import Run
from reports.plugin.selection import may_end_early, takes_everything
from reports.plugin.signals import end_by_term, finish_undisturbed
from reports.plugin.tests import WATCHER
from reports.plugin.watch import Watch
from reports.render.clean import mask

if TYPE_CHECKING:
    from reports.assemble import Baseline
    from reports.plugin.finish import Ending
    from reports.report import Report

EXIT_UNWRITTEN = 1
SWEEP = 500  # tests after which what pytest keeps of them is looked through


class Controller:
    """Hooks that only the process started by the user has."""

    def __init__(
        self, config: pytest.Config, options: Options, plan: Plan, files: Sequence[Path]
    ) -> None:
        self._config = config
        self._options = options
        self._files = files
        self._book = SessionResults(plan)
        self._plan = plan
        self._progress = Progress(planned=0, started=time.monotonic())
        self._interrupted = False
        self._is_over = False
        self._teardowns = 0
        self._report: Report | None = None
        self._last_line = self._warning = ""
        self._started = datetime.now(UTC)
        self._watch: Watch | None = None
        if not options.gates_off:
            refuse_reruns(config)
        self._baseline = _baseline_of(options)
        self._folder = Path(tempfile.mkdtemp(prefix="qa-"))
        config.add_cleanup(lambda: shutil.rmtree(self._folder, ignore_errors=True))
        self.board = self._folder / "board.sqlite3"
        calling = not config.option.collectonly
        labelled = find_labelled(options, plan, config.rootpath)
        self._run = Run(options, plan, labelled, calling=calling)
        if calling:
            self._open()
        config.pluginmanager.register(Patient(lambda: self._run.is_judge_measured))

    # Starting

    def _open(self) -> None:
        """Start the engine's process: now, as long as nothing else in this one has a thread."""
        distributed = bool(getattr(self._config.option, "tx", None))
        board = self.board if distributed else None
        early = self._config.stash.get(EARLY, None)
        self._run.open(board, early, ahead=not may_end_early(self._config))
        self._config.add_cleanup(self._run.stop)
        if self._run.waiting is not None and not distributed:
            self._config.stash[WATCHER] = self._run.waiting

    def pytest_sessionstart(self) -> None:
        """Refuse a wrong ``-m`` or ``-k``; let SIGTERM end a run as Ctrl-C does; begin if it can.

        Eight workers take seconds to collect. Where they will find just what is planned the engine
        needs not wait for them.
        """
        # xdist's workers would meet such an expression with an internal error of their own.
        marks = self._config.pluginmanager.get_plugin("mark")
        if marks is not None:
            marks.pytest_collection_modifyitems(items=[], config=self._config)
        end_by_term(self._config)
        if takes_everything(self._config, self._files):
            self._run.lead()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Start once the first worker knows the selected tests; all workers agree on them."""
        broken = self._book.other_failures and not self._config.option.continue_on_collection_errors
        if broken:
            self._run.refuse("a test module could not be collected")
        else:
            self._begin(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start without xdist."""
        collected = not session.testsfailed or session.config.option.continue_on_collection_errors
        if session.items and collected and not session.config.option.collectonly:
            self._begin([item.nodeid for item in session.items])

    def _begin(self, nodeids: Sequence[str]) -> None:
        if self._book.planned:
            return
        keys = self._book.select(nodeids)
        if keys:
            self._progress = Progress(
                planned=len(keys), started=time.monotonic(), priced=not self._run.unpriced
            )
            self._run.start(keys)
            threading.Thread(target=_load_ending, name="qa-ending", daemon=True).start()
            self._watch = Watch(self._config, self._progress, lambda: self._run.activity)
            self._config.add_cleanup(self._watch.stop)
            self._watch.start()

    # Listening

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Put the item first whose test is about to wait for it."""
        self._run.want(key_of(nodeid))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: object
    ) -> None:
        """Give the item of a dead worker to another one, once."""
        if key_of(crashitem) not in self._plan.items or not self._book.died(crashitem):
            return
        report.outcome = "rerun"  # type: ignore[assignment]
        with suppress(NotImplementedError):  # loadfile and its like hand it out again themselves
            sched.mark_test_pending(crashitem)  # type: ignore[attr-defined]

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Name the report of an item that is tried again."""
        return ("rerun", "R", "RERUN") if str(report.outcome) == "rerun" else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a module that cannot be collected as a failure that no gate explains."""
        if report.failed:
            self._book.collect_failed()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the book."""
        self._book.note(report.nodeid, str(report.when), report.outcome, getattr(report, "qa", ""))
        if report.when != "teardown":
            return
        self._teardowns += 1
        if self._teardowns % SWEEP == 0:
            self._forget_silent_phases()
        self._run.test_ended()
        key = key_of(report.nodeid)
        if key in self._plan.items:
            name = self._plan.items[key].slice.name
            self._progress.add(name, self._run.outcomes.get(key))

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell the user's interrupt from xdist's and pytest's own ways to stop early."""
        # pytest words the whole traceback next: a second Ctrl-C must not fall into that.
        finish_undisturbed(self._config)
        early_stop = excinfo.typename == "Interrupted"  # of pytest.Session or of xdist
        by_user = "keyboard-interrupt" in str(excinfo.value)  # a worker heard Ctrl-C first
        self._interrupted = by_user or not early_stop

    # Ending

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """Stop the engine, write the report, set the exit code; the last line comes last."""
        session.exitstatus = self._end(int(exitstatus))
        self._forget_silent_phases()
        result = yield
        self._say(self._last_line)
        return result

    def pytest_unconfigure(self) -> None:
        """Report on a run that was interrupted while its workers were being started."""
        if self._interrupted and not self._is_over:
            self._end(int(pytest.ExitCode.INTERRUPTED))
            self._say(self._last_line)

    def _end(self, code: int) -> int:
        """Stop the engine and write the report; return the exit code."""
        self._is_over = True
        finish_undisturbed(self._config)
        self._run.stop()
        if self._watch is not None:
            self._watch.stop()
        return code if self._config.option.collectonly else self._finish(code)

    def _forget_silent_phases(self) -> None:
        """Drop phases without output: pytest would search them all again for every failure.

        They would also be the larger part of what a run of 50,000 items holds in memory.
        """
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and "" in reporter.stats:
            kept = [report for report in reporter.stats[""] if getattr(report, "sections", None)]
            reporter.stats[""] = kept

    def _finish(self, code: int) -> int:
        if self._interrupted and not self._book.planned:
            # Nothing was selected yet: everything that could have been is missing.
            self._book.planned = tuple(self._plan.items)
        if not self._book.planned:
            return self._finish_without_items(code)
        from reports.plugin.finish import finish  # noqa: PLC0415  # loaded while tests wait

        try:
            ending = self._ending(code)
            self._report, self._warning = finish(
                self._options, self._plan, self._book, self._run, ending
            )
        except (QAError, OSError) as error:
            code = max(code, EXIT_UNWRITTEN)
            self._last_line = f"REPORT NOT WRITTEN: exit {code}; {error}"
            return code
        self._last_line = self._report.decision.line
        return int(self._report.decision.code)

    def _finish_without_items(self, code: int) -> int:
        """No report: nothing was planned. A broken module is 1 in every mode, as a failure is."""
        broken = self._book.other_failures and not self._interrupted
        if broken and code == pytest.ExitCode.INTERRUPTED:
            return int(pytest.ExitCode.TESTS_FAILED)
        return code

    def _ending(self, code: int) -> "Ending":
        from reports.plugin.finish import Ending  # noqa: PLC0415

        arguments = map(str, self._config.invocation_params.args)
        return Ending(
            pytest_code=code,
            interrupted=self._interrupted,
            baseline=self._baseline,
            notes=_rerun_notes(self._config),
            about={
                "id": self._folder.name.removeprefix("qa-"),
                "started": self._started.isoformat(timespec="seconds"),
                "seconds": round(time.monotonic() - self._progress.started, 1),
                "command": mask(shlex.join(["pytest", *arguments])),
                "workers": int(getattr(self._config.option, "numprocesses", 0) or 0),
            },
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the slices and the gates."""
        if self._report is not None:
            from reports.plugin.terminal import show_report  # noqa: PLC0415

            show_report(terminalreporter, self._report, self._options.report_dir)
            for line in ci.lines(self._report, os.environ):
                terminalreporter.write_line(line)
        if self._warning:
            terminalreporter.write_line(f"warning: {self._warning}")

    def _say(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if line and reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line)


def _rerun_notes(config: pytest.Config) -> tuple[str, ...]:
    found = rerun_settings(config)
    return (f"failing tests were run again: {', '.join(found)}",) if found else ()


def _load_ending() -> None:
    """Load what writes the report: while replies are waited for it costs nobody any time."""
    from reports.plugin.finish import prepare  # noqa: PLC0415

    prepare()


def _baseline_of(options: Options) -> "Baseline | None":
    if options.baseline is None:
        return None
    from reports.plugin.finish import read_baseline  # noqa: PLC0415

    return read_baseline(options.baseline)
