"""Rules that need no model: a text's language, what a question must be, what gives it away."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from rapidfuzz import fuzz, process, utils

from qagate.cases.extras.builder.recipe import QuestionRules, Recipe, SpellingRules
from qagate.cases.extras.builder.work_folder import DraftItem, Items, Values
from qagate.evaluators.core import YES, UsageError
from qagate.evaluators.languages.detection import Language, has, language_of, words
from qagate.evaluators.statistics.intervals import wilson

Fault = tuple[
    str, str
]  # why a text is refused: the reason that is counted, and a detail

SHORT = 40  # letters; in a shorter text the absence of a letter says nothing
LEAD = 2  # frequent words by which another language must lead
STEM = 5  # letters by which two forms of a word are taken for one
WHOLE = 25  # letters from which a question found in one piece in its text is a copy
FOREIGN_WORDS = (
    3  # more words shared with another text of the batch than with the own: swapped
)
FOLDS = 5
# A sentence ends with its mark, and perhaps a closing quotation mark, where a capital or a quote
# follows; initials ("А. Міцкевіч") and abbreviations of one or two letters ("г.") do not end one.
_END = re.compile(
    r"(?:(?<=[.!?…])(?<!\b[^\W\d_]\.)(?<!\b[^\W\d_]{2}\.)|(?<=[.!?…][»”\")]))"
    r"\s+(?=[«„“\"(—–]*\s?[^\W\d_])(?![^\W\d_A-ZА-ЯЁІЎ])"
)


def known_language(code: str) -> Language:
    """Return what is known of a language. Raises UsageError for an unknown one."""
    if found := language_of(code):
        return found
    what = f"language {code!r}: add its alphabet and frequent words to evaluators/languages.yaml"
    raise UsageError(what)


def language_fault(text: str, language: Language, rules: SpellingRules) -> Fault | None:
    """Return why a text is refused: ``script``, ``letters``, ``language`` or ``spelling``."""
    letters = [letter for letter in text.casefold() if letter.isalpha()]
    other = [letter for letter in letters if not has(language.script, letter)]
    if not letters or len(other) > rules.other_script * len(letters):
        odd = f"{len(other)} of {len(letters)} letters are not {language.script}"
        return "script", odd if letters else "no letters"
    found, own = words(text), language.letters
    foreign = [
        one for one in letters if own and one not in own and has(language.script, one)
    ]
    if len(foreign) > rules.foreign * len(letters):
        return (
            "letters",
            f"letters of another language: {' '.join(sorted(set(foreign)))}",
        )
    expected = sum(letter in language.expected for letter in letters)
    if len(letters) >= SHORT and expected < rules.expected * len(letters):
        return "letters", f"too few of {' '.join(sorted(language.expected))}"
    code, mine, theirs = language.rival([word.casefold() for word in found])
    if theirs >= mine + LEAD:
        return (
            "language",
            f"{theirs} frequent words of {code!r} alone, {mine} of {language.code!r}",
        )
    patterns = [*rules.also, *([language.respelt] if language.respelt else ())]
    hits = [word for word in found if any(one.search(word) for one in patterns)]
    if len(hits) > rules.respelt * len(found):
        return "spelling", f"{language.spelling}: {', '.join(hits[:5])}"
    return None


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a cleaned paragraph."""
    return _END.split(paragraph)


def comparable(text: str) -> str:
    """Return a text without case and punctuation, for comparing."""
    return " ".join(utils.default_process(text).split())


def nearest(text: str, others: Sequence[str], least: float) -> int | None:
    """Return the index of the most similar text, if its Indel similarity is ``least`` percent."""
    found = process.extractOne(text, others, scorer=fuzz.ratio, score_cutoff=least)
    return None if found is None else int(found[2])


def check_questions(items: Items, recipe: Recipe) -> list[DraftItem]:
    """Return the items; a kept one is dropped by the first rule that it breaks."""
    language, rules = known_language(recipe.language), recipe.question
    # In a short text one respelt word counts, and a Latin name does not.
    most = max(0.5, recipe.spelling.other_script)
    spelling = replace(recipe.spelling, respelt=0.0, other_script=most, expected=0.0)
    texts = {item.id: item.paragraph for item in items}
    before, checked = list[str](), list(items)
    for at, item in enumerate(items):
        if item.state != "kept":
            continue
        fault = (
            _form_fault(item.question, rules)
            or _copied(item, rules)
            or language_fault(item.question, language, spelling)
            or _swapped(item, texts)
        )
        asked = comparable(item.question)
        near = None if fault else nearest(asked, before, rules.similar)
        if near is not None:
            fault = "repeated", f"nearly: {before[near]}"
        if fault:
            checked[at] = item.dropped(*fault)
        else:
            before.append(asked)
    return checked


def _form_fault(question: str, rules: QuestionRules) -> Fault | None:
    if not rules.shortest <= len(question) <= rules.longest:
        return "length", f"{len(question)} characters"
    if not question.endswith("?") or question.count("?") != 1:
        return "mark", "want one ? at the end"
    if found := next(filter(None, (one.search(question) for one in rules.open)), None):
        return "open", f"begins like an open question: {found[0]}"
    if found := next(
        filter(None, (one.search(question) for one in rules.negative)), None
    ):
        return "negative", f"yes and no can mean the same after: {found[0]}"
    if not any(one.search(question) for one in rules.forms):
        return "form", "not the form of a yes/no question"
    return None


def _copied(item: DraftItem, rules: QuestionRules) -> Fault | None:
    own = [comparable(one) for one in sentences(item.paragraph)]
    near = nearest(comparable(item.question), own, rules.copied)
    if near is not None:
        return "copied", f"a sentence of the text: {own[near][:60]}"
    forms = (pattern.match(item.question) for pattern in rules.forms)
    bare = comparable(item.question[next((form.end() for form in forms if form), 0) :])
    text = comparable(item.paragraph)
    is_piece = (
        WHOLE <= len(bare) <= len(text)
        and fuzz.partial_ratio(bare, text) >= rules.copied
    )
    return ("copied", f"a piece of the text: {bare[:60]}") if is_piece else None


def _swapped(item: DraftItem, texts: Mapping[str, str]) -> Fault | None:
    question = _stems(item.question)
    own = question & _stems(item.paragraph)
    for other in item.batch:
        shared = question & _stems(texts.get(other, ""))
        if len(shared) >= len(own) + FOREIGN_WORDS:
            return (
                "swapped",
                f"fits the text of {other}: {', '.join(sorted(shared)[:5])}",
            )
    return None


def _stems(text: str) -> frozenset[str]:
    return frozenset(
        word.casefold()[:STEM] for word in words(text) if len(word) >= STEM
    )


def question_only(items: Items, negations: Collection[str]) -> Values:
    """Return how often rules that see only the question find the answer, and the best of them.

    Each rule learns the more frequent answer for each value of one feature on four fifths of the
    items, and answers the rest; ``majority`` knows only the more frequent answer. The share of the
    best, picked afterwards, is a little too high; its Wilson interval stands with it.
    """
    if not items:
        return {}
    denials = {word.casefold() for word in negations}
    features: Mapping[str, Callable[[str], object]] = {
        "first word": lambda asked: words(asked.casefold())[:1],
        "first two words": lambda asked: words(asked.casefold())[:2],
        "word of denial": lambda asked: bool(
            denials & {*asked.casefold().rstrip("?").split()}
        ),
        "length": lambda asked: len(asked) // 20,
        "figure": lambda asked: any(letter.isdigit() for letter in asked),
    }
    shares = {
        "majority": max(Counter(item.answer for item in items).values()) / len(items)
    }
    folds = [sha256(item.id.encode()).digest()[0] % FOLDS for item in items]
    for name, feature in features.items():
        values = [f"{feature(item.question)}" for item in items]
        counts: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        for item, value, fold in zip(items, values, folds, strict=True):
            for other in set(range(FOLDS)) - {fold}:
                counts[other, value][item.answer] += 1
                # Under "", the answers to all values, none of which is empty.
                counts[other, ""][item.answer] += 1
        right = 0
        for item, value, fold in zip(items, values, folds, strict=True):
            learnt = counts.get((fold, value)) or counts[fold, ""]
            guess = max(sorted(learnt), key=learnt.__getitem__, default=YES)
            if guess == item.answer:
                right += 1
        shares[name] = right / len(items)
    best = max(shares, key=lambda name: shares[name])
    interval = wilson(shares[best] * len(items), len(items))
    return {"items": len(items), "shares": shares, "best": best, "interval": interval}
