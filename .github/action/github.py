"""What the action asks GitHub: the baseline's file, and the comment on a pull request.

It needs the standard library alone. The token goes to GitHub's API and nowhere else: a
download is redirected to a storage of another host, which gets no header of ours.
"""

import json
import os
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LONGEST_COMMENT = 60_000
"""Characters; GitHub takes 65,536."""
NO_VERDICT = (
    "**NO VERDICT**: there was nothing to decide over; the log of the job says why.\n"
)
PAGE = 100
REFUSED = 4
"""The exit code of qagate for what is given wrongly."""


class Refused(Exception):
    """What cannot be fetched, and what to do about it."""


def main(words: Sequence[str]) -> int:
    """Return the exit code of ``baseline GIVEN FOLDER`` or ``comment SUMMARY NAME NUMBER``."""
    try:
        if words[0] == "baseline":
            path = baseline(words[1], Path(words[2]))
            with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
                file.write(f"path={path}\n")
        else:
            comment(Path(words[1]), words[2], int(words[3]))
    except Refused as error:
        sys.stdout.write(f"::error title=qagate::{error}\n")
        return REFUSED
    return 0


def baseline(text: str, folder: Path) -> Path:
    """Return where the baseline is: a path as it is given, or what was fetched to a folder.

    Raises:
        Refused: There is no such artifact or asset, or GitHub does not hand it out.
    """
    kind, _, name = text.partition(":")
    if kind == "artifact" and name:
        return _artifact(name, folder)
    if kind == "release" and name:
        return _release_asset(name, folder)
    return Path(text)


def _artifact(name: str, folder: Path) -> Path:
    """Fetch the newest artifact of a name that a run of the default branch left.

    Another repository's branch may have the same name, so the run's repository counts too;
    and this run's own artifact is no baseline.
    """
    branch = os.environ["DEFAULT_BRANCH"]
    query = urllib.parse.urlencode({"name": name, "per_page": PAGE})
    page = 1
    while True:
        listed = _json("GET", f"{_repository()}/actions/artifacts?{query}&page={page}")
        for artifact in listed["artifacts"]:
            if not artifact["expired"] and _is_of_branch(artifact, branch):
                archive = _sent("GET", artifact["archive_download_url"])
                return _unpacked(archive, folder)
        if len(listed["artifacts"]) < PAGE:
            raise Refused(
                f"no artifact {name!r} of a run of {branch}; run the workflow on {branch} "
                "first, with a step that uploads the result under this name"
            )
        page += 1


def _is_of_branch(artifact: dict[str, Any], branch: str) -> bool:
    run = artifact["workflow_run"]
    return (
        run["head_branch"] == branch
        and run["head_repository_id"] == run["repository_id"]
        and str(run["id"]) != os.environ["GITHUB_RUN_ID"]
    )


def _release_asset(name: str, folder: Path) -> Path:
    release = _json("GET", f"{_repository()}/releases/latest")
    assets = {asset["name"]: asset["url"] for asset in release["assets"]}
    if name not in assets:
        there = ", ".join(sorted(assets)) or "none"
        raise Refused(
            f"the latest release, {release['tag_name']}, has no asset {name!r}; "
            f"its assets: {there}"
        )
    content = _sent("GET", assets[name], accept="application/octet-stream")
    if name.endswith(".zip"):
        return _unpacked(content, folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / Path(name).name
    path.write_bytes(content)
    return path


def _unpacked(archive: bytes, folder: Path) -> Path:
    """Unpack an archive; return its only file, or the folder where it holds several."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = folder.with_suffix(".zip")
    packed.write_bytes(archive)
    with zipfile.ZipFile(packed) as members:
        members.extractall(folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return files[0] if len(files) == 1 else folder


def comment(summary: Path, name: str, number: int) -> None:
    """Write the summary into the pull request's comment of this name, anew or for the first time.

    Without a summary it says so, lest an earlier PASS stands there. A comment that cannot be
    written is a warning: the verdict has to stand all the same.

    Raises:
        Refused: The summary is a link, which could lead to a secret.
    """
    if summary.is_symlink():
        raise Refused(f"{summary} is a link")
    text = NO_VERDICT
    if summary.exists():
        text = summary.read_text(encoding="utf-8", errors="replace")[:LONGEST_COMMENT]
    mark = f"<!-- qagate {name} -->"
    body = {"body": f"{mark}\n{text}"}
    try:
        for earlier in _comments(number):
            of_ours = earlier["user"]["login"] == "github-actions[bot]"
            if of_ours and earlier["body"].startswith(mark):
                _json("PATCH", f"{_repository()}/issues/comments/{earlier['id']}", body)
                return
        _json("POST", f"{_repository()}/issues/{number}/comments", body)
    except Refused as error:
        sys.stdout.write(f"::warning title=qagate::no comment: {error}\n")


def _comments(number: int) -> Iterator[dict[str, Any]]:
    page = 1
    while True:
        path = f"{_repository()}/issues/{number}/comments?per_page={PAGE}&page={page}"
        comments = _json("GET", path)
        yield from comments
        if len(comments) < PAGE:
            return
        page += 1


def _repository() -> str:
    return f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"


def _json(method: str, url: str, fields: dict[str, str] | None = None) -> Any:
    content = None if fields is None else json.dumps(fields).encode()
    return json.loads(_sent(method, url, content))


def _sent(
    method: str,
    url: str,
    content: bytes | None = None,
    accept: str = "application/vnd.github+json",
) -> bytes:
    """Return what GitHub answers. Raises Refused, with the status and never the token."""
    headers = {"Accept": accept, "Content-Type": "application/json"}
    request = urllib.request.Request(url, content, headers, method=method)
    # Headers of this kind do not follow a redirection.
    request.add_unredirected_header("Authorization", f"Bearer {os.environ['TOKEN']}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        advice = {
            403: "; give the job the permission that it lacks",
            404: "; it is not there, or the token may not read it",
        }
        path = urllib.parse.urlsplit(url).path
        raise Refused(
            f"{method} {path}: HTTP {error.code}{advice.get(error.code, '')}"
        ) from None
    except OSError as error:
        path = urllib.parse.urlsplit(url).path
        raise Refused(f"{method} {path}: {error}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
