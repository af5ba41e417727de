"""Who judges: what the options name, and which of them are refused before any call."""

import pytest

from evaluators.core import UsageError
from evaluators.judge_spec import parse_judges
from reports.plugin.run import RunModels, connect_models
from tests.support.run_options import options_of
from tests.support.tables import tabled

A, B = (f"openai:{name}@http://127.0.0.1:9/v1" for name in "ab")


def chosen(*words: str) -> RunModels:
    """Return the models that these options connect, without any key."""
    return connect_models(options_of(*words), needs_key=False)


def judges(*specs: str) -> list[str]:
    return [word for spec in specs for word in ("--judge", spec)]


def test_rules_judge_unless_a_model_is_named() -> None:
    """The default asks nobody and connects to nothing."""
    found = chosen()
    assert found.judges.spec == parse_judges(["lexical"])
    assert found.judges.first_model is None
    assert (found.models, found.specs) == ({}, {})


def test_one_model() -> None:
    """A SPEC alone is a model; the one under test comes first among the connections."""
    found = chosen("--model", B, *judges(A))
    assert list(found.specs) == [B, A]
    assert found.judges.first_model is found.models[A]


def test_rules_before_a_model() -> None:
    """The seed that draws the audit is that of the options."""
    usual = chosen(*judges(f"lexical+{A}")).judges
    assert usual.spec.is_cascade
    assert (usual.seed, list(usual.models)) == (0, [A])
    assert chosen(*judges(f"lexical+{A}"), "--seed", "7").judges.seed == 7


def test_a_panel() -> None:
    """Each model is connected once; rules may be a member."""
    found = chosen(*judges(A, "lexical", B))
    assert list(found.specs) == [A, B]
    assert found.judges.spec.names == (A, "lexical", B)
    assert list(found.judges.models.values()) == list(found.models.values())


@tabled("arguments", "message")
def test_what_cannot_be_meant_is_refused(arguments: list[str], message: str) -> None:
    """The option, what was got and what to do; nothing that would do nothing passes silently."""
    with pytest.raises(UsageError, match=message):
        chosen(*arguments)


def test_a_model_may_be_allowed_to_judge_itself() -> None:
    """In so many words, for every member."""
    found = chosen("--model", A, *judges(A, B), "--allow-self-judge")
    assert list(found.specs) == [A, B]
