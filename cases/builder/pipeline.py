"""Doing the steps that are not done, and saying what came of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cases.builder.folder import REPORT, Values
from cases.builder.items import BuildError, Item
from cases.builder.office import Office
from cases.builder.options import ALL
from cases.builder.plan import Build
from cases.builder.report import Files, report, summary
from cases.builder.steps import STEPS
from evaluators.core import UsageProblem
from evaluators.models.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The steps of one command."""

    build: Build

    def run(self) -> dict[str, object]:
        """Do the steps that were asked for and return the report.

        Everything that can be wrong with the options is looked at before anything is done. Raises
        UsageProblem for that, BuildError where a step could not be finished.
        """
        step = self.build.options.step
        names = list(STEPS) if step == ALL else [step]
        settled = {name: STEPS[name].settle(self.build) for name in names}
        office = Office(self.build.options.calling, self._specs(settled), self.build.say)
        for name in names:
            self._step(name, settled[name], office)
        return self.report()

    def report(self) -> dict[str, object]:
        """Return the counts of all steps made so far, and write them beside the rows."""
        folder = self.build.folder
        files: Files = {name: folder.read(name) for name in STEPS if folder.made(name)}
        found = report(files, self.build.recipe.question.negations)
        folder.write_json(REPORT, found)
        return found

    def _specs(self, settled: Mapping[str, Values]) -> list[Spec]:
        """Return the models that will be asked: those from the first step on that is not done."""
        names = list(settled)
        begin = next((at for at, name in enumerate(names) if not self._is_done(name)), len(names))
        return [
            self.build.spec(option, settled[name][option])
            for name in names[begin:]
            for option in STEPS[name].models
        ]

    def _step(self, name: str, values: Values, office: Office) -> None:
        build, step = self.build, STEPS[name]
        if self._is_done(name):
            build.say(f"{summary(name, build.folder.read(name))} (done before)")
            return
        source = build.folder.output(step.after) if step.after else ""
        items = step.work(build, values, self._before(name), office)
        build.folder.publish(name, items, step.record(values), source)
        build.say(summary(name, items))
        self.report()
        pending = [item for item in items if item.state == "pending"]
        if pending:
            raise BuildError(_unfinished(name, pending))

    def _before(self, name: str) -> Sequence[Item]:
        """Return the items that a step takes."""
        after = STEPS[name].after
        if not after:
            return ()
        folder = self.build.folder
        if not folder.made(after):
            msg = f"build: {name} comes after {after}, which is not done; run `{after}` first"
            raise UsageProblem(msg)
        items = folder.read(after)
        pending = [item for item in items if item.state == "pending"]
        if pending:
            raise BuildError(_unfinished(after, pending))
        return [item for item in items if item.state == "kept"]

    def _is_done(self, name: str) -> bool:
        folder, after = self.build.folder, STEPS[name].after
        if not folder.made(name) or folder.input(name) != (folder.output(after) if after else ""):
            return False
        return all(item.state != "pending" for item in folder.read(name))


def _unfinished(name: str, pending: Sequence[Item]) -> str:
    why = next((item for item in pending if item.reason != "stopped"), pending[0])
    return (
        f"{name}: {len(pending)} items are not done ({why.detail}); run the command again to go on"
    )
