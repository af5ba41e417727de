"""Canaries: kept grades that a run asks anew before any kept grade counts.

A judge's model may have changed while its name stayed. So before it uses kept grades, a run
asks some of them past the ledger, and compares (``judges/drift.py`` says which and how many).
The new replies stand beside the older ones and are the newest. Where too many differ, the
ledger notes that the older ones are void: they are asked anew, in this run and in later ones.

Meanwhile items are answered. Only judges wait, in the ``ask`` that ``Canaries.asking`` gives
them: what a judge has not asked for yet cannot be a grade that is void.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack
from dataclasses import dataclass

from qagate.evaluators import core
from qagate.evaluators.answers.reader import read_text
from qagate.evaluators.core import (
    CallError,
    JudgeError,
    Model,
    RefusedError,
    Reply,
    Request,
)
from qagate.evaluators.judges.drift import (
    CanaryResult,
    GradeSide,
    JudgePlace,
    draw,
    judged_by,
    voids_of,
)
from qagate.evaluators.judges.members import judging_models
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.kept import NEVER, Kept
from qagate.evaluators.ledger.voids import JudgedPart, void, voided_since
from qagate.evaluators.models.versions import version_of
from qagate.evaluators.runtime.caller import Caller, Meter
from qagate.evaluators.runtime.item_worker import JUDGING_GRACE_SECONDS, ItemWorker
from qagate.evaluators.runtime.task import CallsRight, Task
from qagate.evaluators.text import canonical
from qagate.evaluators.typed_data import Timestamp, encode

CANARIES = "canaries"
"""The kind of a document with the results of a run's canaries, under the id of the run."""

EARLIER_ROLES = ("baseline", "anchor")
"""The readings that are drawn from, in this order; after them come labelled answers."""

LOOK_UPS_AT_ONCE = 100
"""Between so many look-ups others have their turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedAnswer:
    """An answer that a judge may have graded in an earlier run."""

    case: core.Case
    answer: str
    judge: core.Judge
    calls_right: CallsRight
    rank: int
    """How early it is drawn: 0 for answers of the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGrade:
    """A grade that a model gave in an earlier run, and that would count in this one."""

    graded: GradedAnswer
    member: RubricJudge
    """The model's judge, such as a member of a panel."""
    key: str
    """The ledger key of the request that brought it."""
    label: str
    side: GradeSide
    version: str
    """What the provider called the model; empty if that is no version."""

    @property
    def rank(self) -> int:
        """How early it is drawn."""
        return self.graded.rank

    @property
    def place(self) -> JudgePlace:
        """Who gave it, in which language and by which rubric."""
        return JudgePlace(
            judge=self.member.spec,
            language=self.graded.case.language,
            rubric=self.member.rubric.version,
        )

    @property
    def result_place(self) -> JudgePlace:
        """Where it is counted: grades that pass in all places together."""
        return self.place.everywhere if self.side == "right" else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGrade:
    """What came when a kept grade was asked anew."""

    kept: KeptGrade
    is_lacking: bool = False
    """Whether the model could not be asked."""
    differs: bool = False
    version: str = ""
    """What the provider calls the model then and now; empty where that is the same."""


class Canaries:
    """The canaries of one run, in the loop of its engine.

    Attributes::

    :results: What they showed, once they are over.

    :usage: What they took.

    :_are_over: Set once it is known which kept grades count.

    :_since: From when on grades of a judge in a language and rubric count.

    :_as_of: When a run that is replayed had its canaries: what was found later, in another
       run, does not concern it.
    """

    def __init__(self, tasks: Mapping[str, Task], caller: Caller, at_once: int) -> None:
        self.results: tuple[CanaryResult, ...] = ()
        self.usage = core.Usage()
        self._tasks = tasks
        self._caller = caller
        self._at_once = at_once
        self._are_over = asyncio.Event()
        self._as_of = math.inf
        self._since: dict[JudgePlace, float] = {}

    # What judges ask through

    def asking(self, meter: Meter, case: core.Case) -> core.Ask:
        """Return the ``ask`` of a judge; it waits until it is known which kept grades count."""

        async def ask(model: Model, request: Request) -> Reply:
            await self._wait(meter)
            return await self._ask(meter, case, model, request)

        return ask

    def _asking_at_once(self, meter: Meter, case: core.Case) -> core.Ask:
        """Return an ``ask`` that does not wait, for looking what is kept."""

        async def ask(model: Model, request: Request) -> Reply:
            return await self._ask(meter, case, model, request)

        return ask

    async def _ask(
        self, meter: Meter, case: core.Case, model: Model, request: Request
    ) -> Reply:
        place = JudgePlace(
            judge=model.spec, language=case.language, rubric=request.version
        )
        kept = Kept(run=self._caller.run.id, since=self._counts_since(place, model))
        return await self._caller.metered(meter, judging=kept)(model, request)

    def _counts_since(self, place: JudgePlace, model: Model) -> float:
        if place not in self._since:
            since = voided_since(self._caller.ledger, _part(place, model))
            self._since[place] = since if since <= self._as_of else 0.0
        return self._since[place]

    async def _wait(self, meter: Meter) -> None:
        if self._are_over.is_set():
            return
        meter.waiting += 1  # a batch goes when every item waits
        try:
            await self._are_over.wait()
        finally:
            meter.waiting -= 1

    # The canaries

    async def run(self, selection: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Ask the canaries of a run over the items whose keys ``selection`` brings.

        Judges go on as soon as it has ended, however it did. Raises LedgerError.
        """
        # Until the canaries are chosen a batch is held back, so that they go with the first one.
        with ExitStack() as held_back:
            try:
                if any(judged_places(self._tasks.values())):
                    held_back.enter_context(self._caller.route.item(self._meter()))
                    keys = await selection()
                    selected = [self._tasks[key] for key in keys if key in self._tasks]
                    self.results = await self._results(selected, held_back)
            finally:
                self._are_over.set()

    async def _results(
        self, selected: Sequence[Task], held_back: ExitStack
    ) -> tuple[CanaryResult, ...]:
        """Return what the canaries show: this run's, or where it asks nothing the latest ones.

        Closes what is ``held_back`` once the canaries are at work.
        """
        known = self._known_results()
        grades = await self._kept_grades(set(judged_places(selected)))
        canaries = [
            canary
            for canary in draw(grades, self._caller.run.id)
            if canary.result_place not in known
        ]
        if not canaries:
            return tuple(known.values())
        if not known and await self._asks_nothing(selected):
            latest = latest_results(self._caller.ledger)
            return tuple(
                latest[place] for place in _places_of(canaries) if place in latest
            )
        began = time.time()
        new = _counted(await self._ask_anew(canaries, held_back))
        results = judged_by([*known.values(), *new.values()])
        if self._caller.run.id and not self._caller.is_replay:
            await self._keep(results, canaries, began)
        return results

    def _known_results(self) -> dict[JudgePlace, CanaryResult]:
        """Return the results that this run has already: it asks once, in whatever attempt."""
        run = self._caller.run.id
        documents = self._caller.ledger.documents_as(CANARIES, KeptResults, [run])
        kept: KeptResults | None = documents.get(run)
        if kept is None:
            return {}
        if self._caller.is_replay:
            self._as_of = kept.at
            self._since.clear()
        return kept.by_place

    async def _kept_grades(self, places: Collection[JudgePlace]) -> list[KeptGrade]:
        """Return the kept grades in these places that would count, each once."""
        wanted = []
        for graded in graded_answers(self._tasks.values()):
            for member in judging_models(graded.judge):
                if judge_place(graded.case, member) in places:
                    wanted.append((graded, member))
        grades: dict[tuple[str, str], KeptGrade] = {}
        for start in range(0, len(wanted), LOOK_UPS_AT_ONCE):
            looking = [
                self._kept_grade(graded, member)
                for graded, member in wanted[start : start + LOOK_UPS_AT_ONCE]
            ]
            for grade in await asyncio.gather(*looking):
                if grade is not None:
                    grades.setdefault((grade.member.spec, grade.key), grade)
            await asyncio.sleep(0)
        return list(grades.values())

    async def _kept_grade(
        self, graded: GradedAnswer, member: RubricJudge
    ) -> KeptGrade | None:
        """Return the grade that an earlier run kept of an answer, or None."""
        place = judge_place(graded.case, member)
        kept = Kept(
            since=self._counts_since(place, member.model), without=self._caller.run.id
        )
        meter = self._meter(kept_only=True)
        ask = self._caller.metered(meter, judging=kept)
        try:
            verdict = await member.judge(graded.case, graded.answer, ask)
        except (CallError, JudgeError):
            return None
        if not meter.calls:  # the answer has no content, and no model was asked
            return None
        return KeptGrade(
            graded=graded,
            member=member,
            key=meter.calls[0],
            label=verdict.label,
            side=side_of(verdict, graded.calls_right),
            version=_version(member, meter),
        )

    async def _asks_nothing(self, tasks: Sequence[Task]) -> bool:
        """Return whether all that a run asks is kept: then it asks no canaries either."""
        worker = ItemWorker(self._caller, ask_judge=self._asking_at_once)
        for task in tasks:
            meter = self._meter(kept_only=True)
            meter.is_answered = False
            await worker.outcome(task, meter)
            if meter.missed:
                return False
            await asyncio.sleep(0)
        return True

    async def _ask_anew(
        self, canaries: Sequence[KeptGrade], held_back: ExitStack
    ) -> list[NewGrade]:
        """Return the new grades of canaries; in a batch all are asked at the same time."""
        route = self._caller.route
        turns = asyncio.Semaphore(len(canaries) if route.takes_all else self._at_once)

        async def in_turn(
            canary: KeptGrade, meter: Meter, at_work: ExitStack
        ) -> NewGrade:
            with at_work:
                async with turns:
                    return await self._new_grade(canary, meter)

        asking = []
        for canary in canaries:
            meter = self._meter()
            at_work = ExitStack()
            at_work.enter_context(route.item(meter))
            asking.append(in_turn(canary, meter, at_work))
        held_back.close()
        return list(await asyncio.gather(*asking))

    async def _new_grade(self, canary: KeptGrade, meter: Meter) -> NewGrade:
        """Ask a kept grade anew, past all replies but those of this run."""
        past_others = Kept(run=self._caller.run.id, since=NEVER)
        ask = self._caller.metered(meter, judging=past_others)
        graded = canary.graded
        verdict: core.Verdict | None = None
        judging = canary.member.judge(graded.case, graded.answer, ask)
        try:
            verdict = await self._caller.sender.before_the_end(
                judging, JUDGING_GRACE_SECONDS
            )
        except RefusedError:
            # To ask again would bring nothing else: what was a grade is none.
            return NewGrade(kept=canary, differs=True)
        except CallError:
            return NewGrade(kept=canary, is_lacking=True)
        except JudgeError:
            pass  # what was a grade is none: it differs
        finally:
            self.usage += meter.usage
        version = _version(canary.member, meter)
        change = ""
        if version != canary.version:
            change = f"{canary.version or 'none'}, now {version or 'none'}"
        return NewGrade(kept=canary, differs=_differs(canary, verdict), version=change)

    async def _keep(
        self,
        results: Sequence[CanaryResult],
        canaries: Sequence[KeptGrade],
        began: float,
    ) -> None:
        """Keep the results that are whole, and note which kept grades are void.

        Those are the grades from before the canaries ``began``: these replace them.
        """
        ledger = self._caller.ledger
        model_of = {canary.member.spec: canary.member.model for canary in canaries}
        for place in voids_of(results):
            if place.judge in model_of:
                await void(ledger, _part(place, model_of[place.judge]), began)
        self._since.clear()
        whole = tuple(result for result in results if not result.lacking)
        kept = KeptResults(at=time.time(), results=whole)
        text = canonical(encode(kept))
        await ledger.keep(CANARIES, self._caller.run.id, text)

    def _meter(self, *, kept_only: bool = False) -> Meter:
        """Return a meter for calls that judge."""
        meter = Meter(price=self._caller.price, kept_only=kept_only)
        meter.end_answer()
        return meter


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResults:
    """The results of a run's canaries, as the ledger keeps them."""

    at: Timestamp
    """When they were kept, in seconds since 1970."""
    results: tuple[CanaryResult, ...]

    @property
    def by_place(self) -> dict[JudgePlace, CanaryResult]:
        """The results by the judge that they are about, and where."""
        return {result.place: result for result in self.results}


def latest_results(ledger: Ledger) -> dict[JudgePlace, CanaryResult]:
    """Return the latest results of any run, by place."""
    of_runs = ledger.documents_as(CANARIES, KeptResults).values()
    results: dict[JudgePlace, CanaryResult] = {}
    for kept in sorted(of_runs, key=lambda kept: kept.at):
        results.update(kept.by_place)
    return results


def _places_of(canaries: Iterable[KeptGrade]) -> list[JudgePlace]:
    """Return where canaries are counted, each place once."""
    return list(dict.fromkeys(canary.result_place for canary in canaries))


def graded_answers(tasks: Iterable[Task]) -> Iterator[GradedAnswer]:
    """Yield the answers of earlier runs and the labelled ones: all that may be graded already."""
    for task in tasks:
        for rank, role in enumerate(EARLIER_ROLES):
            reading = task.readings.get(role)
            if reading is not None and reading.answer is not None:
                yield GradedAnswer(
                    case=reading.case,
                    answer=reading.answer.text,
                    judge=reading.judge,
                    calls_right=task.calls_right,
                    rank=rank,
                )
        if task.is_labelled and task.case.recorded is not None:
            yield GradedAnswer(
                case=task.case,
                answer=read_text(task.case.recorded).text,
                judge=task.judge,
                calls_right=task.calls_right,
                rank=len(EARLIER_ROLES),
            )


def judged_places(tasks: Iterable[Task]) -> Iterator[JudgePlace]:
    """Yield where models judge these tasks."""
    for task in tasks:
        for member in judging_models(task.judge):
            yield judge_place(task.case, member)


def judge_place(case: core.Case, member: RubricJudge) -> JudgePlace:
    """Return where a model judges a case."""
    return JudgePlace(
        judge=member.spec, language=case.language, rubric=member.rubric.version
    )


def _part(place: JudgePlace, model: Model) -> JudgedPart:
    return JudgedPart(
        judge=model.identity, language=place.language, rubric=place.rubric
    )


def side_of(verdict: core.Verdict, calls_right: CallsRight) -> GradeSide:
    """Return whether a grade passes, does not, or says that the answer attempts nothing."""
    if calls_right(verdict):
        return "right"
    return "silent" if verdict.grade == core.NOT_ATTEMPTED else "wrong"


def _differs(canary: KeptGrade, verdict: core.Verdict | None) -> bool:
    """Return whether a new grade is another one; of ratings, on another side of the bar."""
    if verdict is None:
        return True
    if verdict.rating is not None:
        return side_of(verdict, canary.graded.calls_right) != canary.side
    return verdict.label != canary.label


def _version(member: RubricJudge, meter: Meter) -> str:
    """Return the version that the model's latest reply names; empty if it names none."""
    returned = meter.models.get(member.spec, member.spec)
    if returned == member.spec:  # the reply names no model
        return ""
    return version_of(returned, str(member.model.identity.get("name", "")))


def _counted(new_grades: Sequence[NewGrade]) -> dict[JudgePlace, CanaryResult]:
    """Return the results of canaries by place."""
    asked: Counter[JudgePlace] = Counter()
    differ: Counter[JudgePlace] = Counter()
    lacking: Counter[JudgePlace] = Counter()
    version: dict[JudgePlace, str] = {}
    for grade in new_grades:
        place = grade.kept.result_place
        if grade.is_lacking:
            lacking[place] += 1
            continue
        asked[place] += 1
        differ[place] += int(grade.differs)
        if grade.version:
            version[place] = grade.version
    results = {}
    for place in {**asked, **lacking}:
        results[place] = CanaryResult(
            judge=place.judge,
            language=place.language,
            rubric=place.rubric,
            asked=asked[place],
            differ=differ[place],
            lacking=lacking[place],
            version=version.get(place, ""),
        )
    return results
