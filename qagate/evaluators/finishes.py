"""Why a reply ended, in one vocabulary for all servers.

OpenAI, Anthropic and the servers that speak their protocols use some twenty words for four
things. ``finish_of`` makes one word of them. A word that nobody knows says nothing: the
reply counts as a whole one, and its text is read like any other. Only a word that is known
to mean a cut, or a filter, casts doubt on a reply.
"""

from collections.abc import Mapping

STOP = "stop"
TOOL_CALLS = "tool_calls"
LENGTH = "length"
"""The limit of tokens, or the model's window, is used up."""
FILTERED = "content_filter"
"""The provider, or the model by a mark of its own, refused to answer."""
THOUGHT = "thought"
"""A word of ours: the reply ended after its thoughts, and no answer followed."""
INCOMPLETE = "incomplete"
"""The API itself says that there is more to come. Such a reply is no answer."""
UNKNOWN = ""
"""The server gives no reason."""

CUT = frozenset({LENGTH, FILTERED, INCOMPLETE})
"""The finishes of a reply that is not whole."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    STOP: ("end_turn", "stop_sequence", "eos", "eos_token", "completed", "complete"),
    TOOL_CALLS: ("function_call", "tool_use", "tool_call"),
    LENGTH: (
        "max_tokens",
        "max_output_tokens",
        "max_length",
        "model_length",
        "model_context_window_exceeded",
    ),
    FILTERED: (
        "refusal",
        "safety",
        "recitation",
        "prohibited_content",
        "guardrail_intervened",
        "content_filtered",
    ),
    INCOMPLETE: ("pause_turn",),
}
_MEANINGS = {word: finish for finish, words in _WORDS.items() for word in words}


def finish_of(word: object) -> str:
    """Return why a reply ended, by the word of its server, whatever its letter case.

    That is one of the words above, else the server's own word in small letters. UNKNOWN for
    a value that is no text.
    """
    if not isinstance(word, str):
        return UNKNOWN
    # Gemini adds the reason: "content_filter: SAFETY".
    finish = word.partition(":")[0].strip().casefold()
    return _MEANINGS.get(finish, finish)
