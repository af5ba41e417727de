"""What a CI system is told besides the report files: a link back to it, and annotations."""

from collections.abc import Iterator, Mapping

from reports.render.console import annotations
from reports.report import Report

GITHUB = "GITHUB_ACTIONS"
_GITHUB_RUN = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
_GITLAB_JOB = "CI_JOB_URL"


def link(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``link``: the address of the CI run that keeps the report; empty outside CI."""
    server, repository, run = (environment.get(name, "") for name in _GITHUB_RUN)
    if server and repository and run:
        return {"link": f"{server}/{repository}/actions/runs/{run}"}
    job = environment.get(_GITLAB_JOB, "")
    return {"link": job} if job else {}


def lines(report: Report, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands that annotate a GitHub run; nothing elsewhere."""
    if environment.get(GITHUB) == "true":
        yield from annotations(report)
