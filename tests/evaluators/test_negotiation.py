"""A server that refuses a part of what is sent is written to without it, once and for all."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import core
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.kept_requests import documents_of, key_of, request_key
from qagate.evaluators.ledger import KeptReply, Ledger
from qagate.evaluators.models import LazyModel, connect
from qagate.evaluators.negotiation import (
    AS_MOST,
    Negotiated,
    after_refusal,
    after_reply,
    described,
    formed,
    other_forms,
    read_document,
)
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from qagate.evaluators.runtime.forecast import KeptReplies
from qagate.evaluators.runtime.negotiations import (
    NEGOTIATED,
    Negotiations,
    negotiated_key,
    read_negotiated,
)
from qagate.evaluators.text import Key
from qagate.reports.extras.odds.kept_replies import KeptElsewhere
from tests.support.loopback import Answer, Loopback, Seen, loopback
from tests.support.model_calls import PROVIDERS, SECRET, TOOL, asked, spec_of
from tests.support.quirky import QUIRKS, judge, schema_of
from tests.support.scripted import Scripted, make_case, make_rubric

QUICK = RetryPolicy(attempts=2, first=0, longest=0)


class JudgeRuns:
    """Runs on one ledger, each with a judge of its own, at one server."""

    def __init__(
        self, folder: Path, server: Loopback, provider: str = "openai"
    ) -> None:
        self.path = folder / "ledger"
        self.spec = spec_of(provider, server)

    def run(
        self, number: int = 1, settings: CallSettings | None = None
    ) -> tuple[core.Verdict, Caller]:
        """Judge one answer in a run of its own."""
        settings = settings or CallSettings(retry=QUICK)
        with Ledger(self.path, read_only=settings.replay) as ledger:
            caller = Caller(ledger, settings, lambda spec, reply: 0.5)
            return asyncio.run(self._judge(caller, number)), caller

    async def _judge(self, caller: Caller, number: int) -> core.Verdict:
        model = connect(self.spec, Key(SECRET))
        rubric_judge = RubricJudge(model=model, rubric=make_rubric("tool"))
        meter = Meter(price=caller.price)
        meter.end_answer()
        try:
            case = make_case(number)
            return await rubric_judge.judge(case, "Пловдив", caller.metered(meter))
        finally:
            await model.close()


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_server_with_a_quirk_becomes_a_judge(tmp_path: Path, quirk: str) -> None:
    """Without any setting, by its own refusals."""
    with loopback(handler=judge(QUIRKS[quirk])) as server:
        verdict, caller = JudgeRuns(tmp_path, server).run()
    assert (verdict.grade, verdict.reason) == ("CORRECT", "because")
    assert len(described(caller.negotiations.by_spec)) == 1


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_later_run_sends_at_once_what_the_server_takes(
    tmp_path: Path, quirk: str
) -> None:
    with loopback(handler=judge(QUIRKS[quirk])) as server:
        runs = JudgeRuns(tmp_path, server)
        runs.run(1)
        before = server.count
        runs.run(2)
        assert server.count == before + 1


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_repeated_run_finds_the_reply_under_its_key(
    tmp_path: Path, quirk: str
) -> None:
    with loopback(handler=judge(QUIRKS[quirk])) as server:
        runs = JudgeRuns(tmp_path, server)
        first, _ = runs.run()
        before = server.count
        again, _ = runs.run()
        assert (again, server.count) == (first, before)
        replayed, _ = runs.run(settings=CallSettings(replay=True))
        assert (replayed, server.count) == (first, before)


@pytest.mark.parametrize("takes_schema", [True, False], ids=["schema", "text"])
def test_a_call_that_was_paid_for_counts_in_whatever_form_its_model_is_asked_now(
    tmp_path: Path, takes_schema: bool
) -> None:
    """Of two items at once one was answered by a call, and the other's reply ignored it."""
    learned = replace(AS_MOST, takes_calls=False, takes_schema=takes_schema)
    with loopback(handler=judge(lambda seen: None)) as server:
        runs = JudgeRuns(tmp_path, server)
        first, _ = runs.run()
        with Ledger(runs.path) as ledger:
            key = negotiated_key(connect(runs.spec, Key(SECRET)))
            asyncio.run(ledger.keep(NEGOTIATED, key, learned.document))
        before = server.count
        again, caller = runs.run()
        assert (again, server.count) == (first, before)
    (known,) = caller.negotiations.by_spec.values()
    assert not known.takes_calls


@pytest.mark.parametrize("provider", PROVIDERS)
def test_where_nothing_is_refused_one_request_is_sent(
    tmp_path: Path, provider: str
) -> None:
    with loopback(handler=judge(lambda seen: None)) as server:
        _, caller = JudgeRuns(tmp_path, server, provider).run()
        assert server.count == 1
    assert described(caller.negotiations.by_spec) == ()


def test_a_single_reply_without_a_call_changes_nothing_once_calls_have_come(
    tmp_path: Path,
) -> None:
    """A judge that declines once still knows functions; its kept grades stay valid."""
    is_ignored = False

    def sometimes(seen: Seen) -> Answer | None:
        return QUIRKS["ignores_functions"](seen) if is_ignored else None

    with loopback(handler=judge(sometimes)) as server:
        runs = JudgeRuns(tmp_path, server)
        runs.run(1)
        is_ignored = True
        with pytest.raises(core.JudgeError):
            runs.run(2)


def test_the_wire_of_a_reasoning_model(tmp_path: Path) -> None:
    """The limit has its other name and its value, and no temperature is sent."""
    with loopback(handler=judge(QUIRKS["reasoning_model"])) as server:
        JudgeRuns(tmp_path, server).run()
        body = server.requests[-1].body
    assert body["max_completion_tokens"] == 2048
    assert {"temperature", "max_tokens"}.isdisjoint(body)


def test_a_model_without_a_temperature_draws_its_replies() -> None:
    with loopback() as server:
        model = connect(spec_of("openai", server), Key(SECRET))
    assert not model.limits.is_random
    assert isinstance(model, LazyModel)
    model.negotiated = Negotiated(omit=("temperature",))
    assert model.limits.is_random


@pytest.mark.parametrize("is_open", [False, True])
def test_a_batch_is_written_like_single_calls(is_open: bool) -> None:
    """Whether it was begun before or after the negotiation."""
    known = Negotiated(omit=("temperature",), max_tokens_as="max_completion_tokens")
    with loopback() as server:
        model = connect(spec_of("openai", server), Key(SECRET))
    assert isinstance(model, LazyModel)
    if is_open:
        model.batches()
    model.negotiated = known
    body = model.batches().body(WANTED)
    assert body["max_completion_tokens"] == 9
    assert "temperature" not in body


def test_a_system_message_that_is_refused_stands_before_the_user_s(
    tmp_path: Path,
) -> None:
    with loopback(handler=judge(QUIRKS["gemma_on_vllm"])) as server:
        JudgeRuns(tmp_path, server).run()
        (message,) = server.requests[-1].body["messages"]
    assert message["role"] == "user"
    assert message["content"].startswith("s\n\n")


def test_what_a_models_file_says_is_not_left_out(tmp_path: Path) -> None:
    """The user's own temperature is refused to the user, and not dropped in silence."""
    with loopback(handler=judge(QUIRKS["o3_mini"])) as server:
        runs = JudgeRuns(tmp_path, server)
        runs.spec = replace(runs.spec, parameters={"temperature": 0.5})
        with pytest.raises(core.RefusedError, match="temperature"):
            runs.run()


@pytest.mark.parametrize(
    ("provider", "place"),
    [("openai", "response_format"), ("openai-responses", "text")],
)
def test_json_by_a_schema_on_the_wire(
    tmp_path: Path, provider: str, place: str
) -> None:
    """The schema of the function, to be kept to strictly; no function beside it."""
    with loopback(handler=judge(lambda seen: None)) as server:
        model = connect(spec_of(provider, server), Key(SECRET))

        async def run() -> core.Reply:
            try:
                return await model.complete(asked(tool=TOOL, as_json=True))
            finally:
                await model.close()

        reply = asyncio.run(run())
        seen = server.requests[-1]
    assert json.loads(reply.text)["grade"] == "CORRECT"
    assert schema_of(seen) == TOOL.schema
    assert {"tools", "tool_choice"}.isdisjoint(seen.body)
    form = seen.body[place]
    assert form.get("json_schema", form.get("format"))["strict"] is True


def test_anthropic_has_a_forced_call_in_place_of_a_schema(tmp_path: Path) -> None:
    with loopback(handler=judge(lambda seen: None)) as server:
        model = connect(spec_of("anthropic", server), Key(SECRET))

        async def run() -> core.Reply:
            try:
                return await model.complete(asked(tool=TOOL, as_json=True))
            finally:
                await model.close()

        reply = asyncio.run(run())
    assert reply.calls[0].name == "grade"


def test_a_baseline_s_form_is_tried_first(tmp_path: Path) -> None:
    """So its kept grades serve; a judge that cannot reply so goes on to the next form."""
    with loopback(handler=judge(lambda seen: None)) as server:
        runs = JudgeRuns(tmp_path, server)
        as_baseline = {runs.spec.text: Negotiated(takes_calls=False)}
        runs.run(settings=CallSettings(negotiated=as_baseline))
        assert schema_of(server.requests[-1]) is not None
        assert server.count == 1


# The parts


CALL = core.Reply(calls=(core.ToolCall(name="grade", arguments="{}"),))
WITHOUT_FORMS = Negotiated(takes_calls=False, takes_schema=False)
WANTED = asked(tool=TOOL, parameters={"temperature": 0, "max_tokens": 9})


def test_a_refusal_for_another_reason_changes_nothing() -> None:
    for message in ("too many images", "unsupported image", "temperature was 0"):
        assert after_refusal(AS_MOST, WANTED, message) is None


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Developer instruction is not allowed for this model",
        "unsupported: system messages",
        "'messages[0].role' does not support 'system'",
        "Invalid value 'developer' for role",
        "unknown role: system",
    ],
)
def test_a_refused_system_message_is_moved(message: str) -> None:
    assert after_refusal(AS_MOST, WANTED, message) == Negotiated(takes_system=False)


@pytest.mark.parametrize(
    "message",
    [
        "File system access is not allowed",
        "unsupported operating system",
        "invalid developer account",
        "The system is unavailable",
    ],
)
def test_another_system_moves_no_message(message: str) -> None:
    assert after_refusal(AS_MOST, WANTED, message) is None


def test_a_limit_that_is_refused_for_its_size_keeps_its_name() -> None:
    message = "Invalid 'max_tokens': integer above maximum value"
    assert after_refusal(AS_MOST, WANTED, message) is None


def test_a_limit_that_is_refused_by_its_name_gets_the_other_one() -> None:
    message = "Unsupported parameter: 'max_tokens'"
    learned = after_refusal(AS_MOST, WANTED, message)
    assert learned == Negotiated(max_tokens_as="max_completion_tokens")


def test_what_a_refusal_seems_to_teach_is_undone_where_the_retry_fails(
    tmp_path: Path,
) -> None:
    """So a later run, and the next call, send again what the server does take."""

    def refuse(seen: Seen) -> Answer:
        message = "the system message of this case is not allowed"
        return Answer(status=400, body={"error": {"message": message}})

    with loopback(handler=judge(refuse)) as server:
        runs = JudgeRuns(tmp_path, server)
        with pytest.raises(core.RefusedError):
            runs.run()
        assert server.count == 2
        model = connect(runs.spec, Key(SECRET))
    with Ledger(runs.path) as ledger:
        assert read_negotiated(ledger, model) is None


def test_a_lesson_is_kept_once_the_refused_call_succeeds(tmp_path: Path) -> None:
    with loopback() as server:
        model = connect(spec_of("openai", server), Key(SECRET))
    error = core.RefusedError("bad_request", "unsupported: temperature")
    learned = Negotiated(omit=("temperature",))

    async def learn(negotiations: Negotiations, ledger: Ledger) -> None:
        before = negotiations.of(model)
        assert negotiations.learn_from_refusal(model, WANTED, before, error)
        assert negotiations.of(model) == learned
        assert read_negotiated(ledger, model) is None
        await negotiations.keep_lesson(model, learned)

    with Ledger(tmp_path / "ledger") as ledger:
        asyncio.run(learn(Negotiations(ledger, {}), ledger))
        assert read_negotiated(ledger, model) == learned


def test_another_call_s_reply_keeps_no_lesson(tmp_path: Path) -> None:
    """It proves its own form; the call that was refused may fail again."""
    with loopback() as server:
        model = connect(spec_of("openai", server), Key(SECRET))
    error = core.RefusedError("bad_request", "unsupported: temperature")

    async def learn(negotiations: Negotiations) -> None:
        before = negotiations.of(model)
        negotiations.learn_from_refusal(model, WANTED, before, error)
        learned = negotiations.of(model)
        await negotiations.learn_from_reply(model, WANTED, learned, CALL)
        negotiations.unlearn(model, learned)
        assert negotiations.of(model) == Negotiated(proven=("call",))

    with Ledger(tmp_path / "ledger") as ledger:
        asyncio.run(learn(Negotiations(ledger, {})))
        assert read_negotiated(ledger, model) == Negotiated(proven=("call",))


def test_a_call_is_never_made_again_in_a_way_that_was_refused(tmp_path: Path) -> None:
    """However often other calls learn and unlearn meanwhile."""
    with loopback() as server:
        model = connect(spec_of("openai", server), Key(SECRET))
    error = core.RefusedError("bad_request", "unsupported: temperature")
    with Ledger(tmp_path / "ledger") as ledger:
        negotiations = Negotiations(ledger, {})
        before = negotiations.of(model)
        other = Negotiated(omit=("temperature",))
        learn = negotiations.learn_from_refusal
        assert not learn(model, WANTED, other, error, [before])
        assert not learn(model, WANTED, before, error, [other])


def test_what_was_given_up_once_is_not_given_up_again() -> None:
    """So a negotiation ends, whatever a server says."""
    known = AS_MOST
    request = WANTED
    message = (
        "unsupported: temperature, max_tokens, system messages, tools, response_format"
    )
    steps = 0
    while True:
        learned = after_refusal(known, formed(request, known), message)
        if learned is None:
            break
        known = learned
        steps += 1
    assert steps == 5
    assert known.forms == (False, False)


def test_a_cut_reply_shows_nothing_of_its_form() -> None:
    cut = core.Reply(text="It is", finish="length")
    assert after_reply(AS_MOST, WANTED, cut) == AS_MOST


def test_a_call_proves_its_form() -> None:
    assert after_reply(AS_MOST, WANTED, CALL).proven == ("call",)


def test_prose_in_place_of_a_schema_s_json_leads_to_text() -> None:
    known = Negotiated(takes_calls=False)
    wanted = formed(WANTED, known)
    prose = after_reply(known, wanted, core.Reply(text="It is right"))
    assert prose.forms == (False, False)
    json_reply = after_reply(known, wanted, core.Reply(text='{"grade": "A"}'))
    assert json_reply.proven == ("schema",)


def test_a_request_without_a_function_has_one_form() -> None:
    assert formed(asked(), WITHOUT_FORMS) == asked()


def test_a_request_for_json_keeps_its_own_words() -> None:
    wanted = replace(WANTED, as_json=True)
    assert formed(wanted, AS_MOST) == wanted
    assert formed(wanted, Negotiated(takes_schema=False)) == WANTED
    assert formed(wanted, WITHOUT_FORMS).tool is None


@given(
    st.builds(
        Negotiated,
        omit=st.lists(st.text(max_size=9), max_size=3).map(tuple),
        max_tokens_as=st.text(max_size=9),
        takes_system=st.booleans(),
        takes_calls=st.booleans(),
        takes_schema=st.booleans(),
        takes_limit=st.booleans(),
        proven=st.sampled_from([(), ("call",), ("schema",), ("call", "schema")]),
    )
)
def test_what_is_kept_is_read_back(known: Negotiated) -> None:
    assert read_document(known.document) == known


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"proven": "dance"}'])
def test_a_document_of_another_shape_says_nothing(text: str) -> None:
    assert read_document(text) == AS_MOST


def test_a_request_for_json_has_a_key_of_its_own_that_its_document_gives_back() -> None:
    """The key of a request without it is what it always was."""
    identity = {"name": "m"}
    wanted = replace(WANTED, as_json=True)
    key = request_key(identity, wanted)
    assert key != request_key(identity, WANTED)
    *texts, sent = documents_of("openai:m", identity, wanted, key, "")
    by_key = {document.key: document.text for document in texts}
    assert key_of(json.loads(sent.text), by_key) == key


def test_a_model_of_another_kind_is_asked_as_it_is(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        negotiations = Negotiations(ledger, {})
        model = Scripted(lambda request: CALL)
        assert negotiations.of(model) == AS_MOST
        assert read_negotiated(ledger, model) is None


def test_a_forecast_finds_kept_grades_in_the_form_that_was_negotiated() -> None:
    """So a dry run says of them what the run will: they cost nothing."""
    model = Scripted(lambda request: CALL)
    known = Negotiated(takes_calls=False)
    key = request_key(model.identity, formed(WANTED, known))
    kept = KeptReply(reply=CALL, at=1.0, run="earlier")
    find = {key: kept}.get
    assert KeptReplies(find=find).grade(model, WANTED, "bg") is None
    forecast = KeptReplies(find=find, negotiated=lambda model: known)
    assert forecast.grade(model, WANTED, "bg") == CALL


@pytest.mark.parametrize(
    ("reply", "void_before", "counts"),
    [
        (CALL, 0.0, True),
        (core.Reply(text="It is right"), 0.0, False),  # it ignored its form
        (CALL, 2.0, False),
    ],
    ids=["kept", "ignored", "void"],
)
def test_a_forecast_finds_grades_that_came_in_an_earlier_form(
    *, reply: core.Reply, void_before: float, counts: bool
) -> None:
    """As the run will."""
    model = Scripted(lambda request: CALL)
    key = request_key(model.identity, WANTED)
    kept = {key: KeptReply(reply=reply, at=1.0, run="earlier")}
    forecast = KeptReplies(
        find=kept.get,
        counts_since=lambda part: void_before,
        negotiated=lambda model: WITHOUT_FORMS,
    )
    assert forecast.grade(model, WANTED, "bg") == (reply if counts else None)


@pytest.mark.parametrize(
    ("as_json", "takes_calls", "takes_schema", "earlier"),
    [
        (False, True, True, []),
        (False, True, False, []),
        (False, False, True, ["call"]),
        (False, False, False, ["call", "schema"]),
        (True, True, True, []),
        (True, False, True, []),
        (True, True, False, ["schema"]),
        (True, False, False, ["schema", "call"]),
    ],
)
def test_the_forms_before_the_present_one(
    *, as_json: bool, takes_calls: bool, takes_schema: bool, earlier: list[str]
) -> None:
    """Each form that was given up, in the order in which they are tried."""
    request = replace(WANTED, as_json=as_json)
    now = Negotiated(takes_calls=takes_calls, takes_schema=takes_schema)
    forms = []
    for settings in other_forms(request, now):
        asked_then = formed(request, settings)
        forms.append("schema" if asked_then.as_json else "call")
        assert asked_then.tool is not None
    assert forms == earlier


def test_a_kept_reply_is_found_in_an_earlier_form(tmp_path: Path) -> None:
    """Of a request that nobody has sent in the present form, and of no other one."""
    model = Scripted(lambda request: CALL)
    learned = {model.spec: Negotiated(takes_calls=False)}
    with Ledger(tmp_path / "ledger") as ledger:
        caller = Caller(ledger, CallSettings(), lambda spec, reply: 0.5)
        asyncio.run(_ask(caller, model))
        caller.negotiations.by_spec.update(learned)
        meter = meter_of(caller)
        found = asyncio.run(caller.find_kept(meter, model, WANTED))
        assert found is not None
        assert caller.use_kept(meter, found) == CALL
        assert meter.calls == (found.call.key,)
        other = replace(WANTED, repeat=2)
        assert asyncio.run(caller.find_kept(meter, model, other)) is None


def meter_of(caller: Caller) -> Meter:
    return Meter(price=caller.price)


async def _ask(caller: Caller, model: Scripted) -> None:
    await caller.metered(meter_of(caller))(model, WANTED)


def test_a_dry_run_knows_what_the_ledger_knows_of_a_model(tmp_path: Path) -> None:
    with loopback(handler=judge(QUIRKS["lm_studio"])) as server:
        runs = JudgeRuns(tmp_path, server)
        runs.run()
        model = connect(runs.spec, Key(SECRET))

    async def known(kept: KeptReplies) -> Negotiated | None:
        return kept.negotiated(model)

    found = KeptElsewhere(runs.path, (), "").do(known)
    assert found == Negotiated(takes_calls=False, proven=("schema",))
