"""The GitHub Action: its shell, as a runner runs it, and what it asks GitHub."""

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.loopback import Answer, Loopback, Seen, loopback
from tests.support.projects import ROOT
from tests.support.reviewing import as_csv
from tests.test_ci_examples import EXAMPLES, GITHUB, OF_TOOLS, evaluated, load

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: Mapping[str, dict[str, Any]] = {
    step["name"]: step for step in ACTION["runs"]["steps"]
}
RECORDED = ROOT / "tests" / "extras" / "decide" / "recorded"
MARK = "<!-- qagate qagate-report -->"


def run_step(name: str, runner: Path, **variables: str) -> tuple[int, str]:
    """Return the exit code of a step's shell, and what it printed.

    The environment that the first step makes is this test's own Python.
    """
    program = runner / "qagate" / "bin" / "python"
    if not program.exists():
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        program.chmod(0o755)
    process = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]],
        cwd=runner,
        env={
            "PATH": os.environ["PATH"],
            "RUNNER_TEMP": str(runner),
            "GITHUB_OUTPUT": str(runner / "output"),
            "GITHUB_REPOSITORY": "us/app",
            "GITHUB_RUN_ID": "7",
            "ACTION": str(ROOT),
            "PYTHONPATH": str(ROOT),
            "CI": "true",
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def outputs(runner: Path) -> dict[str, str]:
    lines = (runner / "output").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def scores(path: Path, right: int, *, step: int = 1) -> Path:
    """Write a table of 400 items, of which so many are right; from the last with ``step`` -1."""
    rows = [{"id": f"q{n}", "score": int(n < right)} for n in range(400)]
    return as_csv(path, rows[::step])


@pytest.mark.parametrize(("right", "code"), [(360, 0), (200, 1), (343, 6)])
def test_the_last_step_ends_in_the_code_of_decide(
    right: int, code: int, tmp_path: Path
) -> None:
    """The step that decides does not end the job: report and comment come between."""
    new = scores(tmp_path / "new.csv", right)
    # In another order: one file against itself decides nothing.
    old = scores(tmp_path / "old.csv", 360, step=-1)
    given = {"NEW": str(new), "BASELINE": str(old), "MARGIN": "", "OPTIONS": ""}
    status, printed = run_step("Decide", tmp_path, **given)
    assert status == 0, printed
    assert outputs(tmp_path)["code"] == str(code)
    assert (Path(outputs(tmp_path)["report"]) / "summary.md").exists()
    last = list(STEPS)[-1]
    assert run_step(last, tmp_path, CODE=outputs(tmp_path)["code"])[0] == code


def test_no_verdict_is_no_success(tmp_path: Path) -> None:
    """Of a file that is not there; and where no step decided at all."""
    given = {"NEW": "none", "BASELINE": "none", "MARGIN": "", "OPTIONS": ""}
    run_step("Decide", tmp_path, **given)
    assert outputs(tmp_path)["code"] == "4"
    assert run_step(list(STEPS)[-1], tmp_path, CODE="")[0] != 0


def test_each_line_of_the_options_is_one_word(tmp_path: Path) -> None:
    """Spaces and signs of the shell in it are its own."""
    rows = [{"id": f"q{n}", "my $score": 1, "lang": "pl"} for n in range(400)]
    given = {
        "NEW": str(as_csv(tmp_path / "new.csv", rows)),
        "BASELINE": str(as_csv(tmp_path / "old.csv", rows)),
        "MARGIN": "0.1",
        "OPTIONS": "--column=score=my $score\n\n  --slice=lang\n",
    }
    _, printed = run_step("Decide", tmp_path, **given)
    assert re.search(r"table:pl +drop", printed)


def artifact(number: int, **run: object) -> dict[str, Any]:
    return {
        "id": number,
        "expired": False,
        "archive_download_url": f"{{url}}/artifacts/{number}/zip",
        "workflow_run": {
            "id": 1,
            "head_branch": "main",
            "repository_id": 5,
            "head_repository_id": 5,
            **run,
        },
    }


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as members:
        for name, text in files.items():
            members.writestr(name, text)
    return buffer.getvalue()


def fetched(server: Loopback, runner: Path, given: str) -> tuple[int, str]:
    """Return what the step that fetches the baseline says; the server is GitHub's API."""
    variables = {
        "BASELINE": given,
        "GITHUB_API_URL": server.url,
        "DEFAULT_BRANCH": "main",
        "TOKEN": "secret-token",
    }
    code, printed = run_step("Fetch the baseline", runner, **variables)
    assert "secret-token" not in printed
    return code, printed


def test_a_path_is_asked_nobody(tmp_path: Path) -> None:
    with loopback() as server:
        assert fetched(server, tmp_path, "evals/old.json") == (0, "")
        assert server.count == 0
    assert outputs(tmp_path)["path"] == "evals/old.json"


def test_the_baseline_is_the_newest_artifact_of_the_default_branch(
    tmp_path: Path,
) -> None:
    """Not of a fork's branch of that name, of this run, of a pull request, or one that is gone.

    The storage that it is redirected to does not see the token.
    """
    others = [
        artifact(1, head_repository_id=6),
        artifact(2, id=7),
        artifact(3, head_branch="mine"),
        {**artifact(4), "expired": True},
    ]
    listed = [*others * 25, artifact(8), artifact(9)]
    content = archive(**{"results.json": "{}"})

    def handle(seen: Seen) -> Answer:
        if seen.path.endswith("/artifacts/8/zip"):
            headers = {"location": f"{storage.url}/blob"}
            return Answer(status=302, headers=headers)
        page = int(re.findall(r"\bpage=(\d+)", seen.path)[0])
        shown = listed[page * 100 - 100 : page * 100]
        text = json.dumps({"artifacts": shown}).replace("{url}", server.url)
        return Answer(body=text)

    with (
        loopback(handler=lambda seen: Answer(body=content)) as storage,
        loopback(handler=handle) as server,
    ):
        code, printed = fetched(server, tmp_path, "artifact:qa-baseline")
        assert code == 0, printed
        assert all(
            "secret-token" in x.headers["authorization"] for x in server.requests
        )
        assert "authorization" not in storage.requests[0].headers
    assert Path(outputs(tmp_path)["path"]).read_text() == "{}"


def test_without_an_artifact_there_is_no_baseline(tmp_path: Path) -> None:
    with loopback(handler=lambda seen: Answer(body={"artifacts": []})) as server:
        code, printed = fetched(server, tmp_path, "artifact:qa-baseline")
    assert code == 4
    assert printed.startswith("::error title=qagate::no artifact 'qa-baseline'")
    assert "run the workflow on main first" in printed


@pytest.mark.parametrize("name", ["old.csv", "old.zip"])
def test_the_baseline_is_an_asset_of_the_latest_release(
    name: str, tmp_path: Path
) -> None:
    """An archive of several files becomes a folder."""
    files = {"a.csv": "id,score\n", "b.csv": "id,score\n"}
    content = archive(**files) if name == "old.zip" else b"id,score\n"

    def handle(seen: Seen) -> Answer:
        if seen.path.endswith("/releases/latest"):
            asset = {"name": name, "url": f"{server.url}/assets/1"}
            return Answer(body={"tag_name": "v1", "assets": [asset]})
        assert seen.headers["accept"] == "application/octet-stream"
        return Answer(body=content)

    with loopback(handler=handle) as server:
        assert fetched(server, tmp_path, f"release:{name}")[0] == 0
        code, printed = fetched(server, tmp_path / "qagate", "release:none.csv")
        assert code == 4
        assert f"v1, has no asset 'none.csv'; its assets: {name}" in printed
    path = Path(outputs(tmp_path)["path"])
    if name == "old.zip":
        assert sorted(member.name for member in path.iterdir()) == sorted(files)
    else:
        assert path.read_bytes() == content


def commented(
    server: Loopback, runner: Path, summary: str = "GATES PASS\n" + "x" * 70_000
) -> tuple[int, str]:
    """Return what the step that comments says; without a text there is no summary."""
    report = runner / "report"
    report.mkdir(exist_ok=True)
    path = report / "summary.md"
    if summary and not path.is_symlink():
        path.write_text(summary)
    variables = {
        "NAME": "qagate-report",
        "NUMBER": "2",
        "REPORT": str(report),
        "GITHUB_API_URL": server.url,
        "TOKEN": "secret-token",
    }
    return run_step("Comment with the summary", runner, **variables)


@pytest.mark.parametrize(
    ("own", "asked"),
    [(130, ("PATCH", "/issues/comments/130")), (None, ("POST", "/issues/2/comments"))],
)
def test_the_actions_own_comment_is_written_anew(
    own: int | None, asked: tuple[str, str], tmp_path: Path
) -> None:
    """On any page; a comment of somebody else that begins alike is left alone."""
    comments = [
        {
            "id": number,
            "user": {"login": "github-actions[bot]" if number == own else "eve"},
            "body": f"{MARK}\nGATES PASS",
        }
        for number in range(150)
    ]

    def handle(seen: Seen) -> Answer:
        if seen.method != "GET":
            return Answer(body={})
        page = int(re.findall(r"\bpage=(\d+)", seen.path)[0])
        return Answer(body=json.dumps(comments[page * 100 - 100 : page * 100]))

    with loopback(handler=handle) as server:
        assert commented(server, tmp_path) == (0, "")
        last = server.requests[-1]
    assert (last.method, last.path) == (asked[0], f"/repos/us/app{asked[1]}")
    assert last.body["body"].startswith(f"{MARK}\nGATES PASS\n")
    assert len(last.body["body"]) < 65_536


def test_a_comment_says_that_there_is_no_verdict(tmp_path: Path) -> None:
    """Where no report was written, an earlier PASS must not stand."""
    step = STEPS["Comment with the summary"]
    assert step["if"].startswith("always()")
    answers = [Answer(body="[]"), Answer(body={})]
    with loopback(*answers) as server:
        assert commented(server, tmp_path, summary="")[0] == 0
        assert "NO VERDICT" in server.requests[-1].body["body"]


def test_a_comment_that_is_forbidden_leaves_the_verdict(tmp_path: Path) -> None:
    """The token of a fork's pull request may not write."""
    with loopback(handler=lambda seen: Answer(status=403)) as server:
        code, printed = commented(server, tmp_path)
    assert code == 0
    assert printed.startswith("::warning title=qagate::no comment: GET /repos/us/app")
    assert "permission" in printed
    assert "secret-token" not in printed


def test_a_summary_that_is_a_link_is_not_posted(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "summary.md").symlink_to("/proc/self/environ")
    with loopback() as server:
        assert commented(server, tmp_path)[0] == 4
        assert server.count == 0


RECIPES = {
    "github-promptfoo.yml": "promptfoo/{side}/results.json.gz",
    "github-inspect.yml": "inspect_ai/{side}",
    "github-lm-eval.yml": "lm_eval/{side}",
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_options_of_a_recipe_fit_its_tools_results(
    name: str, tmp_path: Path
) -> None:
    """So few items decide nothing, but every slice gets a gate on the score that it names."""
    (step,) = (
        step
        for step in load(name)["jobs"]["decide"]["steps"]
        if "qagate/qagate" in step.get("uses", "")
    )
    given = step["with"]
    assert set(given) <= set(ACTION["inputs"])
    result = RECORDED / RECIPES[name]
    variables = {
        "NEW": str(result).format(side="new"),
        "BASELINE": str(result).format(side="old"),
        "MARGIN": given["margin"],
        "OPTIONS": given["options"],
    }
    _, printed = run_step("Decide", tmp_path, **variables)
    assert outputs(tmp_path)["code"] == "6", printed
    assert re.search(r":pl +drop", printed)


@pytest.mark.parametrize("branch", ["main", "mine"])
@pytest.mark.parametrize("event", GITHUB)
def test_promptfoos_recipe_decides_but_for_a_first_baseline(
    event: str, branch: str
) -> None:
    """A start by hand on another branch cannot turn its check green."""
    steps = load("github-promptfoo.yml")["jobs"]["decide"]["steps"]
    (condition,) = (
        step["if"] for step in steps if "qagate/qagate" in step.get("uses", "")
    )
    known = {
        "event_name": "pull_request",
        **GITHUB[event],
        "ref": f"refs/heads/{branch}",
    }
    decides = evaluated(condition, {"github": known})
    assert bool(decides) == ((event, branch) != ("by hand", "main"))


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (100, 0), (1, 1)])
def test_promptfoos_recipe_goes_on_where_tests_failed(
    code: int, ends: int, tmp_path: Path
) -> None:
    """promptfoo ends in 100 where answers were wrong, which is for the gate to judge."""
    program = tmp_path / "npx"
    program.write_text(f"#!/bin/sh\nexit {code}\n")
    program.chmod(0o755)
    steps = load("github-promptfoo.yml")["jobs"]["evaluate"]["steps"]
    (script,) = (step["run"] for step in steps if "npx" in step.get("run", ""))
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-e", "-c", script], env={"PATH": path}, check=False)
    assert done.returncode == ends


def test_each_recipe_of_a_tool_is_tried() -> None:
    ours = [
        path.name
        for path in EXAMPLES.iterdir()
        if "qagate/qagate@" in path.read_text(encoding="utf-8")
    ]
    assert sorted(ours) == sorted(RECIPES) == OF_TOOLS
