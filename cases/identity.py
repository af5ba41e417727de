"""Ids and digests of items, and samples of them: the same in every process and on every day."""

import hashlib
import re
from collections.abc import Iterable, Sequence

from evaluators.canonical import digest
from evaluators.core import Case

GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def given_id(given: str) -> str:
    """Return an id from the file as ASCII: itself where it fits, else 12 digits of its hash."""
    return given if GOOD_ID.fullmatch(given) else digest(["id", given])[:12]


def own_id(digest_: str) -> str:
    """Return the id of an item that has none in the file: 12 digits of its digest."""
    return digest_[:12]


def unique(ids: Iterable[str]) -> list[str]:
    """Return the ids in order, the second and later of equal ones with ``-2``, ``-3`` added."""
    ids = list(ids)
    taken = set(ids)
    count = dict.fromkeys(ids, 0)
    found = []
    for id_ in ids:
        count[id_] += 1
        found.append(id_ if count[id_] == 1 else _free(id_, count, taken))
    return found


def _free(id_: str, count: dict[str, int], taken: set[str]) -> str:
    while (name := f"{id_[:56]}-{count[id_]}") in taken:
        count[id_] += 1
    taken.add(name)
    return name


def case_digest(
    question: str,
    context: str,
    golds: Sequence[str],
    label: str | None = None,
    judged: str | None = None,
) -> str:
    """Return the hash of everything in an item that may change its result.

    ``judged`` is the recorded answer where that is what is judged; elsewhere it stays out, for two
    runs with different answers must still pair.
    """
    parts: list[object] = [question, context, list(golds), label]
    return digest(parts if judged is None else [*parts, judged])


def sample(cases: Sequence[Case], limit: int | None, seed: int) -> list[Case]:
    """Return at most ``limit`` cases in their order, chosen by a hash of seed and id."""
    if limit is None or limit >= len(cases):
        return list(cases)
    chosen = {case.id for case in sorted(cases, key=lambda case: _rank(seed, case.id))[:limit]}
    return [case for case in cases if case.id in chosen]


def _rank(seed: int, id_: str) -> bytes:
    return hashlib.sha256(f"{seed}:{id_}".encode()).digest()
