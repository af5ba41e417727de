"""Functions of the user's own as models: what they are given, what they return, how they fail."""

import asyncio
import hashlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from qagate.evaluators import core
from qagate.evaluators.answers.reader import text_of
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.keys import require_key
from qagate.evaluators.models.pricing import cost_of, pricer
from qagate.evaluators.models.spec import Spec, parse
from tests.support.model_calls import asked
from tests.support.tables import kept, tabled

CODE = kept(__file__, "code")
price_of = pricer({}, date(2026, 1, 1))
CASE = core.AskedCase(
    question="Capital?", context="Bulgaria", language="bg", metadata={"topic": "geo"}
)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the name of a module with functions, in the working folder."""
    name = f"app_{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path(f"{name}.py").write_text(CODE, encoding="utf-8")
    yield name
    sys.modules.pop(name, None)


def call(spec: Spec, case: core.AskedCase | None = CASE, times: int = 1) -> core.Reply:
    async def run() -> core.Reply:
        model = connect(spec, require_key(spec))
        try:
            replies = [
                await model.complete(replace(asked(), case=case)) for _ in range(times)
            ]
        finally:
            await model.close()
        return replies[-1]

    return asyncio.run(run())


def spec_of(module: str, function: str, **changes: float) -> Spec:
    return replace(parse(f"python:{module}:{function}", {}), **changes)  # type: ignore[arg-type]


def test_what_it_is_given(module: str) -> None:
    """The case and not its gold; async functions share a loop outside of the engine's."""
    reply = call(spec_of(module, "echo"))
    assert reply.text == "Capital?|Bulgaria|bg|{'topic': 'geo'}|0"
    assert reply.seconds > 0
    assert not hasattr(CASE, "golds")
    assert call(spec_of(module, "echo"), None).text == "|||{}|2"
    assert call(spec_of(module, "aecho"), times=2).text == "Capital? on qa-target"


def test_a_structured_reply(module: str) -> None:
    """Tokens, cost, calls and model; calls are the answer where there is no text, as JSON."""
    spec = spec_of(module, "agent")
    reply = call(spec)
    assert (reply.text, reply.finish, reply.model) == ("done", "tool_calls", "inner")
    assert reply.calls == (core.ToolCall(name="look", arguments='{"at": "Ж"}'),)
    assert (reply.input_tokens, reply.output_tokens) == (3, 4)
    assert cost_of({spec.text: None}, spec.text, reply) == 0.25
    assert call(spec_of(module, "whole")).output_tokens == 2
    calls = (
        core.ToolCall(name="f", arguments='{"a": "ж"}'),
        core.ToolCall(name="g", arguments="{"),
    )
    said = '[{"name": "f", "arguments": {"a": "ж"}}, {"name": "g", "arguments": "{"}]'
    assert text_of(core.Reply(calls=calls)) == said
    assert text_of(core.Reply(text="done", calls=calls)) == "done"


@tabled("function", "said")
def test_a_failure_is_refused_and_never_an_answer(
    module: str, function: str, said: str
) -> None:
    """No matter what it raises or returns, no key is in the message, and nothing is tried again."""
    with pytest.raises(core.RefusedError) as caught:
        call(spec_of(module, function))
    assert caught.value.kind == "target_failed"
    assert str(caught.value).startswith(f"python:{module}:{function}: ")
    assert said in str(caught.value)


def test_what_it_calls_transient_is_tried_again(module: str) -> None:
    """With the pause that it names, in a header's words too."""
    with pytest.raises(core.TransientError) as caught:
        call(spec_of(module, "busy"))
    assert (caught.value.kind, caught.value.retry_after) == ("overloaded", 3.0)


@pytest.mark.parametrize("function", ["slow", "aslow"])
def test_its_time_is_limited(module: str, function: str) -> None:
    """After the deadline the call is an error, and the thread is nobody's concern."""
    before = threading.active_count()
    with pytest.raises(core.CallError) as caught:
        call(spec_of(module, function, deadline=0.05))
    assert caught.value.kind == "timeout"
    assert not isinstance(caught.value, core.TransientError)
    assert threading.active_count() <= before + 2


def test_versions(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line, the function, the module or the source's hash says it."""

    def version(text: str) -> object:
        return parse(text, {}).identity["version"]

    digest = hashlib.sha256(CODE.encode()).hexdigest()[:16]
    assert version(f"python:{module}:echo") == f"sha256:{digest}"
    assert version(f"python:{module}:agent") == "7"
    assert version(f"python:{module}:echo@2026-05") == "2026-05"
    hashed = parse(f"python:{module}:echo", {}).function
    declared = parse(f"python:{module}:echo@3", {}).function
    assert hashed is not None and hashed.is_hashed
    assert declared is not None and not declared.is_hashed
    monkeypatch.delitem(sys.modules, "other_of_mine", raising=False)
    Path("other_of_mine.py").write_text(CODE + "\n# changed\n", encoding="utf-8")
    assert version("python:other_of_mine:echo") != f"sha256:{digest}"


def test_a_name_alone_imports_nothing(module: str) -> None:
    """A ledger's rows name models of other times, and of other people."""
    spec = parse(f"python:{module}:echo", {})
    assert price_of(spec.text, core.Reply(cost=0.5)) == 0.5
    assert price_of(spec.text, core.Reply()) is None
    assert module not in sys.modules


def test_an_entry_gives_it_limits_and_prices(module: str) -> None:
    """Nothing is imported before it is named; then it is as any other model."""
    text = (
        f"mine:\n  provider: python\n  model: {module}:echo\n  version: '4'\n  concurrency: 2\n"
        "  deadline: 5\n  prices: {input: 1, output: 2}\n"
        "broken:\n  provider: python\n  model: skips:f\n"
    )
    Path("models.yaml").write_text(text, encoding="utf-8")
    Path("skips.py").write_text(
        "import pytest\npytest.importorskip('absent')", encoding="utf-8"
    )
    catalogue = load_catalogue(Path("models.yaml"))
    spec = parse("mine", catalogue)
    assert spec.batching is None
    assert (spec.limits.concurrency, spec.limits.deadline, spec.limits.takes_case) == (
        2,
        5,
        True,
    )
    assert spec.identity["version"] == "4"
    with pytest.raises(
        core.UsageError, match=r"module 'skips' cannot be imported \(Skipped"
    ):
        connect(parse("broken", catalogue))


@tabled("text", "said")
def test_a_wrong_name_is_said_in_one_line(module: str, text: str, said: str) -> None:
    """With what is likely to be meant."""
    with pytest.raises(core.UsageError) as caught:
        connect(parse(text.format(module=module), {}))
    assert said.format(module=module) in str(caught.value)
    assert "\n" not in str(caught.value)
