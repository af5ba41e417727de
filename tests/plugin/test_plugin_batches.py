"""pytest with --batch: the same records and gates as a direct run, exit 6 while calls are out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evaluators.__main__ import main
from tests.conftest import Project
from tests.support.batch_server import BatchServer, batch_server
from tests.support.killing import grade
from tests.support.loopback import Answer, Seen, plausible
from tests.support.run_options import options_of

ITEMS = 6
LINE = "calls are still with the provider; run the same command again"
TAKEN = {"seconds", "answer_seconds", "cost", "answer_cost"}
"""What a record says of time and money, which are others in a batch."""


def judged(seen: Seen) -> Answer:
    """Grade by an item's number, as a content model."""
    prompt = seen.prompt
    return plausible(lambda asked, name, schema: grade(prompt) if name == "grade" else "so")(seen)


@contextmanager
def served(project: Project, **given: Any) -> Iterator[BatchServer]:
    """Serve a project of six items with a prompt, a rubric and one gate."""
    project.asked(ITEMS)
    with batch_server(judged, **given) as server:
        yield server


def models(server: BatchServer, wires: str = "openai anthropic") -> tuple[str, ...]:
    """Return the options for model and judge, by their wire formats."""
    urls = {"openai": f"{server.url}/v1", "anthropic": server.url}
    model, judge = wires.split()
    return ("--model", f"{model}:m@{urls[model]}", "--judge", f"{judge}:j@{urls[judge]}")


def plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one[key] for key in one if key not in TAKEN} for one in records]


@pytest.mark.parametrize("wires", ["openai anthropic", "anthropic openai"])
def test_records_and_gates_are_those_of_a_direct_run(project: Project, wires: str) -> None:
    """Answers in one batch, judgements in the next, in both wire formats: the same run."""
    with served(project) as server:
        options = models(server, wires)
        assert project.run_in_process(*options, "--ledger", "direct", "qa").ret == 0
        records, report = project.records(), project.report()
        assert len(server.direct) == 2 * ITEMS
        done = project.run_in_process(*options, "--batch", "qa")
        assert done.ret == 0
        assert [len(batch.lines) for batch in server.batches.values()] == [ITEMS, ITEMS]
        assert server.repeats == 0
        assert len(server.direct) == 2 * ITEMS
    assert plain(project.records()) == plain(records)
    assert shown(project.report()) == shown(report)


def shown(report: dict[str, Any]) -> str:
    del report["run"], report["records"]
    for slice_ in report["slices"]:
        slice_["measures"].pop("seconds_p50", None)
        slice_["measures"].pop("seconds_p95", None)
    return json.dumps(report, sort_keys=True)


def test_a_run_that_does_not_wait_ends_with_6_and_goes_on(project: Project) -> None:
    """Each run takes the next step: the answers are sent, read, judged, read; nothing twice."""
    with served(project, looks=2) as server:
        options = (*models(server), "--batch", "--batch-wait", "0", "qa")
        first = project.run_in_process(*options)
        assert first.ret == 6
        assert first.outlines[-1].endswith(f"; {ITEMS} {LINE}")
        codes = [project.run_in_process(*options).ret for _ in range(4)]
        assert codes[-1] == 0
        assert set(codes[:-1]) <= {0, 6}
        assert [len(batch.lines) for batch in server.batches.values()] == [ITEMS, ITEMS]
        assert server.repeats == 0
        assert server.direct == []


PRICED = """
answerer: {{provider: openai, model: m, base_url: "{0}/v1", {1}}}
judge: {{provider: anthropic, model: j, base_url: "{0}", {1}}}
"""


def test_a_limit_of_the_cost_cuts_one_wave(project: Project) -> None:
    """Two batches at half the price; the rest is MISSING, and one line says what it needs."""
    priced = "parameters: {max_tokens: 10}, prices: {input: 0, output: 10000}"
    with served(project) as server:
        project.write("models.yaml", PRICED.format(server.url, priced))
        words = ("--model=answerer", "--judge=judge", "--models=models.yaml", "--batch", "qa")
        done = project.run_in_process(*words, "--max-cost=0.22")
        assert [len(batch.lines) for batch in server.batches.values()] == [4, 2]
        assert project.outcomes() == {"passed": 2, "missing": 4}
        assert done.ret == 6
        why = "4 items ungraded: budget: --max-cost $0.22 has no room for 4 calls: with them the "
        assert f"{why}batches could cost $0.40; give --max-cost 0.40, or a" in project.notes()
        assert project.report()["run"]["spent"] == pytest.approx(6 * 5 * 0.01 / 2)
        assert project.run_in_process(*words, "--max-cost=0.40").ret == 0
        assert [len(batch.lines) for batch in server.batches.values()] == [4, 2, 2, 2, 2]
        assert server.repeats == 0


def test_a_refused_batch_is_said_in_one_line(project: Project) -> None:
    """Exit 4 with the provider's words; calls that are out are exit 6, also without gates."""
    said = {"error": {"message": "m has no batches", "type": "invalid_request_error"}}

    def step(name: str, seen: Seen) -> Answer | None:
        return Answer(status=400, body=said) if name == "create" else None

    with served(project, step=step) as server:
        done = project.run_in_process(*models(server), "--batch", "qa")
        assert done.ret == 4
        for told in ("provider took no batch", "m has no batches", "leave --batch out to ask"):
            assert told in done.outlines[-1]
        assert server.submitted == {}
    with served(project, looks=9) as server:
        options = (*models(server), "--batch", "--batch-wait", "0", "--gates", "off", "qa")
        done = project.run_in_process(*options)
        assert (done.ret, done.outlines[-1]) == (6, f"gates off: exit 6; {ITEMS} {LINE}")


def test_ledger_batches_and_cancel(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """What is out is named with its calls; what is given up is read as far as it was done."""

    def listed(*words: str) -> str:
        main(["ledger", "batches", *words])
        told = capsys.readouterr()
        return told.out + told.err

    with served(project, looks=9) as server:
        options = (*models(server), "--batch", "--batch-wait", "0", "qa")
        assert project.run_in_process(*options).ret == 6
        told = listed()
        for said in ("batch_1", "with the provider", f"{ITEMS} calls not back yet"):
            assert said in told
        assert "batch_1 is cancelled" in listed("--cancel", "batch_1")
        assert server.batches["batch_1"].cancelled
        server.looks = 1
        assert "no such batch is known" in listed("--cancel", "batch_7")
        assert project.run_in_process(*models(server), "--batch", "qa").ret == 0
        assert listed().count(" read") == 2
        assert "open any more" in listed("--cancel", "batch_1")
        assert server.repeats == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400)],
)
def test_times_are_read_with_their_unit(text: str, seconds: float) -> None:
    """Seconds without one."""
    assert options_of("--batch", "--batch-wait", text).batch_wait == seconds
