"""What the terminal calls a test: a miss that gates count is no failure, nor is a first try."""

from collections.abc import Mapping

import pytest

from reports.plugin.options import RunOptions

LISTED = "fE"  # what pytest lists at the end unless -r says otherwise
Status = tuple[str, str, str | tuple[str, Mapping[str, bool]]]
"""pytest's: category, letter, word, the last with its colour if it has one."""

RERUN: Status = ("rerun", "R", "RERUN")
MISSED: Status = ("missed", "m", ("MISSED", {"yellow": True}))


class StatusWords:
    """The controller's hook for the words of a test report.

    The report of a miss stays failed, for JUnit and ``--lf``. With ``-rf`` and ``--gates off``
    pytest lists misses as the failures that they are to it.
    """

    def __init__(self, config: pytest.Config, options: RunOptions) -> None:
        self._config = config
        self._options = options

    @property
    def _shows_misses(self) -> bool:
        chars = self._config.option.reportchars
        listed = chars != LISTED and not set("faA").isdisjoint(chars)
        return listed or self._options.gates_off

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Status | None:
        """Name the report of an item that is tried again, and that of a miss.

        All others keep pytest's own words.
        """
        if str(report.outcome) == "rerun":
            return RERUN
        is_miss = getattr(report, "qa", "") == "miss" and report.when == "call"
        return MISSED if is_miss and not self._shows_misses else None
