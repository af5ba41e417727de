"""One grammar says where a value stands, in the rows of any tool and in the user's own tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.reports.extras.decide.paths import field_path

ROW = {
    "outputs.judge.score": 1,
    "outputs": {"judge": {"reason": "good", "score": 2}},
    "right/value": True,
    "edits/value": 3,
    "stats": [
        {"name": {"name": "em"}, "mean": 0.5},
        {"name": {"name": "f1"}, "mean": 0.7},
    ],
    "messages": [{"content": "first"}, {"content": "last"}],
    "inputs": '{"question": "Who?"}',
    "tags": "{'language': 'pl', 'n': None}",
    "empty": None,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("outputs.judge.reason", "good"),
        ("outputs.judge.score", 1),  # the longest key that fits first
        ("messages[-1].content", "last"),
        ("messages[0].content", "first"),
        ("messages[7].content", None),
        ("inputs.question", "Who?"),
        ("tags.language", "pl"),
        ("nothing|empty|inputs.question", "Who?"),
        ("inputs.question.deeper", None),
        ("messages.content", None),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: object) -> None:
    assert field_path(path).value(ROW) == value


@pytest.mark.parametrize(
    ("path", "scores"),
    [
        ("*/value", {"right": True, "edits": 3}),
        ("stats[name.name].mean", {"em": 0.5, "f1": 0.7}),
        ("outputs.judge.*", {"score": 1}),
        ("outputs.*.*", {"judge.score": 1}),
        ("messages[].content", {"": "last"}),
        ("inputs[name].value", {}),
    ],
)
def test_a_star_and_a_field_name_what_they_find(path: str, scores: object) -> None:
    assert dict(field_path(path).find(ROW)) == scores


def test_a_key_that_is_spelt_like_a_path_is_that_key() -> None:
    assert field_path("right|wrong [%]").value({"right|wrong [%]": 7}) == 7


@pytest.mark.parametrize("path", ["", "a..b", "a|", "a[b", ".", "]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path; want names with dots"):
        field_path(path)


@pytest.mark.parametrize("text", ["{" * 200_000, "[" * 900, "{broken", "[1, 2"])
def test_a_text_that_only_begins_like_json_stays_a_text(text: str) -> None:
    assert field_path("cell.key").value({"cell": text}) is None


@given(st.text(alphabet="ab.*[]|-0 ", max_size=12))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        path = field_path(text)
    except ValueError:
        return
    assert isinstance(path.find(ROW), list)
