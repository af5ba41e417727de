"""The loopback server: what other tests rely on."""

import http.client
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.support.loopback import Loopback, loopback

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


def test_anthropic_wire_format() -> None:
    """A path that ends in /messages is answered in Anthropic's format."""
    tool = {"name": "f", "input_schema": SCHEMA}
    body = chat("[[grade=INCORRECT]]") | {"system": "S", "tools": [tool], "tool_choice": {"x": 1}}
    with loopback() as server:
        _, content = post(server, ANTHROPIC, body)
        assert server.requests[0].prompt.startswith("S\n")
    (block,) = json.loads(content)["content"]
    assert (block["type"], block["name"], block["input"]["grade"]) == ("tool_use", "f", "INCORRECT")


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
