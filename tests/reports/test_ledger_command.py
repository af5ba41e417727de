"""`qagate ledger`: stats, export, import and prune."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.evaluators.core import Reply
from qagate.evaluators.ledger import Ledger, PaidReply
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.rows import VARIABLE, StoreError
from tests.support.fixtures import Captured, Patch
from tests.support.places import ask, change, text_of, zero_page
from tests.support.recorded import SPEC, fill, key_of, put, reply_of, row_of

OTHER = "local-vllm"
COLUMNS = "model calls tokens in cached tokens out call time cost first last"


def run(*words: str | Path) -> int:
    return main(["ledger", *map(str, words)])


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a ledger of five rows of one model and two of another, the latter of 1970."""
    path = tmp_path / "l"
    fill(path, 5)
    with Ledger(path, clock=lambda: 86_400.0) as ledger:
        put(ledger, [row_of(n, spec=OTHER) for n in (5, 6)])
    return path


def test_stats_say_what_is_there_and_what_it_cost(made: Path, capsys: Captured) -> None:
    """Rows, tokens, cost, dates by model; a cost is unknown or known in part, never 0."""
    change(made, f"UPDATE calls SET reply = 'x' WHERE key = '{key_of(1)}'")
    change(made, "INSERT INTO damaged VALUES ('k', 0, '', '')")
    assert run("stats", "--ledger", made) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{made}: 6 replies, 0.")
    assert " ".join(lines[1].split()) == COLUMNS
    assert lines[2].split()[:7] == [OTHER, "2", "11", "0", "4", "0", "s"]
    assert lines[2].split()[7:] == ["$0.00", "1970-01-02", "1970-01-02"]
    assert lines[3].split()[:8] == [SPEC, "4", "9", "0", "8", "0", "s", "unknown"]
    assert lines[4] == "1 damaged row: the next run sets aside what it needs"
    assert lines[5] == "1 row set aside by earlier runs"
    assert (
        lines[6]
        == f"cost unknown: neither models.yaml nor genai-prices has a price of {SPEC}"
    )
    with Ledger(made) as ledger:
        put(ledger, [replace(row_of(9), reply=replace(reply_of(9), cost=0.25))])
    assert run("stats", "--ledger", made) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "partly known: $0.25" in lines[3]
    assert lines[-1].startswith("cost partly known: $0.25: neither")


def test_stats_survive_hostile_rows(
    made: Path, capsys: Captured, tmp_path: Path
) -> None:
    """No name steers the terminal; a damaged file is said; twenty bad lines are named."""
    with Ledger(made, clock=lambda: 1e300) as ledger:
        put(ledger, [row_of(7)])
    change(made, "UPDATE calls SET spec = 'a' || char(27) || '[2Jb'")
    assert run("stats", "--ledger", made) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "1 damaged row" in out  # of a day that no calendar has
    path = tmp_path / "l"
    fill(path, 2000, size=5)
    content = zero_page(path)
    assert run("stats", "--ledger", path) == 1
    err = capsys.readouterr().err
    assert "it is damaged" in err
    assert "`qagate ledger check --mend` sets it aside" in err
    assert "Traceback" not in err
    assert path.read_bytes() == content
    (tmp_path / "x").write_text("nothing\n" * 50, encoding="utf-8")
    assert run("import", tmp_path / "x", "--ledger", tmp_path / "l") == 4
    err = capsys.readouterr().err
    assert err.count("not JSON") == 20
    assert "50 bad lines; the first 20 are named" in err


def exported(made: Path, *words: str) -> list[dict[str, Any]]:
    target = made.parent / "out.jsonl"
    assert run("export", "--ledger", made, target, *words) == 0
    return [
        json.loads(line) for line in target.read_text(encoding="ascii").splitlines()
    ]


def test_an_export_is_whole_private_and_always_the_same(
    made: Path, capsys: Captured
) -> None:
    """Whole or some rows, private and the same; damaged rows are left out; no half file."""
    rows = exported(made)
    assert [row["key"] for row in rows] == sorted(key_of(number) for number in range(7))
    assert set(rows[0]) == {
        "key",
        "run",
        "schema",
        "at",
        "spec",
        "reply",
        "checksum",
    }
    assert (made.parent / "out.jsonl").stat().st_mode & 0o777 == 0o600
    assert run("export", "--ledger", made) == 0
    assert capsys.readouterr().out == (made.parent / "out.jsonl").read_text(
        encoding="ascii"
    )
    assert {row["spec"] for row in exported(made, "--model", OTHER)} == {OTHER}
    assert len(exported(made, "--since", "1970-01-03")) == 5
    assert len(exported(made, "--since", "1970-01-02")) == 7
    assert exported(made, "--model", OTHER, "--since", "1970-01-03") == []
    change(made, f"UPDATE calls SET checksum = 'x' WHERE key = '{key_of(1)}'")
    assert len(exported(made)) == 6
    assert capsys.readouterr().err == "1 damaged row left out\n"
    assert ask(made, "SELECT count(*) FROM calls") == 7
    assert run("export", "--ledger", made, made.parent / "none" / "out.jsonl") == 1
    assert "could not be done (No such file or directory)" in capsys.readouterr().err
    assert {file.name for file in made.parent.iterdir()} == {
        "l",
        "l-claims",
        "out.jsonl",
    }


def test_what_was_exported_can_be_imported_elsewhere(
    made: Path, capsys: Captured
) -> None:
    """Every row arrives with its time; the first reply stands, however the second came."""
    exported(made)
    elsewhere = made.parent / "new" / "l"
    for said in ("7 new, 0 known, 0 refused\n", "0 new, 7 known, 0 refused\n"):
        assert run("import", made.parent / "out.jsonl", "--ledger", elsewhere) == 0
        assert capsys.readouterr().out == said
    with Ledger(elsewhere) as ledger:
        assert all(
            ledger.get(key_of(number)) == reply_of(number) for number in range(7)
        )
    assert ask(elsewhere, "SELECT min(at) FROM calls") == 86_400.0
    exported(made)
    elsewhere = made.parent / "m"
    with Ledger(elsewhere) as ledger:
        put(ledger, [PaidReply(key=key_of(3), spec="m", reply=Reply(text="first"))])
    assert run("import", made.parent / "out.jsonl", "--ledger", elsewhere) == 0
    assert capsys.readouterr().out == "6 new, 1 known, 0 refused\n"
    with Ledger(elsewhere) as ledger:
        assert ledger.get(key_of(3)) == Reply(text="first")
        assert ledger.get(key_of(2)) == reply_of(2)


NO_ROW, CHANGED = (
    "not a row of a ledger",
    "the row is not what was exported: its checksum is wrong",
)
BAD: list[tuple[bytes | dict[str, object], str]] = [
    (b"{", "not JSON"),
    (b"[1]", NO_ROW),
    (b'{"key": "x"}', NO_ROW),
    (b"\xff", "not UTF-8"),
    ({"x": 1}, NO_ROW),
    ({"schema": 3}, "format 3, this version reads"),
    ({"checksum": "0"}, CHANGED),
    ({"key": key_of(99)}, CHANGED),
    ({"key": 1}, CHANGED),
    ({"at": "now"}, CHANGED),
    ({"reply": {"text": "mine"}}, CHANGED),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_bad_line_is_named_and_left_out(
    made: Path, capsys: Captured, bad: bytes | dict[str, object], message: str
) -> None:
    """Line and reason on stderr, exit code 4; the others are imported."""
    rows = exported(made)
    line = json.dumps({**rows[2], **bad}).encode() if isinstance(bad, dict) else bad
    path, elsewhere = made.parent / "out.jsonl", made.parent / "m"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = line + b"\n"
    path.write_bytes(b"".join(lines))
    assert run("import", path, "--ledger", elsewhere) == 4
    out, err = capsys.readouterr()
    assert out == "6 new, 0 known, 1 refused\n"
    assert err.startswith(f"{path}:3: {message}")
    assert ask(elsewhere, "SELECT count(*) FROM calls") == 6


def test_pruning_counts_first_and_removes_on_request(
    made: Path, capsys: Captured
) -> None:
    """Without --yes nothing goes; with it, rows by age and model, and the file gets smaller."""
    fill(made, 400, spec="big", size=900)
    before = made.stat().st_size
    words = ("prune", "--ledger", made, "--older-than", "90d")
    assert run(*words) == 0
    assert capsys.readouterr().out.startswith("2 rows with ")
    assert ask(made, "SELECT count(*) FROM calls") == 400
    assert run(*words, "--yes", "--model", SPEC) == 0
    assert capsys.readouterr().out == "0 rows with 0 bytes of replies removed\n"
    assert run(*words, "--yes") == 0
    assert ask(made, f"SELECT count(*) FROM calls WHERE spec = '{OTHER}'") == 0
    assert run("prune", "--ledger", made, "--model", "big", "--yes") == 0
    assert ask(made, "SELECT count(*) FROM calls") == 5
    assert made.stat().st_size < before / 4
    with Ledger(made) as ledger:
        assert ledger.notes == ()


def test_none_in_use_is_pruned(
    made: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """A run must not lose what it was given; an error of SQLite is exit 1, no traceback."""
    with Ledger(made):
        assert run("prune", "--ledger", made, "--model", SPEC, "--yes") == 4
    assert "prune it once the run has ended" in capsys.readouterr().err
    assert ask(made, "SELECT count(*) FROM calls") == 7

    def refuse(*_: object, **__: object) -> None:
        raise StoreError("database or disk is full", is_full=True)

    monkeypatch.setattr("qagate.evaluators.ledger.upkeep.prune", refuse)
    assert run("prune", "--ledger", made, "--model", SPEC, "--yes") == 1
    assert (
        "prune could not be done (database or disk is full)" in capsys.readouterr().err
    )


def test_check_counts_what_is_sound(made: Path, capsys: Captured) -> None:
    assert run("check", "--ledger", made) == 0
    assert capsys.readouterr().out == f"{made}: sound replies: 7\n"
    change(made, f"UPDATE calls SET reply = 'x' WHERE key = '{key_of(1)}'")
    assert run("check", "--ledger", made) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{made}: sound replies: 6",
        "1 damaged row: the next run sets aside what it needs",
    ]


def test_check_counts_what_is_not_signed(
    made: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    monkeypatch.setenv(VARIABLE, "s" * 32)
    assert run("check", "--ledger", made) == 1
    assert "7 unsigned rows" in capsys.readouterr().out


def test_check_names_damaged_pages_and_changes_nothing(
    made: Path, capsys: Captured
) -> None:
    content = zero_page(made, 1)
    assert run("check", "--ledger", made) == 1
    message = capsys.readouterr().err
    assert f"{made}: damaged: " in message
    assert "--mend does so now" in message
    assert made.read_bytes() == content


def test_check_mends_a_damaged_ledger(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "l"
    fill(path, 2000, size=5)
    damaged = zero_page(path)
    assert run("check", "--mend", "--ledger", path) == 0
    told = capsys.readouterr()
    assert "of its rows verify and are used" in told.out
    (kept,) = tmp_path.glob("l.damaged-*")
    assert kept.read_bytes() == damaged
    assert run("check", "--ledger", path) == 0


def test_check_mends_a_file_that_sqlite_cannot_read(
    made: Path, capsys: Captured
) -> None:
    made.write_bytes(bytes(20_000))
    assert run("check", "--mend", "--ledger", made) == 0
    assert "0 of its rows verify" in capsys.readouterr().out


def test_check_leaves_a_ledger_in_use_alone(made: Path, capsys: Captured) -> None:
    with Ledger(made):
        zero_page(made, 1)
        assert run("check", "--mend", "--ledger", made) == 1
    assert "another run uses it" in capsys.readouterr().err


def test_check_reads_a_database(place: LedgerPlace, capsys: Captured) -> None:
    fill(place, 3)
    assert run("check", "--ledger", text_of(place)) == 0
    assert "sound replies: 3" in capsys.readouterr().out
