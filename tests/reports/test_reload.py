"""What a run names of its origin, and that it comes back from its files as it was."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from cases.dataset import Plan, PlannedItem, Selection, Slice, Threshold
from evaluators.core import Outcome, UsageError, Vote
from evaluators.statistics.intervals import Estimate
from reports.render.writer import write
from reports.run import provenance as made
from reports.run.evidence import Comparison, Judging, LanguageGap
from reports.run.json_data import decode
from reports.run.provenance import OutcomeFacts, dump_datasets, load_datasets
from reports.run.report import Report, SessionStatus
from reports.run.run_json import load_report, load_run
from tests.support.made_runs import RUBRIC, answered, facts_dataset, graded_slice, run_of, written
from tests.support.samples import full, record, rendered, report
from tests.support.scripted import make_case
from tests.support.tables import grown, tabled

DROP = Threshold(measure="drop", max=0.1, evidence="confident")

POOLED = replace(DROP, pool=True)


def rich() -> Report:
    """Return a run of two languages beside a baseline, with every kind of outcome."""
    english = graded_slice("en", Threshold(measure="correct", min=0.5), DROP, by=("topic",))
    dataset = facts_dataset(english, graded_slice("bg", declared=False), pooled=(POOLED,))
    votes = (Vote(judge="a", grade="CORRECT"), Vote(judge="b", grade="INCORRECT", error="x"))
    old = run_of([*answered("cinc" * 5), *answered("cc", "bg")], dataset)
    new = [*answered("ccie" * 5, votes=votes), *answered("im", "bg", answer="\ud83d \u202e")]
    return run_of(
        new, dataset, baseline=old, notes=("a damaged row",), whole={"facts:en": 99, "facts:bg": 2}
    )


@pytest.mark.parametrize("make", [rich, full, lambda: run_of(answered("c"))])
def test_a_report_comes_back_as_it_was(make: Callable[[], Report], tmp_path: Path) -> None:
    """Every file rendered again from run.json and records.jsonl has the same bytes."""
    made = make()
    again = load_report(written(made, tmp_path))
    assert rendered(again) == rendered(made)
    assert (again.decision, again.slices, again.comparison, again.parity, again.judging) == (
        *(made.decision, made.slices, made.comparison, made.parity, made.judging),
    )


@tabled("change")
def test_an_altered_run_is_a_usage_problem(change: dict[str, object], tmp_path: Path) -> None:
    """The checksum is that of the records; run.json itself may be edited, and is then refused."""
    path = written(rich(), tmp_path) / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**run, **change}), encoding="utf-8")
    with pytest.raises(UsageError, match=r"run\.json is not as it was written") as caught:
        load_report(tmp_path)
    assert "\n" not in str(caught.value)


DECODED = {one.__name__: one for one in (Estimate, LanguageGap, Comparison, SessionStatus, Slice)}


@tabled("kind", "value", "message")
def test_decoding_checks_every_field(kind: str, value: object, message: str) -> None:
    """The error names the field; what is not known is refused, too."""
    with pytest.raises(ValueError, match=message):
        decode(DECODED[kind], value)


def test_what_earlier_versions_did_not_write_is_not_missed(tmp_path: Path) -> None:
    """A run from before anchors, trends and shards is a baseline as any other."""
    made = run_of(answered("ci"))
    path = written(made, tmp_path) / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    for name in ("anchor", "since_anchor", "trend", "shards"):
        del run[name]
    path.write_text(json.dumps(run), encoding="utf-8")
    assert rendered(load_report(tmp_path)) == rendered(made)


def test_decoding_makes_dataclasses() -> None:
    """Tuples, mappings and what may be None; absent fields default."""
    assert decode(Estimate, {"value": None, "low": 0, "high": 0.5, "n": 3}) == Estimate(
        value=None, low=0, high=0.5, n=3
    )
    assert decode(SessionStatus, {"notes": ["a"]}).notes == ("a",)
    assert decode(Judging, {"by_judge": {"j": 2}}).by_judge == {"j": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A report folder with one record."""
    write(report(), tmp_path)
    return tmp_path


def test_a_run_comes_back_from_the_folder_or_the_file(folder: Path) -> None:
    """Both ways of naming it read the same; one altered byte of its records is refused."""
    for name in ("", "run.json"):
        run, records = load_run(folder / name)
        assert (run["model"], records) == ("openai:new", (record(),))
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"CORRECT", b"CORRECt"))
    with pytest.raises(UsageError, match=r"records.jsonl: altered since run.json was written"):
        load_run(folder)


def test_records_come_back_exactly(tmp_path: Path) -> None:
    """Hidden characters, line separators and lone surrogates included, in the file's order."""
    odd = "a\x00\u2028\u2029\x85\u202e\ud83d \r\n\t\U000e0041"
    votes = (Vote(judge="a", grade="CORRECT", reason="x"), Vote(judge="b", error="gone: \u2028"))
    odd_one = record(2, answer=odd, metadata={"n": [1, None, odd]}, votes=votes)
    made: Report = report((odd_one, record(1)))
    write(made, tmp_path)
    assert load_run(tmp_path)[1] == (made.records[1], made.records[0])
    assert load_run(tmp_path)[1][1].votes == votes


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


@pytest.mark.parametrize(("line", "said"), [("{}", r"fields \["), ("nonsense", "not valid JSON")])
def test_a_line_of_another_version_is_named(folder: Path, line: str, said: str) -> None:
    """File and line stand in the error, where the checksum is that of the altered records."""
    file, run = folder / "records.jsonl", json.loads((folder / "run.json").read_text("utf-8"))
    text = f"{file.read_text(encoding='utf-8')}{line}\n"
    file.write_text(text, encoding="utf-8")
    run["records"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(UsageError, match=f"records.jsonl:2: {said}"):
        load_run(folder)


def test_a_run_names_what_could_change_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models as returned, data, rubric and package versions; only of slices that were run."""
    monkeypatch.setattr(made, "PACKAGES", ("pytest", "no-such-package"))
    slices = {one.language: one for one in (graded_slice("en"), graded_slice("bg"))}
    items = {
        f"k{n}": PlannedItem(key=f"k{n}", slice=one, case=make_case(n), repeat=1)
        for n, one in enumerate(slices.values())
    }
    hashes = {"facts:en": "ab", "facts:bg": "cd"}
    plan = Plan(datasets=(facts_dataset(*slices.values()),), items=items, hashes=hashes)
    outcome = Outcome(key="k0", state="passed", model="new-1", judge="judge-1")
    facts = OutcomeFacts.of([(items["k0"], outcome)])
    found = made.provenance(plan, Selection(seed=7), facts, {"model": {"name": "new"}})
    assert found["models_returned"] == ["new-1"]
    assert found["judges_returned"] == ["judge-1"]
    nothing: dict[str, object] = {"prompt": "", "pass_bar": None, "metrics": [], "checks": []}
    one = {"file": "en.csv", "data_sha256": "ab", "rubric": RUBRIC.version, **nothing}
    assert found["slices"] == {"facts:en": one}
    assert (found["model"], found["seed"], found["limit"]) == ({"name": "new"}, 7, None)
    assert found["packages"] == {"pytest": version("pytest"), "no-such-package": "not installed"}


def test_what_was_declared_comes_back() -> None:
    """Rules, floors, bars and what the rubric is: all that gates need, without paths and texts."""
    one = graded_slice("en", DROP, floor={"kappa": 0.5}, pass_bar=7, penalty=2.0, by=("topic",))
    dataset = facts_dataset(one, pooled=(POOLED,), holm=True, require_calibration=True)
    (found,) = load_datasets(json.loads(json.dumps(dump_datasets([dataset]))))
    assert (found.pooled, found.holm, found.require_calibration) == ((POOLED,), True, True)
    assert found.slices == {"en": one}
    bare = facts_dataset(graded_slice("en", rubric=None))
    assert load_datasets(dump_datasets([bare]))[0].slices["en"].rubric is None
