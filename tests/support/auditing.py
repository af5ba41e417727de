"""Two runs whose answers people judge: made records, and what people say of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import Fail, Threshold
from qagate.evaluators.adjudications import Adjudication, answer_digest
from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.reports.run.record import Record
from tests.support import reviewing
from tests.support.made_runs import answered
from tests.support.reviewing import Row

GRADES = {"c": CORRECT, "i": INCORRECT}


def audited(
    margin: float = 0.1, fail: Fail = "margin", *, pool: bool = False
) -> Threshold:
    return Threshold(
        measure="drop", max=margin, evidence="audited", fail=fail, pool=pool
    )


def answers(judged: str, model: str, **fields: object) -> list[Record]:
    """Return a run with these verdicts of the judge; no answer is that of another model."""
    found = answered(judged, **fields)  # type: ignore[arg-type]
    return [
        one if one.answer is None else replace(one, answer=f"{model} on {one.id}")
        for one in found
    ]


def verdicts(records: Sequence[Record], truth: str) -> dict[str, Adjudication]:
    """Return what people say of these answers; nothing where ``truth`` has a space."""
    found = {}
    for record, letter in zip(records, truth, strict=True):
        if letter in GRADES and record.answer:
            digest = answer_digest(record, record.answer)
            found[digest] = Adjudication(
                item=record.key, digest=digest, label=GRADES[letter], name="Ана"
            )
    return found


def with_noise(judged: str, share: float, salt: str) -> str:
    """Return verdicts of which a share, picked by a hash, is turned round."""
    turned = []
    for place, letter in enumerate(judged):
        number = (
            int(hashlib.sha256(f"{salt}{place}".encode()).hexdigest()[:8], 16) / 16**8
        )
        turned.append({"c": "i", "i": "c"}[letter] if number < share else letter)
    return "".join(turned)


def filled_in(
    form: Path, labels: Mapping[str, str], to: Path, name: str = "Ана"
) -> Path:
    """Fill in the CSV twin of a form; ``labels`` are by an answer's digest."""

    def fill(_: int, row: Row) -> Row:
        return {"verdict": labels[row["item"].rpartition("@")[2]], "reviewer": name}

    return reviewing.filled_in(form, fill, to)
