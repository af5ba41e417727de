"""A real small model behind llama.cpp's server: every kind of data set over its replies.

The fast tests read the replies that it gave when it was asked (``llama_replies.jsonl``). The slow
one asks it anew, where model and server are installed.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import llama
from tests.support.loopback import loopback
from tests.support.projects import MODULE, Project
from tests.support.tables import kept

RECORDED = Path(__file__).with_name("llama_replies.jsonl")
FILES: Mapping[str, str] = kept(__file__, "files")
READ: Mapping[str, list[str | int]] = kept(__file__, "read")
MODEL = ("--models=models.yaml", "--model=small", "--gates=off", "--concurrency=1")
JUDGE = ("--judge=judge", "--allow-self-judge")
RECORD = "QAGATE_RECORD"
"""A variable that makes the slow test record the replies."""


def write_files(project: Project, url: str) -> None:
    """Write the data sets, and a models file for the server at this address."""
    for name, text in FILES.items():
        project.write(name, text.replace("URL", url))
    for folder in sorted((project.path / "qa").iterdir()):
        module = MODULE.format(name=folder.name)
        project.write(f"qa/{folder.name}/test_{folder.name}.py", module)


def readings(project: Project) -> dict[str, list[str | int]]:
    """Return the state and the label of each answer, by the item's key."""
    found = {}
    for record in project.records():
        label = record["rating"] or record["grade"]
        found[record["key"]] = [record["answer_state"], label]
    return found


def test_every_kind_of_data_set_reads_real_replies(project: Project) -> None:
    with loopback(handler=llama.recorded(llama.read_rows(RECORDED))) as server:
        write_files(project, server.url)
        project.run_in_process(*MODEL, *JUDGE, "qa")
    assert readings(project) == READ


def test_a_judge_that_ignores_functions_is_asked_by_schema(project: Project) -> None:
    """llama-server does so where a model's template knows no functions; its grammar helps."""
    with loopback(handler=llama.recorded(llama.read_rows(RECORDED))) as server:
        write_files(project, server.url)
        project.run_in_process(*MODEL, *JUDGE, "qa/advice")
        forms = [llama.form_of(seen) for seen in server.requests]
    assert forms == ["text", "call", "schema"]
    assert "judge: sent with JSON by a schema" in project.notes()


def test_a_verdict_that_is_cut_is_asked_for_once_more_and_is_no_grade(
    project: Project,
) -> None:
    """At temperature 0 a third call would bring the same."""
    with loopback(handler=llama.recorded(llama.read_rows(RECORDED))) as server:
        write_files(project, server.url)
        project.run_in_process(*MODEL, *JUDGE, "qa/facts")
        about_spiders = [seen for seen in server.requests if "spider" in seen.prompt]
    (record,) = (one for one in project.records() if one["id"] == "spider")
    assert (record["outcome"], len(about_spiders)) == ("error", 1 + 2)


def test_real_replies_are_asked_for_once(project: Project) -> None:
    with loopback(handler=llama.recorded(llama.read_rows(RECORDED))) as server:
        write_files(project, server.url)
        project.run_in_process(*MODEL, *JUDGE, "qa")
        sent = server.count
        project.run_in_process(*MODEL, *JUDGE, "qa")
        assert (server.count, readings(project)) == (sent, READ)


def test_the_health_of_real_answers_is_told(project: Project) -> None:
    with loopback(handler=llama.recorded(llama.read_rows(RECORDED))) as server:
        write_files(project, server.url)
        done = project.run_in_process(*MODEL, *JUDGE, "qa/facts")
    told = " ".join(" ".join(done.outlines).split())
    assert "1 of 3 answers of facts:en, 1 of 2 answers of facts:bg were cut at" in told
    assert "1 of 2 answers of facts:bg begin with the prompt's own words" in told


def test_rules_take_no_real_answer_for_right_that_is_wrong(project: Project) -> None:
    """None of these answers names its gold, but for one whose prompt does."""
    with loopback(handler=llama.recorded(llama.read_rows(RECORDED))) as server:
        write_files(project, server.url)
        project.run_in_process(*MODEL, "--judge=lexical", "qa/facts")
    grades = {key: label for key, (_, label) in readings(project).items()}
    assert "CORRECT" not in grades.values()
    assert grades["facts-bg-danube"] == "NOT_ATTEMPTED"


@pytest.mark.slow
def test_a_live_model_behind_llama_cpp(project: Project) -> None:
    """Every item is asked and judged, and the same run again asks nothing."""
    server, model = llama.find_server(), llama.find_model()
    if server is None or model is None:
        pytest.skip(f"to run it: {' ; '.join(llama.INSTALL)}")
    rows: list[llama.Row] = []
    with (
        llama.serving(server, model) as url,
        loopback(handler=llama.Tap(url, rows)) as tap,
    ):
        write_files(project, tap.url)
        project.run_in_process(*MODEL, *JUDGE, "qa")
        assert "missing" not in project.outcomes()
        sent = len(rows)
        project.run_in_process(*MODEL, *JUDGE, "qa")
        assert len(rows) == sent
    assert readings(project).keys() == READ.keys()
    if os.environ.get(RECORD):
        llama.write_rows(RECORDED, rows)
