"""What is shaped like a key is masked, whole; what a model may say of keys is not."""

import base64
import json
import random
import re
import string
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from qagate.evaluators.text import MASK, Key, mask, may_hold_key

TABLE: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("key_shapes.yaml").read_text("utf-8")
)
SHAPES: dict[str, str] = TABLE["shapes"]
DATA = Path(__file__).parents[3] / "shared" / "data"
ADDRESS = re.compile(r"\S+://\S+")
BODY = re.compile(r"([@#])(\d+)")


def made_up(template: str) -> tuple[str, list[str]]:
    """Return a text with made-up keys in the places of a template, and their bodies."""
    chance = random.Random(template)
    bodies: list[str] = []

    def body(match: re.Match[str]) -> str:
        alphabet = "0123456789abcdef" if match[1] == "#" else string.ascii_letters * 2
        characters = chance.choices(alphabet + string.digits, k=int(match[2]))
        # A digit near the start, as nearly all random keys have.
        characters[min(3, len(characters) - 1)] = "7"
        bodies.append("".join(characters))
        return bodies[-1]

    return BODY.sub(body, template), bodies


def test_there_are_a_hundred_shapes() -> None:
    assert len(SHAPES) >= 100


@pytest.mark.parametrize("name", SHAPES)
def test_no_part_of_a_key_is_left(name: str) -> None:
    """Neither alone, nor in a sentence, nor as JSON writes it."""
    key, bodies = made_up(SHAPES[name])
    for text in (key, f"Incorrect key: {key}, sorry.", json.dumps({"error": key})):
        shown = mask(text)
        assert MASK in shown
        assert may_hold_key(text)
        for body in bodies:
            assert body not in shown


@pytest.mark.parametrize("text", TABLE["plain"])
def test_an_ordinary_answer_stays_as_it_is(text: str) -> None:
    assert mask(text) == text


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the collected answers")
def test_no_answer_of_a_public_data_set_is_masked() -> None:
    """A mask in an answer would change what people read of it."""
    masked = []
    for file in sorted(DATA.rglob("*")):
        if file.suffix not in (".csv", ".jsonl", ".tsv") or file.stat().st_size > 3e6:
            continue
        for line in file.read_text("utf-8", "replace").splitlines():
            # An address may well hold the key of somebody's session.
            text = ADDRESS.sub("", line)
            if mask(text) != text:
                masked.append((file.name, text[:80]))
    assert not masked


HOSTILE = [
    "://:a",
    "://u:",
    "password=",
    '"secret":"',
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----" + "A" * 70,
    "token:",
    "cookie=a=",
    "_key=1",
    "sk-",
    "pa-a",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """Twenty times the text may take a hundred times the time, not four hundred."""
    seconds = []
    for length in (20_000, 400_000):
        text = piece * (length // len(piece))
        began = time.process_time()
        mask(text)
        seconds.append(max(time.process_time() - began, 0.005))
    assert seconds[1] < 100 * seconds[0]


def test_a_key_that_was_given_is_hidden_in_the_codes_that_proxies_write() -> None:
    secret = "pl4in-k3y-of-ours"
    key = Key(secret)
    basic = base64.b64encode(f"user:{secret}".encode()).decode()
    hexed = secret.encode().hex()
    shown = key.hide(f"sent {basic}, {hexed} and {hexed.upper()}")
    assert hexed[:20] not in shown.lower()
    assert base64.b64encode(f"user:{secret}".encode()).decode()[10:20] not in shown
