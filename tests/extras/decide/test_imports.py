"""``qagate decide``: results that other tools wrote, read as runs of ours, and the verdict."""

import json
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qagate.command import main
from qagate.evaluators.core import UsageError
from qagate.evaluators.statistics.paired import tango
from qagate.reports.extras.decide.decisive import decisive_scores
from qagate.reports.extras.decide.foreign_run import Choice
from qagate.reports.extras.decide.imported_run import ImportedRun, slug
from qagate.reports.extras.decide.reading import read_run
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.run.run_json import load_report
from tests.support.figures import some
from tests.support.fixtures import Captured, Patch
from tests.support.reviewing import Row, as_csv, filled_in
from tests.support.tables import kept, tabled

RESULTS = Path(__file__).parent / "results"
"""What each tool wrote over the same six to twelve questions with models of our own."""
METRICS = ("--metric=acc", "--metric=exact_match,strict")
"""Of the harness's results, whose tasks have several scores each."""
Rows = Iterable[Mapping[str, object]]


def decide(capsys: Captured, *words: object) -> tuple[int, str]:
    """Return the exit code of the command, and all that it prints."""
    code = main(["decide", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out + said.err


def scored(scores: Sequence[object], **more: object) -> list[dict[str, object]]:
    return [
        {"id": f"q{n}", "score": score, **more} for n, score in enumerate(scores, 1)
    ]


def report_over(folder: Path, new: Path, old: Path, *words: object) -> Report:
    """Return the report that the command writes over two results, into ``out`` in this folder."""
    to, given = folder / "out", ["decide", f"{new}", f"--baseline={old}"]
    main([*given, f"--to={to}", *map(str, words)])
    return load_report(to)


def decided(folder: Path, old: Rows, new: Rows, *words: object) -> Report:
    """Return the report over two tables, in which the two runs say different words."""
    after, before = ([{"answer": said, **row} for row in some]
                     for said, some in (("new words", new), ("old words", old)))  # fmt: skip
    paths = as_csv(folder / "new.csv", after), as_csv(folder / "old.csv", before)
    return report_over(folder, *paths, *words)


FORMS = kept(__file__, "forms")


@pytest.mark.parametrize("form", FORMS)
def test_each_tools_result_gets_our_verdict(
    form: str, tmp_path: Path, capsys: Captured
) -> None:
    """All samples become records, each file is written; intervals follow from the tool's counts."""
    new, old, items, ungraded, *named = FORMS[form]
    to = tmp_path / "out"
    words = (RESULTS / new, f"--baseline={RESULTS / old}", f"--to={to}", *named)
    code, said = decide(capsys, *words)
    report = load_report(to)
    assert code == report.decision.code == 6, said  # so few items decide nothing
    assert said.splitlines()[-1].startswith("GATES INCONCLUSIVE")
    assert (len(report.records), report.counts.ungraded) == (items, ungraded)
    assert sum(one.shared for one in some(report.comparison).slices) == items
    assert {one.name for one in to.iterdir()} >= {
        "report.html",
        "summary.md",
        "gates.xml",
    }
    assert all(one.question and one.digest for one in report.records)
    for gate in (
        report.decision.gates if "inspect" not in form else ()
    ):  # which asks items twice
        after, before = ({one.id: one for one in run.records if one.dataset == gate.dataset}
                         for run in (report, load_report(tmp_path / "out-baseline")))  # fmt: skip
        pairs = [(before[name], one) for name, one in after.items() if one.is_graded]
        changes = Counter(
            (a.grade == "CORRECT") - (b.grade == "CORRECT") for b, a in pairs
        )
        assert gate.estimate.value == pytest.approx(
            (changes[1] - changes[-1]) / len(pairs)
        )
        if changes[0] < len(pairs):
            interval = tango(changes[1], changes[-1], len(pairs))
            assert gate.estimate.interval == pytest.approx(interval, abs=2e-3)


def test_the_folder_of_the_baseline_is_a_run_of_ours(
    tmp_path: Path, capsys: Captured
) -> None:
    """So ``gate`` decides again, with other gates; without some samples nothing is decided."""
    to = tmp_path / "out"
    decide(capsys, RESULTS / "deepeval-new.json", f"--baseline={RESULTS / 'deepeval-old.json'}",
           f"--to={to}")  # fmt: skip
    gates = tmp_path / "gates.yaml"
    gates.write_text("deepeval: {all: {correct: {min: 0.5}}}")
    code = main(["gate", str(to), f"--gates={gates}"])
    assert "correct" in capsys.readouterr().out
    assert code == 6
    assert load_report(tmp_path / "out-baseline").counts.planned == 12
    log = json.loads((RESULTS / "inspect-0.3.60-new.json").read_text())
    used = {
        x: {"input_tokens": 9, "output_tokens": 7}
        for x in ("mockllm/new", "openai/judge")
    }
    log["samples"] = [
        {**one, "model_usage": used, "total_time": 9} for one in log["samples"][:-1]
    ]
    path = tmp_path / "short.json"
    path.write_text(json.dumps(log))
    old = RESULTS / "inspect-0.3.60-old.json"
    report = report_over(tmp_path, path, old, "--metric=match")
    assert report.slices[0].partial
    assert any("1 sample that the tool planned" in note for note in report.notes)
    assert {(x.answer_tokens_out, x.answer_seconds) for x in report.records} == {
        (7, None)
    }


def test_slices_are_gated_each_and_together(tmp_path: Path) -> None:
    """A field divides a task; a loss in one of its values alone is a FAIL by name."""
    rows = [
        {"id": n, "score": 1, "topic": ("Law & tax", "Физика")[n % 2]}
        for n in range(400)
    ]
    new = [{**row, "score": int(row["topic"] != "Law & tax" or n % 5 > 1)}
           for n, row in enumerate(rows)]  # fmt: skip
    report = decided(tmp_path, rows, new, "--slice=topic")
    states = {gate.slice: gate.state for gate in report.decision.gates}
    assert report.decision.code == 1
    assert states["table:law-tax"] == states["table:*"] == "FAIL"
    assert [state for name, state in states.items() if name.startswith("table:n-")] == [
        "PASS"
    ]


def test_items_without_a_question_are_independent(tmp_path: Path) -> None:
    """Only copies of a question that is there are one cluster, and repeats of an item."""
    rows = scored([1] * 200)
    bare = decided(tmp_path, rows, rows).decision.gates[0]
    asked = [{**row, "question": row["id"]} for row in rows]
    gate = decided(tmp_path, asked, asked).decision.gates[0]
    assert (bare.state, bare.estimate) == (gate.state, gate.estimate)
    assert bare.state == "PASS"
    rows = [
        {"id": f"q{n}", "repeat": k, "score": 1}
        for n in range(40)
        for k in range(1, 11)
    ]
    gate = decided(tmp_path, rows, rows).decision.gates[0]
    alone = decided(tmp_path, scored([1] * 40), scored([1] * 40)).decision.gates[0]
    assert gate.estimate.interval == pytest.approx(alone.estimate.interval, abs=1e-6)


def test_scores_between_0_and_1_are_gated_by_their_mean(
    tmp_path: Path, capsys: Captured
) -> None:
    """Another scale has to be named, worst first; where less is better, a rise is gated."""
    old, new = scored([0.8, 0.9] * 150), scored([0.8, 0.85] * 150)
    assert decided(tmp_path, old, new).decision.gates[0].name == "drop of score"
    report = decided(
        tmp_path, scored([4, 5] * 150), scored([4, 4] * 150), "--scale=1:5"
    )
    gate = report.decision.gates[0]
    assert gate.estimate.value == pytest.approx(-0.125)
    assert gate.state == "FAIL"
    assert any("score, 1 (worst) to 5 (best), as 0" in note for note in report.notes)
    report = decided(
        tmp_path, scored([2, 1] * 150), scored([2, 2] * 150), "--scale=5:1"
    )
    (marks,) = report.decision.gates
    assert (marks.state, marks.estimate) == (gate.state, gate.estimate)
    for run in ("old", "new"):
        shutil.copytree(RESULTS / f"lm_eval-{run}", tmp_path / run)
        results = next((tmp_path / run).glob("results*"))
        data = json.loads(results.read_text())
        data["higher_is_better"]["cities"]["acc"] = False
        results.write_text(json.dumps(data))
    runs = tmp_path / "new", tmp_path / "old"
    for words, gated, value in (
        ((), "rise of acc", -4 / 12),
        (["--scale=1:0"], "drop", 4 / 12),
    ):
        gates = report_over(tmp_path, *runs, *words, *METRICS).decision.gates
        assert [one.name for one in gates] == [gated, "drop"]
        assert gates[0].estimate.value == pytest.approx(value)
    code, said = decide(
        capsys, runs[0], f"--baseline={runs[1]}", "--scale=0:1", *METRICS
    )
    what = "the tool says that less is better in acc of cities; want WORST:BEST, 1:0"
    assert (code, f"--scale 0:1: {what}" in said) == (4, True)


def test_whether_less_is_better_is_never_guessed(
    tmp_path: Path, capsys: Captured
) -> None:
    """Where neither the harness's results nor the metric's plain name says it, a scale has to."""
    old, new = tmp_path / "old", tmp_path / "new"
    for metric, words, line in (
        (
            "brier_score",
            (),
            "brier_score of law: nothing says which way is better; say --scale",
        ),
        ("brier_score", ("--scale=1:0",), "GATES FAIL"),
        ("acc", (), "GATES PASS"),
    ):
        for folder, value in ((old, 0.1), (new, 0.5)):
            folder.mkdir(exist_ok=True)
            rows = ({"doc_id": n, "doc": {"q": n}, metric: value} for n in range(300))
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / "samples_law_2026-01-01T00-00-00.000000.jsonl").write_text(text)
        said = decide(
            capsys, new, f"--baseline={old}", f"--to={tmp_path / 'out'}", *words
        )[1]
        assert line in said.splitlines()[-1]


@pytest.mark.slow
@tabled("runs", "line")
def test_deepevals_verdicts_say_whether_less_is_better(
    runs: list[list[tuple[float, bool]]], line: str, tmp_path: Path, capsys: Captured
) -> None:
    """Those of either run; where they contradict each other, nothing is decided."""
    paths = tmp_path / "old.json", tmp_path / "new.json"
    for path, run in zip(paths, runs, strict=True):
        metrics = (
            {"name": "Bias", "threshold": 0.5, "score": a, "success": b} for a, b in run
        )
        rows = [
            {"input": f"{n}?", "metricsData": [one]}
            for n, one in enumerate([*metrics] * 150)
        ]
        path.write_text(json.dumps({"testFile": "x", "testCases": rows}))
    given = f"--baseline={paths[0]}", f"--to={tmp_path / 'out'}", "--metric=Bias"
    assert line in decide(capsys, paths[1], *given)[1].splitlines()[-1]
    (tmp_path / "gates.yaml").write_text("x: {all: {drop: {bias: {max: 0.05}}}}")
    code, said = decide(capsys, paths[1], *given, f"--gates={tmp_path / 'gates.yaml'}")
    assert (code, "less bias is better" in said) == (
        4,
        True,
    ) or "rise of bias" not in line


def test_labels_measure_the_scorer(tmp_path: Path) -> None:
    """A scorer that people contradict decides nothing; one that they confirm does."""
    said = ["correct"] * 280 + ["incorrect"] * 120
    rows = scored(said)
    truth = [{"id": row["id"], "verdict": row["score"]} for row in rows]
    good = as_csv(tmp_path / "good.csv", truth[200:])
    report = decided(tmp_path, rows, rows, f"--labels={good}")
    assert report.decision.code == 0
    assert [one.trusted for one in report.judging.calibrations] == [True]
    wrong = [
        {**row, "verdict": "incorrect" if n % 2 else "correct"}
        for n, row in enumerate(truth)
    ]
    report = decided(
        tmp_path, rows, rows, f"--labels={as_csv(tmp_path / 'bad.csv', wrong)}"
    )
    assert report.decision.code == 6
    assert any("judge not trusted" in gate.reason for gate in report.decision.gates)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["a", "labels", "labels-b"])
def test_labels_of_one_task_measure_no_other(first: str, tmp_path: Path) -> None:
    """Whatever the tasks are called, and after the run is decided again: the other is undecided."""
    rows = [{"id": f"{task}{n}", "task": task, "score": int(n % 5 > 0)}
            for task in (first, "b") for n in range(300)]  # fmt: skip
    truth = [{"id": row["id"], "verdict": row["score"]} for row in rows[:200]]
    report = decided(
        tmp_path, rows, rows, f"--labels={as_csv(tmp_path / 'labels.csv', truth)}"
    )
    assert report.decision.code == main(["gate", str(tmp_path / "out")]) == 6
    other, own = sorted(report.decision.gates, key=lambda gate: gate.state)
    assert own.state == "PASS"
    assert f"{other.slice} {other.reason}".startswith("b:all judge not measured")


@tabled("labelled", "line")
def test_a_label_is_of_one_answer(
    labelled: list[str], line: str, tmp_path: Path, capsys: Captured
) -> None:
    """Of repeats, or of two tasks, by its key; none counts twice."""
    rows = [{"id": f"q{n}", "repeat": n % 3, "score": 1} for n in (1, 2, 4)]
    rows.append({**rows[0], "repeat": 2})
    runs = as_csv(tmp_path / "run.csv", rows)
    former = as_csv(tmp_path / "old.csv", [{**row, "answer": "other"} for row in rows])
    labels = as_csv(
        tmp_path / "labels.csv", [{"id": id_, "verdict": "yes"} for id_ in labelled]
    )
    words = f"--baseline={former}", f"--labels={labels}", f"--to={tmp_path / 'out'}"
    assert line in decide(capsys, runs, *words)[1]


@pytest.mark.slow
def test_people_can_decide_over_tools_runs(tmp_path: Path, monkeypatch: Patch) -> None:
    """``evidence: audited``: the review form has the answers of both runs, verdicts come back."""
    monkeypatch.chdir(tmp_path)  # the plan of the review is written there
    gates = tmp_path / "gates.yaml"
    gates.write_text("table: {all: {drop: {max: 0.1, evidence: audited}}}")
    said = [["correct", "correct", "correct", "incorrect"][n % 4] for n in range(400)]
    rows = [
        {**row, "question": f"What is {row['id']}?"}
        for row in scored(said, expected="That")
    ]
    report = decided(tmp_path, rows, rows, f"--gates={gates}")
    assert report.decision.code == 6
    asked, run = tmp_path / "form", tmp_path / "out"
    main(["review", str(run), "--until-decided", f"--to={asked}"])
    sheet = asked / "audit.csv"
    truth = {record.id: record.grade or "" for record in report.records}

    def fill(_: int, row: Row) -> Row:
        name = row["item"].rpartition("@")[0].rpartition("-")[2]
        return {"verdict": truth[name], "reviewer": "Anna"}

    filled_in(sheet, fill, sheet)
    kept = tmp_path / "adjudications.yaml"
    main(
        [
            "review",
            "--accept",
            str(sheet),
            f"--to={kept}",
            f"--sheet={asked / 'sheet.json'}",
        ]
    )
    code = main(["gate", str(run), f"--adjudications={kept}"])
    assert code == 0


LONG = scored([1] * 200, question="Who?", expected="Ann")


@tabled("change", "why")
def test_other_items_decide_nothing(
    change: Mapping[str, str], why: str, tmp_path: Path
) -> None:
    """Items on one side only, or with another question, count at their worst."""
    changed = [{**row, **{name: text.format(n) for name, text in change.items()}}
               for n, row in enumerate(LONG[:20])]  # fmt: skip
    report = decided(tmp_path, LONG, [*(changed if change else ()), *LONG[20:]])
    assert (report.decision.code, report.decision.gates[0].state) == (6, "INCONCLUSIVE")
    assert why in report.decision.gates[0].reason


def test_another_version_of_a_task_or_scorer_decides_nothing(tmp_path: Path) -> None:
    """The versions that the tool names must be the same in both runs; no task may be lost."""
    rows = scored([1] * 200)
    decision = decided(
        tmp_path, [{"task": "law", **rows[0], "score": 7}, *rows], rows
    ).decision
    assert (decision.code, decision.gates[0].state) == (6, "PASS")
    assert "this run lacks law:all (1 item), which the baseline has" in decision.line
    shutil.copytree(RESULTS / "lm_eval-new", tmp_path / "new")
    results = next((tmp_path / "new").glob("results*"))
    results.write_text(results.read_text().replace('"cities": 1.0', '"cities": 1.1'))
    report = report_over(tmp_path, tmp_path / "new", RESULTS / "lm_eval-old", *METRICS)
    reasons = {gate.slice: gate.reason for gate in report.decision.gates}
    assert "task version changed from 1.0 to 1.1" in reasons["cities:all"]
    assert "changed" not in reasons["citygen:all"]


def test_scores_of_two_columns_are_not_compared(
    tmp_path: Path, capsys: Captured
) -> None:
    """Two columns of scores in either file are asked about: the first may be another's."""
    old = [{"id": n, "passed": 1} for n in range(200)]
    new = [{**row, "passed": int(row["id"] > 60), "score": 1} for row in old]
    tables = as_csv(tmp_path / "new.csv", new), as_csv(tmp_path / "old.csv", old)
    given = tables[0], f"--baseline={tables[1]}", f"--to={tmp_path / 'out'}"
    code, said = decide(capsys, *given)
    assert (code, "several scores, 'score', 'passed'; say which" in said) == (4, True)
    assert decide(capsys, *given, "--metric=passed")[0] == 1
    assert decide(capsys, *given, "--column=score=passed")[0] == 1
    code, said = decide(capsys, *given, "--column=score=pass")
    assert code == 4
    assert "no column 'pass'; say --column score=NAME, of id, passed, score" in said


@tabled("words", "line")
def test_no_result(
    words: list[str], line: str, tmp_path: Path, capsys: Captured
) -> None:
    """It says what is wrong, where, and what to give; nothing is written."""
    new, old, *rest = words
    to = tmp_path / "out"
    given = RESULTS / new, f"--baseline={RESULTS / old}", f"--to={to}"
    code, said = decide(capsys, *given, *rest)
    assert (code, len(said.splitlines()), to.exists()) == (4, 1, False)
    assert line in said


@tabled("rows", "line")
def test_a_bad_table_is_one_line(
    rows: Rows, line: str, tmp_path: Path, capsys: Captured
) -> None:
    """With file, row and column."""
    path = as_csv(tmp_path / "new.csv", rows)
    code, said = decide(capsys, path, f"--baseline={path}", f"--to={tmp_path / 'out'}")
    assert (code, len(said.splitlines())) == (4, 1)
    assert line in said


def test_a_run_of_ours_is_sent_to_gate(tmp_path: Path, capsys: Captured) -> None:
    """There is one way to decide over our own runs; names of tasks and slices are told apart."""
    decided(tmp_path, LONG, LONG)
    code, said = decide(capsys, tmp_path / "out", f"--baseline={tmp_path / 'out'}")
    assert code == 4
    assert "a run of qagate itself; say `qagate gate RUN --baseline OLD`" in said
    rows = [{**row, "task": "Law", "topic": "law"} for row in scored([1] * 20)]
    assert decided(tmp_path, rows, rows, "--slice=topic").slices[0].name == "law:law"


def in_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, "utf-8")
    return path


def records_of(path: Path, choice: Choice) -> Sequence[Record]:
    """Return the records that a result becomes when nothing else is beside it."""
    run = read_run(path, "", choice)
    tasks = decisive_scores([run], choice)
    return ImportedRun(run=run, tasks=tasks, choice=choice).inputs(None).records


def test_columns_of_a_table_are_named_by_what_they_hold(tmp_path: Path) -> None:
    """Any table will do; a row with an error is ungraded."""
    rows = [{"item": n, "acc": True, "broken": "", "lang": "pl"} for n in range(100)]
    rows[3] |= {"acc": None, "broken": "time-out"}
    columns = {"id": "item", "score": "acc", "error": "broken"}
    records = records_of(
        in_lines(tmp_path / "run.jsonl", rows), Choice(columns=columns, slice="lang")
    )
    assert {record.language for record in records} == {"pl"}
    ungraded = [record for record in records if record.outcome == "error"]
    assert [(one.id, one.error) for one in ungraded] == [("3", "tool: time-out")]


def test_a_column_that_neither_table_has_is_said(
    tmp_path: Path, capsys: Captured
) -> None:
    path = in_lines(tmp_path / "run.jsonl", scored([1] * 20))
    given = path, f"--baseline={path}", f"--to={tmp_path}", "--column=task=tusk"
    code, said = decide(capsys, *given)
    assert code == 4
    assert said.strip() == "--column task=tusk: neither result has such a column"


def test_a_line_separator_inside_a_text_is_no_line_end(tmp_path: Path) -> None:
    rows = [{"id": "a", "score": 1, "question": "Who\u2028is?"}]
    run = read_run(in_lines(tmp_path / "run.jsonl", rows), "", Choice())
    assert [sample.question for sample in run.samples] == ["Who\u2028is?"]


def test_two_scores_of_one_name_in_the_report_are_refused(tmp_path: Path) -> None:
    rows = [{"id": "a", "results": {"Right 1": 1, "right-1": 0}}]
    choice = Choice(columns={"score": "results.*"}, metrics=("Right 1",))
    with pytest.raises(UsageError, match="would both be 'right_1'"):
        records_of(in_lines(tmp_path / "run.jsonl", rows), choice)


def test_a_cluster_that_no_row_has_is_refused(tmp_path: Path) -> None:
    path = in_lines(tmp_path / "run.jsonl", scored([1] * 5))
    with pytest.raises(UsageError, match="--cluster topic: no sample of"):
        records_of(path, Choice(cluster="topic"))


def test_each_item_has_a_key_of_its_own(tmp_path: Path) -> None:
    """Also where slice and id could be divided otherwise, whatever else the run holds."""
    rows = [
        {"id": "us-3", "lang": "en", "score": 1},
        {"id": 3, "lang": "en-us", "score": 1},
    ]
    keys = {
        one.key for one in decided(tmp_path, rows, rows[::-1], "--slice=lang").records
    }
    assert (
        len(
            {
                *keys,
                *(one.key for one in load_report(tmp_path / "out-baseline").records),
            }
        )
        == 2
    )


VALUES = [b"", b"null", b"[]", b'"x"', b"{}", b"7", b"}"]


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(
        ["inspect-new.eval", "lm_eval-new/samples*", "lm_eval-new/results*", "table.csv",
         "promptfoo-2.json", "deepeval-new.json", "inspect-0.3.60-new.json"]
    ),
    at=st.floats(0, 1),
    piece=st.one_of(st.binary(max_size=9), st.sampled_from(VALUES)),
    length=st.one_of(st.just(10**6), st.integers(0, 40), st.none()),
)  # fmt: skip
@example(name="promptfoo-2.json", at=0.1328125, piece=b"[]", length=None)  # as a cost
def test_damaged_results_are_one_line_or_read(
    name: str,
    at: float,
    piece: bytes,
    length: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Bytes or a JSON value replaced anywhere, in archive, rows or table, never raise."""
    home = tmp_path_factory.mktemp("damaged") / "new"
    shutil.copytree(RESULTS / "lm_eval-new", home)
    given = path = home.parent / Path(name).name
    if name.startswith("lm_eval"):
        given, path = home, next(home.glob(name.split("/")[1]))
    elif name == "table.csv":
        as_csv(path, LONG[:20])
    else:
        shutil.copy(RESULTS / name, path)
    data = path.read_bytes()
    start = int(at * len(data))
    end = start + (length or 0)
    if length is None:
        start = data.find(b":", start) + 1
        end = min(
            (at for mark in b",}]" if (at := data.find(mark, start)) > 0),
            default=len(data),
        )
    path.write_bytes(data[:start] + piece + data[end:])
    words = ["decide", f"{given}", f"--baseline={given}", f"--to={home.parent / 'out'}"]
    named = ["--new=mock-new", "--old=mock-new"] if name.startswith("promptfoo") else []
    assert main([*words, *named]) in (0, 1, 4, 6)


def test_a_task_without_a_name_is_said(tmp_path: Path, capsys: Captured) -> None:
    """A log whose task is null is refused in one line, as any other damaged result."""
    log = json.loads((RESULTS / "inspect-0.3.60-new.json").read_text("utf-8"))
    log["eval"]["task"] = None
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), "utf-8")
    code, said = decide(capsys, path, f"--baseline={path}", f"--to={tmp_path / 'out'}")
    assert (code, len(said.splitlines())) == (4, 1)
    assert "the name of a task is no text: None" in said


def test_a_huge_member_is_said(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """It is refused by the size that it says, before it is read."""
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", " " * 10_000)
        archive.writestr("samples/q1_epoch_1.json", "{}")
    monkeypatch.setattr("qagate.evaluators.bounded_reading.MAX_MEMBER_BYTES", 9_999)
    code, said = decide(capsys, path, f"--baseline={path}", f"--to={tmp_path / 'out'}")
    assert (code, len(said.splitlines())) == (4, 1)
    assert "bomb.eval: header.json cannot be read (larger than 9,999 bytes)" in said


def test_conversations_of_deepeval_are_told_apart_by_what_was_asked(
    tmp_path: Path,
) -> None:
    """By the scenario, or the user's turns where none is given; the answer is the other side's."""
    metric = {"name": "Helps", "score": 0.9, "success": True, "threshold": 0.5}
    rows = [
        {"name": "test_case_0", "success": True, "metricsData": [metric], "scenario": scenario,
         "expectedOutcome": "A ticket", "turns": [
             {"role": "user", "content": asked}, {"role": "assistant", "content": f"No {asked}"}]}
        for scenario, asked in (("Books", "hello"), (None, "hello"), (None, "bye"))
    ]  # fmt: skip
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"testCases": [], "conversationalTestCases": rows}))
    samples = read_run(path, "", Choice()).samples
    assert [one.question for one in samples] == ["Books", "hello", "bye"]
    assert [one.answer for one in samples] == ["No hello", "No hello", "No bye"]
    assert {one.expected for one in samples} == {"A ticket"}
    assert len({one.id for one in samples}) == 3


@given(st.text())
def test_any_name_becomes_a_name_of_a_report(text: str) -> None:
    """Small letters and digits, a letter first, the same again for its own result."""
    name = slug(text)
    assert name[0].isalpha()
    assert name.isascii()
    assert slug(name) == name
