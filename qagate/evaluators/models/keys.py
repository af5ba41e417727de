"""Which API key goes to which server.

Keys come from the environment, or from ``.env`` in the working folder. A provider's own
variable, such as OPENAI_API_KEY, is read for the provider's own host alone: whoever writes
another URL into a SPEC gets no key by it. Any other server needs a variable of its own, named
by ``--key-env`` or in a models file. A server of this machine may do without a key.
"""

import os
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from qagate.evaluators.core import FatalError, UsageError
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.models.urls import normalise_url
from qagate.evaluators.reading import read_text
from qagate.evaluators.text import PLACEHOLDER, Key, mask

KEY_ENV = (
    "the environment variable with the key of the server at URL; a provider's own variable is "
    "read for the provider's own host only"
)
"""The help of ``--key-env``."""
ENV_FILE = Path(".env")
"""In the working folder: keys that the environment does not have."""
NO_NAMES: Mapping[str, str] = MappingProxyType({})
KEY_FORM = r"[!-~]+"
HEADER_FORM = r"[!-~]+(?: [!-~]+)*"
"""A scheme such as Bearer may stand before the key."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of an environment variable."""


def read_key_names(texts: Sequence[str]) -> Mapping[str, str]:
    """Return the variables that ``--key-env URL=NAME`` names, by URL, or raise UsageError."""
    names = {}
    for text in texts:
        url, equals, name = text.rpartition("=")
        if not equals or not VARIABLE.fullmatch(name):
            # The name is not shown: some write the key itself there.
            raise UsageError(
                "--key-env: URL=NAME is needed, with the name of an environment variable that "
                f"holds the key; got {mask(url) or 'no URL'} and a name that is not shown"
            )
        names[normalise_url(url)] = name
    return names


def variables_of(spec: Spec, names: Mapping[str, str] = NO_NAMES) -> tuple[str, ...]:
    """Return the variables of the environment in which ``require_key`` may look for a key."""
    variables = [spec.api_key_env, *spec.headers.values(), *names.values()]
    return tuple(dict.fromkeys(name for name in variables if name))


def require_key(spec: Spec, names: Mapping[str, str] = NO_NAMES) -> Key:
    """Return a model's key; a placeholder for a server of this machine that has none.

    Of ``names``, variables by URL, the longest URL that the model's begins with wins over the
    model's own variable. A model with ``headers`` needs all their variables; its Key holds a
    line for each. Raises UsageError, without the value, for a key that is not named, not set, or
    that no header can carry. No traceback can show the value.
    """
    if spec.headers:
        keys = [
            _read_key(spec, variable, HEADER_FORM) for variable in spec.headers.values()
        ]
        return Key("\n".join(key.reveal() for key in keys))
    if spec.http and not spec.api_key_env:
        return Key(PLACEHOLDER)
    urls = [url for url in names if f"{spec.base_url}/".startswith(f"{url}/")]
    if urls:
        return _read_key(spec, names[max(urls, key=len)], KEY_FORM)
    if spec.is_loopback and read_variable(spec.api_key_env).is_empty:
        return Key(PLACEHOLDER)
    if not spec.api_key_env:
        raise UsageError(
            f"{spec.text}: no key is named for {spec.base_url}, and {spec.adapter.api_key_env} "
            f"goes to {spec.adapter.base_url} only; name the variable that holds its key: "
            f"--key-env {spec.base_url}=NAME, or api_key_env in models.yaml"
        )
    return _read_key(spec, spec.api_key_env, KEY_FORM)


def no_key(spec: Spec) -> FatalError:
    """Return the error of a call without a key."""
    advice = f"set the environment variable {spec.api_key_env}"
    return FatalError("no_key", f"{spec.text}: no API key; {advice}")


def no_key_sent(spec: Spec, key: Key | None) -> str:
    """Return how to name the key of a server that got none; empty where it got one."""
    if key is None or key.reveal() != PLACEHOLDER:
        return ""
    advice = f"if it wants one: --key-env {spec.base_url}=NAME"
    if spec.api_key_env:
        advice = f"set {spec.api_key_env} if it wants one"
    return f"no key was sent to {urlsplit(spec.base_url).netloc}; {advice}"


def _read_key(spec: Spec, variable: str, form: str) -> Key:
    """Return the key in a variable. Raises UsageError if it is not set, or not of this form."""
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
    """Return what the environment, or else ``.env``, has under a name; else an empty key."""
    value = os.environ.get(variable)
    if value is None and variable and ENV_FILE.exists():
        from dotenv import dotenv_values  # noqa: PLC0415  # few have such a file

        text = StringIO(read_text(ENV_FILE))
        value = dotenv_values(stream=text, interpolate=False).get(variable)
    return Key((value or "").strip())
