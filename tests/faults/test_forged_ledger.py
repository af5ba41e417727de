"""Forged replies: said in every report, and without the ledger's secret not used at all."""

import json
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from qagate.command import main
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.rows import VARIABLE, Signer, StoredRow, checksum
from qagate.evaluators.text import canonical
from qagate.reports.render import words
from tests.support.fixtures import Captured, Patch
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible
from tests.support.places import ask, change, wait_for_note, zero_page
from tests.support.projects import Project, specs, without_last_line
from tests.support.recorded import (
    SPEC,
    fill,
    is_imported,
    key_of,
    put,
    reply_of,
    row_of,
)
from tests.support.tables import tabled

ITEMS = 6
SECRET = "canary-" + "0123456789abcdef" * 3


def bad(seen: Seen) -> Answer:
    return plausible(
        lambda asked, name, schema: "INCORRECT" if name == "grade" else "wrong"
    )(seen)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(handler=bad) as running:
        yield running


@pytest.fixture
def capital(project: Project) -> Project:
    return project.asked(ITEMS)


def command(*words: str | Path) -> int:
    return main(["ledger", *map(str, words)])


def forged(project: Project) -> Path:
    """Return what the default ledger holds, with every grade made CORRECT and sealed anew."""
    exported, made = project.path / "ledger.jsonl", project.path / "forged.jsonl"
    assert (
        command("export", exported, "--ledger", project.path / ".qa" / "ledger.sqlite3")
        == 0
    )
    lines = []
    for line in exported.read_text("utf-8").splitlines():
        row = json.loads(line.replace("INCORRECT", "CORRECT"))
        if "reply" not in row:
            continue  # a prompt
        text = canonical(row["reply"])
        row["checksum"] = checksum(row["key"], row["run"], row["at"], text)
        lines.append(json.dumps(row) + "\n")
    made.write_text("".join(lines), "utf-8")
    return made


def plain(result: pytest.RunResult) -> str:
    """Return what the terminal shows, however it is broken into lines."""
    return " ".join(result.stdout.str().split())


def shown(project: Project, result: pytest.RunResult) -> list[str]:
    """Return the terminal, the summary and the page of the last run, spaces and lines made one."""
    files = map(project.text, ("summary.md", "report.html"))
    return [" ".join(text.split()) for text in (result.stdout.str(), *files)]


def test_forged_rows_are_named_in_every_report(
    capital: Project, server: Loopback
) -> None:
    """Imported replies turn FAIL into PASS without a request; terminal, summary and page say so."""
    first = capital.run_in_process(*specs(server.url), "qa")
    assert first.ret == 1
    assert not any("replies of earlier runs" in text for text in shown(capital, first))
    assert command("import", forged(capital), "--ledger", capital.path / "led2") == 0
    result = capital.run_in_process(*specs(server.url), "--ledger", "led2", "qa")
    assert (result.ret, server.count) == (0, 2 * ITEMS)
    said = (
        "rest on replies of earlier runs (6 answers, 6 judgements), 6 of them imported"
    )
    assert all(said in text for text in shown(capital, result))
    assert said in plain(
        capital.run_in_process(*specs(server.url), "--ledger", "led2", "-q", "qa")
    )


def test_replies_of_an_earlier_run_are_counted(
    capital: Project, server: Loopback
) -> None:
    """The second run says where its verdicts are from, run.json differs in its run block and last
    line alone; where another model says the same only the judge's replies are old."""
    capital.run_in_process(*specs(server.url), "qa")
    first = capital.report()
    result = capital.run_in_process(*specs(server.url), "qa")
    second = capital.report()
    said = "6 of 6 verdicts rest on replies of earlier runs"
    assert all(said in text for text in shown(capital, result))
    assert "of them imported" not in result.stdout.str()
    runs = [first.pop("run"), second.pop("run")]
    assert without_last_line(first) == without_last_line(second)
    assert [run["replies"] for run in runs if isinstance(run, dict)] == [
        {"verdicts": ITEMS, "earlier": n, "imported": 0, "answers": n, "judgements": n}
        for n in (0, ITEMS)
    ]
    capital.run_in_process(*specs(server.url, "m2"), "qa")
    said = " ".join(capital.text("summary.md").split())
    assert (
        "6 of 6 verdicts rest on replies of earlier runs (0 answers, 6 judgements)"
        in said
    )


@pytest.mark.parametrize("kind", ["request", "text"])
def test_a_damaged_prompt_changes_nothing(
    capital: Project, server: Loopback, kind: str
) -> None:
    """The same exit code, records and requests; the transcripts say "not kept (damaged)"."""
    first = capital.run_in_process(*specs(server.url), "qa")
    records = capital.report()["records"]
    half = "substr(text, 1, length(text) / 2) || char(1) || substr(text, length(text) / 2 + 2)"
    ledger = capital.path / ".qa" / "ledger.sqlite3"
    change(ledger, f"UPDATE documents SET text = {half} WHERE kind = '{kind}'")
    again = capital.run_in_process(*specs(server.url), "qa")
    assert (again.ret, server.count) == (first.ret, 2 * ITEMS)
    assert capital.report()["records"] == records
    assert "not kept (damaged)" in capital.text("report.html")


def test_forged_rows_are_set_aside(
    capital: Project, server: Loopback, monkeypatch: Patch
) -> None:
    """Neither an import brings them in nor is a row of the file used: all is asked again."""
    monkeypatch.setenv(VARIABLE, SECRET)
    capital.run_in_process(*specs(server.url), "qa")
    assert server.count == 2 * ITEMS
    again = capital.run_in_process(*specs(server.url), "qa")
    assert (again.ret, server.count) == (1, 2 * ITEMS)
    made = forged(capital)
    assert command("import", made, "--ledger", capital.path / "led2") == 4
    monkeypatch.delenv(VARIABLE)
    assert command("import", made, "--ledger", capital.path / "led2") == 0
    monkeypatch.setenv(VARIABLE, SECRET)
    result = capital.run_in_process(*specs(server.url), "--ledger", "led2", "qa")
    assert result.ret == 1  # as at first: it fails
    assert server.count == 4 * ITEMS
    assert "12 unsigned rows of the ledger set aside and asked again" in plain(result)
    assert "replies of earlier runs" not in result.stdout.str()


def test_a_replay_does_not_use_unsigned_rows(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """They are as good as absent, and said; without the secret signed rows are read too."""
    fill(tmp_path / "plain", 1)
    monkeypatch.setenv(VARIABLE, SECRET)
    fill(tmp_path / "signed", 1)
    with Ledger(tmp_path / "plain", read_only=True) as ledger:
        assert ledger.get(key_of(0)) is None
        assert ledger.notes == ("1 unsigned row of the ledger not used",)
    monkeypatch.delenv(VARIABLE)
    for name in ("plain", "signed"):
        with Ledger(tmp_path / name, read_only=True) as ledger:
            assert ledger.get(key_of(0)) == reply_of(0)


@tabled("statement")
def test_a_signature_binds_every_column(
    tmp_path: Path, monkeypatch: Patch, statement: str
) -> None:
    """Time, model, key, run and reply: no signature holds for a row that it was not made for."""
    monkeypatch.setenv(VARIABLE, SECRET)
    fill(tmp_path / "l", 1)
    text = str(ask(tmp_path / "l", "SELECT reply FROM calls"))
    at = float(str(ask(tmp_path / "l", "SELECT at FROM calls")))
    seals = {
        "moved": checksum("k", "", at, text),
        "later": checksum(key_of(0), "", at + 1, text),
        "other": checksum(key_of(0), "other", at, text),
    }
    change(tmp_path / "l", statement.format_map(seals))
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.get("k" if "'k'" in statement else key_of(0)) is None
        assert ledger.notes == (
            "1 unsigned row of the ledger set aside and asked again",
        )
        put(ledger, [row_of(0)])
        assert ledger.get(key_of(0)) == reply_of(0)


def test_the_secret_is_shown_nowhere(tmp_path: Path, monkeypatch: Patch) -> None:
    """Not in a row, and not among the variables of a frame, no matter what fails in signing."""
    monkeypatch.setenv(VARIABLE, SECRET)
    fill(tmp_path / "l", 1)
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    broken = StoredRow(key_of(0), "", 2, 0.0, b"", "{}", "")  # type: ignore[arg-type]
    with pytest.raises(TypeError) as raised:
        Signer().signed(broken)
    frames = traceback.TracebackException.from_exception(
        raised.value, capture_locals=True
    )
    assert SECRET not in "".join(frames.format())


@pytest.mark.parametrize("secret", ["", "short", "x" * 31])
def test_a_secret_to_be_guessed_is_refused(
    tmp_path: Path, monkeypatch: Patch, secret: str
) -> None:
    """An empty variable too: a job whose secret is missing must not take every row."""
    monkeypatch.setenv(VARIABLE, secret)
    with pytest.raises(UsageError, match="at least 32 characters are needed") as raised:
        Ledger(tmp_path / "l")
    assert "short" not in str(raised.value).partition("too short")[2]


def test_a_release_is_asked_anew_under_its_name(
    capital: Project, server: Loopback
) -> None:
    """--fresh uses no reply that came before it; the same name resumes, and loses nothing."""
    capital.run_in_process(*specs(server.url), "qa")
    result = capital.run_in_process(*specs(server.url), "--fresh", "v2.0", "qa")
    assert server.count == 4 * ITEMS
    assert "replies of earlier runs" not in result.stdout.str()
    planned = capital.run_in_process(
        *specs(server.url), "--fresh", "v2.0", "--dry-run", "qa"
    )
    planned.stdout.fnmatch_lines(["*12 of them recorded (free)*"])
    for fresh in ((), ("--fresh", "v2.0"), ("--fresh", "v2.0", "--replay")):
        capital.run_in_process(*specs(server.url), *fresh, "qa")
    assert server.count == 4 * ITEMS
    assert "--fresh: a name of letters" in capital.refused("--fresh", "a b", "qa")


def test_a_mark_of_import_goes_with_its_row(tmp_path: Path, capsys: Captured) -> None:
    """Counted by stats; gone where the row is set aside or pruned, kept where a file is mended."""
    path, exported = tmp_path / "l", tmp_path / "rows.jsonl"
    fill(tmp_path / "other", 3)
    command("export", exported, "--ledger", tmp_path / "other")
    fill(path, 1)
    assert command("import", exported, "--ledger", path) == 0
    assert command("stats", "--ledger", path) == 0
    assert "2 rows imported" in capsys.readouterr().out
    zero_page(path, 2)  # of the empty table of rows set aside
    with Ledger(path) as ledger:
        ledger.begin_search()
        assert "it is kept as l.damaged-" in wait_for_note(ledger)
    with Ledger(path, read_only=True) as ledger:
        assert all(ledger.get(key_of(n)) for n in range(3))
        assert [is_imported(ledger, n) for n in range(3)] == [False, True, True]
    change(path, f"UPDATE calls SET reply = 'x' WHERE key = '{key_of(1)}'")
    with Ledger(path) as ledger:
        assert ledger.get(key_of(1)) is None
        put(ledger, [row_of(1)])
        assert not is_imported(ledger, 1)
    assert command("prune", "--model", SPEC, "--yes", "--ledger", path) == 0
    assert ask(path, "SELECT count(*) FROM imported") == 0


def test_an_import_needs_signatures(
    tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    """Each such line is named; a ledger's own unsigned rows are counted by stats."""
    exported = tmp_path / "rows.jsonl"
    fill(tmp_path / "l", 2)
    command("export", exported, "--ledger", tmp_path / "l")
    monkeypatch.setenv(VARIABLE, SECRET)
    assert command("import", exported, "--ledger", tmp_path / "m") == 4
    err = capsys.readouterr().err
    assert f"{exported}:1: unsigned: it was not written with this {VARIABLE}" in err
    assert command("stats", "--ledger", tmp_path / "l") == 0
    assert (
        "2 unsigned rows: the next run sets aside what it needs"
        in capsys.readouterr().out
    )
    fill(tmp_path / "signed", 2)
    command("export", exported, "--ledger", tmp_path / "signed")
    assert command("import", exported, "--ledger", tmp_path / "m") == 0


@tabled("run", "said")
def test_where_verdicts_come_from_is_said_of_any_run(
    run: dict[str, object], said: str
) -> None:
    """Of merged shards together; a block that is not what was written says nothing."""
    assert words.origin(run) == said
    odd = {"verdicts": "9", "earlier": -1, "imported": 10**4000}
    assert words.origin({"shards": [1], "replies": odd}) == ""
