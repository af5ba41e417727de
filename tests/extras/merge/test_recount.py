"""Recorded runs: their origin, that they come back from their files, decided again, merged."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.config import DatasetGates, GatesFile
from qagate.cases.dataset import (
    Plan,
    PlannedItem,
    Selection,
    Shards,
    Slice,
    Threshold,
)
from qagate.evaluators.core import Outcome, UsageError, Vote
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.typed_data import decode
from qagate.reports.extras.merge.recount import merged
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.render.writer import write
from qagate.reports.run import provenance as made
from qagate.reports.run.accepted import Accepted
from qagate.reports.run.evidence import Comparison, LanguageGap
from qagate.reports.run.report import Report, SessionStatus
from qagate.reports.run.run_json import (
    dump_datasets,
    load_datasets,
    load_report,
    load_run,
)
from qagate.reports.verdict.rebuild import rebuilt, regated
from tests.support.figures import some
from tests.support.labelled_answers import C, N, W, label_dataset, label_set
from tests.support.made_runs import (
    RUBRIC,
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.samples import full, record, rendered, report
from tests.support.scripted import make_case
from tests.support.tables import grown, tabled

DROP = Threshold(measure="drop", max=0.1, evidence="confident")
HIGH = Threshold(measure="correct", min=0.9)
BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def gates(**languages: tuple[Threshold, ...]) -> GatesFile:
    return GatesFile(
        datasets={"facts": DatasetGates(languages=languages)}, replaces_all=True
    )


def test_a_run_rebuilt_is_the_same_run() -> None:
    """Only records and what was declared go in; other gates decide, a baseline brings drops."""
    made = run_of(answered("cice"))
    assert rendered(rebuilt(made, None)) == rendered(made)
    made = run_of(answered("ccci"))
    assert made.decision.code == 0
    again = regated(made, gates(en=(HIGH,)), None)
    assert [(gate.threshold, gate.state) for gate in again.decision.gates] == [
        (HIGH, "FAIL")
    ]
    assert again.decision.code == 1
    direct = run_of(answered("ccci"), facts_dataset(graded_slice("en", HIGH)))
    assert again.decision == direct.decision
    made = run_of(
        answered("i" * 30 + "c" * 170), facts_dataset(graded_slice("en", DROP))
    )
    assert made.decision.code == 6
    again = rebuilt(made, before(run_of(answered("c" * 200))))
    assert again.decision.code == 1
    assert some(again.comparison).slices[0].broke == 30


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            GatesFile(datasets={"other": DatasetGates()}),
            r"no gate for any .* this run \(facts\)",
        ),
        (gates(fr=(HIGH,)), "no such language here"),
        (
            gates(en=(replace(HIGH, measure="kappa"),)),
            r"no metric of facts:en \(kind graded\)",
        ),
    ],
)
def test_gates_that_fit_no_part_of_the_run_are_refused(
    wrong: GatesFile, words: str
) -> None:
    """A gate that decides nothing would pass."""
    with pytest.raises(UsageError, match=words):
        regated(run_of(answered("c")), wrong, None)


@pytest.mark.parametrize(
    ("facts", "code"),
    [({"failures": 1}, 1), ({}, 1), ({"interrupted": True}, 2), ({}, 3)],
)
def test_what_else_happened_in_the_session_still_counts(
    facts: dict[str, Any], code: int
) -> None:
    """New gates excuse no failing test, interrupt or internal error."""
    made = run_of(answered("cc"), session=SessionFacts(pytest_code=code, **facts))
    assert made.decision.code == code
    assert regated(made, gates(en=(HIGH,)), None).decision.code == code


def shards() -> list[Report]:
    english = run_of(answered("cci"), facts_dataset(graded_slice("en")))
    return [english, run_of(answered("cic", "bg"), facts_dataset(graded_slice("bg")))]


def test_shards_make_the_run_that_they_are_parts_of() -> None:
    """Counts sum, run.json is that of one run over all but its block; so is a comparison."""
    whole = run_of([*answered("cci"), *answered("cic", "bg")], BOTH)
    found = merged(shards(), None)
    assert found.counts == whole.counts
    assert rendered(replace(found, run={})) == rendered(replace(whole, run={}))
    assert found.run == {"shards": [{"id": "r1"}, {"id": "r1"}]}
    found = merged(
        shards(), before(run_of([*answered("ccc"), *answered("ccc", "bg")], BOTH))
    )
    assert some(found.comparison).slices[-1].broke == 2


def test_parts_of_one_slice_are_whole_together() -> None:
    """PARTIAL alone, together they decide; an item of two shards counts once."""
    records = answered("ccic")
    parts = [run_of(some, whole={"facts:en": 4}) for some in (records[:2], records[2:])]
    assert [part.decision.code for part in parts] == [6, 6]
    found = merged(parts, None)
    assert (found.decision.code, found.slices[0].partial) == (0, False)
    assert merged(parts[:1], None).slices[0].partial
    one, two = run_of(answered("cc")), run_of(answered("cc"))
    assert merged([one, two], None).counts.planned == 2


def attempt(grades: str, started: str, **changes: Any) -> Report:
    """Return one attempt of a run."""
    return replace(run_of(answered(grades), **changes), run={"started": started})


def test_the_first_answer_of_two_attempts_counts() -> None:
    """The second is named, so that an attempt is no second draw."""
    first, second = attempt("ci", "2026-01-01T10:00"), attempt("cc", "2026-01-01T11:00")
    for given in ([first, second], [second, first]):
        found = merged(given, None)
        assert [record.grade for record in found.records] == [
            record.grade for record in first.records
        ]
        (note,) = found.session.notes
        assert "hold different answers to facts-en-i1: the first ones count" in note


def test_many_items_with_two_answers_are_counted() -> None:
    first = attempt("c" * 8, "2026-01-01T10:00")
    (note,) = merged([first, attempt("i" * 8, "2026-01-01T11:00")], None).session.notes
    assert "facts-en-i4 and 3 more: the first ones count" in note


def test_an_attempt_grades_what_the_first_one_did_not() -> None:
    shard = Shards(of=1, held=(1,))
    cut = attempt(
        "cm",
        "2026-01-01T10:00",
        session=SessionFacts(pytest_code=2, interrupted=True),
        complete=False,
    )
    whole = attempt("cc", "2026-01-01T11:00")
    found = merged([replace(cut, shards=shard), replace(whole, shards=shard)], None)
    assert (found.counts.planned, found.slices[0].partial) == (2, False)
    assert (found.decision.code, found.complete, found.session.notes) == (0, True, ())


OTHER_BAR = (
    r"gates of facts:en: 'correct >= 0.5 \(evidence: estimate\)' and 'correct >= "
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: {"model": "openai:other"}, "differ in model"),
        (lambda r: {"judge": "lexical"}, "differ in judge"),
        (lambda r: {"provenance": {**r.provenance, "seed": 1}}, "differ in seed"),
        (lambda r: {"provenance": {"slices": {}}}, "differ in seed"),
        (
            lambda r: {
                "provenance": {"seed": 0, "slices": {"facts:en": {"rubric": 2}}}
            },
            "differ in data, prompt or rubric of facts:en",
        ),
        (
            lambda r: {"slices": (replace(r.slices[0], whole=9),)},
            "number of items in facts:en",
        ),
        (
            lambda r: {"datasets": (facts_dataset(holm=True),)},
            "differ in holm of dataset",
        ),
        (lambda r: {"datasets": (facts_dataset(graded_slice("en", HIGH)),)}, OTHER_BAR),
    ],
)
def test_runs_of_two_are_refused(
    change: Callable[[Report], dict[str, Any]], words: str
) -> None:
    """The error names what differs."""
    one = run_of(
        answered("cc"), provenance={"seed": 0, "slices": {"facts:en": {"rubric": 1}}}
    )
    with pytest.raises(UsageError, match=words) as caught:
        merged([one, replace(one, **change(one))], None)
    assert "\n" not in str(caught.value)


def parts_of(**second: Any) -> list[Report]:
    """Return two halves of one slice; what their runs were may differ."""
    records, whole = answered("ccic"), {"facts:en": 4}
    first = run_of(records[:2], whole=whole, run_id="r1", started=1_000.0)
    origin: dict[str, Any] = {"run_id": "r2", "started": 1_000.0, **second}
    return [first, run_of(records[2:], whole=whole, **origin)]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"named": "rel2"}, "the runs have different names"),
        ({"fresh": "f2"}, "the runs differ in NAME of --fresh: '' and 'f2'"),
        ({"started": 1_000.0 + 13 * 3600}, "the runs began 13 hours apart"),
    ],
)
def test_parts_of_different_runs_are_refused(
    second: dict[str, object], words: str
) -> None:
    """They may hold the answers of two models under one name, or two sets of one model's."""
    with pytest.raises(UsageError, match=words):
        merged(parts_of(**second), None)


@pytest.mark.parametrize(
    "second",
    [
        {"started": 1_000.0 + 11 * 3600},
        {"run_id": "r1", "started": 1_000.0 + 13 * 3600},
    ],
)
def test_parts_with_ledgers_of_their_own_are_one_run(second: dict[str, object]) -> None:
    """Those that began about the same time are; so are those of one run id."""
    assert merged(parts_of(**second), None).decision.code == 0


def test_a_common_name_holds_parts_together_for_any_time() -> None:
    """A CI system's number stays for another attempt."""
    first, second = parts_of(named="ci-7", started=1_000.0 + 13 * 3600)
    assert first.decided is not None
    first = replace(first, decided=replace(first.decided, named="ci-7"))
    report = merged([first, second], None)
    assert report.decided is not None
    assert (report.decision.code, report.decided.named) == (0, "ci-7")


def test_what_may_differ_is_kept_side_by_side() -> None:
    """Versions returned are united; Python versions are listed."""
    first = {"python": "3.11", "models_returned": ["new-1"], "slices": {}}
    second = {"python": "3.12", "models_returned": ["new-2"], "slices": {}}
    runs = [
        run_of(answered("c"), provenance=first),
        run_of(answered("c"), provenance=second),
    ]
    found = merged(runs, None).provenance
    assert (found["python"], found["models_returned"]) == (
        ["3.11", "3.12"],
        ["new-1", "new-2"],
    )


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 1), 1), ((1, 2), 2), ((0, 3), 3), ((0, 0), 0)]
)
def test_a_shards_own_end_is_that_of_the_whole(
    codes: tuple[int, int], code: int
) -> None:
    """An interrupted or broken shard leaves no green whole."""
    runs = []
    for one in codes:
        cut = one == 2
        said: Any = {"failures": int(one == 1), "notes": ("said once",)}
        facts = SessionFacts(pytest_code=one, interrupted=cut, **said)
        runs.append(run_of(answered("cc"), session=facts, complete=not cut))
    found = merged(runs, None)
    assert (found.decision.code, found.complete) == (code, 2 not in codes)
    assert found.session.notes == ("said once",)


def test_a_judge_measured_outside_the_records_stays_measured() -> None:
    """It is counted again from the labelled answers: once, and still a reason not to decide."""
    labels = label_set({(C, C): 40, (W, C): 40, (N, N): 40})
    made = run_of(
        answered("cc"),
        labels=labels.records,
        label_datasets=(label_dataset(labels),),
    )
    assert made.decision.code == 6
    again = rebuilt(made, None)
    assert (again.judging, again.decision) == (made.judging, made.decision)
    found = merged([made, made], None)
    assert (found.tokens, found.decision) == (made.tokens, made.decision)


POOLED = replace(DROP, pool=True)


def rich() -> Report:
    """Return a run of two languages against a baseline, with every kind of outcome."""
    english = graded_slice(
        "en", Threshold(measure="correct", min=0.5), DROP, by=("topic",)
    )
    dataset = facts_dataset(
        english, graded_slice("bg", declared=False), pooled=(POOLED,)
    )
    votes = (
        Vote(judge="a", grade="CORRECT"),
        Vote(judge="b", grade="INCORRECT", error="x"),
    )
    old = run_of([*answered("cinc" * 5), *answered("cc", "bg")], dataset)
    new = [
        *answered("ccie" * 5, votes=votes),
        *answered("im", "bg", answer="\ud83d \u202e"),
    ]
    session, whole = (
        SessionFacts(pytest_code=1, notes=("a damaged row",)),
        {"facts:en": 99},
    )
    return run_of(
        new, dataset, baseline=old, session=session, whole=whole | {"facts:bg": 2}
    )


@pytest.mark.parametrize("make", [rich, full, lambda: run_of(answered("c"))])
def test_a_report_comes_back_as_it_was(
    make: Callable[[], Report], tmp_path: Path
) -> None:
    """Every file rendered again from run.json and records.jsonl has the same bytes."""
    made = make()
    again = load_report(written(made, tmp_path))
    assert rendered(again) == rendered(made)


@tabled("change")
def test_an_altered_run_is_a_usage_problem(
    change: dict[str, object], tmp_path: Path
) -> None:
    """The checksum is that of the records; run.json itself may be edited, and is then refused."""
    path = written(rich(), tmp_path) / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**run, **change}), encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"run\.json is not as it was written"
    ) as caught:
        load_report(tmp_path)
    assert "\n" not in str(caught.value)


DECODED = {
    one.__name__: one
    for one in (Estimate, LanguageGap, Comparison, SessionStatus, Slice)
}


@tabled("kind", "value", "message")
def test_decoding_checks_every_field(kind: str, value: object, message: str) -> None:
    """The error names the field; what is not known is refused, too."""
    with pytest.raises(ValueError, match=message):
        decode(DECODED[kind], value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("shards",), "'shards'"),
        (("session", "expected"), "no field 'expected' - at `session`"),
        (("slices", 0, "partial"), "no field 'partial' - at `slices[0]`"),
        (("gates", 0, "share"), "'share'"),
        (("datasets", 0, "slices", 0, "rules"), "'rules'"),
    ],
)
def test_a_run_that_lacks_a_field_is_not_as_it_was_written(
    tmp_path: Path, path: Sequence[str | int], message: str
) -> None:
    file = written(run_of(answered("ci")), tmp_path) / "run.json"
    run = json.loads(file.read_text(encoding="utf-8"))
    *parents, name = path
    part = run
    for parent in parents:
        part = part[parent]
    del part[name]
    file.write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(f"as it was written ({message})")):
        load_report(tmp_path)


def test_a_whole_number_is_read_as_a_figure() -> None:
    values = {"value": None, "low": 0, "high": 0.5, "n": 3}
    assert decode(Estimate, values) == Estimate(value=None, low=0, high=0.5, n=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(report(), tmp_path)
    return tmp_path


def test_a_run_comes_back_from_the_folder_or_the_file(folder: Path) -> None:
    """Both ways of naming it read the same."""
    for name in ("", "run.json"):
        run, items = load_run(folder / name)
        assert (run["model"], items.records) == ("openai:new", (record(),))


def test_records_come_back_exactly(tmp_path: Path) -> None:
    """Any character, in the file's order; all that gates need, without paths and texts."""
    odd = "a\x00\u2028\u2029\x85\u202e\ud83d \r\n\t\U000e0041"
    votes = (
        Vote(judge="a", grade="CORRECT", reason="x"),
        Vote(judge="b", error="gone: \u2028"),
    )
    odd_one = record(2, answer=odd, metadata={"n": [1, None, odd]}, votes=votes)
    made: Report = report((odd_one, record(1)))
    write(made, tmp_path)
    _, items = load_run(tmp_path)
    assert items.records == (made.records[1], made.records[0])
    assert items.records[1].votes == votes
    one = graded_slice(
        "en", DROP, floor={"kappa": 0.5}, pass_bar=7, penalty=2.0, by=("topic",)
    )
    dataset = facts_dataset(one, pooled=(POOLED,), holm=True)
    (found,) = load_datasets(json.loads(json.dumps(dump_datasets([dataset]))))
    assert (found.pooled, found.holm) == (
        (POOLED,),
        True,
    )
    assert found.slices == {"en": one}
    bare = facts_dataset(graded_slice("en", rubric=None))
    assert load_datasets(dump_datasets([bare]))[0].slices["en"].rubric is None


@tabled("text", "message")
def test_what_is_no_run_is_refused(folder: Path, text: str, message: str) -> None:
    """The error names the file and what was found in it; half a report is no baseline."""
    (folder / "run.json").write_text(grown(text), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_run(folder)
    write(report(), folder)
    for name in ("records.jsonl", "run.json"):
        (folder / name).unlink()
        with pytest.raises(UsageError, match=name):
            load_run(folder)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{}", "missing required field `key`"),
        ("nonsense", "not JSON"),
        ("older", "no field 'measures'"),
    ],
)
def test_a_line_of_another_version_is_named(folder: Path, line: str, said: str) -> None:
    """File and line stand in the error, where the checksum is that of the altered records."""
    file, run = (
        folder / "records.jsonl",
        json.loads((folder / "run.json").read_text("utf-8")),
    )
    whole = file.read_text(encoding="utf-8")
    older = whole.replace('"measures": {}, ', "").strip()
    text = f"{whole}{line.replace('older', older)}\n"
    file.write_text(text, encoding="utf-8")
    run["records"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(UsageError, match=f"records.jsonl:2: .*{said}"):
        load_run(folder)


def test_a_run_names_what_could_change_its_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Models as returned, data, rubric and package versions; only of slices that were run."""
    monkeypatch.setattr(made, "PACKAGES", ("pytest", "no-such-package"))
    slices = {one.language: one for one in (graded_slice("en"), graded_slice("bg"))}
    items = {
        f"k{n}": PlannedItem(key=f"k{n}", slice=one, case=make_case(n), repeat=1)
        for n, one in enumerate(slices.values())
    }
    hashes = {"facts:en": "ab", "facts:bg": "cd"}
    plan = Plan(datasets=(facts_dataset(*slices.values()),), items=items, hashes=hashes)
    ended = {"k0": Outcome(key="k0", state="passed", model="new-1", judge="judge-1")}
    found = made.provenance(plan, Selection(seed=7), ended, {"model": {"name": "new"}})
    assert (found["models_returned"], found["judges_returned"]) == (
        ["new-1"],
        ["judge-1"],
    )
    nothing: dict[str, object] = {
        "prompt": "",
        "pass_bar": None,
        "metrics": [],
        "checks": [],
    }
    one = {"file": "en.csv", "data_sha256": "ab", "rubric": RUBRIC.version, **nothing}
    assert found["slices"] == {"facts:en": one}
    assert (found["model"], found["seed"], found["limit"]) == ({"name": "new"}, 7, None)
    assert found["packages"] == {
        "pytest": version("pytest"),
        "no-such-package": "not installed",
    }


NEEDED = "v1 is promoted over these data"


def test_what_a_run_needed_and_accepted_is_known_when_it_is_decided_again() -> None:
    """Neither gate nor merge makes a PASS of a run without its baseline."""
    needing = run_of(answered("cc"), needs_baseline=NEEDED)
    assert needing.decision.code == 6
    assert rebuilt(needing, None).decision.code == 6
    assert merged([needing], None).decision.line.startswith("NO BASELINE: exit 6")


def test_what_was_accepted_stands_in_every_last_line() -> None:
    """Also where nothing else of the command line is known."""
    accepted = run_of(
        answered("cc"), needs_baseline=NEEDED, accepted=Accepted(no_baseline=True)
    )
    for decided in (accepted, rebuilt(accepted, None), merged([accepted], None)):
        assert decided.decision.code == 0
        assert "accepted: --baseline=none" in decided.decision.line
