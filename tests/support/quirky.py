"""Servers that refuse what they refuse in reality, in their own words.

Each rule returns the refusal of one request, or None. The words are those that the servers
send: OpenAI's reasoning models, DeepSeek's reasoner, LM Studio, llama.cpp, vLLM, Ollama and
OpenRouter.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.loopback import Answer, Handler, Seen, reply

Refuse = Callable[[Seen], Answer | None]


def refusal(message: str, status: int = 400, **fields: object) -> Answer:
    return Answer(status=status, body={"error": {"message": message, **fields}})


def reasoning_model(seen: Seen) -> Answer | None:
    """gpt-5 and its like at OpenAI."""
    if "max_tokens" in seen.body:
        return refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    if "temperature" in seen.body:
        return refusal(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the "
            "default (1) value is supported.",
            param="temperature",
            code="unsupported_value",
        )
    return None


def o3_mini(seen: Seen) -> Answer | None:
    if "temperature" in seen.body:
        return refusal(
            "Unsupported parameter: 'temperature' is not supported with this model.",
            param="temperature",
        )
    return reasoning_model(seen)


def o1_mini(seen: Seen) -> Answer | None:
    if seen.body["messages"][0]["role"] == "system":
        return refusal(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
        )
    if "tools" in seen.body:
        return refusal(
            "Unsupported parameter: 'tools' is not supported with this model.",
            param="tools",
        )
    if "response_format" in seen.body:
        return refusal(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with "
            "this model.",
            param="response_format",
        )
    return reasoning_model(seen)


def deepseek_reasoner(seen: Seen) -> Answer | None:
    if "tools" in seen.body:
        return refusal("deepseek-reasoner does not support this tool_choice")
    if "response_format" in seen.body:
        return refusal("This response_format type is unavailable now")
    return None


def lm_studio(seen: Seen) -> Answer | None:
    if isinstance(seen.body.get("tool_choice"), dict):
        message = (
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, "
            "required"
        )
        return Answer(status=400, body={"error": message})
    return None


def llama_cpp(seen: Seen) -> Answer | None:
    """Without ``--jinja``."""
    if "tools" in seen.body:
        return refusal(
            "tools param requires --jinja flag", status=500, type="server_error"
        )
    return None


def gemma_on_vllm(seen: Seen) -> Answer | None:
    if seen.body["messages"][0]["role"] == "system":
        message = "System role not supported"
        return Answer(status=400, body={"object": "error", "message": message})
    return None


def ollama(seen: Seen) -> Answer | None:
    if "tools" in seen.body:
        return refusal(
            "registry.ollama.ai/library/gemma2:latest does not support tools"
        )
    return None


def openrouter(seen: Seen) -> Answer | None:
    if "tools" in seen.body:
        return refusal("No endpoints found that support tool use.", status=404)
    return None


def ignores_functions(seen: Seen) -> Answer | None:
    """llama.cpp with a chat template that has none: it replies as if none were asked for."""
    if "tools" in seen.body:
        return reply(seen, text="I would say that this is right")
    return None


def ignores_all(seen: Seen) -> Answer | None:
    """A server that knows messages and nothing else."""
    if "tools" in seen.body or "response_format" in seen.body:
        return reply(seen, text="I would say that this is right")
    return None


QUIRKS: Mapping[str, Refuse] = {
    rule.__name__: rule
    for rule in (
        reasoning_model,
        o3_mini,
        o1_mini,
        deepseek_reasoner,
        lm_studio,
        llama_cpp,
        gemma_on_vllm,
        ollama,
        openrouter,
        ignores_functions,
        ignores_all,
    )
}


def schema_of(seen: Seen) -> Mapping[str, Any] | None:
    """Return the schema of the JSON that a request wants, by any API; None if it wants none."""
    mark = "meets this JSON Schema:\n"
    schema: Mapping[str, Any] | None = None
    if "response_format" in seen.body:
        schema = seen.body["response_format"]["json_schema"]["schema"]
    elif "text" in seen.body:
        schema = seen.body["text"]["format"]["schema"]
    elif mark in seen.prompt:
        schema = json.loads(seen.prompt.rpartition(mark)[2])
    return schema


def judge(refuse: Refuse, grade: str = "CORRECT") -> Handler:
    """Return a judge that grades everything alike, in whatever form it is asked to."""

    def handle(seen: Seen) -> Answer:
        refused = refuse(seen)
        if refused is not None:
            return refused
        verdict = {"reason": "because", "grade": grade}
        if seen.tool is not None:
            return reply(seen, arguments=verdict)
        if schema_of(seen) is not None:
            return reply(seen, text=json.dumps(verdict))
        return reply(seen, text="fine")

    return handle
