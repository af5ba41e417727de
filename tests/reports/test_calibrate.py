"""`qagate calibrate`, from the words typed to the card printed."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from evaluators.__main__ import main
from evaluators.core import Outcome, Usage
from reports.commands.judge_command import progress_line
from tests.support.labelled_rows import MIXED, graded, spec, write
from tests.support.loopback import Answer, Seen, loopback, plausible, reply

BAD_REPLY = "no verdict here"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rated(number: int, label: float, said: int) -> dict[str, object]:
    answer = f"{'word ' * number}[[rating={said}]]"
    return {"question": f"Q {number}?", "gold": "g", "predicted": answer, "label": label}


@pytest.mark.parametrize("wire", ["openai", "anthropic", "openai-responses"])
def test_a_graded_judge_gets_its_card(wire: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All wire formats: 9 of 10 agree, all and per language, with data, rubric and cost."""
    path = write("labelled.jsonl", MIXED)
    with loopback() as server:
        assert main(["calibrate", "--judge", spec(server.url, wire), path, "--json", "c.json"]) == 0
        assert server.count == 10
    out, err = capsys.readouterr()
    assert "| agreement            | 0.900 [0.596, 0.982] (n = 10) |" in out
    assert "## bg" in out
    assert "simpleqa.bg@" in out
    assert "| INCORRECT     | 1       | 3         | 0             |" in out
    assert "judged 10 of 10, errors 0" in err
    card = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert card["sections"][0]["figures"]["agreement"]["value"] == 0.9
    assert (card["requests"], card["errors"], card["cost"]) == (10, {}, None)
    assert card["command"].startswith("qagate calibrate --judge")


def test_a_second_run_and_a_replay_send_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """What is in the ledger is not asked again, and the figures are the same."""
    path = write("labelled.jsonl", MIXED)
    with loopback() as server:
        words = ["calibrate", "--judge", spec(server.url), path]
        main(words)
        main(words)
        assert server.count == 10
    first, second = capsys.readouterr().out.split("# Judge card")[1:]
    assert main([*words, "--replay"]) == 0
    third = capsys.readouterr().out
    assert all("0.900 [0.596, 0.982]" in card for card in (first, second, third))


def test_repeats_are_asked_anew_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Each repeat is a request of its own; a judge that wavers is shown to."""
    path = write("labelled.jsonl", MIXED[:4])
    said = iter(["CORRECT", "INCORRECT", *["CORRECT"] * 6])
    handler = plausible(lambda seen, name, schema: next(said) if name == "grade" else "so")
    with loopback(handler=handler) as server:
        words = ["--repeats", "2", "--concurrency", "1"]
        assert main(["calibrate", "--judge", spec(server.url), path, *words]) == 0
        assert server.count == 8
    assert "Same verdict every time: 0.750" in capsys.readouterr().out


def test_a_models_file_of_ones_own_names_the_judge(capsys: pytest.CaptureFixture[str]) -> None:
    """Its entry wins over a bundled one of the same name, which is said."""
    path = write("labelled.jsonl", MIXED)
    with loopback() as server:
        entry = f"  provider: openai\n  model: judge\n  base_url: {server.url}/v1\n"
        Path("mine.yaml").write_text(f"house:\n{entry}o4-mini:\n{entry}", encoding="utf-8")
        words = ["calibrate", path, "--models", "mine.yaml", "--judge"]
        assert main([*words, "o4-mini"]) == 0
        assert main([*words, "huose"]) == 4
        assert [seen.body["model"] for seen in server.requests] == ["judge"] * 10
    err = capsys.readouterr().err
    assert "--models mine.yaml: o4-mini as there, not as bundled" in err
    assert "did you mean 'house'?" in err


def test_a_rated_judge_gets_its_card(capsys: pytest.CaptureFixture[str]) -> None:
    """Rank correlation, weighted kappa, bias and bias by length, each with an interval."""
    rows = [rated(n, n, min(10, n + n % 3)) for n in range(1, 10)]
    with loopback() as server:
        words = ["--rubric", "eba_plain", "--pass-bar", "7"]
        assert main(["calibrate", "--judge", spec(server.url), write("r.jsonl", rows), *words]) == 0
        assert {seen.tool[0] for seen in server.requests if seen.tool} == {"rate"}
    out = capsys.readouterr().out
    assert "eba_plain.en@1#" in out
    names = ("Spearman's rho", "quadratic-weighted kappa", "mean difference", "a doubling")
    for name in (*names, "pass/fail agreement at 7"):
        (line,) = [line for line in out.split("\n") if name in line]
        assert line.count("[") == 1
        assert "(n = 9)" in line


def test_the_people_are_compared_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Alpha, each pair's kappa, and the judge against the majority; ties are counted apart."""
    rows = [graded(n, "A", "CORRECT", label_1="A", label_2="A", label_3="B") for n in range(5)]
    rows += [graded(5, "B", "INCORRECT", label_1="B", label_2="B", label_3="B")]
    with loopback() as server:
        main(["calibrate", "--judge", spec(server.url), write("a.jsonl", rows)])
        tied = [{**row, "label_3": "C", "label_2": "B"} for row in rows]
        tied = [{k: v for k, v in row.items() if k != "label"} for row in [*tied, *rows]]
        main(["calibrate", "--judge", spec(server.url), write("b.jsonl", tied)])
    first, second = capsys.readouterr().out.split("# Judge card")[1:]
    assert "Krippendorff's alpha" in first
    assert "kappa of label_1 and label_3" in first
    assert "## against the raters' majority" in first
    assert "| items without one label     | 5 " in second
    assert "| items measured              | 7, on " in second


def test_errors_are_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """A reply that cannot be read is in no figure, and the card says so."""

    def handle(seen: Seen) -> Answer:
        return reply(seen, text=BAD_REPLY) if "the 3th" in seen.prompt else plausible()(seen)

    with loopback(handler=handle) as server:
        path = write("labelled.jsonl", MIXED)
        assert main(["calibrate", "--judge", spec(server.url), path]) == 0
    out = capsys.readouterr().out
    assert "1 of 10 (judge_unreadable 1)" in out
    assert "(n = 9)" in out


def test_no_verdict_at_all_is_one_line_and_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    """A refused key ends in a line that says so, not in an empty card."""
    with loopback(handler=lambda seen: Answer(status=401, body={"error": {}})) as server:
        path = write("labelled.jsonl", MIXED)
        assert main(["calibrate", "--judge", spec(server.url), path]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no answer got a verdict; " in err.split("\n")[-2]


def test_offline_judges_need_no_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``lexical`` grades and rates without a call and leaves nothing behind."""
    path = write("labelled.jsonl", [{**row, "predicted": "Sofia"} for row in MIXED])
    assert main(["calibrate", "--judge", "lexical", path, "--two-way", "--limit", "7"]) == 0
    assert main(["calibrate", "--judge", "lexical", write("r.jsonl", [rated(1, 3, 3)] * 3)]) == 0
    out = capsys.readouterr().out
    assert "none: rules" in out
    assert "| items measured              | 7, on 7 questions " in out
    assert "NOT_CORRECT" in out
    assert sorted(path.name for path in folder.iterdir()) == ["labelled.jsonl", "r.jsonl"]


def test_rules_before_a_model_and_panels_are_measured_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``lexical+SPEC`` asks only what the rules leave open; two judges vote on each answer."""
    sure = [{**row, "predicted": "Sofia"} for row in MIXED[:3]]
    path = write("labelled.jsonl", [*sure, MIXED[3]])
    with loopback() as server:
        assert main(["calibrate", "--judge", f"lexical+{spec(server.url)}", path]) == 0
        assert server.count == 1
        words = ["--judge", "lexical", "--judge", spec(server.url)]
        assert main(["calibrate", *words, path, "--rubric", "simpleqa"]) == 0
        rates = write("r.jsonl", [rated(n, n, n) for n in range(1, 5)])
        assert main(["calibrate", "--judge", f"lexical+{spec(server.url)}", rates]) == 0
        assert main(["calibrate", *words, rates]) == 0
    assert "1 of 4 (panel_tie 1)" in capsys.readouterr().out


def test_another_rubric_is_named_or_given_as_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """``eba_plain`` for comparison; a file of the user's own in the language of the rows."""
    Path("mine.en.txt").write_text("{question} {target} {predicted_answer}: A, B or C?")
    with loopback(handler=lambda seen: reply(seen, text="A")) as server:
        words = ["calibrate", "--judge", spec(server.url)]
        assert main([*words, write("g.jsonl", MIXED[:6]), "--rubric", "mine.en.txt"]) == 0
    with loopback() as server:
        rates = write("r.jsonl", [rated(n, n, n) for n in range(1, 5)])
        words = ["calibrate", "--judge", spec(server.url), rates, "--rubric", "eba_plain"]
        assert main(words) == 0
    out = capsys.readouterr().out
    assert "mine.en@template#" in out
    assert "eba_plain.en@" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: --judge, FILE"),
        (["--judge", "lexical", "gone.csv"], "gone.csv: cannot be read"),
        (["--judge", "lexica", "l.jsonl"], "--judge: unknown model 'lexica'"),
        (["--judge", "openai:x", "l.jsonl"], "no API key; set the environment variable"),
        (["--judge", "lexical", "--judge", "lexical", "l.jsonl"], "the same judge as --judge"),
        (["--judge", "lexical+openai:a", "--judge", "lexical", "--replay", "l.jsonl"],
         "rules before a model are no member of a panel"),
        (["--judge", "lexical", "l.jsonl", "--rubric", "eba"], "asks no model, so no rubric"),
        (["--judge", "openai:x", "l.jsonl", "--replay", "--rubric", "no"], "--rubric 'no': not kn"),
        (["--judge", "openai:x", "l.jsonl", "--replay", "--rubric", "eba"], "it asks for ratings"),
        (["--judge", "openai:x", "l.jsonl", "--replay"], "no ledger to replay from"),
        (["--judge", "lexical", "l.jsonl", "--limit", "0"], "want a whole number from 1"),
        (["--judge", "lexical", "l.jsonl", "--kind", "rated"], "want a plain number, got 'CORR"),
        (["--judge", "lexical", "l.jsonl", "--kind", "rated", "--two-way"], "are not grades"),
        (["--judge", "lexical", "l.jsonl", "--scale", "x"], "want WORST:BEST"),
        (["--judge", "lexical", "l.jsonl", "--label", "no"], "no column 'no'; found"),
        (["--judge", "lexical", "l.jsonl", "--json", "no/c.json"], "its folder does not exist"),
    ],
)  # fmt: skip
def test_a_users_mistake_is_one_line_and_exit_4(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is asked, nothing is printed but what is wrong."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write("l.jsonl", MIXED)
    assert main(["calibrate", *words]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


ROOT = Path(__file__).parents[2]


def test_figures_that_cannot_be_written_are_printed_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk costs the file, not the card."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    path = write("labelled.jsonl", MIXED)
    monkeypatch.setattr(Path, "write_text", full)
    assert main(["calibrate", "--judge", "lexical", path, "--json", "c.json"]) == 1
    out, err = capsys.readouterr()
    assert "# Judge card: lexical" in out
    assert "c.json: cannot be written (No space left on device)" in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_keeps_what_was_paid_for(folder: Path) -> None:
    """Interrupted in the middle: exit 130, a line that says how far, and no call made twice."""
    path = write("labelled.jsonl", MIXED)
    with loopback(handler=_slow) as server:
        command = [sys.executable, "-m", "evaluators", "calibrate", "--judge", spec(server.url)]
        command += [path, "--concurrency", "1"]
        with subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert line.startswith("judged ")
        assert process.returncode == 130
        assert "replies are kept, run again to go on" in rest
        sent = server.count
        assert main(command[3:]) == 0
        assert server.count - sent <= 10 - sent + 1


def _slow(seen: Seen) -> Answer:
    body = plausible()(seen).body
    return Answer(body=body, delay=0.2)


def test_progress_names_errors_and_what_was_spent() -> None:
    """The line counts what is judged and what failed; an unknown price gives no sum."""
    failed = Outcome(key="k", state="error", usage=Usage(spent=0.5))
    assert progress_line({"a": failed}, 2) == "judged 1 of 2, errors 1, spent $0.5000"
    unknown = Outcome(key="k", state="error", usage=Usage(cost=None))
    assert progress_line({"a": unknown}, 1) == "judged 1 of 1, errors 1, spent an unknown sum"


def test_a_ledger_that_cannot_keep_replies_stops_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing more is asked once a reply cannot be kept; exit 1 with the ledger's name."""
    path = write("labelled.jsonl", MIXED)

    def drop(seen: Seen) -> Answer:
        ledger = folder / "l.sqlite3"
        with contextlib.closing(sqlite3.connect(ledger)) as connection, connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (name,) in tables.fetchall():
                connection.execute(f'DROP TABLE "{name}"')
        return plausible()(seen)

    with loopback(handler=drop) as server:
        words = ["--ledger", "l.sqlite3", "--concurrency", "1"]
        assert main(["calibrate", "--judge", spec(server.url), path, *words]) == 1
        assert server.count <= 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "l.sqlite3" in err.split("\n")[-2]
