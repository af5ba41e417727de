"""Yes or no, as the model under test says it: the label alone, or before a comma or a full stop."""

import re
import unicodedata
from collections.abc import Iterable

from evaluators.core import NO, YES
from evaluators.replies.lexicon import Lexicon, folded
from evaluators.replies.reply_text import Invalid, plain, spoken, without_markup

MAX_RAW = 250_000
MAX_CHARS = 20_000
"""How far an answer is searched for a second label."""

_MARKS = r"""[\s"'`´„“”‟‘’‚‛«»‹›*_#>()\[\]]*+"""
_LABEL = re.compile(rf"{_MARKS}(?P<label>\w+(?:[ '’-]\w+){{0,3}}){_MARKS}(?P<end>!*\Z|[.,](?!\w))")
_CLAUSE_END = re.compile(r"[.,;:!?\n–—]+")


def read_label_first(
    text: str, yes: Iterable[str], no: Iterable[str], lexicon: Lexicon
) -> str | Invalid:
    """Return YES or NO where a text is one of these words, or begins with one and a comma or stop.

    The other word as a later clause of its own ("Yes, no.") leaves no single reading.
    """
    said = spoken(text) if len(text) <= MAX_RAW else text
    if said is None:
        return Invalid("no answer outside of thoughts")
    said = without_markup(plain(said[:MAX_CHARS]))
    table = {_key(word): YES for word in yes} | {_key(word): NO for word in no}
    found = _LABEL.match(said)
    answer = table.get(_key(found["label"])) if found else None
    if found is None or answer is None:
        return Invalid("the answer does not begin with one of the labels alone")
    others = {word for word, meaning in table.items() if meaning != answer}
    if any(_core(clause, lexicon) in others for clause in _CLAUSE_END.split(said[found.end() :])):
        return Invalid("both labels")
    return answer


def _key(word: str) -> str:
    return unicodedata.normalize("NFC", word).casefold().strip()


def _core(clause: str, lexicon: Lexicon) -> str:
    """Return a short clause without conjunctions and words of correction: ``but no`` is ``no``."""
    words = _key(clause).strip("\"'`„“”‘’«»*_()[] ").split() if len(clause) < 40 else []
    fillers = lexicon.hedges | lexicon.corrections | lexicon.conjunctions
    while len(words) > 1 and folded(words[0]) in fillers:
        words = words[1:]
    return " ".join(words)
