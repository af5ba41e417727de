"""What is sent: the messages of a prompt or a rubric for one case."""

from evaluators.characters import sendable
from evaluators.core import Case, Message
from evaluators.rubric import Prompt, Rubric
from evaluators.template import encode, fill, shortened


def answer_messages(prompt: Prompt, case: Case) -> tuple[Message, ...]:
    """Return what the model under test is asked; the case's text goes in as it is."""
    values = {"question": case.question, "context": case.context}
    return _messages(fill(prompt.system, values), fill(prompt.user, values))


def judge_messages(rubric: Rubric, case: Case, answer: str) -> tuple[Message, ...]:
    """Return what a judge is asked about an answer.

    The judged text is hostile: every value goes JSON-encoded into its slot, and all around the
    slots is the same, byte by byte, for every answer. Several gold forms become a JSON list.
    """
    golds = list(case.golds)
    values = {
        "question": encode(case.question),
        "context": encode(case.context),
        "target": encode(golds[0] if len(golds) == 1 else golds),
        "predicted_answer": encode(shortened(answer)),
    }
    return _messages(rubric.system, fill(rubric.user, values))


def _messages(system: str, user: str) -> tuple[Message, ...]:
    asked = Message(role="user", content=sendable(user))
    if not system.strip():
        return (asked,)
    return (Message(role="system", content=sendable(system)), asked)
