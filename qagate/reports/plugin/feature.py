"""What a feature of the plugin is: an option of a run with hooks of its own.

A feature is made and registered with pytest only in a run that names its option (see
``doors.FEATURES``). It may have any hooks of pytest, and it may take part in the start of a
run by the methods below. The rest of the plugin does not know which features there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from qagate.cases.dataset import Plan
    from qagate.reports.plugin.options import RunOptions
    from qagate.reports.plugin.run import EngineRun


class Feature:
    """A feature that changes nothing; others override what they need."""

    is_rehearsal: ClassVar[bool] = False
    """Whether the feature shows a run instead of making it.

    Then no model is asked, no report is written, and ``rehearse`` is called in place of
    making the controller.
    """

    def order(self, plan: Plan, options: RunOptions) -> Plan:
        """Return the plan, its items in the order in which they are to be asked.

        Raises UsageError where the feature cannot do its work with this plan.
        """
        return plan

    def prepare(self, run: EngineRun) -> None:
        """Change a run before its engine is opened."""

    def rehearse(self, options: RunOptions, plan: Plan, root: Path) -> None:
        """Take over the plan. Called of a rehearsal alone; ``root`` is pytest's rootdir."""
