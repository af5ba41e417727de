"""What a call will probably take of a limit in tokens a minute, learnt from the replies so far."""

from evaluators.core import Reply, Request
from evaluators.runtime.bucket import Bucket, per_minute

PER_CHARACTER = 0.25
USUAL_REPLY = 1024.0
MEMORY = 0.1  # the weight of the latest reply
BURST_SECONDS = 2.0


class Tokens:
    """A limit in tokens a minute; a call is counted by an estimate and corrected by its reply."""

    def __init__(self, tpm: int, longest: int | None, now: float) -> None:
        self._bucket: Bucket = per_minute(tpm, BURST_SECONDS, now)
        self._per_character = PER_CHARACTER
        self._reply: float = longest or USUAL_REPLY
        self._seen = False

    def wait(self, now: float, estimate: float) -> float:
        """Return the seconds until a call of this size may go."""
        return self._bucket.wait(now, estimate)

    def take(self, now: float, estimate: float) -> None:
        """Count a call that goes now."""
        self._bucket.take(now, estimate)

    def estimate(self, request: Request) -> float:
        """Return how many tokens a request and its reply will probably take."""
        longest = request.parameters.get("max_tokens")
        reply = self._reply
        if isinstance(longest, int):
            reply = min(reply, longest) if self._seen else longest
        return characters(request) * self._per_character + reply

    def correct(self, estimate: float, request: Request, reply: Reply) -> None:
        """Put right what was taken for a call, and learn for the next ones."""
        if not reply.input_tokens:  # the server does not count: the estimate stands
            return
        self._bucket.give_back(estimate - reply.input_tokens - reply.output_tokens)
        weight = MEMORY if self._seen else 1.0
        ratio = reply.input_tokens / max(1, characters(request))
        self._per_character += weight * (ratio - self._per_character)
        self._reply += weight * (reply.output_tokens - self._reply)
        self._seen = True


def characters(request: Request) -> int:
    """Return how long the messages of a request are."""
    return sum(len(message.content) for message in request.messages)
