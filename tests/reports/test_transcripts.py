"""Transcripts: every prompt and reply of a run, in a file, on the page and by ``show``."""

import asyncio
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.evaluators.core import Message, Reply, Request, ToolCall, UsageError
from qagate.evaluators.kept_requests import (
    REQUEST,
    TEXT,
    Document,
    documents_of,
    request_key,
)
from qagate.evaluators.ledger import Ledger, PaidReply
from qagate.evaluators.ledger.place import LedgerPlace, PostgresUrl
from qagate.evaluators.ledger.rows import VARIABLE
from qagate.evaluators.text import digest
from qagate.reports.render import html, worst_first
from qagate.reports.render.html import sent_block, shower
from qagate.reports.render.writer import write
from qagate.reports.run.record import Record
from qagate.reports.run.report_folder import TRANSCRIPTS
from qagate.reports.run.run_json import load_report
from qagate.reports.run.sent_calls import SentCall, calls_of, parts
from qagate.reports.run.transcripts import (
    Line,
    Packer,
    Source,
    keys_of,
    of_files,
    of_ledger,
    packed,
)
from tests.support.browsing import Browser, Tab, browser, needs_browser
from tests.support.figures import some
from tests.support.fixtures import Captured, Patch
from tests.support.hostile import HOSTILE
from tests.support.loopback import Answer, Loopback, Seen, good, loopback, reply
from tests.support.pages import Page
from tests.support.places import change
from tests.support.projects import RUBRIC, Project
from tests.support.samples import record, report
from tests.support.scripted import Scripted

LONG = "A rule. " * 400
KEY = "sk-proj-0123456789abcdefghij"
MODEL = Scripted(lambda request: Reply())


def asked(text: str) -> tuple[str, Request]:
    """Return a request with a long text of all, and the key under which it is kept."""
    messages = (
        Message(role="system", content=LONG),
        Message(role="user", content=text),
    )
    request = Request(messages=messages, version="answer@1#c")
    return request_key(MODEL.identity, request), request


def fill(
    path: LedgerPlace, texts: Sequence[str], *, documents: bool = True
) -> tuple[Record, ...]:
    """Put a call for each text into a ledger; return a record for each."""

    async def put(ledger: Ledger) -> None:
        for text in texts:
            key, request = asked(text)
            call = ToolCall(name="grade", arguments=f'{{"reason": "{text}"}}')
            reply = Reply(text=f"re {text}", calls=(call,), model="m", output_tokens=3)
            said = (
                documents_of(MODEL.spec, MODEL.identity, request, key, "")
                if documents
                else ()
            )
            await ledger.put(
                PaidReply(key=key, spec=MODEL.spec, reply=reply, documents=said)
            )

    with Ledger(path) as ledger:
        asyncio.run(put(ledger))
    return tuple(
        record(number, calls=(asked(text)[0],)) for number, text in enumerate(texts, 1)
    )


def file_of(ledger: Path, records: Sequence[Record], folder: Path) -> Path:
    with Ledger(ledger, read_only=True) as opened:
        content = b"".join(packed(of_ledger(opened)(keys_of(records))))
    folder.mkdir(exist_ok=True)
    (folder / TRANSCRIPTS).write_bytes(content)
    return folder / TRANSCRIPTS


def test_every_call_comes_back_from_ledger_and_file(tmp_path: Path) -> None:
    """Exactly as asked and replied, hidden characters and all; a long text stands there once."""
    texts = [text for text in HOSTILE if "sk-" not in text]
    records = fill(tmp_path / "l", texts)
    path = file_of(tmp_path / "l", records, tmp_path / "run")
    with Ledger(tmp_path / "l", read_only=True) as opened:
        of_both = of_ledger(opened), of_files([path])
        for source in of_both:
            calls = calls_of(some(source), keys_of(records))
            for text in texts:
                key, request = asked(text)
                assert calls[key].request == request
                assert calls[key].is_exact
                reply = some(calls[key].reply)
                assert (reply.text, reply.calls[0].arguments) == (
                    f"re {text}", f'{{"reason": "{text}"}}'
                )  # fmt: skip
    assert gzip.decompress(path.read_bytes()).decode().count("A rule. A rule.") == 200


def test_the_same_calls_are_the_same_bytes(tmp_path: Path) -> None:
    """The same bytes whichever way they come; keys masked; an older ledger has replies alone."""
    records = fill(tmp_path / "l", ["one", "two", "\u202e", KEY])
    path = file_of(tmp_path / "l", records, tmp_path / "run")
    again = file_of(tmp_path / "l", records[::-1], tmp_path / "again")
    source = some(of_files([path]))
    assert path.read_bytes() == again.read_bytes()
    assert b"".join(packed(source(keys_of(records)))) == path.read_bytes()
    records = fill(tmp_path / "l", [KEY])
    path = file_of(tmp_path / "l", records, tmp_path / "run")
    assert KEY not in gzip.decompress(path.read_bytes()).decode()
    (call,) = calls_of(some(of_files([path])), keys_of(records)).values()
    assert some(call.request).messages[1].content == "[key masked]"
    assert not call.is_exact
    records = fill(tmp_path / "old", ["one"], documents=False)
    source = some(of_files([file_of(tmp_path / "old", records, tmp_path / "run")]))
    (call,) = calls_of(source, keys_of(records)).values()
    assert (call.request, call.spec) == (None, "m")
    assert some(call.reply).text == "re one"


def test_pruning_takes_prompts_with_their_replies(tmp_path: Path) -> None:
    """A text that no kept request names goes too; one that another names stays."""
    path = tmp_path / "l"
    fill(path, ["old " * 400, "new"])
    change(path, "UPDATE calls SET at = 0.0 WHERE reply LIKE '%old%'")
    prune = ("ledger", "prune", "--older-than", "90d", "--yes", "--ledger", str(path))
    assert main(prune) == 0
    with Ledger(path, read_only=True) as ledger:
        assert list(ledger.documents(REQUEST)) == [asked("new")[0]]
        texts = list(ledger.documents(TEXT).values())
    assert len(texts) == 2
    assert not any("old" in text for text in texts)


FORGED = {
    "a request": "UPDATE documents SET text = replace(text, 'one', 'two') WHERE kind = 'request'",
    "a frame": "UPDATE documents SET text = replace(text, 'answer@1', 'answer@2')",
    "a long text": "UPDATE documents SET text = replace(text, 'rule', 'role')",
    "no text": "DELETE FROM documents WHERE kind = 'text'",
    "no JSON": "UPDATE documents SET text = '{' WHERE kind = 'request'",
    "another shape": """UPDATE documents SET text = '{"frame":[],"messages":[1]}'""",
    "a digest": "UPDATE documents SET key = key || '0' WHERE kind = 'text'",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("signs", [True, False])
def test_a_forged_prompt_in_the_ledger_is_not_shown(
    place: LedgerPlace, monkeypatch: Patch, forged: str, signs: bool
) -> None:
    """Sealed or signed: it is "not kept (damaged)", its reply is shown."""
    if signs:
        monkeypatch.setenv(VARIABLE, "s" * 32)
    records = fill(place, ["one"])
    with Ledger(place, read_only=True) as opened:
        (call,) = calls_of(of_ledger(opened), keys_of(records)).values()
        assert call.is_exact
    change(place, forged)
    with Ledger(place, read_only=True) as opened:
        (call,) = calls_of(of_ledger(opened), keys_of(records)).values()
    assert ("sent", "not kept (damaged)") in parts(call)
    assert some(call.reply).text == "re one"


ODD_FRAMES: list[object] = [1, [], {}, {"tool": 5}]
"""What stands under a digest that is right, in place of who was asked and how."""


@pytest.mark.parametrize("frame", ODD_FRAMES, ids=str)
def test_a_call_that_no_run_writes_costs_no_report(
    place: LedgerPlace, frame: object
) -> None:
    """Its seals are right, as anybody can make them. The other calls are shown."""
    records = fill(place, ["one", "two"])
    keys = keys_of(records)
    content = json.dumps(json.dumps(frame))
    with Ledger(place) as ledger:
        forged = json.loads(ledger.documents(REQUEST)[keys[0]])
        forged["frame"] = digest(json.dumps(frame))
        before = ledger.documents(REQUEST)[keys[0]]
        ledger.swap(Document(TEXT, forged["frame"], content), None)
        assert ledger.swap(Document(REQUEST, keys[0], json.dumps(forged)), before)
        odd, sound = calls_of(of_ledger(ledger), keys).values()
    assert ("sent", "not kept (damaged)") in parts(odd)
    assert some(sound.reply).text == "re two"
    assert sound.is_exact


ODD_LINES = {
    "reply": '{"call": "k", "sent": null, "reply": {"text": 5}}',
    "request": '{"call": "k", "sent": {}, "reply": null}',
    "list": "[1]",
    "deep": "[" * 100_000 + "]" * 100_000,
}


@pytest.mark.parametrize("text", ODD_LINES.values(), ids=ODD_LINES)
def test_a_line_that_no_run_writes_is_a_damaged_call(text: str) -> None:
    def source(keys: Sequence[str]) -> Iterator[Line]:
        yield Line(is_call=True, key="k", json=text)

    assert calls_of(source, ["k"])["k"].is_damaged


def test_of_several_replies_that_of_the_run_is_shown(place: LedgerPlace) -> None:
    """Another run may have asked the same since."""
    (record,) = fill(place, ["one"])
    (key,) = keys_of([record])
    with Ledger(place) as ledger:
        for run in ("first", "second"):
            reply = Reply(text=f"of the {run} run")
            paid = PaidReply(key=key, spec="openai:m", reply=reply, run=run)
            asyncio.run(ledger.put(paid))
        for run in ("first", "second"):
            (call,) = calls_of(of_ledger(ledger, run), [key]).values()
            assert some(call.reply).text == f"of the {run} run"


def test_a_prompt_needs_a_signature(place: LedgerPlace, monkeypatch: Patch) -> None:
    """With QA_LEDGER_KEY a sealed one without it is not shown; asked again, it is."""
    records = fill(place, ["one"])
    monkeypatch.setenv(VARIABLE, "s" * 32)
    with Ledger(place) as ledger:
        assert ledger.requests(keys_of(records))[2] == {*keys_of(records)}
    fill(place, ["one"])
    with Ledger(place) as ledger:
        assert ledger.requests(keys_of(records))[2] == set()


def shown(place: LedgerPlace, records: Sequence[Record]) -> list[object]:
    """Return what a replay and its report get: the replies, then requests, each None if damaged."""
    with Ledger(place, read_only=True) as ledger:
        (key,) = keys_of(records)
        calls = calls_of(of_ledger(ledger), [key])
        return [ledger.get(key), key in calls and calls[key].request]


def flipped(text: str) -> Iterator[str]:
    """Yield a text with a bit of each of its characters flipped in turn."""
    for at, one in enumerate(text):
        yield text[:at] + chr(ord(one) ^ 1 << at % 5) + text[at + 1 :]


@pytest.mark.slow
def test_every_flipped_byte_of_a_file_gives_what_was_kept_or_nothing(
    memory: Path,
) -> None:
    """Rows, their headers and the index: no other reply or prompt, no error, and a run goes on."""
    path = memory / "l"
    records = fill(path, ["one"])
    change(path, f"INSERT INTO imported VALUES ('{keys_of(records)[0]}', '')")
    change(path, "INSERT INTO damaged SELECT key, at, 'x', checksum FROM calls")
    content, right = path.read_bytes(), shown(path, records)
    rows = [at for at in range(4096, len(content)) if content[at]]
    for at in rows:
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        pairs = zip(shown(path, records), right, strict=True)
        assert all(got in (None, False, kept) for got, kept in pairs), at
        if at % 32 == 0:
            with Ledger(path) as ledger:
                assert ledger.get(keys_of(records)[0]) in (None, right[0])
            assert main(["ledger", "stats", "--ledger", str(path)]) in (0, 1)


LOOKS = {"calls": "key, spec, reply, checksum", "documents": "kind, key, text"}


def look(ledger: Ledger, table: str, key: str) -> object:
    """Return what a ledger has of a call in one of its tables, None for nothing."""
    if table == "calls":
        return ledger.get(key)
    sent, texts, _ = ledger.requests([key])
    return (sent, texts) if sent else None


@pytest.mark.untraced
def test_every_flipped_character_gives_what_was_kept_or_nothing(
    server: PostgresUrl,
) -> None:
    """In each column of each table: no other reply or prompt, and no error."""
    import psycopg  # noqa: PLC0415

    (key,) = keys_of(fill(server, ["one"]))
    with (
        psycopg.connect(server.url, autocommit=True) as connection,
        Ledger(server, read_only=True) as ledger,
    ):
        for table, columns in LOOKS.items():
            kept = look(ledger, table, key)
            rows = connection.execute(f"SELECT ctid, {columns} FROM {table}".encode())
            for _, *row in rows.fetchall():
                for column, text in zip(columns.split(", "), row, strict=True):
                    turn = (
                        f"UPDATE {table} SET {column} = %s WHERE {column} = %s".encode()
                    )
                    for other in flipped(text):
                        connection.execute(turn, (other, text))
                        assert look(ledger, table, key) in (None, kept), (column, other)
                        connection.execute(turn, (text, other))


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip",
        gzip.compress(b'{"call": "k", "sent": {"request": []}, "reply": 1}\n', mtime=0),
        gzip.compress(b"[1]\n", mtime=0),
        gzip.compress(b'{"call": "k"}\n', mtime=0)[:-9],
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    """For any writer and any fault: one line, no traceback."""
    (tmp_path / TRANSCRIPTS).write_bytes(content)
    source = some(of_files([tmp_path / TRANSCRIPTS]))
    with pytest.raises(UsageError, match=TRANSCRIPTS):
        calls_of(source, ["k"])


def test_a_report_carries_them_and_another_run_takes_them_away(tmp_path: Path) -> None:
    """Written, rendered and merged they stay; a run without any leaves none of the last one's."""
    records = fill(tmp_path / "l", ["one", "two"])
    one, two = report(records[:1]), report(records[1:])
    with Ledger(tmp_path / "l", read_only=True) as opened:
        for made, name in ((one, "one"), (two, "two")):
            assert tmp_path / name / TRANSCRIPTS in write(
                made, tmp_path / name, of_ledger(opened)
            )
    before = (tmp_path / "one" / TRANSCRIPTS).read_bytes()
    page = (tmp_path / "one" / "report.html").read_bytes()
    assert main(["render", str(tmp_path / "one")]) == 0
    assert (tmp_path / "one" / TRANSCRIPTS).read_bytes() == before
    assert (tmp_path / "one" / "report.html").read_bytes() == page
    assert main(["gate", str(tmp_path / "one"), "--to", str(tmp_path / "gated")]) in (
        0,
        6,
    )
    assert (tmp_path / "gated" / TRANSCRIPTS).read_bytes() == before
    merged = some(of_files([tmp_path / name / TRANSCRIPTS for name in ("one", "two")]))
    assert set(calls_of(merged, keys_of(records))) == set(keys_of(records))
    write(report(), tmp_path / "one")
    assert not (tmp_path / "one" / TRANSCRIPTS).exists()


__all__ = ["browser"]
ODD = [text for text in HOSTILE if "sk-" not in text]


def failed(records: Sequence[Record], *numbers: int) -> tuple[Record, ...]:
    """Return these records, those at some places failed."""
    miss = {"outcome": "failed", "grade": "INCORRECT"}
    return tuple(
        replace(one, **miss) if at in numbers else one  # type: ignore[arg-type]
        for at, one in enumerate(records)
    )


@pytest.fixture(scope="module", autouse=True)  # before a browser has its loop
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Record, ...]]:
    """A ledger with a call for each hostile text, and the records that name them."""
    path = tmp_path_factory.mktemp("kept") / "l"
    return path, fill(path, ODD)


@pytest.fixture
def records(kept: tuple[Path, tuple[Record, ...]]) -> tuple[Record, ...]:
    return kept[1]


@pytest.fixture
def source(kept: tuple[Path, tuple[Record, ...]]) -> Iterator[Source]:
    with Ledger(kept[0], read_only=True) as ledger:
        yield of_ledger(ledger)


def test_what_matters_most_is_on_the_page(
    source: Source, records: tuple[Record, ...]
) -> None:
    """An item's calls are there all or not at all, texts once, nothing that HTML acts on."""
    records = failed(records, 3)
    block = sent_block(worst_first.items(report(records)), source, shower(40_000))
    assert next(iter(block["items"])) == records[3].key
    assert len(block["items"]) == len(block["calls"]) == len(records)
    assert sum(text == LONG for text in block["texts"]) == 1
    title, parts = block["calls"][block["items"][records[3].key][0]]
    assert title == "openai:scripted, answer@1#c"
    assert [name for name, _ in parts] == [
        "system",
        "user",
        "reply",
        "reply calls grade",
        "about",
    ]
    page = Page(html.render(report(records), transcripts=source))
    (shown,) = [word for word in page.words if word.startswith('{"texts"')]
    assert not set("<>&\u202e\x00") & set(shown)


def test_room_has_an_end(
    source: Source, records: tuple[Record, ...], monkeypatch: Patch
) -> None:
    """What does not fit is left out, the items that matter least first."""
    records = failed(records, 3)
    monkeypatch.setattr(html, "_BUDGET", len(LONG) + 400)
    block = sent_block(worst_first.items(report(records)), source, shower(40_000))
    assert 1 <= len(block["items"]) < len(records)
    assert records[3].key in block["items"]
    assert sum(map(len, block["texts"])) <= len(LONG) + 400
    assert sent_block(records, None, str) == {"texts": [], "calls": [], "items": {}}


@needs_browser
def test_an_open_item_shows_what_was_sent_or_the_command_that_does(
    source: Source,
    records: tuple[Record, ...],
    tmp_path: Path,
    browser: Browser,
    monkeypatch: Patch,
) -> None:
    """Its prompts and replies behind a line each; nothing in them runs."""
    records = failed(records, 0)
    monkeypatch.setattr(html, "_ITEMS", len(records) - 1)
    write(report(records), tmp_path / "run", source)
    tab = Tab(browser, tmp_path / "run" / "report.html")
    tab.page.locator("#items .open").first.click()
    tab.page.locator(".call summary").first.click()
    assert tab.page.locator(".call pre").nth(1).inner_text() == ODD[0]
    assert LONG.strip() in tab.page.locator(".call pre").first.inner_text()
    tab.page.locator("#items .open").last.click()
    assert (
        f"qagate show {records[-1].key} RUN"
        in tab.page.locator(".detail").last.inner_text()
    )
    tab.page.eval_on_selector_all(
        ".open[aria-expanded=false]", "all => all.map(o => o.click())"
    )
    assert (tab.page.title(), tab.complaints) == (
        "PASS – openai:new – evaluation report",
        [],
    )
    tab.page.close()


DOWN, MUMBLED = "number 2?", "number 3?"


def handle(seen: Seen) -> Answer:
    """Answer and judge; one item's model is down, another's judge mumbles at first."""
    if seen.tool is None:
        refused = Answer(status=400, body={"error": {"message": "refused"}})
        return (
            refused
            if DOWN in seen.prompt
            else reply(seen, text=f"Sofia, {seen.prompt[-9:]}")
        )
    if MUMBLED in seen.prompt and not mumbled:
        mumbled.append(seen)
        return reply(seen, arguments={"grade": "PERHAPS"})
    return good(seen)


mumbled: list[Seen] = []


@pytest.fixture
def served(project: Project) -> Iterator[Loopback]:
    """A server, and a project of three items that a model answers and two models judge."""
    mumbled.clear()
    project.asked(3, "correct: {min: 0.1}")
    project.write(
        "qa/capital/plain.en.yaml", RUBRIC.format("en") + f"system: {'Rule. ' * 300}\n"
    )
    with loopback(handler=handle) as running:
        yield running


def run(project: Project, served: Loopback, *options: str, workers: int = 0) -> None:
    at = f"@{served.url}/v1"
    judges = ("--judge", f"openai:j1{at}", "--judge", f"openai:j2{at}")
    project.run_with(workers, "--model", f"openai:m{at}", *judges, *options, "qa")


def calls(project: Project) -> dict[str, list[SentCall]]:
    source = some(of_files([project.out / TRANSCRIPTS]))
    return {
        record.id: list(calls_of(source, record.calls).values())
        for record in load_report(project.out).records
    }


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_what_was_sent_is_with_the_report(
    project: Project, served: Loopback, workers: int
) -> None:
    """The answer, each judge of a panel, each attempt, and what was asked in vain."""
    run(project, served, workers=workers)
    found = calls(project)
    assert {one: len(of) for one, of in found.items()} == {"q1": 3, "q2": 1, "q3": 4}
    sent = [some(call.request).messages for of in found.values() for call in of]
    kept = {"\n".join(one.content for one in messages) for messages in sent}
    assert kept == {seen.prompt for seen in served.requests}
    assert all(call.is_exact for of in found.values() for call in of)
    assert found["q2"][0].reply is None
    answered: Any = found["q1"][0].reply
    assert answered.text == "Sofia, number 1?"
    judges = {(call.spec.partition("@")[0], call.request.attempt) for call in found["q3"][1:]
              if call.request}  # fmt: skip
    assert len(judges) == 3
    replies = [call.reply for call in found["q3"] if call.reply]
    arguments = [call.arguments for reply in replies for call in reply.calls]
    assert any("PERHAPS" in text for text in arguments)


@pytest.mark.parametrize("dies", [False, True])
def test_a_process_of_its_own_makes_the_file_of_a_large_run(
    project: Project, served: Loopback, monkeypatch: Patch, capfd: Captured, dies: bool
) -> None:
    """It is the same file, made without a word; where that process has died, the run makes it."""
    run(project, served)
    first, read = (project.out / TRANSCRIPTS).read_bytes(), list[bytes]()

    class Watched(Packer):
        def begin(self, place: LedgerPlace, run_id: str, keys: Sequence[str]) -> None:
            if dies:
                self.close()
            super().begin(place, run_id, keys)

        def pieces(self, otherwise: Iterable[bytes]) -> Iterator[bytes]:
            read.extend(super().pieces(otherwise if dies else ()))
            return iter(read)

    monkeypatch.setattr("qagate.reports.run.transcripts.Packer", Watched)
    monkeypatch.setattr("qagate.reports.plugin.controller.MIN_ITEMS_TO_PACK", 3)
    run(project, served)
    assert b"".join(read) == (project.out / TRANSCRIPTS).read_bytes() == first
    assert not capfd.readouterr().err


def test_a_second_run_has_them_too(
    project: Project, served: Loopback, capsys: Captured
) -> None:
    """A second run or a replay has the same file; without transcripts there is none."""
    run(project, served)
    file = project.out / TRANSCRIPTS
    first, sent = file.read_bytes(), served.count
    run(project, served)
    assert (file.read_bytes(), served.count) == (first, sent + 1)
    run(project, served, "--replay")
    assert (file.read_bytes(), served.count) == (first, sent + 1)
    assert file.stat().st_mode & 0o077 == 0
    run(project, served)
    run(project, served, "--no-transcripts", "--ledger", "other.sqlite3")
    assert not (project.out / TRANSCRIPTS).exists()
    assert b"Keep to the rules" not in (project.path / "other.sqlite3").read_bytes()
    assert main(["show", "q1", str(project.out)]) == 0
    assert "neither prompt nor reply is kept with this run" in capsys.readouterr().out


def test_show_prints_what_was_sent(
    project: Project, served: Loopback, capsys: Captured
) -> None:
    """By its key, its id or its test's node id; a wrong name is one line that says the right."""
    run(project, served)
    for name in (
        "capital-en-q3",
        "q3",
        "qa/test_capital.py::test_capital[capital-en-q3]",
    ):
        assert main(["show", name]) == 0
        shown = capsys.readouterr().out
        said = (
            "Answer in en: What is the",
            "PERHAPS",
            '"grade": "CORRECT"',
            "Rule. ",
        )
        for told in (
            *said,
            "attempt 2",
            "reply calls grade",
            "openai:j2@",
            "plain.en@1",
        ):
            assert told in shown
    assert main(["show", "q2"]) == 0
    shown = capsys.readouterr().out
    assert "(none: the call failed)" in shown
    assert "refused" in shown
    assert main(["show", "capital-en-q33"]) == 4
    message = capsys.readouterr().err
    assert (
        "no item 'capital-en-q33' in this run; did you mean 'capital-en-q3'?" in message
    )
