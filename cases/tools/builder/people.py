"""What native speakers are asked of an item, and what their verdicts make of it.

A reviewer sees text and question, never the answer that was generated, and answers: yes, no,
unclear, or bad language; the question may be corrected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cases.tools.builder.items import Item
from cases.tools.builder.recipe import Recipe
from cases.tools.review.reviews import AGREED, UNREVIEWED, Review, Settled, settle
from cases.tools.review.sheet import (
    UNCLEAR,
    Duty,
    Field,
    Sheet,
    SheetItem,
    assign,
    choice_set,
    draw,
)

CHOICES = "question"
BAD_LANGUAGE = "BAD_LANGUAGE"
MOST = 3  # verdicts after which a dispute is given up
CONFLICT = "conflict"
DISPUTED = (CONFLICT, "against_answer")
"""Reasons of items that a further person is to look at."""

_DROPS: Mapping[str, str] = {UNCLEAR: "unclear", BAD_LANGUAGE: "bad_language"}


def shared_out(items: Sequence[Item], share: float, duty: Duty | None) -> list[Item]:
    """Return the items, each with the names of those who are to see it; none without a duty.

    ``share`` of them is drawn, from each source and answer in proportion.
    """
    strata = {item.id: f"{item.origin.group}/{item.answer}" for item in items}
    chosen = draw(strata, round(share * len(items)), duty.seed) if duty else frozenset[str]()
    duties = assign({id_: strata[id_] for id_ in strata if id_ in chosen}, duty) if duty else {}
    asked = {id_: [name for name, ids in duties.items() if id_ in ids] for id_ in chosen}
    return [replace(item, review={"asked": asked.get(item.id, [])}) for item in items]


def asked_of(item: Item) -> list[str]:
    """Return the names of those who are to see an item."""
    names = item.review.get("asked", [])
    return [str(name) for name in names] if isinstance(names, list) else []


def sheet_of(name: str, items: Iterable[Item], recipe: Recipe) -> Sheet:
    """Return a sheet of items for anyone to fill in."""
    rows = tuple(
        SheetItem(
            id=item.id,
            language=item.language,
            fields=(
                Field(title="context", text=item.paragraph),
                Field(title="question", text=item.question),
                Field(title="source", text=f"{item.origin.title} · {item.origin.group}"),
            ),
            choices=CHOICES,
            edit=item.question,
            reasons=_wordings(item),
            group=recipe.type_of(item.question),
        )
        for item in items
    )
    return Sheet(name=name, items=rows, choices={CHOICES: choice_set(CHOICES)})


def _wordings(item: Item) -> tuple[str, ...]:
    """Return the wordings that reviewers proposed, for the one who decides between them."""
    return tuple(dict.fromkeys(edit for one in said_of(item) if (edit := one["edited"])))


def said_of(item: Item) -> list[dict[str, str]]:
    """Return what reviewers said of an item: reviewer, verdict, edited, comment."""
    said = item.review.get("said", [])
    return [dict(one) for one in said] if isinstance(said, list) else []


def accepted(items: Sequence[Item], reviews: Sequence[Review], *, unreviewed: bool) -> list[Item]:
    """Return what the verdicts make of the items.

    Kept: the answer confirmed or corrected, the question edited where somebody did. Dropped:
    unclear, bad language, or still in dispute after three. Pending: in dispute, or not yet seen by
    all who were asked; with ``unreviewed`` the verdicts that are there suffice.
    """
    outcomes = settle([item.id for item in items], reviews)
    return [_accepted(item, outcomes[item.id], unreviewed=unreviewed) for item in items]


def _accepted(item: Item, outcome: Settled, *, unreviewed: bool) -> Item:
    said = [
        {
            "reviewer": one.reviewer,
            "verdict": one.verdict,
            "edited": one.edited,
            "comment": one.comment,
        }
        for one in outcome.reviews
    ]
    item = replace(item, review={**item.review, "said": said})
    missing = len(asked_of(item)) - len(said)
    if missing > 0 and not unreviewed:
        return _pending(item, "not_reviewed", f"{missing} of those asked have not answered")
    if outcome.state == UNREVIEWED:
        return item
    if outcome.state != AGREED:
        return _disputed(item, CONFLICT)
    if outcome.verdict in _DROPS:
        detail = "; ".join(outcome.comments)
        return replace(item, state="dropped", reason=_DROPS[outcome.verdict], detail=detail)
    if outcome.verdict != item.answer and len(outcome.names) < 2:
        return _disputed(item, "against_answer")
    return _confirmed(item, outcome)


def _confirmed(item: Item, outcome: Settled) -> Item:
    changes: dict[str, object] = {}
    if outcome.verdict != item.answer:
        changes["answer_before"] = item.answer
    if outcome.edited and outcome.edited != item.question:
        changes["question_before"] = item.question
    return replace(
        item,
        answer=outcome.verdict,
        question=outcome.edited or item.question,
        review={**item.review, **changes},
    )


def _disputed(item: Item, reason: str) -> Item:
    said = ", ".join(one["verdict"] for one in said_of(item))
    if len(said_of(item)) >= MOST:
        return replace(item, state="dropped", reason="disputed", detail=said)
    return _pending(item, reason, f"in dispute ({said}); a further person is to decide")


def _pending(item: Item, reason: str, detail: str) -> Item:
    return replace(item, state="pending", reason=reason, detail=detail)


def is_reviewed(item: Item) -> bool:
    """Return whether a person gave a verdict on an item."""
    return bool(said_of(item))


def reviews_of(items: Iterable[Item]) -> list[Review]:
    """Return the verdicts that tell how far people agree: of those who were asked at first.

    Who decides disputes sees nothing but these, and would make agreement look worse than it is.
    """
    found = []
    for item in items:
        asked = {name.casefold() for name in asked_of(item)}
        said = said_of(item)
        first = [one for one in said if one["reviewer"].casefold() in asked]
        found += [
            Review(item=item.id, reviewer=one["reviewer"], verdict=one["verdict"])
            for one in first or said
        ]
    return found


def types_of(items: Iterable[Item], recipe: Recipe) -> dict[str, str]:
    """Return the type of each item's question as the reviewers saw it."""
    return {
        item.id: recipe.type_of(str(item.review.get("question_before", item.question)))
        for item in items
    }
