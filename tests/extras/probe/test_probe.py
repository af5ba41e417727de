"""``qagate probe``: what a server takes, in a few lines, and an entry that loads."""

from pathlib import Path

import pytest

from qagate.command import main
from qagate.evaluators.models.catalogue import load_catalogue
from tests.support.loopback import Answer, Handler, Seen, loopback, reply
from tests.support.model_calls import error_body
from tests.support.quirky import QUIRKS, judge

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where no ledger and no key is."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def plain(seen: Seen) -> Answer | None:
    return None


def probed(
    handler: Handler, capsys: Captured, *words: str, provider: str = "openai"
) -> tuple[dict[str, str], str]:
    """Return the findings by name, and the entry."""
    with loopback(handler=handler) as server:
        assert main(["probe", f"{provider}:m@{server.url}/v1", *words]) == 0
    head, _, entry = capsys.readouterr().out.partition("\n\nAn entry")
    lines = head.splitlines()[1:]
    findings = {line[2:20].strip(): line[20:] for line in lines}
    return findings, entry.partition("\n\n")[2]


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic"])
def test_a_server_that_takes_everything(capsys: Captured, provider: str) -> None:
    findings, _ = probed(judge(plain), capsys, provider=provider)
    assert findings["answers as"] == "m"
    assert findings["stops"] == "yes (finish: stop)"
    assert findings["usage"].endswith(" tokens in, 5 out")
    names = ("system message", "temperature", "function calls", "JSON by a schema")
    assert [findings[name] for name in names] == ["yes"] * 4
    assert findings["key"] == "none was sent, and none is wanted"


FOUND = {
    "reasoning_model": {"temperature": "no", "token limit": "max_completion_tokens"},
    "o1_mini": {
        "system message": "no",
        "function calls": "no",
        "JSON by a schema": "no",
    },
    "lm_studio": {"function calls": "no", "JSON by a schema": "yes"},
    "deepseek_reasoner": {"function calls": "no", "JSON by a schema": "no"},
    "gemma_on_vllm": {"system message": "no", "function calls": "yes"},
    "ignores_functions": {"function calls": "no", "JSON by a schema": "yes"},
}


@pytest.mark.parametrize("quirk", FOUND)
def test_what_a_server_refuses_is_found(capsys: Captured, quirk: str) -> None:
    findings, _ = probed(judge(QUIRKS[quirk]), capsys)
    assert FOUND[quirk].items() <= findings.items()


@pytest.mark.parametrize("quirk", ["reasoning_model", "lm_studio"])
def test_the_entry_loads_and_sends_what_the_server_takes(
    capsys: Captured, tmp_path: Path, quirk: str
) -> None:
    """With it not one request is refused."""
    _, entry = probed(judge(QUIRKS[quirk]), capsys)
    path = tmp_path / "mine.yaml"
    path.write_text(entry, encoding="utf-8")
    spec = load_catalogue(path)["m"]
    assert spec.base_url.startswith("http://127.0.0.1:")
    if quirk == "reasoning_model":
        assert spec.omit == ("temperature",)
        assert spec.max_tokens_as == "max_completion_tokens"


def test_a_model_without_an_end_is_given_a_limit(capsys: Captured) -> None:
    def endless(seen: Seen) -> Answer:
        answer = judge(plain)(seen)
        if seen.tool is None and "response_format" not in seen.body:
            answer.body["choices"][0]["finish_reason"] = "length"  # type: ignore[index]
        return answer

    findings, entry = probed(endless, capsys)
    assert findings["stops"] == "no: cut after 512 tokens (finish: length)"
    assert "parameters: {max_tokens: 1024}" in entry


def test_a_server_that_counts_and_names_nothing(capsys: Captured) -> None:
    def bare(seen: Seen) -> Answer:
        answer = judge(plain)(seen)
        body: dict[str, object] = {**answer.body, "model": None, "usage": None}  # type: ignore[dict-item]
        return Answer(body=body)

    findings, _ = probed(bare, capsys)
    assert findings["answers as"] == "(its replies carry no name)"
    assert findings["usage"] == "tokens are not counted"


def test_a_dated_release_is_told(capsys: Captured) -> None:
    def dated(seen: Seen) -> Answer:
        answer = judge(plain)(seen)
        return Answer(body={**answer.body, "model": "m-2025-08-07"})  # type: ignore[dict-item]

    _, entry = probed(dated, capsys)
    assert '# a dated release of it answered: "m-2025-08-07"' in entry


def test_a_second_probe_asks_nothing(capsys: Captured) -> None:
    """Its calls are kept; under a new name all is found out anew."""
    handler = judge(QUIRKS["reasoning_model"])
    with loopback(handler=handler) as server:
        words = ["probe", f"openai:m@{server.url}/v1"]
        main(words)
        first, asked = capsys.readouterr().out, server.count
        main(words)
        assert (capsys.readouterr().out, server.count) == (first, asked)
        main([*words, "--fresh", "today"])
        assert (capsys.readouterr().out, server.count) == (first, 2 * asked)


def test_a_refusal_that_nothing_helps_is_shown(capsys: Captured) -> None:
    def refuse(seen: Seen) -> Answer:
        if seen.tool is not None:
            return Answer(status=400, body=error_body("not today"))
        return reply(seen, text="OK")

    findings, _ = probed(refuse, capsys)
    assert findings["function calls"].startswith("unknown: openai:m")


def test_a_key_is_sent_and_not_shown(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY", "sk-0123456789abcdef")
    with loopback(handler=judge(plain)) as server:
        url = f"{server.url}/v1"
        main(["probe", f"openai:m@{url}", "--key-env", f"{url}=GATEWAY"])
        assert "sk-0123456789abcdef" in server.requests[0].headers["authorization"]
    said = capsys.readouterr().out
    assert "  key               sent" in said
    assert "sk-0123456789abcdef" not in said


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ("openai:m@http://127.0.0.1:9/v1", 1, "no connection"),
        ("nobody", 4, "unknown model 'nobody'"),
        ("python:json:loads", 4, "cannot be probed; name a model of a provider"),
    ],
)
def test_what_cannot_be_probed_is_one_line(
    capsys: Captured, spec: str, code: int, words: str
) -> None:
    assert main(["probe", spec]) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
