"""The GitHub workflow of a new data set: a gate on every pull request.

It is the recipe ``.github/examples/github-actions.yml`` with another command; a test holds the two
together.
"""

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PACKAGE = "qagate"
TEMPLATE = Path(__file__).with_name("workflow.yml")
WORKFLOW = Path(".github") / "workflows" / "qa.yml"
BASELINE = "last-release"
"""The name under which a release is promoted."""
_INDENT = " " * 10


def workflow_text(install: str, command: Sequence[str], keys: Sequence[str]) -> str:
    """Return the workflow with the words of its install line, its command and its secrets.

    ``command`` has one line each; the last one ends in what asks anew before a release.
    """
    secrets = [f"{key}: ${{{{ secrets.{key} }}}}" for key in keys]
    text = TEMPLATE.read_text(encoding="utf-8")
    fillings = {
        "<KEYS>": " and ".join(keys) or "no key",
        "<SECRETS>": "".join(f"{line}\n{_INDENT}" for line in secrets),
        "<INSTALL>": install,
        "<COMMAND>": f"\n{_INDENT}".join(command),
    }
    for mark, filling in fillings.items():
        text = text.replace(mark, filling)
    return text


def install_command() -> str:
    """Return the command that installs this version elsewhere."""
    requirement = PACKAGE
    with suppress(PackageNotFoundError):  # code that runs from its folder
        requirement = requirement_of(distribution(PACKAGE))
    return f'pip install --no-compile "{requirement}"'


def requirement_of(installed: Distribution) -> str:
    """Return what is installed as a requirement: from the index, or from its repository.

    What came from a folder or a file may be on no index; then the repository of the package has
    it, at the commit of the folder or else at the tag of the version.
    """
    text = installed.read_text("direct_url.json")  # PEP 610
    if text is None:
        return f"{PACKAGE}=={installed.version}"
    origin = json.loads(text)
    if "vcs_info" in origin:
        return f"{PACKAGE} @ git+{origin['url']}@{origin['vcs_info']['commit_id']}"
    revision = f"v{installed.version}"
    if "dir_info" in origin:
        revision = _commit_of(origin["url"].removeprefix("file://")) or revision
    return f"{PACKAGE} @ git+{_home_page(installed)}@{revision}"


def _commit_of(folder: str) -> str:
    """Return the commit that a checkout is at; empty where it is none."""
    try:
        asked = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git
        return ""
    return asked.stdout.strip()


def _home_page(installed: Distribution) -> str:
    urls = installed.metadata.get_all("Project-URL") or []
    for line in urls:
        label, _, url = line.partition(", ")
        if label == "Homepage":
            return str(url)
    return ""
