"""The controller's hooks: start the engine, listen to the tests, write the report, set the code."""

import shlex
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qagate.cases.dataset import Plan
from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.output import plural
from qagate.reports.plugin import worker
from qagate.reports.plugin.options import CHOOSING, RunOptions, check_collected, shares
from qagate.reports.plugin.progress import Progress, ProgressDisplay
from qagate.reports.plugin.run import EngineRun
from qagate.reports.run.clean import mask

if TYPE_CHECKING:
    from qagate.reports.run.report import Report
    from qagate.reports.run.transcripts import Packer

POLL_SECONDS = 0.02
TIDY_EVERY = 500  # items
MANY = 1_000  # items: for fewer, another process takes longer to start than it saves
COLOURS = {
    0: "green",
    6: "yellow",
}  # of the last line, by exit code; other codes are red
TestStatus = tuple[str, str, str | tuple[str, Mapping[str, bool]]]
"""pytest's category, letter and word of a report; the word may come with its colour."""
MISSED: TestStatus = ("missed", "m", ("MISSED", {"yellow": True}))
DEFAULT_REPORT_CHARS = "fE"  # pytest's default for -r
NARROWING = (
    *("qa_shard", *CHOOSING, "collectonly", "setuponly", "setupplan", "showfixtures"),
    *("show_fixtures_per_test", "cacheshow", "pyargs", "doctestmodules"),
)
"""Options that drop tests, or run none."""
MAY_END_EARLY = ("maxfail", "stepwise", "usepdb", "trace")
"""pytest's options that may end a run before its last test."""
HOOKS = (
    *("pytest_collection", "pytest_collect_directory", "pytest_collection_modifyitems"),
    *("pytest_ignore_collect", "pytest_pycollect_makeitem"),
)
"""Where a plugin may drop tests."""
IGNORING = ("collect_ignore", "collect_ignore_glob")
"""What a conftest.py calls the files that pytest is to skip."""
KNOWN = (
    "_pytest.",
    "xdist.",
    "qagate.door",
    "qagate.reports.plugin",
    "_hypothesis_pytestplugin",
    "anyio.",
    "pytest_asyncio.",
)
"""Plugins that drop no test unless one of the options above tells them to."""
LAST_BROUGHT = "ignore::pytest.PytestAssertRewriteWarning"
"""The last word that ``qagate run`` puts before the user's own; see commands/run.py."""


class Controller:
    """The hooks of the process that the user started."""

    def __init__(
        self,
        config: pytest.Config,
        options: RunOptions,
        plan: Plan,
        files: Sequence[Path],
    ) -> None:
        if not options.gates_off:
            worker.refuse_reruns(config)
        if config.option.setupplan:
            what = "models are asked before any test, and would be paid; give --dry-run"
            raise UsageError(f"--setup-plan: {what} or --collect-only")
        self._config, self._options = config, options
        self._plan, self._files = plan, files
        self._lists = config.option.collectonly
        self._results = worker.SessionResults(plan)
        self._started = datetime.now(UTC)
        self._progress = Progress(planned=0, started=time.monotonic())
        self._display: ProgressDisplay | None = None
        self._interrupted = self._is_over = False
        self._left_out: tuple[str, ...] = ()
        self._report: Report | None = None
        self._packer: Packer | None = None
        self._last_line = self._warning = ""
        self._folder = Path(tempfile.mkdtemp(prefix="qa-"))
        self._former_handlers: dict[int, Any] = {}
        # The first of the cleanups and so done last: pytest may yet warn of what it finds.
        config.add_cleanup(self._say_and_restore)
        config.add_cleanup(lambda: shutil.rmtree(self._folder, ignore_errors=True))
        self.outcome_store = self._folder / "outcomes.sqlite3"
        self._distributed = bool(getattr(config.option, "tx", None))
        self._run = EngineRun(options, plan, config.rootpath, calling=not self._lists)
        if (
            not self._lists
        ):  # start the engine's process, before anything here has a thread
            store = self.outcome_store if self._distributed else None
            # Where the last tests may be left out, little is asked ahead of the tests.
            may_end_early = any(
                getattr(config.option, name, None) for name in MAY_END_EARLY
            )
            ahead = options.until_decided or not may_end_early
            arrivals = self._run.open(
                store, config.stash.get(worker.EARLY, None), ahead=ahead
            )
            config.add_cleanup(self._run.host.stop)
            if not self._distributed:
                config.stash[worker.OUTCOMES] = arrivals
        config.pluginmanager.register(self._results)

    def pytest_report_header(self) -> list[str]:
        """Say what a shard may use of the run's limits."""
        return shares(self._options)

    def pytest_sessionstart(self) -> None:
        """Refuse a wrong ``-m`` or ``-k``; let SIGTERM act as Ctrl-C; begin early if possible."""
        # A wrong expression would be an internal error in xdist's workers.
        marks = self._config.pluginmanager.get_plugin("mark")
        if marks is not None:
            marks.pytest_collection_modifyitems(items=[], config=self._config)
        self._handle_signals(signal.default_int_handler, signal.SIGTERM)
        if (reporter := self._reporter) is not None and not self._lists:
            for line in self._run.calibrator.distrusted():
                reporter.write_line(line, yellow=True)
        if takes_everything(self._config, self._files):
            self._run.lead(with_workers=self._distributed)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Start when the first worker knows the selected tests; all workers agree on them."""
        if (
            self._results.other_failures
            and not self._config.option.continue_on_collection_errors
        ):
            self._run.host.refuse("a test module could not be collected")
        else:
            self._begin(ids)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        """Start without xdist; wait for the judge's calibration unless the run was cut short."""
        collected = (
            not session.testsfailed or self._config.option.continue_on_collection_errors
        )
        if collected and not (self._distributed or self._lists):
            self._begin([item.nodeid for item in session.items])
        result = yield
        while not self._run.is_judge_measured:
            time.sleep(POLL_SECONDS)
        return result

    def _begin(self, nodeids: Sequence[str]) -> None:
        if self._results.planned:
            return
        self._results.planned = keys = self._results.known(nodeids)
        self._left_out = check_collected(self._config, self._plan, keys)
        if keys:
            started, priced = time.monotonic(), None not in self._run.pricing.values()
            self._progress = Progress(planned=len(keys), started=started, priced=priced)
            self._run.start(keys)

            def prepare() -> (
                None
            ):  # load the report's writers while replies are awaited
                import_module("qagate.reports.plugin.finish").prepare()

            threading.Thread(target=prepare, name="qa-end", daemon=True).start()
            is_large = len(keys) >= MANY and not self._options.no_transcripts
            if is_large and self._run.connected.models:
                from qagate.reports.run.transcripts import Packer  # noqa: PLC0415

                self._packer = Packer(self._folder)
                self._config.add_cleanup(self._packer.close)
            host = self._run.host
            self._display = ProgressDisplay(
                self._config, self._progress, lambda: host.status
            )
            self._config.add_cleanup(self._display.stop)
            self._display.start()

    # Listening

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Put the item first whose test is about to wait; the order of --until-decided is fixed."""
        if not self._options.until_decided:
            self._run.host.move_to_front(worker.key_of(nodeid))

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
        key = worker.key_of(report.nodeid)
        if key in self._plan.items:
            outcome = self._run.host.arrivals.outcomes.get(key)
            self._progress.add(self._plan.items[key].slice.name, outcome)
            if outcome:
                self._results.record(
                    key, outcome
                )  # while others are out, not after them
            if self._progress.done % TIDY_EVERY == 0:
                self._forget_silent_phases()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> TestStatus | None:
        """Call a counted miss ``missed``; it stays failed for JUnit, ``--lf`` and ``-rf``."""
        if str(report.outcome) == "rerun":
            return "rerun", "R", "RERUN"
        is_miss = getattr(report, "qa", "") == "miss" and report.when == "call"
        chars = self._config.option.reportchars
        asked_for = chars != DEFAULT_REPORT_CHARS and not set("faA").isdisjoint(chars)
        return (
            MISSED if is_miss and not (asked_for or self._options.gates_off) else None
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Tell the user's interrupt from the early stops of xdist and pytest."""
        # pytest words the whole traceback next; a second Ctrl-C must not interrupt that.
        self._handle_signals(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM)
        early_stop = excinfo.typename == "Interrupted"  # of pytest.Session or of xdist
        by_user = "keyboard-interrupt" in str(
            excinfo.value
        )  # a worker heard Ctrl-C first
        self._interrupted = by_user or not early_stop

    # The end

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """Stop the engine, write the report and set the exit code."""
        session.exitstatus = self._end(int(exitstatus))
        self._forget_silent_phases()
        return (yield)

    def pytest_unconfigure(self) -> None:
        """Report on a run that was interrupted while its workers started."""
        if self._interrupted and not self._is_over:
            self._end(int(pytest.ExitCode.INTERRUPTED))

    def _end(self, code: int) -> int:
        self._is_over = True
        # A second signal must not cost the partial report; what follows takes seconds.
        self._handle_signals(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM)
        if self._lists:
            return code
        self._run.host.stop()
        if self._display is not None:
            self._display.stop()
        if self._interrupted and not self._results.planned:
            every = (self._plan.tests(dataset) for dataset in self._plan.datasets)
            self._results.planned = tuple(item.key for some in every for item in some)
        if self._results.planned:
            return self._finish(code)
        if code == pytest.ExitCode.NO_TESTS_COLLECTED and self._plan.shard:
            self._run.start(())  # an empty shard: `merge` must hear of it
            return self._finish(0)
        if code == pytest.ExitCode.NO_TESTS_COLLECTED and self._plan.items:
            from qagate.reports.render.console import whole_run  # noqa: PLC0415  # only for such a run

            names = f"{whole_run(_command(self._config))} --collect-only -q"
            self._last_line = (
                f"no item selected: exit {code}; all items by name: {names}"
            )
        # No report. A broken module is 1 in every mode, like a failure.
        stopped = code == pytest.ExitCode.INTERRUPTED and not self._interrupted
        return 1 if stopped and self._results.other_failures else code

    def _finish(self, code: int) -> int:
        from qagate.reports.gates.decide import SessionFacts  # noqa: PLC0415  # loaded while tests wait
        from qagate.reports.plugin.finish import finish  # noqa: PLC0415

        again = ", ".join(worker.rerun_settings(self._config))
        notes = [f"failing tests were run again: {again}"] if again else []
        if untested := self._results.untested(self._run.host.arrivals.outcomes):
            notes.append(
                f"{plural(untested, 'item')} graded without a test: the workers died"
            )
        ended = SessionFacts(
            pytest_code=code,
            failures=self._results.other_failures,
            interrupted=self._interrupted,
            left_out=self._left_out,
            notes=tuple(notes),
        )
        about = {
            "id": self._folder.name.removeprefix("qa-"),
            "started": self._started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._progress.started, 1),
            "command": _command(self._config),
            "workers": int(getattr(self._config.option, "numprocesses", 0) or 0),
        }
        try:
            made = finish(self._run, self._results, ended, about, self._packer)
            self._report, self._warning = made
        except (QAError, OSError) as error:
            code = int(
                pytest.ExitCode.INTERNAL_ERROR
            )  # not 1, a gate's FAIL: nobody saw the gates
            self._last_line = f"REPORT NOT WRITTEN: exit {code}; {error}"
            return code
        self._last_line = self._report.decision.line
        return int(self._report.decision.code)

    def _forget_silent_phases(self) -> None:
        """Drop phases without output: pytest searches them for every failure."""
        reporter = self._reporter
        if reporter is not None and "" in reporter.stats:
            kept = [
                report
                for report in reporter.stats[""]
                if getattr(report, "sections", None)
            ]
            reporter.stats[""] = kept

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Show the slices and the gates."""
        if self._report is not None:
            from qagate.reports.plugin.finish import show_report  # noqa: PLC0415

            show_report(terminalreporter, self._report, self._options.report_dir)
        if self._warning:
            terminalreporter.write_line(f"warning: {self._warning}")

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _say_and_restore(self) -> None:
        if self._last_line and (reporter := self._reporter) is not None:
            reporter.ensure_newline()
            code = self._report.decision.code if self._report else 1
            reporter.write_line(
                self._last_line, bold=True, **{COLOURS.get(code, "red"): True}
            )
            reporter.flush()
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    def _handle_signals(self, handler: Any, *numbers: signal.Signals) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                self._former_handlers.setdefault(number, signal.signal(number, handler))


def _command(config: pytest.Config) -> str:
    """Return what the user typed, without keys: ``qagate run`` brings options of its own."""
    typed = ["pytest", *map(str, config.invocation_params.args)]
    if typed[1:2] == ["-p"] and LAST_BROUGHT in typed:
        typed = ["qagate", "run", *typed[typed.index(LAST_BROUGHT) + 1 :]]
    return mask(shlex.join(typed))


def takes_everything(config: pytest.Config, files: Sequence[Path]) -> bool:
    """Whether probably nothing drops a test of these files; a wrong True costs little."""
    only_first = (config.getoption("qa_limit") or "").startswith("first")
    plugins = config.pluginmanager.get_plugins()
    folders = [
        Path(config.invocation_params.dir, word).resolve() for word in config.args
    ]
    hooks = (
        one
        for name in HOOKS
        for one in getattr(config.pluginmanager.hook, name).get_hookimpls()
    )
    unknown = [one.plugin for one in hooks if not one.plugin_name.startswith(KNOWN)]
    modules = (
        str(getattr(one, "__name__", "") or type(one).__module__) for one in unknown
    )
    return not (
        only_first
        or any(getattr(config.option, name, None) for name in NARROWING)
        or any(getattr(plugin, name, None) for plugin in plugins for name in IGNORING)
        or not all(name.startswith(KNOWN) for name in modules)
        or not all(folder.is_dir() for folder in folders)
        or not all(
            _is_collected(file.parent.resolve(), folders, config) for file in files
        )
    )


def _is_collected(home: Path, folders: Collection[Path], config: pytest.Config) -> bool:
    """Whether pytest will probably find a test with the ``qa`` marker in a dataset's folder."""

    def matches(name: str, setting: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in config.getini(setting))

    above = [
        one for one in (home, *home.parents) if any(map(one.is_relative_to, folders))
    ]
    plugins = config.pluginmanager.get_plugins()
    loaded = {
        Path(str(getattr(plugin, "__file__", ""))).resolve() for plugin in plugins
    }
    for one in above:
        conftest = one / "conftest.py"
        if conftest.exists() and conftest.resolve() not in loaded:  # it may drop tests
            return False
        if one not in folders and matches(one.name, "norecursedirs"):
            return False
    modules = (one for one in home.glob("*.py") if matches(one.name, "python_files"))
    has_test = any(one.is_file() and b"mark.qa" in one.read_bytes() for one in modules)
    return bool(above) and has_test
