"""The process that the user started: it starts the engine, listens to the tests and reports.

A session goes through these hooks, in this order:

1. ``Controller(…)`` opens the engine: in its own process, with nothing to do yet.
2. ``pytest_sessionstart`` lets it work ahead where all planned items will have a test.
3. Once the tests are collected, ``_begin`` tells the engine which items have one.
4. ``pytest_runtest_logreport`` hears how each test ended, while the engine works on.
5. ``pytest_runtestloop`` waits for the measurement of the judge, which belongs to no test.
6. ``pytest_sessionfinish`` stops the engine, writes the report and sets the exit code.
7. ``pytest_terminal_summary`` shows the gates; the very last line says why this exit code.

With pytest-xdist, tests run in workers (see ``worker.py``), and the same hooks hear of them.
"""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qagate.cases.dataset import Plan
from qagate.evaluators.core import Outcome, QAError, UsageError
from qagate.evaluators.crash import CRASHED, crash_of
from qagate.evaluators.output import UnwrittenError, plural
from qagate.evaluators.temporary import temporary_folder
from qagate.reports.plugin import worker
from qagate.reports.plugin.collected import check_collected, expected_slices
from qagate.reports.plugin.crash_guard import CrashGuard, add_cleanup, guard_of
from qagate.reports.plugin.feature import Feature
from qagate.reports.plugin.first_seconds import stop_signals
from qagate.reports.plugin.head_start import takes_all_items
from qagate.reports.plugin.option_table import given_options
from qagate.reports.plugin.options import RunOptions, shard_header
from qagate.reports.plugin.progress import EndedItems, Progress
from qagate.reports.plugin.progress_display import ProgressDisplay
from qagate.reports.plugin.reruns import refuse_reruns, rerun_settings
from qagate.reports.plugin.run import EngineRun
from qagate.reports.plugin.session_results import SessionResults
from qagate.reports.plugin.system_needs import ReportWriters, check_files
from qagate.reports.plugin.typed_command import typed_command

if TYPE_CHECKING:
    from qagate.reports.gates.decide import SessionFacts
    from qagate.reports.run.report import Report
    from qagate.reports.run.transcripts import Packer

FOLDER_PREFIX = "qa-run-"
"""How the name of a run's temporary folder begins; its id follows."""
JUDGE_POLL_SECONDS = 0.02
"""How often to look whether the judge is measured, once all tests have ended."""
TESTS_PER_TIDYING = 500
"""After so many tests the reports that pytest keeps of them are thinned out."""
MIN_ITEMS_TO_PACK = 1_000
"""Transcripts of fewer items are packed here: a process takes longer to start than it saves."""
LAST_LINE_COLOURS = {0: "green", 6: "yellow"}
"""By exit code; other codes are red."""
TestStatus = tuple[str, str, str | tuple[str, Mapping[str, bool]]]
"""pytest's category, letter and word of a report; the word may come with its colour."""
MISSED: TestStatus = ("missed", "m", ("MISSED", {"yellow": True}))
RERUN: TestStatus = ("rerun", "R", "RERUN")
DEFAULT_REPORT_CHARS = "fE"
"""pytest's default for ``-r``."""
MAY_END_EARLY = ("maxfail", "stepwise", "usepdb", "trace")
"""pytest's options that may end a run before its last test."""


class Controller:
    """The hooks of the process that the user started."""

    def __init__(
        self,
        config: pytest.Config,
        options: RunOptions,
        plan: Plan,
        files: Sequence[Path],
        features: Sequence[Feature] = (),
    ) -> None:
        """Open the engine. ``files`` are the ``dataset.yaml`` of the plan. Raises UsageError."""
        if not options.gates_off:
            refuse_reruns(config)
        if config.option.setupplan:
            raise UsageError(
                "--setup-plan: models are asked before any test, and would be paid; "
                "give --dry-run or --collect-only"
            )
        self._config = config
        self._options = options
        self._plan = plan
        self._files = files
        self._only_lists: bool = config.option.collectonly
        self._distributed = bool(getattr(config.option, "tx", None))
        self._results = SessionResults(plan)
        self._started = datetime.now(UTC)
        self._progress = Progress(planned=0, started=time.monotonic())
        self._display: ProgressDisplay | None = None
        self._packer: Packer | None = None
        self._ended = EndedItems()
        self._writers = ReportWriters()
        self._interrupted = False
        self._is_over = False
        self._expected: tuple[str, ...] = ()
        """The slices that are to decide, whatever leaves their tests out."""
        self._report: Report | None = None
        self._guard = guard_of(config) or CrashGuard()
        self._warning = ""
        self._last_line = ""
        self._former_handlers: dict[int, Any] = {}
        cleanups = ExitStack()
        self._folder = cleanups.enter_context(temporary_folder(FOLDER_PREFIX))
        self.outcome_store = self._folder / "outcomes.sqlite3"
        # Cleanups run in reverse order. These are the first and so run last: pytest
        # may still warn of what other cleanups find.
        add_cleanup(config, self._restore_signals)
        add_cleanup(config, self._write_last_line)
        add_cleanup(config, cleanups.close)
        calling = not self._only_lists
        self._run = EngineRun(options, plan, config.rootpath, calling=calling)
        for feature in features:
            feature.prepare(self._run)
        if calling:
            self._open_engine()
        config.pluginmanager.register(self._results)

    def _open_engine(self) -> None:
        """Start the engine's process. Nothing here may have a thread yet: it is forked."""
        config = self._config
        store = self.outcome_store if self._distributed else None
        early_engine = config.stash.get(worker.EARLY_ENGINE, None)
        # Where the last tests may be left out, little is asked ahead of the tests.
        may_end_early = any(config.getoption(name, None) for name in MAY_END_EARLY)
        ahead = self._run.has_fixed_order or not may_end_early
        check_files(self._options.concurrency, self._workers)
        outcomes = self._run.open(store, early_engine, ahead=ahead)
        add_cleanup(config, self._run.host.stop)
        self._writers.start(self._guard.run)
        if not self._distributed:
            config.stash[worker.OUTCOMES] = outcomes

    # The beginning

    def pytest_report_header(self) -> list[str]:
        """Say what a shard may use of the run's limits."""
        return shard_header(self._options)

    def pytest_sessionstart(self) -> None:
        """Refuse a wrong ``-m`` or ``-k``; let other signals act as Ctrl-C; begin early."""
        # A wrong expression would be an internal error in xdist's workers.
        marks = self._config.pluginmanager.get_plugin("mark")
        if marks is not None:
            marks.pytest_collection_modifyitems(items=[], config=self._config)
        others = [number for number in stop_signals() if number != signal.SIGINT]
        self._handle_signals(signal.default_int_handler, others)
        reporter = self._reporter
        if reporter is not None and not self._only_lists:
            for line in self._run.calibrator.distrusted():
                reporter.write_line(line, yellow=True)
        if self._only_lists:
            return
        try:
            self._writers.wait()
        except UnwrittenError as error:
            self._is_over = True  # with nothing to report
            pytest.exit(str(error), int(pytest.ExitCode.INTERNAL_ERROR))
        if takes_all_items(self._config, self._files):
            self._run.lead(with_workers=self._distributed)

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Start local workers without the keys: only the engine's process calls anybody."""
        if os.name != "posix":
            return
        words = ["env"]
        for variable in self._run.key_variables:
            words += ["-u", variable]
        for spec in specs:
            if spec.popen and not spec.python:
                spec.python = shlex.join([*words, sys.executable])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Start when the first worker knows the selected tests; all workers agree on them."""
        goes_on_anyway = self._config.option.continue_on_collection_errors
        if self._results.other_failures and not goes_on_anyway:
            self._run.host.refuse("a test module could not be collected")
            return
        self._begin(ids)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        """Start without xdist; wait for the judge's calibration unless the run was cut short."""
        is_collected = (
            not session.testsfailed or self._config.option.continue_on_collection_errors
        )
        if is_collected and not (self._distributed or self._only_lists):
            self._begin([item.nodeid for item in session.items])
        result = yield
        while not self._run.is_judge_measured:
            time.sleep(JUDGE_POLL_SECONDS)
        return result

    def _begin(self, nodeids: Sequence[str]) -> None:
        """Start on the items of these tests; nothing where that is done, or there are none."""
        if self._results.selected_keys:
            return
        self._results.key_by_node = worker.read_keys(self.outcome_store)
        keys = self._results.planned_among(nodeids)
        self._results.selected_keys = keys
        check_collected(self._config, self._plan, keys)
        self._expected = expected_slices(self._config, self._plan)
        if not keys:
            return
        self._progress = Progress(
            planned=len(keys),
            started=time.monotonic(),
            priced=None not in self._run.pricing.values(),
        )
        self._run.start(keys)
        if len(keys) >= MIN_ITEMS_TO_PACK:
            self._start_packer()
        self._start_display()

    def _start_packer(self) -> None:
        """Start the process that packs transcripts, if there will be any."""
        if self._options.no_transcripts or not self._run.connected.models:
            return
        from qagate.reports.run.transcripts import Packer  # noqa: PLC0415  # only for large runs

        self._packer = Packer(self._folder)
        add_cleanup(self._config, self._packer.close)

    def _start_display(self) -> None:
        engine = self._run.host
        display = ProgressDisplay(
            self._config, self._progress, lambda: engine.status, self._guard.run
        )
        self._display = display
        add_cleanup(self._config, display.stop)
        display.start()

    # Listening

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Put the item first whose test is about to wait, unless the order is fixed."""
        if not self._run.has_fixed_order:
            self._run.host.move_to_front(self._results.key_of(nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a module that cannot be collected as a failure outside the gates."""
        if report.failed:
            self._results.other_failures += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test's report, and count the item when its test has ended."""
        self._results.note(report)
        if report.when != "teardown":
            return
        self._run.host.count_ended_test()
        key = self._results.key_of(report.nodeid)
        if key in self._plan.items:
            self._ended.add(key)
        self._count_items()

    def _count_items(self, *, all_left: bool = False) -> None:
        """Count the items whose tests have ended and whose outcomes are here."""
        outcomes = self._run.host.arrivals.outcomes
        for key, outcome in self._ended.take(outcomes, all_left=all_left):
            self._count_item(key, outcome)

    def _count_item(self, key: str, outcome: Outcome | None) -> None:
        self._progress.add(self._plan.items[key].slice.name, outcome)
        if outcome:
            # Make its record now, while replies are awaited, and not after the last one.
            self._results.record_of(key, outcome)
        if self._progress.done % TESTS_PER_TIDYING == 0:
            self._forget_silent_phases()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> TestStatus | None:
        """Call a counted miss ``missed``; it stays failed for JUnit, ``--lf`` and ``-rf``."""
        if str(report.outcome) == "rerun":
            return RERUN
        is_miss = getattr(report, "qa", "") == "miss" and report.when == "call"
        if not is_miss or self._options.gates_off:
            return None
        report_chars = self._config.option.reportchars
        is_default = report_chars == DEFAULT_REPORT_CHARS
        lists_failures = not set("faA").isdisjoint(report_chars)
        if lists_failures and not is_default:
            return None
        return MISSED

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Tell the user's interrupt from the early stops of xdist and pytest."""
        # pytest words the whole traceback next; a second Ctrl-C must not interrupt that.
        self._handle_signals(signal.SIG_IGN, stop_signals())
        is_early_stop = excinfo.typename == "Interrupted"  # of pytest.Session or xdist
        worker_heard_it_first = "keyboard-interrupt" in str(excinfo.value)
        self._interrupted = worker_heard_it_first or not is_early_stop

    # The end

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """Stop the engine, write the report and set the exit code."""
        code = self._end(int(exitstatus))
        session.exitstatus = code
        self._forget_silent_phases()
        result = yield
        session.exitstatus = code  # last: no other hook may set another
        return result

    def pytest_unconfigure(self) -> None:
        """Report on a run that was interrupted while its workers started."""
        if self._interrupted and not self._is_over:
            self._end(int(pytest.ExitCode.INTERRUPTED))

    def _end(self, code: int) -> int:
        """Stop the engine and write the report, if there is one; return the exit code.

        ``code`` is pytest's own. Without a report it stays, but for a broken test module.
        """
        self._is_over = True
        # A second signal must not cost the partial report; what follows takes seconds.
        self._handle_signals(signal.SIG_IGN, stop_signals())
        if self._only_lists:
            return code
        self._run.host.stop()
        self._count_items(all_left=True)
        if self._display is not None:
            self._display.stop()
        if self._interrupted and not self._results.selected_keys:
            self._results.selected_keys = self._all_planned()
        if self._results.selected_keys:
            return self._write_report(code)
        if code == pytest.ExitCode.NO_TESTS_COLLECTED and self._plan.shard:
            self._run.start(())  # an empty shard: `merge` must hear of it
            return self._write_report(0)
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return self._end_without_items(code)
        # A broken module is 1 in every mode, like a failure.
        is_stopped = code == pytest.ExitCode.INTERRUPTED and not self._interrupted
        if is_stopped and self._results.other_failures:
            return int(pytest.ExitCode.TESTS_FAILED)
        return code

    def _all_planned(self) -> tuple[str, ...]:
        """Return the keys of all items that would have had a test."""
        keys = []
        for dataset in self._plan.datasets:
            for item in self._plan.tests(dataset):
                keys.append(item.key)
        return tuple(keys)

    def _end_without_items(self, code: int) -> int:
        """Say that no item was selected; return 6 where a verdict was asked for, else ``code``."""
        from qagate.reports.gates import decide  # noqa: PLC0415  # only for such a run
        from qagate.reports.render.console import whole_run  # noqa: PLC0415

        if not self._plan.items:
            return code
        typed = typed_command(self._config.invocation_params.args)
        listing = f"all items by name: {whole_run(typed)} --collect-only -q"
        if not given_options(self._config.getoption):
            self._last_line = f"no item selected: exit {code}; {listing}"
            return code
        facts = decide.SessionFacts(expected=self._expected, pytest_code=code)
        decision = decide.decide((), facts)
        self._last_line = f"{decision.line}; {listing}"
        return decision.code

    def _write_report(self, code: int) -> int:
        """Write the report and return the exit code that it decides; ``code`` is pytest's own."""
        from qagate.reports.plugin.finish import finish  # noqa: PLC0415  # loaded while tests wait

        facts = self._session_facts(code)
        about = self._about_run()
        try:
            report, warning = finish(
                self._run, self._results, facts, about, self._packer
            )
        except (QAError, OSError) as error:
            # Not 1, which is a gate's FAIL: nobody saw the gates.
            code = int(pytest.ExitCode.INTERNAL_ERROR)
            self._last_line = f"REPORT NOT WRITTEN: exit {code}; {error}"
            return code
        except Exception as error:  # noqa: BLE001  # as above
            self._guard.note(crash_of(error))
            return CRASHED
        self._report = report
        self._warning = warning
        self._last_line = report.decision.line
        self._run.note_end(report.decision.code)
        return int(report.decision.code)

    def _session_facts(self, code: int) -> "SessionFacts":
        """Return how the session ended, as far as pytest and its workers know."""
        from qagate.reports.gates import decide  # noqa: PLC0415  # loaded while tests wait

        crash = self._run.host.status.crash
        if crash is not None:
            self._guard.note(crash)
        notes = []
        reruns = rerun_settings(self._config)
        if reruns:
            notes.append(f"failing tests were run again: {', '.join(reruns)}")
        untested = self._results.graded_without_test(self._run.host.arrivals.outcomes)
        if untested:
            items = plural(untested, "item")
            notes.append(f"{items} graded without a test: the workers died")
        return decide.SessionFacts(
            pytest_code=code,
            failures=self._results.other_failures,
            interrupted=self._interrupted,
            replies_kept=self._run.host.status.kept,
            crash=self._guard.line,
            expected=self._expected,
            notes=tuple(notes),
        )

    def _about_run(self) -> dict[str, object]:
        """Return the first entries of ``run`` in ``run.json``."""
        return {
            "id": self._folder.name.removeprefix(FOLDER_PREFIX),
            "started": self._started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._progress.started, 1),
            "command": typed_command(self._config.invocation_params.args),
            "workers": self._workers,
        }

    def _forget_silent_phases(self) -> None:
        """Drop the reports of phases without output: pytest searches them for every failure."""
        reporter = self._reporter
        if reporter is None or "" not in reporter.stats:
            return
        with_output = []
        for report in reporter.stats[""]:
            if getattr(report, "sections", None):
                with_output.append(report)
        reporter.stats[""] = with_output

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Show the slices and the gates."""
        if self._report is not None:
            from qagate.reports.plugin.terminal import show_report  # noqa: PLC0415

            show_report(terminalreporter, self._report, self._options.report_dir)
        if self._warning:
            terminalreporter.write_line(f"warning: {self._warning}")

    def _write_last_line(self) -> None:
        """Write the verdict, or why there is none, below all that pytest writes."""
        reporter = self._reporter
        line = self._guard.line or self._last_line
        if not line or reporter is None:
            return
        colour = "red"
        if self._report is not None and not self._guard.line:
            colour = LAST_LINE_COLOURS.get(self._report.decision.code, colour)
        reporter.ensure_newline()
        reporter.write_line(line, bold=True, **{colour: True})
        reporter.flush()

    @property
    def _workers(self) -> int:
        """The number of xdist's workers."""
        return int(getattr(self._config.option, "numprocesses", 0) or 0)

    @property
    def _reporter(self) -> Any:
        """The terminal reporter of pytest; None without one."""
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _handle_signals(self, handler: Any, signals: Iterable[signal.Signals]) -> None:
        """Let this handler have these signals until ``_restore_signals``."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python sets handlers in the main thread only
        for number in signals:
            former = signal.signal(number, handler)
            self._former_handlers.setdefault(number, former)

    def _restore_signals(self) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)
