"""What a refusal advises works: each is followed here, and ends in a verdict.

A refusal whose advice leads to the next refusal is a circle, and nobody gets out of one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from qagate.command import main
from tests.support.fixtures import Captured

Rows = Sequence[Mapping[str, object]]
ITEMS = 100
VERDICTS = (0, 1, 6)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What is refused, in which words, and the words that the refusal advises to add."""

    row: Mapping[str, object]
    """Of NEW and OLD; the number of the item is put into ``{}``."""
    message: str
    advice: tuple[str, ...]
    given: tuple[str, ...] = ()
    other_row: Mapping[str, object] | None = None
    """A second row of each item."""
    wrapped_in: tuple[str, ...] = ()
    """The keys of an object that each holds the rows."""


REFUSALS = {
    "no id": Refusal(
        row={"name": "q{}", "score": 1},
        message="no column 'id'; say --column id=NAME, of name, score",
        advice=("--column=id=name",),
    ),
    "no score": Refusal(
        row={"id": "q{}", "acc": 1},
        message="no column 'score'; say --column score=NAME, of id, acc",
        advice=("--column=score=acc",),
    ),
    "a column that is not there": Refusal(
        row={"id": "q{}", "acc": 1},
        given=("--column=score=ac",),
        message="no column 'ac'; say --column score=NAME, of id, acc",
        advice=("--column=score=acc",),
    ),
    "a scale": Refusal(
        row={"id": "q{}", "score": 4},
        message="say the scale of this score: --scale WORST:BEST",
        advice=("--scale=1:5",),
    ),
    "a direction": Refusal(
        row={"id": "q{}", "wer": 0.25},
        given=("--column=score=wer",),
        message="say --scale WORST:BEST (less seems to be better: --scale 1:0)",
        advice=("--scale=1:0",),
    ),
    "a scale of another score": Refusal(
        row={"id": "q{}", "score": 0.5},
        given=("--scale=0:100",),
        message="so every change would look small; say the ends that a score can have",
        advice=("--scale=0:1",),
    ),
    "a word": Refusal(
        row={"id": "q{}", "score": "fair"},
        message="say what it is worth, with --score fair=0.5",
        advice=("--score=fair=0.5", "--scale=0:1"),
    ),
    "several scores": Refusal(
        row={"id": "q{}", "score": {"right": 1, "brief": 0}},
        message="several scores, 'score/right', 'score/brief'; say which decides: --metric NAME",
        advice=("--metric=score/right", "--scale=0:1"),
    ),
    "a score that is not there": Refusal(
        row={"id": "q{}", "score": 1},
        given=("--metric=scor",),
        message="its samples have no score 'scor'; did you mean 'score'?",
        advice=("--metric=score",),
    ),
    "a score that no sample has": Refusal(
        row={"id": "q{}", "score": {"right": None, "brief": 1}},
        given=("--metric=score/right",),
        message="no sample has a score by score/right; say --metric NAME, of 'score/brief'",
        advice=("--metric=score/brief", "--scale=0:1"),
    ),
    "a slice that is not there": Refusal(
        row={"id": "q{}", "score": 1, "language": "pl"},
        given=("--slice=langage",),
        message="has no such field; did you mean 'language'?",
        advice=("--slice=language",),
    ),
    "a cluster that is not there": Refusal(
        row={"id": "q{}", "score": 1, "page": "p{}"},
        given=("--cluster=pge",),
        message="has such a field; did you mean 'page'?",
        advice=("--cluster=page",),
    ),
    "several lists": Refusal(
        row={"id": "q{}", "score": 1},
        wrapped_in=("first", "second"),
        message="holds the lists first, second; say --rows NAME",
        advice=("--rows=first",),
    ),
    "a list that is not there": Refusal(
        row={"id": "q{}", "score": 1},
        wrapped_in=("first", "second"),
        given=("--rows=third",),
        message="no list of objects there; there are: first, second",
        advice=("--rows=second",),
    ),
    "several models": Refusal(
        row={"id": "q{}", "model": "a", "score": 1},
        other_row={"id": "q{}", "model": "b", "score": 1},
        message="results of several models, a, b; say which with --new or --old MODEL",
        advice=("--new=a", "--old=b"),
    ),
    "a model that is not there": Refusal(
        row={"id": "q{}", "model": "mock-a", "score": 1},
        other_row={"id": "q{}", "model": "mock-b", "score": 1},
        given=("--new=mok-b", "--old=mock-a"),
        message="no model 'mok-b'; did you mean 'mock-b'?",
        advice=("--new=mock-b", "--old=mock-a"),
    ),
    "another form": Refusal(
        row={"id": "q{}", "score": 1},
        given=("--from=deepeval",),
        message="not a result of deepeval; leave --from out",
        advice=(),
    ),
}


def result(path: Path, refusal: Refusal) -> Path:
    kinds = [refusal.row]
    if refusal.other_row is not None:
        kinds.append(refusal.other_row)
    rows = [numbered(row, n) for n in range(ITEMS) for row in kinds]
    value: object = dict.fromkeys(refusal.wrapped_in, rows) or rows
    path.write_text(json.dumps(value))
    return path


def numbered(row: Mapping[str, object], number: int) -> dict[str, object]:
    return {
        key: value.replace("{}", str(number)) if isinstance(value, str) else value
        for key, value in row.items()
    }


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
def test_the_advice_of_a_refusal_ends_in_a_verdict(
    refusal: Refusal, tmp_path: Path, capsys: Captured
) -> None:
    new, old = (result(tmp_path / f"{side}.json", refusal) for side in ("new", "old"))
    words = ["decide", f"{new}", f"--baseline={old}", f"--to={tmp_path / 'out'}"]
    assert main([*words, *refusal.given]) == 4
    assert refusal.message in capsys.readouterr().err
    replaced = {option.split("=")[0] for option in refusal.advice}
    kept = [
        option
        for option in refusal.given
        if option.split("=")[0] not in replaced and not option.startswith("--from")
    ]
    assert main([*words, *kept, *refusal.advice]) in VERDICTS, capsys.readouterr()
