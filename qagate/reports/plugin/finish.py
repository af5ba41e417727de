"""A session's report: made from its outcomes, and written.

It is loaded, with numpy, while replies are awaited. After the last reply the user waits for
what stands here, so nothing of it loads anything heavy.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from qagate.cases.dataset import Slice
from qagate.evaluators.core import Outcome, QAError, parse_judges
from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.beside import load_beside
from qagate.evaluators.number_text import part_of_cost
from qagate.evaluators.output import plural
from qagate.evaluators.runtime.caller import BATCH
from qagate.evaluators.runtime.slice_stops import SLICE_STOPPED
from qagate.evaluators.text import digest
from qagate.reports.gates.decide import INCONCLUSIVE, SessionFacts
from qagate.reports.metrics.summary import extra_notes
from qagate.reports.plugin import rejudge
from qagate.reports.plugin.run import USED_UP, EngineRun
from qagate.reports.plugin.session_results import SessionResults
from qagate.reports.plugin.worker import gc_paused
from qagate.reports.render import html, markdown
from qagate.reports.render.writer import append_summary, write
from qagate.reports.run import clean, judge_replies
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.baselines import promoted
from qagate.reports.run.decisions import answers_of, at_any_look, uncounted_tries
from qagate.reports.run.earlier_answers import reading_of
from qagate.reports.run.json_data import ordered
from qagate.reports.run.known_decisions import (
    DECISION,
    decisions_at,
    decisions_in_folders,
    document_of,
    together,
)
from qagate.reports.run.lineage import (
    RetiredIds,
    TriedBefore,
    chain_of,
)
from qagate.reports.run.provenance import provenance, sent_spec
from qagate.reports.run.record import Record, total_cost
from qagate.reports.run.report import WARNING, Decided, Report
from qagate.reports.run.run_json import load_report
from qagate.reports.run.transcripts import Packer, keys_of, of_ledger
from qagate.reports.verdict.assemble import Facts, assemble
from qagate.reports.verdict.self_judging import ALLOWED
from qagate.reports.verdict.trend import with_trend

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable with the path of the file that GitHub shows below a CI run."""
Outcomes = Mapping[str, Outcome]
"""By the keys of the plan's items."""


def prepare() -> None:
    """Load what the report will need."""
    import_module("numpy.random")
    html.prepare()
    markdown.template()


def finish(
    run: EngineRun,
    results: SessionResults,
    ended: SessionFacts,
    about: Mapping[str, object],
    packer: Packer | None = None,
) -> tuple[Report, str]:
    """Write a session's report and CI's summary; return it and a warning.

    ``ended`` and ``about`` are what pytest knows of the session. Raises WriteError.
    """
    with gc_paused():  # nothing becomes garbage before everything is written
        report = _make_report(run, results, ended, about)
        warnings = [_write_report(run, report, packer)]
        summary_file = os.environ.get(STEP_SUMMARY)
        if summary_file:
            warnings.append(append_summary(report, Path(summary_file)))
    return report, "; ".join(warning for warning in warnings if warning)


def _make_report(
    run: EngineRun,
    results: SessionResults,
    ended: SessionFacts,
    about: Mapping[str, object],
) -> Report:
    options = run.options
    outcomes = results.final_outcomes(
        run.host.arrivals.outcomes,
        _why_unreached(run, interrupted=ended.interrupted),
        interrupted=ended.interrupted,
    )
    facts = _facts(run, ended, about, outcomes)
    if options.answers is not None:
        return _read_anew(run, results, outcomes, facts)
    records = [results.record_of(key, outcome) for key, outcome in outcomes.items()]
    baseline, anchor = run.earlier
    facts = _with_history(run, facts, records, baseline)
    report = assemble(
        run.plan,
        records,
        facts,
        _as_read(baseline, run, outcomes),
        _as_read(anchor, run, outcomes),
    )
    return with_trend(report, options.here)


def _read_anew(
    run: EngineRun, results: SessionResults, outcomes: Outcomes, facts: Facts
) -> Report:
    """Return the report of ``qagate rejudge``: today's reading of a run beside its own."""
    assert run.options.answers is not None
    earlier = load_baseline(run.options.answers)
    answered = rejudge.as_answered(run.plan, outcomes, earlier)
    records = [results.record_of(key, outcome) for key, outcome in answered.items()]
    facts = replace(
        facts,
        model=earlier.report.model,
        session=replace(facts.session, gates_off=True),
        provenance=rejudge.provenance_of(facts.provenance, earlier),
    )
    report = assemble(run.plan, records, facts, earlier)
    decision = rejudge.decision_of(report, earlier)
    return replace(report, decision=decision, decided=None)


def _with_history(
    run: EngineRun, facts: Facts, records: Iterable[Record], baseline: Baseline | None
) -> Facts:
    """Return the facts with what was decided before over the same data."""
    options = run.options
    in_ledger = decisions_at(options.ledger)
    in_folders = decisions_in_folders(options.here, options.report_dir)
    known = together(in_folders, in_ledger)
    answers = answers_of(records, facts.provenance, baseline)
    tries: Mapping[str, tuple[str, ...]] = {}
    retired_since: RetiredIds = {}
    needs_baseline = ""
    if baseline is None:
        needs_baseline = _needed_baseline(run, answers.keys(), known)
    elif not options.monitor:
        before = [decided for decided in known if decided.at < facts.started]
        tried = TriedBefore(
            model=sent_spec(facts.model, facts.provenance),
            chain=chain_of(baseline),
            known=tuple(before),
            at_any_look=at_any_look(run.plan),
        )
        tries = tried.tries(answers)
        retired_since = tried.unsettled
        facts = _with_note(facts, uncounted_tries(baseline, in_ledger))
    return replace(
        facts,
        tries=tries,
        unsettled=retired_since,
        needs_baseline=needs_baseline,
    )


def _with_note(facts: Facts, note: str) -> Facts:
    """Return the facts with one more note, unless it is empty."""
    if not note:
        return facts
    notes = (*facts.session.notes, note)
    return replace(facts, session=replace(facts.session, notes=notes))


def _needed_baseline(
    run: EngineRun, slices: Collection[str], known: Iterable[Decided]
) -> str:
    """Return which baseline the run should have been given; empty where none is known."""
    for folder in _promoted_around(run):
        with suppress(QAError):
            decided = load_report(folder, items=False).decided
            if decided is not None and not decided.answers.keys().isdisjoint(slices):
                is_here = folder.is_relative_to(run.options.here.resolve())
                name = folder.name if is_here else str(folder)
                return (
                    f"{name} is promoted over these data; give --baseline={name}, "
                    "or --baseline=none to do without"
                )
    for decided in known:
        if decided.baseline and not decided.answers.keys().isdisjoint(slices):
            return (
                "an earlier run over these data was compared with a baseline; give it with "
                "--baseline=PATH, or --baseline=none to do without"
            )
    return ""


def _promoted_around(run: EngineRun) -> Iterator[Path]:
    """Yield the promoted runs of the working folder, and of every folder above the data sets.

    A command that is given from another folder is about the same data.
    """
    homes = {run.options.here.resolve(): True}
    for dataset in run.plan.datasets:
        for parent in dataset.folder.resolve().parents:
            homes[parent] = True
    for home in homes:
        yield from reversed(promoted(home))


def _why_unreached(run: EngineRun, *, interrupted: bool) -> str:
    """Return the kind of outcome of items that the engine did not reach."""
    status = run.host.status
    if status.failure:
        return "engine"
    for kind in USED_UP:
        if kind in status.stops:
            return kind
    return "interrupted" if interrupted else "stopped"


def _as_read(
    earlier: Baseline | None, run: EngineRun, outcomes: Outcomes
) -> Baseline | None:
    """Return an earlier run with this run's reading of it, and with people's verdicts."""
    if earlier is None:
        return None
    for answers in run.earlier_answers:
        if answers.role == earlier.role:
            earlier = replace(
                earlier,
                reading=reading_of(run.plan, earlier, answers, outcomes, _lacking(run)),
            )
    return replace(earlier, people=run.adjudications, plan=run.audit_plan)


def _lacking(run: EngineRun) -> dict[str, str]:
    """Return the slices of which canaries could not be asked, each with why nothing is decided."""
    lacking: dict[str, str] = {}
    for canaries in run.host.status.canaries:
        if not canaries.lacking:
            continue
        for slice_ in {
            item.slice.name: item.slice for item in run.plan.items.values()
        }.values():
            version = slice_.rubric.version if slice_.rubric else ""
            is_everywhere = not canaries.language
            is_here = (slice_.language, version) == (canaries.language, canaries.rubric)
            if slice_.kind.by_rubric and (is_everywhere or is_here):
                lacking[slice_.name] = (
                    f"{plural(canaries.lacking, 'kept grade')} of {canaries.judge} could not be "
                    "asked anew, so nobody knows whether the judge is still the same; run the "
                    "same command again"
                )
    return lacking


def _write_report(run: EngineRun, report: Report, packer: Packer | None) -> str:
    """Write the files of the report; return why it lacks prompts and replies, or nothing."""
    options = run.options
    has_calls = any(record.calls for record in (*report.records, *report.labels))
    warning = ""
    with ExitStack() as stack:
        transcripts = None
        replies = None
        if has_calls:
            try:
                ledger = stack.enter_context(_ledger_of(run))
                replies = judge_replies.of_ledger(ledger, report, _judge_models(run))
                if not options.no_transcripts:
                    transcripts = of_ledger(ledger, run.identity.id)
                    if packer:
                        packer.begin(
                            options.ledger, run.identity.id, keys_of(report.records)
                        )
            except QAError as error:
                warning = f"no prompts and replies in the report folder: {error}"
        write(report, options.report_dir, transcripts, packer, replies)
    return "; ".join(part for part in (warning, _keep_decision(run, report)) if part)


def _ledger_of(run: EngineRun) -> Ledger:
    """Return the run's ledger, to be read, with the replies of earlier reports beside it."""
    beside = load_beside(run.judge_replies)
    return Ledger(run.options.ledger, read_only=True, beside=beside)


def _judge_models(run: EngineRun) -> tuple[str, ...]:
    return parse_judges(run.options.judges).models()


def _keep_decision(run: EngineRun, report: Report) -> str:
    """Let later runs on the ledger know how this one ended; return why they will not, or nothing.

    A replay changes no ledger, and a run that decided nothing is not known to others. A shard
    decides nothing either, but its answers are part of a set that the merged run decides by:
    the next set is another try.
    """
    decided = report.decided
    if decided is None or run.options.replay or decided.gates_off:
        return ""
    if report.shards:
        decided = replace(decided, code=INCONCLUSIVE)
    try:
        with Ledger(run.options.ledger) as ledger:
            before = ledger.documents(DECISION, [decided.run]).get(decided.run)
            document = Document(DECISION, decided.run, document_of(decided))
            ledger.swap(document, before)
    except QAError as error:
        return f"later runs on the ledger will not know of this one: {error}"
    return ""


# What the session knows


def _facts(
    run: EngineRun, ended: SessionFacts, about: Mapping[str, object], outcomes: Outcomes
) -> Facts:
    options, status = run.options, run.host.status
    judge = " ".join(options.judges)
    known_cost = _known_cost(outcomes)
    ended_outside_limits = [
        line
        for kind, line in status.stops.items()
        if kind not in (*USED_UP, SLICE_STOPPED)
    ]
    left_clauses = [
        status.stops.get(SLICE_STOPPED, ""),
        status.stops.get(BATCH, ""),
        status.unkept,
    ]
    session = replace(
        ended,
        gates_off=options.gates_off,
        cause=ended_outside_limits[0] if ended_outside_limits else "",
        left="; ".join(clause for clause in left_clauses if clause),
        one_shard=run.plan.shard is not None,
        notes=(
            *(f"{WARNING}{note}" for note in ended.notes),
            *_notes(run, outcomes, known_cost),
        ),
    )
    about_run = {
        **about,
        **ci_link(os.environ),
        "requests": status.requests,
        "spent": run.spent,
    }
    if known_cost is not None:
        about_run["known_cost"] = known_cost
    about_run["replies"] = _replies(outcomes)
    return Facts(
        model=options.model,
        judge=judge,
        session=session,
        provenance=provenance(run.plan, options.choice, outcomes, _origin(run)),
        run=about_run,
        complete=not ended.interrupted and not status.failure,
        labels=run.calibrator.records(run.host.arrivals.outcomes),
        label_datasets=run.calibrator.datasets,
        canaries=status.canaries,
        rule_checks=status.rule_checks,
        judges_usage=status.judges_usage,
        run_id=run.identity.id,
        started=run.identity.started,
        named=run.process.name.given,
        fresh=options.fresh,
        monitor=options.monitor,
        accepted=options.accepted,
    )


def _origin(run: EngineRun) -> dict[str, object]:
    """Return what of a run's origin only its engine knows: who was asked, and how."""
    origin: dict[str, object] = {
        "model": run.options.model,
        "judge": " ".join(run.options.judges),
        "sent": clean.masked(ordered(run.sent)),
    }
    negotiated = {
        spec: dict(known.as_data)
        for spec, known in run.host.status.negotiated.items()
        if known.differences
    }
    if negotiated:
        origin["negotiated"] = negotiated
    if run.options.allow_self_judge:
        origin[ALLOWED] = True
    labels = {
        key: adjudication.label for key, adjudication in run.adjudications.items()
    }
    if labels:
        origin["adjudications"] = {"verdicts": len(labels), "sha256": digest(labels)}
    return origin


def _known_cost(outcomes: Outcomes) -> float | None:
    """Return USD, as far as prices are known; None if the whole cost is known."""
    usages = [outcome.usage for outcome in outcomes.values()]
    if all(usage.cost is not None for usage in usages):
        return None
    return sum(usage.known for usage in usages)


def _replies(outcomes: Outcomes) -> dict[str, int]:
    """Return how many verdicts there are, and how many rest on replies that others paid for."""
    counts = dict.fromkeys(
        ("verdicts", "earlier", "imported", "answers", "judgements"), 0
    )
    for outcome in outcomes.values():
        if outcome.state not in ("passed", "failed"):
            continue
        usage, answering = outcome.usage, outcome.answering
        counts["verdicts"] += 1
        if usage.earlier:
            counts["earlier"] += 1
        if usage.imported:
            counts["imported"] += 1
        if answering.earlier:
            counts["answers"] += 1
        if usage.earlier > answering.earlier:
            counts["judgements"] += 1
    return counts


# Notes


def _notes(
    run: EngineRun, outcomes: Outcomes, known_cost: float | None
) -> Iterator[str]:
    """Yield what is odd about the run; ``known_cost`` is the part of a cost not all known."""
    if run.connected.replaced:
        yield run.connected.replaced
    yield from _unversioned_functions(run)
    if known_cost is not None:
        names = ", ".join(_unpriced(run, outcomes))
        yield f"cost {part_of_cost(known_cost)}: no price for {names}"
    yield from run.host.status.notes
    if run.host.status.failure:
        yield f"{WARNING}{run.host.status.failure}"
    offline_judge = "" if run.takes_extras else " ".join(run.options.judges)
    slices = _slices_of(run, outcomes)
    yield from extra_notes(slices, outcomes.values(), offline_judge)


def _unversioned_functions(run: EngineRun) -> Iterator[str]:
    """Yield which of a user's functions only their source tells from other versions."""
    for spec in run.connected.specs.values():
        if spec.function and spec.function.is_hashed and not spec.version:
            yield (
                f"{spec.text}: no version is declared, so its module's source alone, "
                f"{spec.function.release}, tells the ledger when it changes; "
                f"if it depends on more, name {spec.text}@VERSION"
            )


def _unpriced(run: EngineRun, outcomes: Outcomes) -> list[str]:
    """Return the models without a price; without the one under test if all answers have one."""
    unpriced = [text for text, pricing in run.pricing.items() if pricing is None]
    judges = [text for text in unpriced if text != run.options.model]
    answering = total_cost(outcome.answering.cost for outcome in outcomes.values())
    if judges and answering is not None:
        return judges
    return unpriced


def _slices_of(run: EngineRun, keys: Iterable[str]) -> list[Slice]:
    """Return the slices that these items are of, in the declared order."""
    names = {run.plan.items[key].slice.name for key in keys}
    slices = []
    for dataset in run.plan.datasets:
        for slice_ in dataset.slices.values():
            if slice_.name in names:
                slices.append(slice_)
    return slices


def ci_link(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``link``: the address of the CI run that keeps the report; empty outside CI."""
    server = environment.get("GITHUB_SERVER_URL", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    run = environment.get("GITHUB_RUN_ID", "")
    if server and repository and run:
        return {"link": f"{server}/{repository}/actions/runs/{run}"}
    gitlab_job = environment.get("CI_JOB_URL", "")
    if gitlab_job:
        return {"link": gitlab_job}
    return {}
