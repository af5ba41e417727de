"""Documents stand beside the replies, exactly as given, and go with them where they are carried."""

import asyncio
from pathlib import Path

import pytest

from evaluators.__main__ import main
from evaluators.core import Place
from evaluators.ledger import Ledger
from evaluators.ledger.rows import VARIABLE
from tests.support.places import change
from tests.support.recorded import fill, key_of, reply_of
from tests.support.tables import tabled


def keep(ledger: Ledger, kind: str, **texts: str) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(ledger.keep(kind, key, text) for key, text in texts.items()))

    asyncio.run(all_at_once())


def test_a_document_is_found_by_the_next_run_and_replaced(place: Place) -> None:
    """The last text of a kind and key is kept; kinds do not mix."""
    with Ledger(place) as ledger:
        keep(ledger, "batch", b="waiting", a="x")
        keep(ledger, "batch", b="done")
        keep(ledger, "note", b="another kind")
    with Ledger(place) as ledger:
        assert list(ledger.documents("batch").items()) == [("a", "x"), ("b", "done")]
        assert ledger.document("note", "b") == "another kind"
        assert ledger.document("note", "unknown") is None


@tabled("damage")
def test_a_document_that_was_changed_is_not_believed(place: Place, damage: str) -> None:
    """The seal binds the text to its kind and key."""
    with Ledger(place) as ledger:
        keep(ledger, "batch", k="waiting")
    change(place, damage)
    with Ledger(place) as ledger:
        for kind in ("batch", "other"):
            assert ledger.documents(kind) == {}


def test_a_document_needs_the_ledgers_signature(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With QA_LEDGER_KEY one that was written without it, or with another, does not count."""
    with Ledger(place) as ledger:
        keep(ledger, "batch", unsigned="x")
    for secret, found in (("a" * 32, {"signed": "y"}), ("b" * 32, {})):
        monkeypatch.setenv(VARIABLE, secret)
        with Ledger(place) as ledger:
            if found:
                keep(ledger, "batch", **found)
            assert ledger.documents("batch") == found


def test_an_older_ledger_still_answers(tmp_path: Path) -> None:
    """Only read it has no documents and no imports, and stays as it is; a run adds the tables."""
    fill(tmp_path / "l", 3)
    for table in ("documents", "imported"):
        change(tmp_path / "l", f"DROP TABLE {table}")
    before = (tmp_path / "l").read_bytes()
    with Ledger(tmp_path / "l", read_only=True) as ledger:
        assert ledger.get(key_of(1)) == reply_of(1)
        assert not ledger.is_imported(key_of(1))
        assert (ledger.document("batch", "k"), ledger.documents("batch")) == (None, {})
    assert main(["ledger", "stats", "--ledger", str(tmp_path / "l")]) == 0
    assert main(["ledger", "export", str(tmp_path / "out"), "--ledger", str(tmp_path / "l")]) == 0
    assert (tmp_path / "l").read_bytes() == before
    with Ledger(tmp_path / "l") as ledger:
        keep(ledger, "batch", k="text")
        assert ledger.get(key_of(1)) == reply_of(1)
        assert ledger.document("batch", "k") == "text"


def test_documents_are_carried_with_all_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole export takes them along, a narrowed one does not; the first document stands."""
    one, two, file = tmp_path / "one", tmp_path / "two", tmp_path / "out.jsonl"
    fill(one, 2)
    with Ledger(one) as ledger:
        keep(ledger, "batch", k="first", other="o\ud800")
    assert main(["ledger", "export", str(file), "--ledger", str(one), "--since", "2020-01-01"]) == 0
    assert file.read_text("utf-8").count("\n") == 2
    assert main(["ledger", "export", str(file), "--ledger", str(one)]) == 0
    with Ledger(two) as ledger:
        keep(ledger, "batch", k="own")
    assert main(["ledger", "import", str(file), "--ledger", str(two)]) == 0
    assert "2 new, 0 known, 0 refused" in capsys.readouterr().out
    with Ledger(two) as ledger:
        assert ledger.documents("batch") == {"k": "own", "other": "o\ud800"}
        assert ledger.get(key_of(1)) == reply_of(1)
    assert main(["ledger", "stats", "--ledger", str(two)]) == 0
    assert "2 documents with them" in capsys.readouterr().out


def test_a_document_that_was_changed_is_not_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its line is named; the reply next to it comes in."""
    file = tmp_path / "out.jsonl"
    fill(tmp_path / "one", 1)
    with Ledger(tmp_path / "one") as ledger:
        keep(ledger, "batch", k="first")
    assert main(["ledger", "export", str(file), "--ledger", str(tmp_path / "one")]) == 0
    file.write_text(file.read_text("utf-8").replace("first", "forged"), "utf-8")
    assert main(["ledger", "import", str(file), "--ledger", str(tmp_path / "two")]) == 4
    assert "out.jsonl:2: a document that is damaged" in capsys.readouterr().err
    with Ledger(tmp_path / "two") as ledger:
        assert ledger.get(key_of(0)) == reply_of(0)
        assert ledger.documents("batch") == {}
