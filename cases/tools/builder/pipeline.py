"""Doing the steps that are not done, and saying what came of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from cases.tools.builder.arguments import ALL
from cases.tools.builder.folder import REPORT, Folder, Values
from cases.tools.builder.items import FAILURES, BuildError, Item, left_out
from cases.tools.builder.office import ModelOffice
from cases.tools.builder.people import DISPUTED
from cases.tools.builder.plan import Build
from cases.tools.builder.report import Files, report, summary
from cases.tools.builder.steps import STEPS
from evaluators.core import UsageError
from evaluators.models.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The steps of one command."""

    build: Build

    def run(self) -> dict[str, object]:
        """Do the steps that were asked for and return the report.

        Everything that can be wrong with the options is looked at before anything is done. Raises
        UsageError for that, BuildError where a step could not be finished.
        """
        step = self.build.options.step
        alone = [name for name, one in STEPS.items() if not one.people]
        names = alone if step == ALL else [step]
        settled = {name: STEPS[name].settle(self.build) for name in names}
        office = ModelOffice(self.build.options.calling, self._specs(settled), self.build.say)
        for name in names:
            self._step(name, settled[name], office)
        return self.report()

    def report(self) -> dict[str, object]:
        """Return the counts of all steps made so far, and write them beside the rows."""
        folder = self.build.folder
        found = report(current(folder), self.build.recipe.question.negations)
        folder.write_json(REPORT, found)
        return found

    def _specs(self, settled: Mapping[str, Values]) -> list[Spec]:
        """Return the models that will be asked: those from the first step on that is not done."""
        names = list(settled)
        left = (at for at, name in enumerate(names) if not self._is_done(name, settled[name]))
        begin = next(left, len(names))
        return [
            self.build.spec(option, settled[name][option])
            for name in names[begin:]
            for option in STEPS[name].models
        ]

    def _step(self, name: str, values: Values, office: ModelOffice) -> None:
        build, step = self.build, STEPS[name]
        if self._is_done(name, values):
            build.say(f"{summary(name, build.folder.read(name))} (done before)")
            self._finish(name, values)
            return
        source = build.folder.output(step.after) if step.after else ""
        items = step.work(build, values, self._before(name), office)
        if step.models and build.options.leave_out_failed:
            items = left_out(items)
        build.folder.publish(name, items, step.record(values), source)
        build.say(summary(name, items))
        self.report()
        self._finish(name, values)
        pending = [item for item in items if item.state == "pending"]
        if pending:
            raise BuildError(_unfinished(name, pending))

    def _finish(self, name: str, values: Values) -> None:
        if finish := STEPS[name].finish:
            finish(self.build, values, self.report())

    def _before(self, name: str) -> Sequence[Item]:
        """Return the items that a step takes."""
        after = STEPS[name].after
        if not after:
            return ()
        folder = self.build.folder
        if not _is_whole(folder, after):
            msg = f"build: {name} comes after {after}, which is not done; run `{after}` first"
            raise UsageError(msg)
        items = folder.read(after)
        pending = [item for item in items if item.state == "pending"]
        if pending:
            raise BuildError(_unfinished(after, pending))
        return [item for item in items if item.state == "kept"]

    def _is_done(self, name: str, values: Values) -> bool:
        folder, step = self.build.folder, STEPS[name]
        if not is_current(folder, name):
            return False
        if step.renewed and folder.options(name) != step.record(values):
            return False
        return all(item.state != "pending" for item in folder.read(name))


def is_current(folder: Folder, name: str) -> bool:
    """Return whether a step is made, and from what the step before it holds now."""
    after = STEPS[name].after
    return folder.made(name) and folder.input(name) == (folder.output(after) if after else "")


def _is_whole(folder: Folder, name: str) -> bool:
    """Return whether a step and all those before it are as they would be made now."""
    return not name or (is_current(folder, name) and _is_whole(folder, STEPS[name].after))


def current(folder: Folder) -> Files:
    """Return the rows of all steps up to the first that is not made, or made from older rows."""
    return {name: folder.read(name) for name in takewhile(partial(is_current, folder), STEPS)}


def _unfinished(name: str, pending: Sequence[Item]) -> str:
    why = next((item for item in pending if item.reason != "stopped"), pending[0])
    advice = _owed(why.reason) if STEPS[name].people else _again(why.reason)
    return f"{name}: {len(pending)} items are not done ({why.detail}); {advice}"


def _owed(reason: str) -> str:
    if reason in DISPUTED:
        return "run accept with that person's file"
    return "run accept with the files that are still out, or with --unreviewed"


def _again(reason: str) -> str:
    advice = "run the command again to go on"
    if reason in FAILURES:
        return f"{advice}; --leave-out-failed drops what fails every time"
    return advice
