"""JSON Schemas of ``dataset.yaml``, gates files and models files.

An editor that knows the schema completes keys and marks mistakes while a file is written.
Which keys, kinds, metrics and words there are is asked of the declarations that check the
files when they are read, so that a schema cannot know fewer or more. What a key holds
stands in ``keys.yaml``.

A schema is a help and no second judge: what only reading can tell (a file that is missing,
a bar that cannot fail) it lets pass.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from qagate.cases import thresholds
from qagate.cases.config import (
    DATASET_KEYS,
    DEFAULT,
    LANGUAGE,
    LANGUAGE_KEYS,
    REPLACE,
)
from qagate.cases.dataset import EvidenceRule
from qagate.evaluators.kinds import KINDS, Kind
from qagate.evaluators.metric_specs import CHECK_PREFIX, DEEPEVAL_METRICS, GEVAL_PREFIX
from qagate.evaluators.models.catalogue import KNOWN, KNOWN_HTTP
from qagate.evaluators.models.spec import PROVIDERS
from qagate.evaluators.models.targets import HTTP, METHODS, PYTHON
from qagate.evaluators.statistics import metrics as metric_rules
from qagate.evaluators.statistics.metrics import DROP, RATE, RISE, Range

Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""
KEYS = Path(__file__).with_name("keys.yaml")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
OWN_METRIC = rf"^({CHECK_PREFIX}|{GEVAL_PREFIX}|{metric_rules.LABEL_SHARE})\w+$"
"""The names of metrics that a team defines."""
REPEATED_METRIC = r"^pass[@^][1-9][0-9]?$"
SAMPLE = "sample"
_MARGIN: Schema = {"$ref": "#/$defs/margin"}
_RATE: Schema = {"$ref": "#/$defs/rate"}
"""Parts that stand in hundreds of places, and once in the file."""


def load_key_schemas() -> dict[str, dict[str, Schema]]:
    """Return what ``keys.yaml`` says of each key, by the mapping that the key stands in."""
    import yaml  # noqa: PLC0415  # for this command alone

    schemas: dict[str, dict[str, Schema]] = yaml.safe_load(KEYS.read_text("utf-8"))
    return schemas


def dataset_schema() -> Schema:
    """Return the schema of ``dataset.yaml``."""
    key_schemas = load_key_schemas()
    of_dataset = {**key_schemas["dataset"], **key_schemas["shared"]}
    properties = {key: of_dataset[key] for key in DATASET_KEYS}
    properties["kind"] = {**properties["kind"], "enum": list(KINDS)}
    by_kind = [_rules_of_kind(kind, properties, key_schemas) for kind in KINDS.values()]
    return {
        "$schema": DIALECT,
        "title": "A data set of qagate",
        "type": "object",
        "required": ["kind", "languages"],
        "properties": properties,
        "additionalProperties": False,
        "allOf": by_kind,
        "$defs": _definitions(),
    }


def gates_schema() -> Schema:
    """Return the schema of a gates file."""
    ranges: dict[str, Range] = {}
    for kind in KINDS.values():
        ranges.update(kind.ranges())
    sample = load_key_schemas()["dataset"][SAMPLE]
    dataset = {
        "type": "object",
        "properties": {
            DROP: _pooled_change(ranges),
            RISE: _pooled_change(ranges),
            SAMPLE: sample,
        },
        # Every other key is a language.
        "additionalProperties": _gates(ranges),
    }
    return {
        "$schema": DIALECT,
        "title": "Gates of qagate, by data set",
        "type": "object",
        "properties": {REPLACE: {"const": "all", "description": "No other gate stays"}},
        "additionalProperties": dataset,
        "$defs": _definitions(),
    }


def models_schema() -> Schema:
    """Return the schema of a models file."""
    of_model = load_key_schemas()["model"]
    providers = [*PROVIDERS, PYTHON]
    model: Schema = {
        "properties": {key: of_model[key] for key in KNOWN},
        "required": ["provider", "model"],
        "additionalProperties": False,
    }
    model["properties"]["provider"] = {**of_model["provider"], "enum": providers}
    service: Schema = {
        "properties": {key: of_model[key] for key in KNOWN_HTTP},
        "required": ["provider", "url", "body", "answer", "version"],
        "additionalProperties": False,
    }
    service["properties"]["provider"] = {**of_model["provider"], "const": HTTP}
    service["properties"]["method"] = {**of_model["method"], "enum": list(METHODS)}
    is_service = {"properties": {"provider": {"const": HTTP}}, "required": ["provider"]}
    return {
        "$schema": DIALECT,
        "title": "Models of qagate, by name",
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "if": is_service,
            "then": service,
            "else": model,
        },
    }


def schema_text(schema: Schema) -> str:
    """Return a schema as the text of a file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def editor_line(file_name: str) -> str:
    """Return the first line of a YAML file whose schema an editor finds beside it."""
    return f"# yaml-language-server: $schema={file_name}"


def _definitions() -> Schema:
    """Return what several keys refer to."""
    names = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    floors = {
        name: {"type": "number", "minimum": lowest, "maximum": highest}
        for name, (lowest, highest) in metric_rules.floor_ranges().items()
    }
    return {
        "names": {"anyOf": names},
        "floors": {
            "type": "object",
            "properties": floors,
            "additionalProperties": False,
        },
        "margin": _margin(),
        "rate": _bar(RATE),
    }


def _rules_of_kind(
    kind: Kind,
    properties: Mapping[str, Schema],
    key_schemas: dict[str, dict[str, Schema]],
) -> Schema:
    """Return what holds for data sets of one kind: their keys, and the metrics of their gates."""
    ranges = dict(kind.ranges())
    foreign = _keys_of_other_kinds(kind)
    at_top: Schema = {key: False for key in properties if key in foreign}
    at_top["gates"] = _gates(ranges)
    for change in (DROP, RISE):
        at_top[change] = _pooled_change(ranges) if change in ranges else False
    language = _language(kind, ranges, foreign, key_schemas)
    at_top["languages"] = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": f"^({LANGUAGE.pattern}|{DEFAULT})$"},
        "properties": {DEFAULT: _default_language(language)},
        "additionalProperties": {**language, "required": ["file"]},
    }
    if not kind.by_rubric:
        at_top["judge"] = False
    return {
        "if": {"properties": {"kind": {"const": str(kind)}}, "required": ["kind"]},
        "then": {"properties": at_top},
    }


def _keys_of_other_kinds(kind: Kind) -> set[str]:
    """Return the keys that only data sets of another kind may have."""
    keys: set[str] = set()
    for other in KINDS.values():
        keys.update(other.keys)
    return keys.difference(kind.keys)


def _language(
    kind: Kind,
    ranges: Mapping[str, Range],
    foreign: Iterable[str],
    key_schemas: dict[str, dict[str, Schema]],
) -> Schema:
    """Return the schema of one language's settings."""
    of_language = {**key_schemas["shared"], **key_schemas["language"]}
    properties: Schema = {key: of_language[key] for key in LANGUAGE_KEYS}
    properties["gates"] = {**of_language["gates"], **_gates(ranges)}
    for key in foreign:
        if key in properties:
            properties[key] = False
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _default_language(language: Schema) -> Schema:
    """Return the schema of ``default``, whose file ``--items`` names and which has no gates."""
    properties = {**language["properties"], "file": False, "gates": False}
    return {**language, "properties": properties}


def _gates(ranges: Mapping[str, Range]) -> Schema:
    """Return the schema of a ``gates`` mapping over metrics with these ranges."""
    properties: Schema = {}
    for name, bounds in ranges.items():
        if name in (DROP, RISE):
            properties[name] = _change(ranges)
        else:
            properties[name] = _RATE if bounds == RATE else _bar(bounds)
    for name in DEEPEVAL_METRICS:
        properties[name] = _RATE
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {OWN_METRIC: _RATE, REPEATED_METRIC: _RATE},
        "additionalProperties": False,
    }


def _bar(bounds: Range) -> Schema:
    """Return the schema of ``{min: …, max: …}``."""
    number = _number(*bounds)
    return {
        "type": "object",
        "properties": {
            "min": number,
            "max": number,
            "evidence": {"enum": list(get_args(EvidenceRule))},
        },
        "anyOf": [{"required": ["min"]}, {"required": ["max"]}],
        "additionalProperties": False,
    }


def _change(ranges: Mapping[str, Range]) -> Schema:
    """Return the schema of ``drop`` or ``rise``: of what passes, or of metrics by name."""
    properties: Schema = dict(_margin()["properties"])
    for name in ranges:
        if name not in (DROP, RISE):
            properties[name] = _MARGIN
    for name in DEEPEVAL_METRICS:
        properties[name] = _MARGIN
    return {
        "type": "object",
        "minProperties": 1,
        "properties": properties,
        "patternProperties": {OWN_METRIC: _MARGIN},
        "additionalProperties": False,
    }


def _pooled_change(ranges: Mapping[str, Range]) -> Schema:
    """Return the schema of a change over all languages of a data set."""
    change = _change(ranges)
    change["properties"] = {**change["properties"], "pool": {"const": "languages"}}
    change["required"] = ["pool"]
    return change


def _margin() -> Schema:
    """Return the schema of one margin, such as ``{max: 0.05}``."""
    percentage = {"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$"}
    return {
        "type": "object",
        "properties": {
            "max": {"anyOf": [{"type": "number", "minimum": 0}, percentage]},
            "evidence": {"enum": list(get_args(EvidenceRule))},
            "fail": {"enum": list(thresholds.FAILS)},
            "share": {"type": "number", "minimum": 0.01, "maximum": 1},
        },
        "additionalProperties": False,
    }


def _number(lowest: float, highest: float) -> Schema:
    """Return the schema of a number in a range, whose ends may be infinite."""
    schema: Schema = {"type": "number"}
    if lowest != float("-inf"):
        schema["minimum"] = lowest
    if highest != float("inf"):
        schema["maximum"] = highest
    return schema
