"""What is said of an option that is mistyped, or given twice."""

import argparse
from collections.abc import Collection
from difflib import get_close_matches

import pytest

_ELSEWHERE = {"--reruns": "--repeats", "--count": "--repeats", "--lang": "--languages"}
"""Options of other tools, or of a guess, with ours that do what is likely to be wanted."""


class Once(argparse.Action):
    """Takes one value; a second one is refused, as only the last of them would count."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        """Keep the value; an error of argparse where another one was given before."""
        if getattr(namespace, self.dest) not in (None, values):
            msg = f"given twice, the second time as {values!r}; a run takes one, so run twice"
            raise argparse.ArgumentError(self, msg)
        setattr(namespace, self.dest, values)


def hint(
    parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager, names: Collection[str]
) -> None:
    """Let a usage error of pytest say which of our options, ``names``, may have been meant.

    pytest shows what it is given here only beside such an error.
    """
    config = pluginmanager.get_plugin("pytestconfig")
    given = config.invocation_params.args if isinstance(config, pytest.Config) else ()
    words = [str(argument).partition("=")[0] for argument in given]
    odd = [word for word in words if word.startswith("--") and word not in names]
    near = (get_close_matches(_ELSEWHERE.get(word, word), names, n=1, cutoff=0.7) for word in odd)
    if found := dict.fromkeys(name for close in near for name in close):
        parser.extra_info["did you mean"] = ", ".join(found)
