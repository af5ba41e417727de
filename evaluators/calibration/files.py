"""Writing figures as JSON."""

import json
from collections.abc import Mapping
from pathlib import Path

from evaluators.core import QAError, UsageError


def check_target(path: Path) -> None:
    """Raise UsageError where no file could be written, before anything is paid for."""
    if not path.parent.is_dir() or path.is_dir():
        msg = f"--json {path}: its folder does not exist, or it is a folder itself"
        raise UsageError(msg)


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a value as JSON. Raises QAError where that fails."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{path}: cannot be written ({error.strerror}); choose another --json"
        raise QAError(msg) from None
