"""``run.json`` and ``records.jsonl``: strict, exact, and the same bytes for the same run."""

import hashlib
import json
import math
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reports.run import run_json
from reports.run.json_data import dump
from reports.run.record import Record
from reports.run.report import Counts
from tests.support.samples import estimate, full, hostile, part, record, rendered, report

NUMBERS = st.floats() | st.integers() | st.none()
VALUES = st.recursive(
    NUMBERS | st.booleans() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def strict(text: str) -> Any:
    """Return JSON that holds no NaN or Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


@given(VALUES)
def test_any_value_becomes_strict_json_in_utf8(value: object) -> None:
    """NaN, infinities, controls and lone surrogates included."""
    text = dump(value)
    text.encode("utf-8")
    strict(text)
    assert len(text.splitlines()) == 1


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=100), st.sampled_from("\ud800\udfff")
)
def test_text_round_trips_with_a_lone_surrogate(text: str, surrogate: str) -> None:
    """The store's exact text comes back from the file, character by character."""
    exact = f"{text} {surrogate} {text}"
    assert json.loads(dump(exact)) == exact


def test_run_json_says_what_the_run_came_to() -> None:
    """Decision, counts, slices, gates, cost, origin; INCOMPLETE; the checksum of the records."""
    made = full()
    run = strict(rendered(made)["run.json"])
    assert run["schema_version"] == run_json.SCHEMA_VERSION
    assert run["complete"] is True
    assert run["verdict"] == "FAIL"
    assert run["decision"] == {"code": 1, "line": made.decision.line}
    assert run["counts"]["plan"] == sum(part["counts"]["plan"] for part in run["slices"]) + len(
        hostile()
    )
    first = run["slices"][0]
    assert first["measures"]["correct"] == {"value": 0.61, "low": 0.5, "high": 0.72, "n": 40}
    assert first["breakdowns"]["topic"]["Art"]["f_score"]["n"] == 60
    assert {"label": "YES", "grade": "NO", "count": 2} in run["slices"][5]["confusion"]
    assert [gate["state"] for gate in run["gates"]].count("INCONCLUSIVE") == 2
    assert run["gates"][3]["measure"] == "drop"
    assert run["gates"][3]["max"] == 0.03
    assert (run["cost"], run["tokens"], run["model"]) == (1.2345, 1_234_567, "openai:new")
    assert run["provenance"]["data"] == {"simpleqa:en": "ab" * 32}
    counts = Counts(planned=3, passed=1, failed=0, error=0, missing=2)
    run = strict(rendered(report(complete=False, counts=counts))["run.json"])
    assert (run["complete"], run["verdict"], run["counts"]["missing"]) == (False, "INCOMPLETE", 2)
    block = strict(rendered(made)["run.json"])["records"]
    raw = "".join(run_json.records(made)).encode()
    assert block == {
        "file": "records.jsonl",
        "count": len(made.records),
        "sha256": hashlib.sha256(raw).hexdigest(),
    }


def test_undefined_measures_are_null() -> None:
    """Neither 0 nor NaN stands for what is undefined; other types' numbers and paths are plain."""
    slices = (part("graded", (record(),), {"correct": None}),)
    odd = replace(slices[0], measures={"correct": replace(estimate(None), value=math.nan)})
    for one in (slices[0], odd):
        run = strict(rendered(report(slices=(one,)))["run.json"])
        assert run["slices"][0]["measures"]["correct"]["value"] is None

    class Odd(float):
        """A float of another library."""

    value = {"n": Odd(0.5), "nan": math.nan, "t": (True, None), "p": PurePosixPath("a/b"), 3: 1}
    assert strict(dump(value)) == {
        "n": 0.5, "nan": None, "t": [True, None], "p": "a/b", "3": 1,
    }  # fmt: skip


def test_only_the_run_block_tells_two_runs_apart() -> None:
    """Over the same replies, whatever the order they came in, the rest is byte-identical."""
    first = full()
    second = replace(
        first,
        records=first.records[::-1],
        run={"id": "r2", "workers": 1},
        provenance=dict(reversed(list(first.provenance.items()))),
    )
    one, two = (strict(rendered(each)["run.json"]) for each in (first, second))
    assert one.pop("run") != two.pop("run")
    assert json.dumps(one) == json.dumps(two)
    assert list(run_json.records(first)) == list(run_json.records(second))


def test_records_are_sorted_one_a_line_with_every_field() -> None:
    """By dataset, language, row and repeat; the order of arrival leaves no trace."""
    items = (record(10), record(2, repeat=2), record(2), record(1, language="bg"))
    lines = [strict(line) for line in run_json.records(report(items))]
    assert [(line["language"], line["row"], line["repeat"]) for line in lines] == [
        ("bg", 1, 1), ("en", 2, 1), ("en", 2, 2), ("en", 10, 1),
    ]  # fmt: skip
    assert set(lines[0]) == {field.name for field in fields(Record)}
