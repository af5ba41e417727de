"""Articles from dumps, wikis and files: streamed, identified, and refused with a plain reason."""

import bz2
import csv
import gzip
from pathlib import Path

import pytest

from cases.builder import article_sources
from cases.builder import wiki as wiki_module
from cases.builder.article_sources import Source
from cases.builder.sampling import articles
from cases.builder.wiki import Wiki, WikiError, user_agent
from cases.builder.work_folder import Article
from evaluators.core import UsageError
from tests.support.building_texts import WikiServer, dump_xml, pages, write_dump, write_news
from tests.support.loopback import Answer, Seen, loopback


def found(where: Path | str, folder: Path, most: int = 10_000, **changes: str) -> list[Article]:
    source = Source(**{"group": "news", "where": str(where), "licence": "CC0", **changes})
    source.check()
    taken = []
    for article in articles(source, folder, lambda _: None):
        taken.append(article)
        if len(taken) == most:
            break
    return taken


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Wikis ask for pauses; here they are only written down."""
    waits: list[float] = []
    monkeypatch.setattr(wiki_module.Wiki.__init__, "__defaults__", (waits.append,))
    return waits


@pytest.mark.parametrize("suffix", [".xml", ".xml.bz2", ".xml.gz"])
def test_a_dump_gives_its_articles(tmp_path: Path, suffix: str) -> None:
    """Talk pages and redirects are left out; title, address, revision and licence are kept."""
    content = dump_xml(pages(3)).encode()
    packed = {".xml": content, ".bz2": bz2.compress(content), ".gz": gzip.compress(content)}
    path = tmp_path / f"wiki{suffix}"
    path.write_bytes(packed[path.suffix])
    made = found(path, tmp_path)
    assert [article.origin.title for article in made] == [
        "Мясцовасць 1",
        "Мясцовасць 2",
        "Мясцовасць 3",
        "Накід",
    ]
    first = made[0].origin
    assert (first.page, first.revision, first.licence) == ("1", "10", "CC0")
    assert first.url.startswith("https://be.example.org/wiki/%D0%9C")
    assert made[0].markup == "wiki"


@pytest.mark.parametrize(
    "content",
    [
        bz2.compress(dump_xml(pages(30)).encode())[:-200],
        b"no archive",
        bz2.compress(b"<html></html>"),
        bz2.compress(dump_xml(pages(3)).encode()[:-400]),
        bz2.compress(b"<mediawiki><page></page></mediawiki>"),
    ],
    ids=["cut", "no-bz2", "no-dump", "cut-xml", "no-siteinfo"],
)
def test_a_broken_dump_is_named(tmp_path: Path, content: bytes) -> None:
    """Whatever is wrong with the file, the message is one line with its path."""
    path = tmp_path / "wiki.xml.bz2"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"wiki\.xml\.bz2: not a whole MediaWiki dump"):
        found(path, tmp_path)


def test_a_long_dump_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are counted aloud, those left out too; a page without text is none."""
    monkeypatch.setattr(article_sources, "EVERY", 2)
    content = dump_xml(pages(3)).replace("</page>", "<revision></revision></page>", 1)
    (tmp_path / "wiki.xml").write_text(content, encoding="utf-8")
    said: list[str] = []
    source = Source(group="news", where=str(tmp_path / "wiki.xml"), licence="CC0")
    found = list(articles(source, tmp_path, said.append))
    assert "Мясцовасць 1" not in [article.origin.title for article in found]
    assert said[0] == "sample: wiki.xml: 2 pages looked at"


def test_a_source_without_a_licence_is_refused(tmp_path: Path) -> None:
    """Every item needs one, so that a source that names none has to be told."""
    path = write_dump(tmp_path / "wiki.xml", pages(1))
    with pytest.raises(UsageError, match="names no licence; say --licence news=LICENCE"):
        found(path, tmp_path, licence="")


def test_rows_are_read_by_name_of_column(tmp_path: Path) -> None:
    """JSONL and CSV give the same article; a row's own licence wins."""
    lines = write_news(tmp_path / "a.jsonl", 1)
    (one,) = found(lines, tmp_path)
    assert (one.origin.page, one.origin.licence) == ("n10001", "CC BY 4.0")
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Headline", "Body"])
        writer.writerow(["Навіна", one.text])
    (other,) = found(tmp_path / "a.csv", tmp_path)
    assert (other.text, other.origin.title, other.origin.licence) == (one.text, "Навіна", "CC0")
    assert other.origin.page.isalnum()


def test_a_folder_of_text_is_read(tmp_path: Path) -> None:
    """Each .txt is an article, those in folders inside too."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "адзін.txt").write_text("Тэкст.", encoding="utf-8")
    (one,) = found(tmp_path, tmp_path)
    assert (one.origin.title, one.origin.page, one.text) == ("адзін", "in/адзін.txt", "Тэкст.")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"headline": "x"}\n', "no column of text"),
        ("a.jsonl", '{"text": null}\n', "text is needed"),
        ("a.pdf", "x", "want a folder of .txt or a file in"),
        ("folder", None, "no .txt file in this folder"),
        ("nothing", "", "no such file"),
    ],
)
def test_files_that_hold_no_articles(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    """A wrong file is a usage problem that says what is wanted."""
    path = tmp_path / name
    if content is None:
        path.mkdir()
    elif content:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        found(path, tmp_path)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_wiki_draws_pages_and_they_are_kept(tmp_path: Path, parts: int) -> None:
    """Continuation is followed to the end; a second run fetches only what the first has not."""
    server = WikiServer(pages(45), parts=parts)
    with loopback(handler=server) as wiki:
        address = f"{wiki.url}/w/api.php"
        first = found(address, tmp_path, most=25, licence="", contact="me@example.org")
        asked = len(server.asked)
        again = found(address, tmp_path, most=25, licence="")
        assert again == first
        assert len(server.asked) == asked, "what is kept is not fetched again"
        every = found(address, tmp_path, licence="")
        agents = {seen.headers["user-agent"] for seen in wiki.requests}
    assert len(every) == 46
    assert len({article.origin.page for article in every}) == 46
    assert every[0].origin.licence == "CC BY-SA 4.0"
    assert every[0].origin.revision == every[0].origin.page + "0"
    assert any("(me@example.org)" in agent for agent in agents)
    assert {query["maxlag"] for query in server.asked} == {"5"}


def test_a_line_cut_by_a_kill_is_taken_off(tmp_path: Path) -> None:
    """The half-written last batch is drawn again, and the ones before it are not."""
    server = WikiServer(pages(45))
    with loopback(handler=server) as wiki:
        address = f"{wiki.url}/w/api.php"
        first = found(address, tmp_path, most=25)
        (cache,) = tmp_path.glob("pages-*.jsonl")
        cache.write_bytes(cache.read_bytes()[:-50])
        asked = len(server.asked)
        assert found(address, tmp_path, most=25) == first
        assert len(server.asked) == asked + 2, "the licence, and one batch"


def test_a_busy_wiki_is_waited_for(tmp_path: Path, no_waiting: list[float]) -> None:
    """maxlag, 429 and 503 are pauses as long as the server asks for."""
    lag = {"error": {"code": "maxlag", "info": "Waiting for db1: 6 seconds lagged"}}
    server = WikiServer(pages(3))
    server.scripted = [
        Answer(body=lag, headers={"Retry-After": "5"}),
        Answer(status=429, headers={"Retry-After": "7"}),
        Answer(status=503),
    ]
    with loopback(handler=server) as wiki:
        assert len(found(f"{wiki.url}/w/api.php", tmp_path)) == 4
    assert no_waiting == [5.0, 7.0, 4.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(status=404, body="no"), "status 404"),
        (Answer(body="<html>"), "not JSON"),
        (Answer(body="[1]"), "no JSON object"),
        (Answer(body={"error": {"code": "badvalue", "info": "no such module"}}), "badvalue"),
        (Answer(status=302, headers={"Location": "http://127.0.0.2:1/x"}), "another host"),
        (Answer(status=302, headers={"Location": "/w/api.php"}), "more than 3 redirects"),
        (Answer(status=503, headers={"Retry-After": "9999"}), "status 503; what has come is kept"),
        (Answer(action="reset"), "what has come is kept"),
    ],
)
def test_what_is_no_api_is_named(tmp_path: Path, answer: Answer, message: str) -> None:
    """An address that answers anything else ends the step with one line."""
    with (
        loopback(handler=lambda _: answer) as wiki,
        pytest.raises(WikiError, match=message),
        Wiki(f"{wiki.url}/w/api.php", "") as api,
    ):
        api.ask({"action": "query"})


def test_a_redirect_on_the_same_host_is_followed() -> None:
    """An API that moved on its own host is still the one that was named."""
    moved = Answer(status=301, headers={"Location": "/api.php"})
    with loopback(moved, Answer(body={"query": {}})) as wiki, Wiki(f"{wiki.url}/w", "") as api:
        assert api.ask({}) == {"query": {}}


def test_a_redirect_to_another_scheme_is_another_server() -> None:
    """Who starts with https is never led to http, where anybody between could write the texts."""

    def moved(seen: Seen) -> Answer:
        return Answer(status=301, headers={"Location": f"https://{seen.headers['host']}/w"})

    with (
        loopback(handler=moved) as wiki,
        pytest.raises(WikiError, match="another host"),
        Wiki(f"{wiki.url}/w", "") as api,
    ):
        api.ask({})


def test_an_endless_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is read than an answer may have."""
    monkeypatch.setattr(wiki_module, "MAX_BYTES", 1000)
    with (
        loopback(handler=lambda _: Answer(action="endless")) as wiki,
        pytest.raises(WikiError, match="more than 1,000 bytes"),
        Wiki(f"{wiki.url}/w", "") as api,
    ):
        api.ask({})


def test_a_batch_without_end_is_given_up(tmp_path: Path) -> None:
    """A wiki that never completes a batch does not hold the command for ever."""
    part = Answer(body={"query": {"pages": [{"title": "no id"}]}, "continue": {"grncontinue": "1"}})
    rights = Answer(body={"query": {"rightsinfo": {"text": "CC0"}}})
    with (
        loopback(rights, handler=lambda _: part) as wiki,
        pytest.raises(WikiError, match="parts"),
    ):
        found(f"{wiki.url}/w/api.php", tmp_path)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("https://be.wikipedia.org/w/api.php", "give --contact"),
        ("http://be.wikipedia.org/w/api.php", "base URL"),
        ("https://user:pw@be.wikipedia.org/w/api.php", "no user or password"),
    ],
)
def test_addresses_that_are_not_asked(tmp_path: Path, where: str, message: str) -> None:
    """A public wiki is told who asks, over HTTPS, and never with a password in the address."""
    with pytest.raises(UsageError, match=message):
        found(where, tmp_path)


def test_the_user_agent_is_one_line() -> None:
    """A contact cannot smuggle another header in."""
    assert "\n" not in user_agent("me@example.org\r\nX: y")
    assert user_agent("").startswith("qagate/")
