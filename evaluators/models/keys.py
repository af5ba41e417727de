"""Which key goes to which server: a provider's to its own host, any other only if named."""

import os
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from evaluators.core import UsageError
from evaluators.models.spec import Spec, normalise_url
from evaluators.reading import read_text
from evaluators.secrets import PLACEHOLDER, Key, mask

KEY_ENV = (
    "the environment variable with the key of the server at URL; a provider's own variable is "
    "read for the provider's own host only"
)
MODELS_FILE = "models in addition to evaluators/models.yaml, in the same form; its entries win"
ENV_FILE = Path(".env")  # in the working folder: keys that the environment does not have
NONE: Mapping[str, str] = MappingProxyType({})
KEY_FORM = r"[!-~]+"
HEADER_FORM = r"[!-~]+(?: [!-~]+)*"  # a scheme such as Bearer may precede the key
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_key_names(texts: Sequence[str]) -> Mapping[str, str]:
    """Return the variables that ``--key-env URL=NAME`` names, by base URL.

    Raises UsageError for another form, without showing what may be a key.
    """
    found = {}
    for text in texts:
        url, equals, name = text.rpartition("=")
        if not equals or not VARIABLE.fullmatch(name):
            raise UsageError(
                "--key-env: URL=NAME is needed, with the name of an environment variable that "
                f"holds the key; got {mask(url) or 'no URL'} and a name that is not shown"
            )
        found[normalise_url(url)] = name
    return found


def require_key(spec: Spec, names: Mapping[str, str] = NONE) -> Key:
    """Return a model's key from the environment or ``.env``; a placeholder for this machine.

    ``names`` holds variables by base URL. The longest URL that the model's begins with wins over
    the model's own variable. A model with ``headers`` needs all their variables. Raises UsageError,
    without the value, if no variable is named for another machine, or the variable is unset, empty,
    or holds a character that no HTTP header may carry. The value is never a local variable, so no
    traceback can show it.
    """
    if spec.headers:
        values = (_checked(spec, name, HEADER_FORM).reveal() for name in spec.headers.values())
        return Key("\n".join(values))
    if spec.http and not spec.api_key_env:
        return Key(PLACEHOLDER)
    above = [url for url in names if f"{spec.base_url}/".startswith(f"{url}/")]
    variable = names[max(above, key=len)] if above else spec.api_key_env
    key = read_variable(variable)
    if key.is_empty and spec.is_loopback:
        return Key(PLACEHOLDER)
    if not variable:
        raise UsageError(
            f"{spec.text}: no key is named for {spec.base_url}, and {spec.adapter.api_key_env} "
            f"goes to {spec.adapter.base_url} only; name the variable that holds its key: "
            f"--key-env {spec.base_url}=NAME, or api_key_env in models.yaml"
        )
    return _checked(spec, variable)


def no_key_sent(spec: Spec, key: Key | None) -> str:
    """Return how to name the key of a server that got none; empty where it got one."""
    if key is None or key.reveal() != PLACEHOLDER:  # of a server of this machine
        return ""
    option = f"--key-env {spec.base_url}=NAME"
    return f"no key was sent to {urlsplit(spec.base_url).netloc}; if it wants one: {option}"


def _checked(spec: Spec, variable: str, form: str = KEY_FORM) -> Key:
    """Return the key in a variable. Raises UsageError if no header can hold it."""
    key = read_variable(variable)
    if key.is_empty:
        raise UsageError(
            f"{spec.text}: no API key; set the environment variable {variable}, or note it in .env"
        )
    if not re.fullmatch(form, key.reveal()):
        raise UsageError(
            f"{variable}: the key holds a space, a line break or a non-ASCII character; "
            "set it again (its value is not shown)"
        )
    return key


def read_variable(variable: str) -> Key:
    """Return what the environment, or else ``.env``, has under a name; an empty key for nothing.

    ``.env`` is not added to the environment, and a ``$`` in a key is taken as it is. Raises
    UsageError if the file cannot be read.
    """
    value = os.environ.get(variable)
    if value is None and variable and ENV_FILE.exists():
        from dotenv import dotenv_values  # noqa: PLC0415  # few have such a file

        value = dotenv_values(stream=StringIO(read_text(ENV_FILE)), interpolate=False).get(variable)
    return Key((value or "").strip())
