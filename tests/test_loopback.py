"""The loopback server: what other tests rely on."""

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible, reply

OPENAI = "/v1/chat/completions"
ANTHROPIC = "/v1/messages"
SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "grade": {"type": "string", "enum": ["CORRECT", "INCORRECT"]},
        "rating": {"type": "integer", "minimum": 1, "maximum": 10},
    },
}


def post(server: Loopback, path: str, body: object) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("POST", path, json.dumps(body), {"X-Test": "1"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def chat(prompt: str, *, forced: bool = False) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    if forced:
        body["tools"] = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
        body["tool_choice"] = {"type": "function", "function": {"name": "f"}}
    return body


def arguments(server: Loopback, prompt: str) -> Mapping[str, Any]:
    _, content = post(server, OPENAI, chat(prompt, forced=True))
    (call,) = json.loads(content)["choices"][0]["message"]["tool_calls"]
    found: Mapping[str, Any] = json.loads(call["function"]["arguments"])
    return found


def test_marks_decide_answers() -> None:
    """The last mark of a name is the answer; without one there is still an answer."""
    with loopback() as server:
        _, marked = post(server, OPENAI, chat("[[answer=A]] [[answer=Sofia]]"))
        _, plain = post(server, OPENAI, chat("Who?"))
    assert json.loads(marked)["choices"][0]["message"]["content"] == "Sofia"
    assert json.loads(plain)["choices"][0]["message"]["content"]


def test_marks_decide_arguments() -> None:
    """A forced call is filled from the schema, and marks choose the values."""
    with loopback() as server:
        first = arguments(server, "Who?")
        second = arguments(server, "[[grade=INCORRECT]] [[rating=3]]")
    assert (first["grade"], first["rating"]) == ("CORRECT", 10)
    assert (second["grade"], second["rating"]) == ("INCORRECT", 3)


def test_a_rule_of_the_test_s_own() -> None:
    """A test may decide every argument by itself."""
    with loopback(handler=plausible(lambda seen, name, schema: f"{name}!")) as server:
        assert arguments(server, "Who?")["grade"] == "grade!"


def test_anthropic_wire_format() -> None:
    """A path that ends in /messages is answered in Anthropic's format."""
    tool = {"name": "f", "input_schema": SCHEMA}
    body = chat("[[grade=INCORRECT]]") | {"system": "S", "tools": [tool], "tool_choice": {"x": 1}}
    with loopback() as server:
        _, content = post(server, ANTHROPIC, body)
        assert server.requests[0].prompt.startswith("S\n")
    (block,) = json.loads(content)["content"]
    assert (block["type"], block["name"], block["input"]["grade"]) == ("tool_use", "f", "INCORRECT")


def test_what_was_seen() -> None:
    """Method, path, lower-case headers, body and time of each request are kept in order."""
    with loopback() as server:
        post(server, OPENAI, {"n": 1})
        post(server, OPENAI, {"n": 2})
        first, second = server.requests
        assert (server.count, server.peak) == (2, 1)
    assert (first.method, first.path, first.headers["x-test"]) == ("POST", OPENAI, "1")
    assert (first.body, second.body) == ({"n": 1}, {"n": 2})
    assert first.at <= second.at


def test_the_script_comes_first() -> None:
    """Each answer of the script serves one request; then the handler does."""
    script = (Answer(status=503, body="busy"), Answer(body={"ok": 1}, headers={"x-a": "b"}))
    with loopback(*script, handler=lambda seen: reply(seen, text="later")) as server:
        assert post(server, OPENAI, chat("a")) == (503, b"busy")
        assert post(server, OPENAI, chat("b")) == (200, b'{"ok": 1}')
        assert b"later" in post(server, OPENAI, chat("c"))[1]


def test_a_cut_line() -> None:
    """A reset is felt as a broken connection, and the server goes on."""
    with loopback(Answer(action="reset")) as server:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            post(server, OPENAI, chat("a"))
        assert post(server, OPENAI, chat("b"))[0] == 200


def test_a_drip_arrives() -> None:
    """A drip is the whole body, a byte at a time."""
    with loopback(Answer(action="drip", body="abc", delay=0.01)) as server:
        assert post(server, OPENAI, chat("a")) == (200, b"abc")


def test_keep_alive() -> None:
    """One connection carries several requests, also without a body."""
    with loopback() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for _ in range(3):
            connection.request("GET", OPENAI)
            assert connection.getresponse().read()
        connection.close()
        assert server.count == 3


def test_many_threads() -> None:
    """Requests that wait are in flight together."""
    together = threading.Barrier(8)

    def slow(seen: Seen) -> Answer:
        return Answer(delay=0.3, body={})

    def call(server: Loopback) -> None:
        together.wait(10)
        post(server, OPENAI, {})

    with loopback(handler=slow) as server:
        threads = [threading.Thread(target=call, args=(server,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert server.count == 8
        assert server.peak > 1


def test_by_hand() -> None:
    """Run as a module it prints its URL and serves other processes."""
    command = [sys.executable, "-m", "tests.support.loopback", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            host = process.stdout.readline().strip().removeprefix("http://").removesuffix("/v1")
            connection = http.client.HTTPConnection(host, timeout=10)
            connection.request("POST", OPENAI, json.dumps(chat("[[answer=x]]")))
            assert b'"x"' in connection.getresponse().read()
            connection.close()
        finally:
            process.terminate()
