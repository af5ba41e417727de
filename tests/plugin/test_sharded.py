"""Runs of a part, by ``--shard`` or ``--limit``, and of all parts, by ``--on ray``."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.dataset import Shards
from qagate.command import main
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.reply_store import Ledger
from qagate.reports.extras.ray import on_ray
from qagate.reports.run.report_folder import MARK
from tests.support.fixtures import Captured, Patch
from tests.support.loopback import Answer, Seen, loopback, plausible
from tests.support.projects import BAR, RIGHT, ROOT, WRONG, Project, graded, specs
from tests.support.run_options import options_of
from tests.support.tables import kept, tabled

YAML = graded({"en": BAR, "bg": BAR})


@pytest.fixture
def prepared(project: Project) -> Project:
    english = [*["Sofia"] * 9, "Varna"]
    project.dataset("capital", {"en": english, "bg": ["Sofia", "Sofia", None]}, YAML)
    return project


def run_json(folder: Path) -> dict[str, Any]:
    """Return a report's run.json without what differs between two runs over the same replies."""
    return {
        **json.loads((folder / "run.json").read_text(encoding="utf-8")),
        "run": None,
    }


def sharded(project: Project, of: int, *options: str) -> list[pytest.RunResult]:
    names = [f"{number}/{of}" for number in range(1, of + 1)]
    return [
        project.run_in_process(
            "qa", "--shard", one, f"--report-dir=out-{one[0]}", *options
        )
        for one in names
    ]


def test_all_shards_merged_are_the_run(prepared: Project, capsys: Captured) -> None:
    """A complete one ends 0; no item is in two; merged they give the same files and code."""
    path = prepared.path
    whole = prepared.run_in_process("qa", "--repeats", "2", "--report-dir=whole")
    done = sharded(prepared, 3, "--repeats", "2")
    assert [one.ret for one in done] == [6, 0, 0]
    assert done[1].outlines[-1].startswith("SHARD 2 of 3: exit 0; ")
    assert "shard 2 of 3: --concurrency 5" in done[1].outlines
    assert (
        main(["merge", str(path / "out-*"), "--to", str(path / "merged")])
        == whole.ret
        == 0
    )
    files = [path / f"out-{n}" / "records.jsonl" for n in (1, 2, 3)]
    lines = [file.read_text(encoding="utf-8").splitlines() for file in files]
    assert sum(map(len, lines)) == len(set().union(*lines)) == 26
    assert run_json(path / "merged") == run_json(path / "whole")
    for name in ("records.jsonl", "results.csv", "capital-en-graded.csv"):
        assert (path / "merged" / name).read_bytes() == (
            path / "whole" / name
        ).read_bytes()
    assert "SHARD" not in capsys.readouterr().out


@pytest.mark.parametrize("workers", [0, 2])
def test_the_hash_decides_whatever_else_is_asked(
    prepared: Project, workers: int
) -> None:
    """The same items, with workers and without, of a language alone, of a selection."""
    prepared.run_with(workers, "qa", "--shard", "2/2", "-k", "en", "--languages", "en")
    found = {str(one["id"]) for one in prepared.records()}
    prepared.run_in_process("qa", "--shard", "2/2")
    assert found == {
        str(one["id"]) for one in prepared.records() if one["language"] == "en"
    }
    assert 0 < len(found) < 10
    assert Shards(of=2, held=(2,)).missing == (1,)


def test_sets_of_answers_are_counted_in_shards_too(
    project: Project, capsys: Captured
) -> None:
    """A second set under another --fresh is a second try, and halves of two sets are no run."""
    project.asked(40, "drop: {max: 0.4}")
    with loopback() as server:
        words = specs(server.url)
        project.run_in_process("qa", *words)
        old = project.keep("old", anyway=True)
        for name in ("first", "second"):
            for number in ("1", "2"):
                project.run_in_process(
                    "qa", *words, f"--baseline={old}", f"--fresh={name}",
                    f"--shard={number}/2", f"--report-dir={name}-{number}",
                )  # fmt: skip
    folders = {name: str(project.path / f"{name}-*") for name in ("first", "second")}
    to = ("--to", str(project.path / "merged"))
    capsys.readouterr()
    main(["merge", folders["first"], f"--baseline={old}", *to])
    assert "set of answers" not in capsys.readouterr().out
    main(["merge", folders["second"], f"--baseline={old}", *to])
    said = capsys.readouterr().out.splitlines()[-1]
    assert "2nd set of answers of this model to these items: INCONCLUSIVE" in said
    halves = [str(project.path / name) for name in ("first-1", "second-2")]
    assert main(["merge", *halves, f"--baseline={old}", *to]) == 4
    assert "NAME of --fresh: 'first' and 'second'" in capsys.readouterr().err


def test_a_missing_shard_is_named(project: Project, capsys: Captured) -> None:
    """Also where it alone held a slice, and where it held no item at all."""
    project.dataset("capital", {"en": ["Sofia"] * 3, "bg": ["Sofia"]}, YAML)
    done = sharded(project, 5)
    assert any("0 of 0 items" in one.outlines[-1] for one in done)
    assert {one.ret for one in done} == {0}
    folders = [str(project.path / f"out-{number}") for number in range(1, 6)]
    to = str(project.path / "merged")
    assert main(["merge", *folders, "--to", to]) == 0
    for number, folder in enumerate(folders, start=1):
        left = [one for one in folders if one != folder]
        capsys.readouterr()
        assert main(["merge", *left, "--to", to]) == 6
        said = capsys.readouterr().out.splitlines()[-1]
        assert said.startswith(f"SHARD {number} of 5 MISSING: exit 6; ")
    assert main(["gate", folders[0]]) == 6


def test_only_shards_of_one_split_are_merged(
    prepared: Project, capsys: Captured
) -> None:
    """Shards of another number, or a whole run among them, are refused; so is an empty pattern."""
    for words in (["--shard=1/2"], ["--shard=1/3"], []):
        prepared.run_in_process(
            "qa", *words, f"--report-dir={''.join(words)[-1:] or 'whole'}"
        )
    first, to = str(prepared.path / "2"), str(prepared.path / "merged")
    for other in ("3", "whole"):
        assert main(["merge", first, str(prepared.path / other), "--to", to]) == 4
        assert "the runs differ in number of shards: '2'" in capsys.readouterr().err
    assert main(["merge", str(prepared.path / "no*"), "--to", to]) == 4
    assert "no report folder matches" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["9/8", "0/8", "2", "2/8/1", "-1/8", "a/b", "1/1000000"]
)
def test_a_shard_that_cannot_be_is_refused(text: str) -> None:
    """In one line, before anything is read; nor can one that decides nothing be decided."""
    with pytest.raises(UsageError, match="--shard: K/N is needed"):
        options_of(f"--shard={text}")
    with pytest.raises(UsageError, match="a shard decides nothing"):
        options_of("--shard=1/2", "--until-decided")


PINNED = "sample: {limit: 1, seed: 4}\n"
BARRED = graded({"en": "correct: {min: 0.8}"})
LUCKY = 8  # the item, of the twenty, that --limit 1 --seed 4 draws


def lucky(project: Project, pinned: str = "") -> Project:
    """Return a project where one answer of twenty is right: the one that seed 4 draws."""
    answers = [RIGHT if number == LUCKY else WRONG for number in range(1, 21)]
    project.dataset("capital", {"en": answers}, BARRED + pinned)
    return project


def assert_named(project: Project, result: pytest.RunResult, *, pinned: bool) -> None:
    """The terminal and every report name the sample, whether it decides or not."""
    words = "1 of 20, seed 4"
    result.stdout.fnmatch_lines(
        [f"WARNING: only a sample was asked: capital:en {words}*"]
    )
    for name in ("summary.md", "gates.xml", "report.html"):
        assert words in project.text(name), name
    sample = project.only("slices")["sample"]
    assert sample == {"items": 1, "of": 20, "seed": 4, "pinned": pinned}


def test_a_lucky_sample_does_not_turn_fail_into_pass(project: Project) -> None:
    """All items FAIL; the one item that happens to be right ends 6, and says how to pin it."""
    lucky(project)
    assert project.run_in_process("qa").ret == 1
    sampled = project.run_in_process("--limit", "1", "--seed", "4", "qa")
    assert sampled.ret == 6
    assert "correct (run all 20 items)" in sampled.outlines[-1]
    assert_named(project, sampled, pinned=False)
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert gate["reason"] == (
        "1 of 20 items, seed 4; pin `sample: {limit: 1, seed: 4}` in the data set or gates file "
        "to let them decide, or run all"
    )


@pytest.mark.parametrize("place", ["the data set", "a gates file"])
def test_the_pinned_sample_decides(project: Project, place: str) -> None:
    """It alone: another seed or another limit ends 6, and without --limit all items decide."""
    lucky(project, PINNED if place == "the data set" else "")
    gates = project.write("pinned.yaml", f"capital: {{{PINNED.strip()}}}\n")
    given = () if place == "the data set" else (f"--gates={gates}",)
    for limit, seed, code in (("1", "4", 0), ("1", "5", 6), ("2", "4", 6)):
        done = project.run_in_process(*given, "--limit", limit, "--seed", seed, "qa")
        assert done.ret == code
        if code == 0:
            assert_named(project, done, pinned=True)
    assert project.run_in_process(*given, "qa").ret == 1
    assert project.only("slices")["sample"] is None


def test_a_sample_counts_items(project: Project) -> None:
    """However often each is asked; one that leaves nothing out is none, and the slice decides."""
    lucky(project)
    for limit in ("20", "500"):
        assert project.run_in_process("--limit", limit, "qa").ret == 1
        assert project.only("slices")["sample"] is None
    project.run_in_process("--limit", "2", "--seed", "4", "--repeats", "3", "qa")
    found = project.only("slices")
    assert (found["sample"]["items"], found["sample"]["of"], found["whole"]) == (
        2,
        20,
        6,
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_items_decide_nothing(project: Project, workers: int) -> None:
    """--limit first:N asks the first rows, with all their repeats; neither a pin nor luck helps."""
    pinned = BARRED + "sample: {limit: 2, seed: 0}\n"
    project.dataset("capital", {"en": [RIGHT, RIGHT, WRONG]}, pinned)
    assert (
        project.run_with(workers, "--limit", "first:2", "--repeats", "2", "qa").ret == 6
    )
    keys = ["capital-en-q1", "capital-en-q1~r2", "capital-en-q2", "capital-en-q2~r2"]
    assert [one["key"] for one in project.records()] == keys
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert "only a part of the slice was run" in gate["reason"]


WAVERING: str = kept(__file__, "wavering")
SPECS = ("--model", "python:wavering:answer@1", "--judge", "lexical")
MODEL = (*SPECS, "--concurrency", "1")


@pytest.fixture
def capitals(project: Project, monkeypatch: Patch) -> Project:
    """Return a project of two items: one always right, the other only at the first try."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    gated(project, 2, "pass@3: {min: 0.4}, pass^3: {min: 0.1, max: 0.9}")
    project.write("wavering.py", WAVERING)
    return project


def gated(project: Project, items: int, gates: str) -> None:
    project.dataset("capital", {"en": [None] * items}, graded({"en": gates}))


def test_repeats_are_measured_gated_and_read_again(capitals: Project) -> None:
    """Each item counts once, of all repeats or fewer; so as a baseline, and counted anew."""
    more = (
        "pass@3: {min: 0.4}, pass^3: {min: 0.1, max: 0.9}, "
        "pass^2: {min: 0.4}, pass@2: {min: 0.4}"
    )
    gated(capitals, 2, more)
    options = ("qa", *MODEL, "--repeats", "3")
    done = capitals.run_in_process(*options)
    assert done.ret == 0, done.stdout.str()
    found = capitals.only("slices")["measures"]
    assert found["correct"]["n"] == 6
    values = {"pass@3": 1.0, "pass^3": 0.5, "pass@2": (1 + 2 / 3) / 2, "pass^2": 0.5}
    assert {name: found[name]["value"] for name in values} == pytest.approx(values)
    assert found["pass^3"]["n"] == 2
    assert found["pass^3"]["low"] < 0.5 < found["pass^3"]["high"]
    assert set(capitals.gate_states().values()) == {"PASS"}
    assert "pass^3" in capitals.text("report.html")
    capitals.keep("base")
    done = capitals.run_in_process(*options, "--baseline=base")
    assert set(capitals.gate_states().values()) == {"PASS"}, done.stdout.str()
    assert done.ret == 0  # with so few items its bars decide alone
    for name, code in (("pass^2", 1), ("pass^", 4)):
        capitals.write("gates.yaml", f"capital: {{en: {{{name}: {{min: 0.99}}}}}}\n")
        assert main(["gate", "reports/out", "--gates", "gates.yaml"]) == code


def test_more_tries_than_were_made_decide_nothing(capitals: Project) -> None:
    """The gate says how many repeats it needs; without any there is nothing to measure."""
    done = capitals.run_in_process("qa", *MODEL, "--repeats", "2")
    assert done.ret == 6
    assert set(capitals.gate_states().values()) == {"INCONCLUSIVE"}
    assert "pass^3 needs --repeats 3" in done.stdout.str()
    assert "pass^2" in capitals.only("slices")["measures"]
    gated(capitals, 2, "correct: {min: 0.1}")
    assert capitals.run_in_process("qa", *MODEL).ret == 0
    assert not [
        name for name in capitals.only("slices")["measures"] if name.startswith("pass")
    ]


def test_ungraded_tries_count_both_ways(capitals: Project) -> None:
    """One right, one at first, one an ERROR in the end: pass^2 is from 1/3 to (1 + 1/3) / 3."""
    gated(capitals, 3, "pass^3: {min: 0.1}")
    capitals.run_in_process("qa", *MODEL, "--repeats", "3")
    for gate, state in kept(__file__, "ungraded_tries_count_both_ways"):
        capitals.write("gates.yaml", f"capital: {{en: {gate}}}\n")
        main(["gate", "reports/out", "--gates", "gates.yaml", "--to", "counted"])
        gates = json.loads((capitals.path / "counted/run.json").read_text())["gates"]
        states = {one["measure"]: one["state"] for one in gates}
        assert states[gate[1:].partition(":")[0]] == state, gate


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
        made = Cluster(
            initialize_head=True, head_node_args={**head, "node_name": "first"}
        )
    with chdir(tmp_path_factory.mktemp("second")):
        made.add_node(num_cpus=1, node_name="second")
    yield made
    made.shutdown()  # type: ignore[no-untyped-call]


def start(project: Project, *words: str, **variables: str) -> "subprocess.Popen[str]":
    """Start the command in a process that Ray can do with as it likes."""
    program = (
        "import sys; from qagate.command import main; sys.exit(main(sys.argv[1:]))"
    )
    plugins = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program, "run", "qa", *plugins, *words], cwd=project.path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def records(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [{**json.loads(line), "seconds": 0} for line in lines]


@pytest.mark.slow
def test_it_reports_as_pytest(
    project: Project, cluster: Any, monkeypatch: Patch
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
    files = {path.name for path in plain.iterdir()}
    assert {path.name for path in there.iterdir()} == {*files, MARK}


@pytest.mark.slow
@pytest.mark.parametrize("usd", [None, 0.032])
def test_a_node_that_dies_costs_no_item(
    project: Project, cluster: Any, usd: float | None
) -> None:
    """Its shards run again elsewhere: calls in flight are repeated, --max-cost is still kept."""
    project.asked(ITEMS)
    lost: list[Any] = [cluster.add_node(num_cpus=2, node_name="third")]
    asked: Counter[bytes] = Counter()

    def handle(seen: Seen) -> Answer:
        asked[seen.content] += 1
        if server.count >= ITEMS // 2:
            with suppress(IndexError):  # another call took it
                cluster.remove_node(lost.pop(), allow_graceful=False)
        time.sleep(0.2)
        body = plausible()(seen).body
        assert isinstance(body, dict)
        return Answer(
            body={**body, "usage": {"prompt_tokens": 50, "completion_tokens": 10}}
        )

    with loopback(handler=handle) as server:
        texts = [
            MODELS.format(name=name, url=server.url) for name in ("answerer", "judge")
        ]
        project.write("models.yaml", "".join(texts))
        words = (
            "--models=models.yaml",
            "--model=answerer",
            "--judge=judge",
            "--concurrency=4",
        )
        limit = [f"--max-cost={usd}"] if usd else []
        on = (f"--on=ray:{cluster.address}", "--shards=4")
        made = start(project, *words, *on, *limit, OPENAI_API_KEY="k")
        out, err = made.communicate()
    assert not lost, out + err
    told = [line for line in err.splitlines() if "failed on" in line]
    assert told
    for line in told:
        assert re.match(
            r"--on ray: shard ./4 failed on third: .*; tried on another$", line
        )
    assert "aylet" not in "".join(set(err.splitlines()).difference(told))
    found = records(project.path / "reports" / "out")
    missing = [one for one in found if one["outcome"] == "missing"]
    assert (len(found), bool(missing)) == (ITEMS, usd is not None)
    assert [one["error"] for one in found if one["outcome"] == "error"] == [], out + err
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
    project.dataset(
        "capital", {"en": [RIGHT]}, "kind: graded\nlanguages: {en: {file: no.csv}}\n"
    )
    made = start(project, f"--on=ray:{cluster.address}", "--shards=1")
    out, err = made.communicate()
    assert made.returncode == 4, out + err
    told = [line for line in err.splitlines() if "failed on" in line]
    assert sorted(line.split("failed on ")[1].split(": ")[0] for line in told) == NODES
    assert all(
        line.startswith("--on ray: shard 1/1 ") and "no.csv" in line for line in told
    )
    assert [line.endswith("; tried on another") for line in told] == [True, False]
    assert "Traceback" not in err
    assert not (project.path / "reports").exists()


@pytest.fixture
def two_slow_shards(
    project: Project, monkeypatch: Patch
) -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """Start two shards on Ray that wait for their judge; return the driver and its TMPDIR."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.55'")
    project.dataset(
        "capital", {"en": [RIGHT] * 3}, graded({"en": "correct: {min: 0.5}"})
    )
    project.write("slow_judge.py", SLOW.format(folder=str(project.path)))
    # A short name: Ray's sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="qat-") as temporary_files:
        monkeypatch.setenv("TMPDIR", temporary_files)
        words = ("--judge=python:slow_judge:Judge", "--on=ray", "--shards=2")
        driver = start(project, *words, RAY_ADDRESS="")
        began = project.path / "began"
        while not began.exists() and driver.poll() is None:
            time.sleep(0.05)
        yield driver, Path(temporary_files)


def wait_for_shards(project: Project) -> list[str]:
    """Return the shards that still run after a minute."""
    until = time.monotonic() + 60
    while (left := shards_of(project)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_driver_that_is_stopped_leaves_a_partial_report_and_nothing_else(
    project: Project,
    two_slow_shards: "tuple[subprocess.Popen[str], Path]",
    number: signal.Signals,
) -> None:
    """However often it is told: no shard goes on, and no folder is left on the node."""
    driver, temporary_files = two_slow_shards
    driver.send_signal(number)
    time.sleep(1)
    driver.send_signal(number)
    out, err = driver.communicate()
    assert wait_for_shards(project) == []
    assert driver.returncode == 2, out + err
    assert out.splitlines()[-1].startswith("INTERRUPTED: exit 2; ")
    assert project.report()["complete"] is False
    assert [path.name for path in temporary_files.glob("qa-*")] == []


@pytest.mark.slow
def test_a_driver_that_is_killed_ends_the_tasks(
    project: Project, two_slow_shards: "tuple[subprocess.Popen[str], Path]"
) -> None:
    """What its shards left is cleared by the next run, which decides as one without Ray."""
    driver, temporary_files = two_slow_shards
    driver.kill()
    driver.communicate()
    assert wait_for_shards(project) == []
    assert not (project.out / "run.json").exists()
    again = start(project, "--on=ray", "--shards=2", RAY_ADDRESS="")
    out, err = again.communicate()
    assert again.returncode == 0, out + err
    assert [path.name for path in temporary_files.glob("qa-*")] == []
    assert project.run_in_process("qa", "--report-dir=plain").ret == 0
    there, plain = project.out, project.path / "plain"
    files = {path.name for path in plain.iterdir()}
    assert {path.name for path in there.iterdir()} == files


def shards_of(project: Project) -> list[str]:
    """Return the command lines of processes that run shards of this project."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_text(encoding="utf-8", errors="replace"))
    return [line for line in found if f"--ledger={project.path}" in line]


def test_places_for_shards_are_counted_on_nodes_that_live() -> None:
    """A shard takes a tenth of a processor."""
    nodes = [
        {"Alive": True, "Resources": {"CPU": 2.0, "memory": 1e9}},
        {"Alive": True, "Resources": {"memory": 1e9}},
        {"Alive": False, "Resources": {"CPU": 8.0}},
    ]
    assert on_ray.shards_at_once(nodes) == 20
    assert on_ray.shards_at_once([]) == 1


@pytest.mark.slow
def test_more_shards_than_places_share_what_those_use_that_run(
    project: Project, cluster: Any
) -> None:
    """It is said before the first call: 20 places of two processors, for 40 shards."""
    project.dataset("capital", {"en": [RIGHT]}, graded({"en": "correct: {min: 0.5}"}))
    words = (f"--on=ray:{cluster.address}", "--shards=40", "--concurrency=100")
    driver = start(project, *words)
    lines = iter(driver.stderr or ())
    header = next(line for line in lines if line.startswith("shard 40 of 40: "))
    driver.send_signal(signal.SIGTERM)
    driver.communicate()
    assert header == (
        "shard 40 of 40: --concurrency 5; 20 at a time share the limits on calls\n"
    )


def test_a_task_needs_nothing_of_its_machine(project: Project) -> None:
    """It runs the product that it carries, not a package of the user's with one of its names."""
    (project.path / "pytest.ini").unlink()
    project.dataset("capital", {"en": [RIGHT]}, graded({"en": "correct: {min: 0.5}"}))
    project.write("reports/__init__.py", "raise ImportError")
    project.write("conftest.py", CARRIED)
    luggage = on_ray._luggage(project.path)
    packed = on_ray.run_shard(
        luggage, {}, "qa", "--shard=1/1", "--ledger=ledger.sqlite3"
    )
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert {"./run.json", "./records.jsonl"} <= {*tar.getnames()}


@tabled("words", "message")
def test_wrong_words_are_refused_at_once(
    project: Project, words: list[str], message: str
) -> None:
    """One line each, as pytest has it."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.55'")
    with pytest.raises(UsageError) as caught:
        on_ray.main(["qa", *words])
    assert message in str(caught.value)


def test_a_large_folder_is_refused(
    project: Project, monkeypatch: Patch, capsys: Captured
) -> None:
    """What is carried has a limit, what stays behind is not counted; without Ray, one line."""
    monkeypatch.setattr("qagate.evaluators.optional.find_spec", str)
    monkeypatch.setattr(on_ray, "MOST_MB", 0)
    project.write(".git/objects", "x" * 1000)
    with pytest.raises(
        UsageError, match=r"more than 0 MB; .* left out already: '.git'"
    ):
        on_ray.main(["qa", "--on=ray"])
    monkeypatch.setattr("qagate.evaluators.optional.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="ray is not installed; pip install"):
        on_ray.main([f"{project.path}", "--on=ray"])
    assert capsys.readouterr().err == ""
