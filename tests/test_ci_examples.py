"""The recipes for users' CI: no path through their jobs on which an undecided gate is green."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from qagate.reports.plugin.options import read_words
from tests.support.loopback import Answer, Seen, loopback
from tests.support.projects import ROOT

EXAMPLES = ROOT / ".github" / "examples"
OF_TOOLS = ["github-inspect.yml", "github-lm-eval.yml", "github-promptfoo.yml"]
"""Recipes for users of other tools: our action decides, not a command."""
ENDS = ("success", "failure", "cancelled")
OWN = {"full_name": "us/app"}
GITHUB: dict[str, dict[str, Any]] = {
    "push": {"event_name": "push"},
    "queue": {"event_name": "merge_group"},
    "by hand": {"event_name": "workflow_dispatch"},
    "own": {"head": {"repo": OWN}, "user": {"login": "anna"}},
    "fork": {"head": {"repo": {"full_name": "anna/app"}}, "user": {"login": "anna"}},
    "dependabot": {"head": {"repo": OWN}, "user": {"login": "dependabot[bot]"}},
    "fork deleted": {"head": {"repo": None}, "user": {"login": "anna"}},
}
"""Events; those without a name are pull requests."""
MERGE_REQUEST = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_PROJECT_ID": "1"}
GITLAB = {
    "own": {**MERGE_REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "1"},
    "fork, started here": {**MERGE_REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2"},
    "main": {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"},
}


class Loader(yaml.SafeLoader):
    """A loader that knows GitLab's references."""


def reference(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> tuple[str, ...]:
    """Return the keys that lead to what a reference stands for."""
    return tuple(loader.construct_sequence(node))


Loader.add_constructor("!reference", reference)


def load(name: str) -> dict[str, Any]:
    found = yaml.load((EXAMPLES / name).read_text(encoding="utf-8"), Loader)
    return merged(load("gitlab-ci.yml"), found) if "include" in found else dict(found)


def merged(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, the second before the first, as ``extends`` and ``include`` have it."""
    both = {**first, **then}
    deep = [
        k for k in first if isinstance(then.get(k), dict) and isinstance(first[k], dict)
    ]
    return both | {key: merged(first[key], then[key]) for key in deep}


def evaluated(text: str, known: Mapping[str, Any]) -> Any:
    """Return what a condition of GitHub comes to."""

    def find(path: str) -> Any:
        at: Any = known
        for key in path.split("."):
            at = (at or {}).get(key) or ""
        return at

    python = re.sub(r"\b((?:github|needs)\.[\w.-]+)", r"find('\1')", text.strip())
    for ours, theirs in (("&&", " and "), ("||", " or "), ("\n", " ")):
        python = python.replace(ours, theirs)
    names = {"find": find, "always": lambda: True, "fromJSON": json.loads}
    return eval(python, {**names, "contains": lambda several, one: one in several})


def decides(steps: Sequence[Any]) -> bool:
    """Return whether a job runs the command whose exit code is the verdict, by itself.

    Or our action, which ends in that code.
    """
    if any(
        "qagate/qagate@" in step.get("uses", "") for step in steps if "uses" in step
    ):
        return True
    commands = [
        str(step.get("run", "") if isinstance(step, dict) else step) for step in steps
    ]
    deciding = [
        one
        for one in commands
        if "reports merge" in one or ("pytest" in one and "--shard" not in one)
    ]
    assert all(re.search(r"[;&|]|set \+e", one) is None for one in deciding)
    return bool(deciding)


@cache
def exit_code(script: str, **variables: str) -> int:
    return subprocess.run(
        ["bash", "-e", "-c", script], env={**os.environ, **variables}, capture_output=True,
        check=False,
    ).returncode  # fmt: skip


def github_runs(
    jobs: Mapping[str, Any], known: Mapping[str, Any]
) -> Iterator[dict[str, str]]:
    """Yield each way in which a workflow's jobs may end at an event."""
    for ends in product(ENDS, repeat=len(jobs)):
        needs: dict[str, Any] = {}
        for (name, job), end in zip(jobs.items(), ends, strict=True):
            before = [needs[one]["result"] for one in [job.get("needs")] if one]
            condition = job.get("if", "")
            goes = "always()" in condition or set(before) <= {"success"}
            runs = goes and (
                not condition or evaluated(condition, {"needs": needs, **known})
            )
            needs[name] = {"result": end if runs else "skipped"}
        yield {name: one["result"] for name, one in needs.items()}


@pytest.mark.parametrize("event", GITHUB)
@pytest.mark.parametrize("name", ["github-actions.yml", "github-shards.yml", *OF_TOOLS])
def test_githubs_last_job_is_green_only_if_the_gates_passed(
    name: str, event: str
) -> None:
    """For any event and any end of each job; nothing may fail unseen."""
    jobs = load(name)["jobs"]
    assert "continue-on-error" not in (EXAMPLES / name).read_text(encoding="utf-8")
    (decider,) = (one for one, job in jobs.items() if decides(job["steps"]))
    gate = jobs["gate"]
    assert (gate["name"], gate["if"], gate["needs"]) == (
        "Quality gate",
        "always()",
        decider,
    )
    ((variable, value),) = gate["steps"][0]["env"].items()
    given = GITHUB[event]
    if "event_name" not in given:
        given = {"event_name": "pull_request", "event": {"pull_request": given}}
    known = {"github": {"repository": "us/app", **given}}
    greens = 0
    for ended in github_runs(jobs, known):
        needs = {name: {"result": one} for name, one in ended.items()}
        result = evaluated(value.strip("${ }"), {"needs": needs})
        green = exit_code(gate["steps"][0]["run"], **{variable: result}) == 0
        assert green == (ended[decider] == "success"), ended
        greens += green
    assert bool(greens) == (event not in ("fork", "dependabot", "fork deleted"))


def gitlab_jobs(
    pipeline: Mapping[str, Any], variables: Mapping[str, str]
) -> dict[str, Any]:
    """Return the jobs that a pipeline has with these variables, as its rules make them."""
    found = {}
    for name, job in pipeline.items():
        whole = job
        while isinstance(whole, dict) and "extends" in whole:
            rest = {key: value for key, value in whole.items() if key != "extends"}
            whole = merged(pipeline[whole["extends"]], rest)
        if name.startswith(".") or not isinstance(job, dict):
            continue
        rules = [
            pipeline[one[0]][one[1]][0] if isinstance(one, tuple) else one
            for one in whole["rules"]
        ]
        for rule in rules:
            text = re.sub(
                r"\$(\w+)", lambda one: repr(variables.get(one[1], one[1])), rule["if"]
            )
            if eval(text.replace("&&", " and ")):
                found[name] = {
                    **whole,
                    "when": rule.get("when", "on_success"),
                    "variables": {
                        **whole.get("variables", {}),
                        **rule.get("variables", {}),
                    },
                }
                break
    return found


@pytest.mark.parametrize("event", GITLAB)
@pytest.mark.parametrize("name", ["gitlab-ci.yml", "gitlab-shards.yml"])
def test_gitlabs_pipeline_is_green_only_if_the_gates_passed(
    name: str, event: str
) -> None:
    """Every event makes a job that fails or decides, and none that may fail unseen."""
    jobs = gitlab_jobs(load(name), GITLAB[event])
    assert jobs
    for one, job in jobs.items():
        assert "allow_failure" not in job
        assert job["when"] in ("on_success", "always"), one
    deciders = [one for one, job in jobs.items() if decides(job["script"])]
    refused = [one for one, job in jobs.items() if job["script"][-1] == "exit 1"]
    assert len(deciders) + len(refused) == 1
    assert (event == "fork, started here") == bool(refused)
    assert all(exit_code("\n".join(jobs[one]["script"])) == 1 for one in refused)
    assert all("@sha256:" in job["image"] for job in jobs.values())


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "gitlab-shards.yml"])
def test_gitlab_unpacks_one_cache_into_a_folder(name: str) -> None:
    """SQLite would replay a log of one ledger in another."""
    for job in gitlab_jobs(load(name), GITLAB["main"]).values():
        caches = job.get("cache", [])
        unpacked = [cache for cache in caches if cache.get("policy") != "push"]
        assert len(unpacked) == bool(caches)


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "gitlab-shards.yml"])
def test_only_gitlabs_default_branch_saves_what_other_pipelines_find(name: str) -> None:
    for event, saved_as in (("main", "ledger"), ("own", "unread")):
        for job in gitlab_jobs(load(name), GITLAB[event]).values():
            if job.get("cache"):
                assert job["variables"]["QA_SAVED_AS"] == saved_as


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(EXAMPLES.iterdir()) if path.name not in OF_TOOLS],
    ids=lambda path: path.name,
)
def test_the_commands_are_ours(path: Path) -> None:
    """What the recipes give to pytest are options that there are, also for the last shard."""
    text = re.sub(r" \$\w*FRESH", " --fresh 0a1b", path.read_text(encoding="utf-8"))
    (command,) = re.findall(r"^ +pytest (.*\n.*)", text, re.M)
    command = re.sub(r"\$(SHARD|CI_NODE_INDEX|CI_NODE_TOTAL)", "8", command).replace(
        "last-", "a/"
    )
    command = command.replace("openai:", "recorded:").replace(
        "recorded:NEW", "recorded"
    )
    options, others = read_words(
        shlex.split(command.replace("recorded:JUDGE", "lexical")), ROOT
    )
    assert others == ["-n", "8", "cases/"]
    assert options.fresh == "0a1b"
    assert (options.choice.shard is None) == ("shards" not in path.name)


@pytest.mark.parametrize(
    ("own", "asked"), [(130, ("PUT", "/notes/130")), (None, ("POST", "/notes"))]
)
def test_gitlabs_note(tmp_path: Path, own: int | None, asked: tuple[str, str]) -> None:
    """The bot's own note alone is written anew, on any page, and no line of it is obeyed."""
    forged = [
        {"id": n, "author": {"id": 8}, "body": "<!-- qa-summary -->"}
        for n in range(150)
    ]
    notes = [{**one, "author": {"id": 7 if one["id"] == own else 8}} for one in forged]

    def handle(seen: Seen) -> Answer:
        """Show 150 notes page by page to user 7, the bot."""
        found = re.search(r"\bpage=(\d+)", seen.path)
        page = int(found[1]) if found else 0
        said: object = notes[page * 100 - 100 : page * 100] if page else {"id": 7}
        return Answer(
            status=200 if seen.headers["private-token"] == "t" else 401, body=said
        )

    (tmp_path / "reports" / "out").mkdir(parents=True)
    summary = tmp_path / "reports" / "out" / "summary.md"
    summary.write_bytes(b"Fine\n/close\n  /label ~x\r/approve\r\na /b \xff")
    script = load("gitlab-ci.yml")["qa-note"]["script"][0]
    variables = {"CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "2", "QA_BOT_TOKEN": "t"}

    def run() -> "subprocess.CompletedProcess[str]":
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path,
            env={**os.environ, **variables, "PATH": path}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    with loopback(handler=handle) as server:
        variables["CI_API_V4_URL"] = server.url
        done = run()
        assert done.returncode == 0, done.stderr
        last = server.requests[-1]
        path = f"/projects/1/merge_requests/2{asked[1]}"
        assert (last.method, last.path.partition("?")[0]) == (asked[0], path)
        assert last.body["body"].startswith("<!-- qa-summary -->\nFine\n")
        assert not [
            line
            for line in last.body["body"].split("\n")
            if line.lstrip().startswith("/")
        ]
        count = server.count
        summary.unlink()
        summary.symlink_to("/proc/self/environ")
        assert run().returncode == 1
        assert server.count == count
