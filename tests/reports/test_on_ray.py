"""``qagate run --on ray``: shards as tasks of Ray, on a real cluster of two raylets."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import pytest

from evaluators.core import UsageError
from evaluators.ledger.reply_store import Ledger
from reports.commands import on_ray
from tests.support.loopback import Answer, Seen, loopback, plausible
from tests.support.projects import RIGHT, ROOT, WRONG, Project, graded
from tests.support.tables import kept, tabled

ITEMS = 24
NODES = ["first", "second"]
# 10 tokens a reply at 100 USD a million are 0.001 USD.
MODELS = """
{name}: {{provider: openai, model: {name}, base_url: "{url}/v1", prices: {{input: 0, output: 100}},
  parameters: {{max_tokens: 10}}}}
"""
SLOW: str = kept(__file__, "slow")
CARRIED: str = kept(__file__, "carried")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a cluster of two raylets, in folders without the product or any project."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.55'")
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    with chdir(tmp_path_factory.mktemp("first")):
        made = Cluster(initialize_head=True, head_node_args={**head, "node_name": "first"})
    with chdir(tmp_path_factory.mktemp("second")):
        made.add_node(num_cpus=1, node_name="second")
    yield made
    made.shutdown()  # type: ignore[no-untyped-call]


def start(project: Project, *words: str, **variables: str) -> "subprocess.Popen[str]":
    """Start the command in a process that Ray can do with as it likes."""
    program = "import sys; from reports.plugin.qagate import main; sys.exit(main(sys.argv[1:]))"
    plugins = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program, "run", "qa", *plugins, *words],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def records(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [{**json.loads(line), "seconds": 0} for line in lines]


@pytest.mark.slow
def test_it_reports_as_pytest(
    project: Project, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the cluster of RAY_ADDRESS each shard has carried files and code; nothing is left."""
    answers = {"en": [*[RIGHT] * 9, WRONG, "I do not know."], "bg": [RIGHT] * 3}
    bars = {"en": "correct: {min: 0.5}", "bg": "correct: {min: 0.5}"}
    project.dataset("capital", answers, graded(bars))
    project.write(".env", "OPENAI_API_KEY=secret\n")
    project.write("conftest.py", CARRIED)
    made = start(project, "--on", "ray", "--shards=3", RAY_ADDRESS=cluster.address)
    out, err = made.communicate()
    assert made.returncode == 0, out + err
    assert "MB of at most 100, without '.env'" in err
    assert "shard 3 of 3: --concurrency 5" in err.splitlines()
    assert out.splitlines()[-1].startswith("GATES PASS (2 of 2): exit 0")
    assert len([*project.path.glob(".qa/unkept-*")]) == 3
    monkeypatch.chdir(project.path)
    with pytest.raises(UsageError, match="no cluster answers"):
        on_ray.main(["qa", "--on=ray:127.0.0.1:1"])
    assert not [*project.path.glob(".qa/unkept-*")]
    monkeypatch.setenv("HERE", "")
    assert project.run_in_process("qa", "--report-dir=plain").ret == 0
    assert records(project.path / "reports" / "out") == records(project.path / "plain")
    there, plain = (project.path / name for name in ("reports/out", "plain"))
    assert {path.name for path in there.iterdir()} == {path.name for path in plain.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("usd", [None, 0.032])
def test_a_node_that_dies_costs_no_item(project: Project, cluster: Any, usd: float | None) -> None:
    """Its shards run again elsewhere: calls in flight are repeated, --max-cost is still kept."""
    project.asked(ITEMS)
    lost: list[Any] = [cluster.add_node(num_cpus=2, node_name="third")]
    asked: Counter[bytes] = Counter()

    def handle(seen: Seen) -> Answer:
        asked[seen.content] += 1
        if server.count == ITEMS // 2 and lost:
            cluster.remove_node(lost.pop(), allow_graceful=False)
        time.sleep(0.2)
        body = plausible()(seen).body
        assert isinstance(body, dict)
        return Answer(body={**body, "usage": {"prompt_tokens": 50, "completion_tokens": 10}})

    with loopback(handler=handle) as server:
        texts = [MODELS.format(name=name, url=server.url) for name in ("answerer", "judge")]
        project.write("models.yaml", "".join(texts))
        words = ("--models=models.yaml", "--model=answerer", "--judge=judge", "--concurrency=4")
        limit = [f"--max-cost={usd}"] if usd else []
        on = (f"--on=ray:{cluster.address}", "--shards=4")
        made = start(project, *words, *on, *limit, OPENAI_API_KEY="k")
        out, err = made.communicate()
    assert not lost
    told = [line for line in err.splitlines() if "failed on" in line]
    assert told
    for line in told:
        assert re.match(r"--on ray: shard ./4 failed on third: .*; tried on another$", line)
    assert "aylet" not in "".join(set(err.splitlines()).difference(told))
    found = records(project.path / "reports" / "out")
    missing = [one for one in found if one["outcome"] == "missing"]
    assert (len(found), bool(missing)) == (ITEMS, usd is not None)
    assert not [one for one in found if one["outcome"] == "error"]
    assert made.returncode in (0, 1, 6), out + err
    assert server.count - len(asked) <= len(told)  # a call in flight for each shard
    if usd is not None:
        query = "SELECT kind, key, text FROM documents WHERE kind LIKE 'spent %'"
        with Ledger(project.path / ".qa" / "ledger.sqlite3") as ledger:
            notes = [(one[0], one[1]) for one in ledger.store.read(query)]
            spent = [float(ledger.documents(kind)[key]) for kind, key in notes]
        assert len({kind for kind, _ in notes}) == 4
        assert 0.001 * len(asked) <= sum(spent) + 1e-9 <= usd + 2e-9
        assert 0.001 * server.count <= usd + 0.001 * len(told)


@pytest.mark.slow
def test_a_shard_that_fails_is_one_line(project: Project, cluster: Any) -> None:
    """Which one, where and why, once a node; no report at all is exit 4."""
    project.dataset("capital", {"en": [RIGHT]}, "kind: graded\nlanguages: {en: {file: no.csv}}\n")
    made = start(project, f"--on=ray:{cluster.address}", "--shards=1")
    out, err = made.communicate()
    assert made.returncode == 4, out + err
    told = [line for line in err.splitlines() if "failed on" in line]
    assert sorted(line.split("failed on ")[1].split(": ")[0] for line in told) == NODES
    assert all(line.startswith("--on ray: shard 1/1 ") and "no.csv" in line for line in told)
    assert [line.endswith("; tried on another") for line in told] == [True, False]
    assert "Traceback" not in err
    assert not (project.path / "reports").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_ends_ends_the_tasks(project: Project, number: signal.Signals) -> None:
    """Ctrl-C leaves a partial report, kill -9 nothing that the next run has; no shard goes on."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.55'")
    project.dataset("capital", {"en": [RIGHT] * 3}, graded({"en": "correct: {min: 0.5}"}))
    project.write("slow_judge.py", SLOW.format(folder=str(project.path)))
    words = ("--judge=python:slow_judge:Judge", "--on=ray", "--shards=2")
    made = start(project, *words, RAY_ADDRESS="")
    began = project.path / "began"
    while not began.exists() and made.poll() is None:
        time.sleep(0.05)
    made.send_signal(number)
    out, err = made.communicate()
    until = time.monotonic() + 60
    while (left := shards_of(project)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
    if number is signal.SIGINT:
        assert made.returncode == 2, out + err
        assert out.splitlines()[-1].startswith("INTERRUPTED: exit 2; ")
        assert project.report()["complete"] is False
        return
    assert not (project.out / "run.json").exists()
    again = start(project, "--on=ray", "--shards=2", RAY_ADDRESS="")
    out, err = again.communicate()
    assert again.returncode == 0, out + err
    assert project.run_in_process("qa", "--report-dir=plain").ret == 0
    there, plain = project.out, project.path / "plain"
    assert {path.name for path in there.iterdir()} == {path.name for path in plain.iterdir()}


def shards_of(project: Project) -> list[str]:
    """Return the command lines of processes that run shards of this project."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_text(encoding="utf-8", errors="replace"))
    return [line for line in found if f"--ledger={project.path}" in line]


def test_a_task_needs_nothing_of_its_machine(project: Project) -> None:
    """It runs the product that it carries, not a package of the user's with one of its names."""
    (project.path / "pytest.ini").unlink()
    project.dataset("capital", {"en": [RIGHT]}, graded({"en": "correct: {min: 0.5}"}))
    project.write("reports/__init__.py", "raise ImportError")
    project.write("conftest.py", CARRIED)
    luggage = on_ray._luggage(project.path)
    packed = on_ray.run_shard(luggage, {}, "qa", "--shard=1/1", "--ledger=ledger.sqlite3")
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert {"./run.json", "./records.jsonl"} <= {*tar.getnames()}


@tabled("words", "message")
def test_wrong_words_are_refused_at_once(project: Project, words: list[str], message: str) -> None:
    """One line each, as pytest has it."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.55'")
    with pytest.raises(UsageError) as caught:
        on_ray.main(["qa", *words])
    assert message in str(caught.value)


def test_a_large_folder_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is carried has a limit, what stays behind is not counted; without Ray, one line."""
    monkeypatch.setattr(on_ray, "find_spec", lambda name: name)
    monkeypatch.setattr(on_ray, "MOST_MB", 0)
    project.write(".git/objects", "x" * 1000)
    with pytest.raises(UsageError, match=r"more than 0 MB; .* left out already: '.git'"):
        on_ray.main(["qa", "--on=ray"])
    monkeypatch.setattr(on_ray, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="Ray is not installed; pip install"):
        on_ray.main([f"{project.path}", "--on=ray"])
    assert capsys.readouterr().err == ""
