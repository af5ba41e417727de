"""A second attempt of a CI run can become green, and pays for nothing twice.

The recipes for users' CI are played in bash: each job gets a new checkout, as on a runner, and
what the recipe caches or uploads goes into a store with the rules of its vendor. In the first
attempt a job is cancelled in the middle; then "re-run failed jobs" is played.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import until
from tests.support.loopback import Answer, Loopback, Seen, good, loopback
from tests.support.projects import ROOT, Project, specs
from tests.test_ci_examples import GITLAB, evaluated, gitlab_jobs, load

pytestmark = [pytest.mark.slow, pytest.mark.untraced]

ITEMS = 12
SHARDS = 2
CANCELLED_AFTER = 5
"""So many replies are given in the first attempt; then the server hangs."""


@dataclass(slots=True, kw_only=True)
class Provider:
    """What the server has replied to, and how often it still replies at once."""

    replies_left: float = float("inf")
    replied: list[str] = field(default_factory=list)

    def handle(self, seen: Seen) -> Answer:
        if self.replies_left <= 0:
            return Answer(action="hang")
        self.replies_left -= 1
        self.replied.append(str(seen.body))
        return good(seen)


@dataclass(slots=True, kw_only=True)
class Ci:
    """One run of a vendor's CI: its jobs' checkouts, caches and artifacts."""

    project: Project
    server: Loopback
    provider: Provider
    folder: Path
    caches: dict[str, Path] = field(default_factory=dict)
    """By key, the newest last."""
    artifacts: dict[str, Path] = field(default_factory=dict)
    count: int = 0
    output: str = ""
    """What all scripts wrote, for who reads a failure."""

    @property
    def runner(self) -> Path:
        return self.folder / "runner"

    def check_out(self) -> None:
        """Give the next job a checkout without anything of an earlier job."""
        shutil.rmtree(self.runner, ignore_errors=True)
        shutil.copytree(self.project.path, self.runner)

    def keep(self, path: Path) -> Path:
        """Return a copy that no later job changes."""
        self.count += 1
        copy = self.folder / f"kept-{self.count}"
        shutil.copytree(path, copy)
        return copy

    def run(self, script: str, variables: Mapping[str, str]) -> int:
        """Return the exit code of a script; cancel it once the provider hangs."""
        script = re.sub(r"^pip install .*$", "", script, flags=re.M).strip()
        if not script:
            return 0
        script = script.replace("-n 8 cases/", "--concurrency 2 qa")
        for words in ("--baseline=last-release", "--max-cost 400"):
            script = script.replace(words, "")
        script = script.replace("/8", f"/{SHARDS}")
        models = " ".join(specs(self.server.url))
        script = script.replace("--model openai:NEW --judge openai:JUDGE", models)
        script = script.replace("python -m reports", f"{sys.executable} -m qagate")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        process = subprocess.Popen(
            ["bash", "-e", "-c", script],
            cwd=self.runner,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        if self.provider.replies_left < ITEMS:
            seen = self.server.count
            until(lambda: self.server.count >= seen + CANCELLED_AFTER + 1)
            os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
        self.output += output
        return process.returncode


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def ci(
    project: Project, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ci]:
    project.asked(ITEMS)
    with loopback(handler=provider.handle) as server:
        folder = tmp_path_factory.mktemp("ci")
        yield Ci(project=project, server=server, provider=provider, folder=folder)


# GitHub


def expanded(text: str, known: Mapping[str, Any]) -> str:
    """Return a text with GitHub's expressions worked out; a secret is any word."""

    def value(match: re.Match[str]) -> str:
        expression = match[1].strip()
        if expression.startswith("secrets."):
            return "k"
        if expression == "matrix.shard":
            return str(known["matrix"])
        return str(evaluated(expression, known))

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def play_github_job(ci: Ci, job: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Play the steps of a job; return whether it succeeded."""
    ci.check_out()
    succeeds = True
    for step in job["steps"]:
        if not succeeds and "always()" not in step.get("if", ""):
            continue
        if not play_github_step(ci, step, known):
            succeeds = False
    return succeeds


def play_github_step(ci: Ci, step: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    action = step.get("uses", "").partition("@")[0]
    given = {
        name: expanded(value, known) if isinstance(value, str) else value
        for name, value in step.get("with", {}).items()
    }
    match action:
        case "actions/cache/restore":
            restore(ci, [given["key"], *given["restore-keys"].split()])
        case "actions/cache/save":
            if (ci.runner / given["path"]).exists():
                ci.caches.setdefault(given["key"], ci.keep(ci.runner / given["path"]))
        case "actions/upload-artifact":
            return upload(ci, given)
        case "actions/download-artifact":
            prefix = given["pattern"].rstrip("*")
            for name, kept in ci.artifacts.items():
                if name.startswith(prefix):
                    shutil.copytree(kept, ci.runner / given["path"] / name)
    if "run" not in step:
        return True
    variables = {
        name: expanded(str(value), known) for name, value in step.get("env", {}).items()
    }
    return ci.run(step["run"], {**variables, **known["variables"]}) == 0


def restore(ci: Ci, prefixes: list[str]) -> None:
    """Take the newest cache whose key begins with the first prefix that any has."""
    for prefix in prefixes:
        for key in reversed(ci.caches):
            if key.startswith(prefix):
                shutil.copytree(ci.caches[key], ci.runner / ".qa")
                return


def upload(ci: Ci, given: Mapping[str, Any]) -> bool:
    """Keep an artifact; a name can be taken once, unless the step overwrites it."""
    name = given["name"]
    if name in ci.artifacts and not given.get("overwrite"):
        return False
    if (ci.runner / given["path"]).exists():
        ci.artifacts[name] = ci.keep(ci.runner / given["path"])
    return True


def github(event: str, attempt: int, shard: int = 0) -> dict[str, Any]:
    """Return what GitHub tells a job."""
    return {
        "github": {"event_name": event, "run_id": "77", "run_attempt": str(attempt)},
        "matrix": shard,
        "variables": {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": str(attempt),
        },
    }


def assert_paid_once(ci: Ci) -> None:
    assert len(ci.provider.replied) == len(set(ci.provider.replied)) == 2 * ITEMS


@pytest.mark.parametrize("event", ["push", "pull_request"])
def test_githubs_second_attempt_becomes_green(ci: Ci, event: str) -> None:
    job = load("github-actions.yml")["jobs"]["qa"]
    ci.provider.replies_left = CANCELLED_AFTER
    assert not play_github_job(ci, job, github(event, 1))
    ci.provider.replies_left = float("inf")
    assert play_github_job(ci, job, github(event, 2))
    assert_paid_once(ci)


@pytest.mark.parametrize("event", ["push", "pull_request"])
def test_githubs_second_attempt_of_a_shard_becomes_green(ci: Ci, event: str) -> None:
    jobs = load("github-shards.yml")["jobs"]
    assert play_github_job(ci, jobs["shard"], github(event, 1, 1))
    ci.provider.replies_left = CANCELLED_AFTER
    assert not play_github_job(ci, jobs["shard"], github(event, 1, 2))
    ci.provider.replies_left = float("inf")
    assert not play_github_job(ci, jobs["merge"], github(event, 1))
    assert play_github_job(ci, jobs["shard"], github(event, 2, 2))
    assert play_github_job(ci, jobs["merge"], github(event, 2))
    assert_paid_once(ci)


def test_the_default_branch_takes_no_ledger_of_a_pull_request(ci: Ci) -> None:
    """Also where both could see each other's caches."""
    job = load("github-actions.yml")["jobs"]["qa"]
    assert play_github_job(ci, job, github("pull_request", 1))
    later = github("push", 1)
    later["github"]["run_id"] = "78"
    before = len(ci.provider.replied)
    assert play_github_job(ci, job, later)
    assert len(ci.provider.replied) == 2 * before


# GitLab


def play_gitlab_job(
    ci: Ci, job: Mapping[str, Any], variables: Mapping[str, str], needs: str = ""
) -> bool:
    """Play a job of GitLab; return whether it succeeded."""
    ci.check_out()
    for name, kept in ci.artifacts.items():
        if needs and name.startswith(needs):
            shutil.copytree(kept, ci.runner, dirs_exist_ok=True)
    known = {**job.get("variables", {}), **variables, "CI": "true", "GITLAB_CI": "true"}

    def filled(text: str) -> str:
        return re.sub(r"\$(\w+)", lambda match: known.get(match[1], ""), text)

    for cache in job["cache"]:
        if cache.get("policy") == "push":
            continue
        for key in [cache["key"], *cache.get("fallback_keys", [])]:
            kept_cache = ci.caches.get(filled(key))
            if kept_cache is not None:
                shutil.copytree(kept_cache, ci.runner / ".qa", dirs_exist_ok=True)
                break
    code = ci.run("\n".join(job["script"]), known)
    for cache in job["cache"]:
        if (ci.runner / ".qa").exists():
            ci.caches[filled(cache["key"])] = ci.keep(ci.runner / ".qa")
    for path in job["artifacts"]["paths"]:
        if (ci.runner / path).exists():
            copy = (
                ci.folder
                / f"artifact-{len(ci.caches)}-{ci.count}-{path.replace('/', '-')}"
            )
            shutil.copytree(ci.runner / path, copy / path)
            name = f"{variables.get('CI_NODE_INDEX', '')}"
            ci.artifacts[f"qa-shard-{name}" if name else "qa"] = copy
    return code == 0


def gitlab(event: str, shard: int = 0) -> dict[str, str]:
    """Return what GitLab tells a job."""
    variables = {**GITLAB[event], "CI_PIPELINE_ID": "77", "CI_JOB_ID": "1"}
    if shard:
        variables |= {"CI_NODE_INDEX": str(shard), "CI_NODE_TOTAL": str(SHARDS)}
    return variables


@pytest.mark.parametrize("event", ["main", "own"])
def test_gitlabs_second_attempt_becomes_green(ci: Ci, event: str) -> None:
    job = gitlab_jobs(load("gitlab-ci.yml"), GITLAB[event])["qa"]
    ci.provider.replies_left = CANCELLED_AFTER
    assert not play_gitlab_job(ci, job, gitlab(event))
    ci.provider.replies_left = float("inf")
    assert play_gitlab_job(ci, job, gitlab(event))
    assert_paid_once(ci)


@pytest.mark.parametrize("event", ["main", "own"])
def test_gitlabs_second_attempt_of_a_shard_becomes_green(ci: Ci, event: str) -> None:
    jobs = gitlab_jobs(load("gitlab-shards.yml"), GITLAB[event])
    assert play_gitlab_job(ci, jobs["qa-shard"], gitlab(event, 1))
    ci.provider.replies_left = CANCELLED_AFTER
    assert not play_gitlab_job(ci, jobs["qa-shard"], gitlab(event, 2))
    ci.provider.replies_left = float("inf")
    assert not play_gitlab_job(ci, jobs["qa"], gitlab(event), needs="qa-shard")
    assert play_gitlab_job(ci, jobs["qa-shard"], gitlab(event, 2))
    assert play_gitlab_job(ci, jobs["qa"], gitlab(event), needs="qa-shard")
    assert_paid_once(ci)
