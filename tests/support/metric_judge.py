"""A judge at the loopback server that answers deepeval's prompts as a good model would.

Marks in the judged answer decide: ``[[faithful=no]]`` contradicts the context, ``[[score=3]]`` is
the score out of ten, ``[[broken=yes]]`` brings a reply in prose.
"""

import json

from tests.support.loopback import MARK, Answer, Seen, plausible, reply

SAID_IN_CLAIMS = "provided actual AI output"


def judge_metrics(seen: Seen) -> Answer:
    if seen.tool is not None:
        return plausible()(seen)
    said = dict(MARK.findall(seen.prompt))
    marks = " ".join(f"[[{name}={value}]]" for name, value in said.items())
    if said.get("broken") == "yes" and "Based on the given claims" in seen.prompt:
        return reply(seen, "I would rather not say.")
    return reply(seen, f"```json\n{json.dumps(_content(seen.prompt, said, marks))}\n```")


def _content(prompt: str, said: dict[str, str], marks: str) -> object:
    if SAID_IN_CLAIMS in prompt:
        return {"claims": [f"It is so {marks}"]}
    if prompt.startswith("Based on the given text"):
        return {"truths": ["It is so"]}
    if prompt.startswith("Based on the given claims"):
        return {"verdicts": [{"verdict": said.get("faithful", "yes"), "reason": "because"}]}
    if "how you should judge" in prompt:
        return {"steps": ["Compare the two."]}
    return {"reason": "because", "score": int(said.get("score", "8"))}
