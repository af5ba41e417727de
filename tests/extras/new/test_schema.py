"""``qagate schema``: what the schemas know, and that they agree with the readers."""

import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from qagate.bundled import CASES
from qagate.cases.config import DATASET_KEYS, LANGUAGE_KEYS, SHARED_KEYS, load_dataset
from qagate.cases.extras.new.schema import (
    Schema,
    dataset_schema,
    gates_schema,
    load_key_schemas,
    models_schema,
)
from qagate.command import main
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import KINDS
from qagate.evaluators.models.catalogue import DEFAULT_PATH, KNOWN, KNOWN_HTTP
from qagate.evaluators.reading import NUMBER, load_yaml

Captured = pytest.CaptureFixture[str]


def typed(value: object) -> object:
    """Return a value of our YAML reader as editors see it: numbers and truth values as such."""
    if isinstance(value, Mapping):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    text = str(value)
    if text in ("true", "false"):
        return text == "true"
    if NUMBER.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() else number
    return text


def errors(schema: Schema, document: object) -> list[str]:
    """Return what a schema says against a document."""
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(document)]


def test_each_key_of_a_data_set_has_a_line() -> None:
    """The table names the keys that the reader knows, and no other."""
    table = load_key_schemas()
    assert table["dataset"].keys() | table["shared"].keys() == set(DATASET_KEYS)
    assert table["shared"].keys() == set(SHARED_KEYS)
    assert table["language"].keys() | table["shared"].keys() == set(LANGUAGE_KEYS)


def test_each_key_of_a_models_file_has_a_line() -> None:
    """Models and services together."""
    assert load_key_schemas()["model"].keys() == {*KNOWN, *KNOWN_HTTP}


@pytest.mark.slow
@pytest.mark.parametrize("schema", [dataset_schema(), gates_schema(), models_schema()])
def test_the_schemas_are_schemas(schema: Schema) -> None:
    """Of the dialect that they name."""
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "path", sorted(CASES.rglob("dataset.yaml")), ids=lambda path: path.parent.name
)
def test_the_bundled_data_sets_fit(path: Path) -> None:
    """What the reader takes, the schema takes."""
    assert errors(dataset_schema(), typed(load_yaml(path))) == []


def test_the_bundled_models_fit() -> None:
    """What the reader takes, the schema takes."""
    assert errors(models_schema(), typed(load_yaml(DEFAULT_PATH))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "kind: grades\nrubric: simpleqa\nlanguages: {en: {file: en.csv}}",
        "kind: graded\nrubrik: simpleqa\nlanguages: {en: {file: en.csv}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {fle: en.csv}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {prompt: a.yaml}}",
        "kind: graded\nrubric: simpleqa\nyes: Ja\nlanguages: {en: {file: en.csv}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {file: en.csv, yes: Ja}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {EN!: {file: en.csv}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {file: en.csv}}\n"
        "gates: {corect: {min: 0.3}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {file: en.csv}}\n"
        "gates: {correct: {min: 30}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {file: en.csv}}\n"
        "gates: {correct: {min: 0.3, evidence: sure}}",
        "kind: graded\nrubric: simpleqa\nlanguages: {en: {file: en.csv}}\n"
        "drop: {max: 0.1}",
        "kind: graded\nrubric: simpleqa\nlanguages: {default: {file: en.csv}}",
        "kind: yes_no\nlanguages: {en: {file: en.csv, yes: Yes, no: No}}\n"
        "gates: {correct: {min: 0.3}}",
        "kind: yes_no\njudge: unmeasured\n"
        "languages: {en: {file: en.csv, yes: Yes, no: No}}",
    ],
)
def test_a_mistake_is_marked_by_both(wrong: str, tmp_path: Path) -> None:
    """What the schema marks, the reader refuses."""
    path = tmp_path / "facts" / "dataset.yaml"
    path.parent.mkdir()
    path.write_text(wrong, "utf-8")
    assert errors(dataset_schema(), typed(load_yaml(path)))
    with pytest.raises(UsageError):
        load_dataset(path)


@pytest.mark.parametrize("kind", [str(kind) for kind in KINDS])
def test_each_kind_has_its_own_gates(kind: str) -> None:
    """A metric that the kind lacks is marked, each that it has is not."""
    lacking = {"kind": kind, "languages": {"en": {"file": "en.csv"}}}
    for name, (_, highest) in KINDS[kind].ranges().items():
        if name not in ("drop", "rise"):
            gated = {**lacking, "gates": {name: {"max": min(highest, 1)}}}
            assert errors(dataset_schema(), gated) == []
    wrong = {**lacking, "gates": {"no_metric": {"max": 0.5}}}
    assert errors(dataset_schema(), wrong)


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({"facts": {"en": {"correct": {"min": 0.4}}}}, True),
        ({"replace": "all", "facts": {"en": {"drop": {"max": 0.05}}}}, True),
        ({"facts": {"drop": {"max": 0.05, "pool": "languages"}}}, True),
        ({"facts": {"en": {"rise": {"cost": {"max": "20%"}}}}}, True),
        ({"facts": {"en": {"pass@3": {"min": 0.4}}}}, True),
        ({"facts": {"sample": {"limit": 10}}}, True),
        ({"replace": "some"}, False),
        ({"facts": {"en": {"correct": 0.4}}}, False),
        ({"facts": {"drop": {"max": 0.05}}}, False),
        ({"facts": {"en": {"rise": {"cost": {"max": "much"}}}}}, False),
    ],
)
def test_gates_files_are_known(document: object, fits: bool) -> None:
    """By data set, then by language."""
    assert (errors(gates_schema(), document) == []) == fits


def test_a_service_needs_what_a_model_does_not() -> None:
    """The provider says which keys an entry has."""
    service = {"provider": "http", "url": "http://127.0.0.1:1", "answer": "$.text"}
    whole = {**service, "body": {"q": "{question}"}, "version": 1}
    assert errors(models_schema(), {"mine": service})
    assert errors(models_schema(), {"mine": whole}) == []
    assert errors(models_schema(), {"mine": {**whole, "parameters": {}}})


def test_a_schema_is_printed(capsys: Captured) -> None:
    """As JSON."""
    assert main(["schema", "models"]) == 0
    assert json.loads(capsys.readouterr().out) == models_schema()


def test_a_schema_is_written_and_the_line_that_names_it_said(
    tmp_path: Path, capsys: Captured
) -> None:
    """The line is the one that editors look for."""
    path = tmp_path / "dataset.schema.json"
    assert main(["schema", "dataset", "--to", str(path)]) == 0
    assert json.loads(path.read_text("utf-8")) == dataset_schema()
    wanted = "# yaml-language-server: $schema=dataset.schema.json"
    assert capsys.readouterr().out.splitlines()[-1] == wanted


def test_an_unknown_file_is_refused(capsys: Captured) -> None:
    """With those that there are."""
    assert main(["schema", "rubric"]) == 4
    assert "choose from dataset, gates, models" in capsys.readouterr().err.replace(
        "'", ""
    )
