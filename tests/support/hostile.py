"""Texts that attack whatever shows them, and where more of their kind may be found."""

from pathlib import Path

import pytest

KIT = Path(__file__).parents[3] / "shared" / "robustness"

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<!--<script>",
    "</script></style></title></textarea><img src=x onerror=\"document.title='owned'\">",
    '" onmouseover="document.title=1" x="',
    "]]><testcase name='owned' classname='forged'/>&unknown;",
    "a | b | c\n|---|---|---|\n# heading\n<!-- qa-report -->",
    "@everyone Fixes #1 ![x](https://x.invalid/p.png) ``` ``` `",
    '=HYPERLINK("http://x.invalid","x")',
    "＝1+2",
    "\t=1+2",
    "-1+1",
    "\u202enrutaS \u200b\u2066\ufeff\U000e0041",
    "nul \x00, escape \x1b[2K, C1 \x9b, return \r, surrogate \ud83d, line \u2028.",
    "Dalí\n::warning::owned\n##vso[task.complete]owned",
    "..\\..\\owned/../../etc",
    "my key is sk-test-0a1b2c3d4e5f6071 and Bearer 0a1B2c3D4e5F6071",
    "{{ 7 * 7 }} {% raw %} {answer} %s",
    "!!python/name:os.system",
    "long " * 4000,
    "",
    " \n ",
)


def needs_kit() -> Path:
    """Return the folder of the robustness examples, or skip where they are not at hand."""
    if not (KIT / "kit.py").is_file():
        pytest.skip("the robustness examples are not here")
    return KIT
