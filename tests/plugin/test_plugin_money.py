"""``--max-cost``, ``--dry-run``, ``--batch``: what is spent, refused, foretold, sent; the odds."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.evaluators.extras.batches.waves import waves_in
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.reports.extras.odds import odds
from qagate.reports.extras.odds.odds import DISCORDANCES, known_discordance
from tests.support.batch_server import BatchServer, batch_server
from tests.support.fixtures import Captured, Patch
from tests.support.killing import grade
from tests.support.loopback import (
    Answer,
    Loopback,
    Seen,
    completion,
    loopback,
    plausible,
)
from tests.support.loopback import good as content
from tests.support.made_runs import answered, before, run_of
from tests.support.projects import Project
from tests.support.run_options import options_of
from tests.support.tables import kept

ITEMS = 30
GATES = "correct: {min: 0.5}, drop: {max: 0.03, evidence: confident}"
# 10 tokens a reply at 100 USD a million are 0.001 USD; the prompt's own tokens cost nothing here.
MODELS: str = kept(__file__, "models")
PRICED = "prices: {input: 0, output: 100}"
Catalogue = Callable[..., Path]
FREE_OF_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
OWN_CATALOGUE: str = kept(__file__, "own_catalogue")
SPECS = ("--model", "answerer", "--judge", "judge")


def good(seen: Seen) -> Answer:
    """Answer as a good model and a content judge, with 10 tokens and after a moment."""
    body = content(seen).body
    assert isinstance(body, dict)
    body["usage"] = {"prompt_tokens": 50, "completion_tokens": 10}
    return Answer(body=body, delay=0.01)


@pytest.fixture
def capitals(project: Project) -> Project:
    return project.asked(ITEMS, GATES, head="")


@pytest.fixture
def catalogue(capitals: Project, monkeypatch: Patch) -> Catalogue:
    """Return how to put two models on a server into the project's own models.yaml."""

    def write(server: Loopback, priced: str = PRICED) -> Path:
        path = capitals.write(
            "models.yaml", MODELS.format(url=server.url, priced=priced)
        )
        monkeypatch.setattr(load_catalogue, "__defaults__", (path,))
        return path

    return write


@pytest.mark.parametrize("workers", [0, 2])
def test_no_run_overspends(
    capitals: Project, catalogue: Catalogue, workers: int
) -> None:
    """The rest is MISSING, a line says what was spent, and the next run goes on and finishes."""
    with loopback(handler=good) as server:
        path = catalogue(server)
        if workers:
            capitals.write("qa/conftest.py", OWN_CATALOGUE.format(str(path)))
        options = (*SPECS, "--concurrency", "8", "--max-cost")
        result = capitals.run_with(workers, *options, "0.0205", "qa")
        assert server.count == 20  # and nothing is left unused for being set aside
        assert result.ret == 6
        assert capitals.report()["run"]["spent"] == pytest.approx(0.02)
        left = capitals.outcomes()["missing"]
        assert capitals.outcomes() == {"passed": ITEMS - left, "missing": left}
        said = f"{left} items ungraded: budget: $0.0200 of --max-cost $0.0205 spent, "
        result.stdout.fnmatch_lines([f"WARNING: {said}*"])
        assert "GATES INCONCLUSIVE" in result.outlines[-1]
        capitals.run_with(workers, *options, "0.0405", "qa")
        assert server.count == 2 * ITEMS
    assert capitals.outcomes() == {"passed": ITEMS}


@pytest.mark.parametrize(
    ("variables", "words"),
    [({"QA_RUN": "one"}, ()), ({"GITHUB_RUN_ID": "1"}, ("--shard", "1/2"))],
)
def test_a_repeated_task_goes_on_with_what_its_run_has_left(
    capitals: Project,
    catalogue: Catalogue,
    monkeypatch: Patch,
    variables: dict[str, str],
    words: tuple[str, ...],
) -> None:
    """A run or shard that has a name has its money once, whichever process spends it."""
    share = 0.01 * (len(words) or 1)
    with loopback(handler=good) as server:
        catalogue(server)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for _ in range(2):
            done = capitals.run_in_process(
                *SPECS, "--max-cost", f"{share}", *words, "qa"
            )
            assert (done.ret, server.count) == (6, 10)
            assert capitals.report()["run"]["spent"] == pytest.approx(0.01)
        for name in variables:
            monkeypatch.setenv(name, "2")
        capitals.run_in_process(*SPECS, "--max-cost", f"{share}", *words, "qa")
        assert server.count == 20


def test_unreadable_replies_cost_all_the_same(
    capitals: Project, catalogue: Catalogue
) -> None:
    """So are bodies without a reply, three an item, at the most; a refused request is not.

    An unreadable grade is asked for twice.
    """

    def mumble(seen: Seen) -> Answer:
        if seen.tool is None:
            return (
                Answer(body={"choices": []})
                if "number 4?" in seen.prompt
                else good(seen)
            )
        if "number 1?" in seen.prompt:
            return Answer(status=400, body={"error": {"message": "no"}})
        body = completion(seen, "", {"grade": "PERHAPS"})
        return Answer(
            body={**body, "usage": {"prompt_tokens": 50, "completion_tokens": 10}}
        )

    with loopback(handler=mumble) as server:
        catalogue(server)
        capitals.run_in_process(
            *SPECS, "--max-cost", "1", "-k", "q1] or q2] or q3] or q4]", "qa"
        )
    assert capitals.report()["run"]["spent"] == pytest.approx(0.001 * (3 + 2 * 2 + 3))


def test_an_unknown_price_is_never_nothing(
    capitals: Project, catalogue: Catalogue
) -> None:
    """Unknown is a word, not 0, in a plan, a run and run.json; no limit can be kept without it."""
    with loopback(handler=good) as server:
        catalogue(server, priced="deadline: 9")
        line = capitals.refused(*SPECS, "--max-cost", "5", "qa")
        shown = plan(capitals)
        assert server.count == 0
        for _ in range(2):
            result = capitals.run_in_process(*SPECS, "--limit", "3", "-v", "qa")
            result.stdout.fnmatch_lines(
                ["note: cost unknown: no price for answerer, judge"]
            )
    assert line.startswith("ERROR: --max-cost: no price is known for answerer, judge")
    assert "in a models file (--models FILE) and name that entry" in line
    assert capitals.report()["cost"] is None
    assert "cost unknown" in shown
    assert "to make, 0 recorded\nUSD: unknown, for want of a price\nodds: " in shown
    assert "price unknown: answerer, judge; give prices" in shown
    assert "$0.00" not in shown


@pytest.mark.parametrize("unpriced", ["judge", "answerer"])
def test_partly_known_cost_is_shown(
    capitals: Project, catalogue: Catalogue, unpriced: str
) -> None:
    """Whoever lacks a price: in the dry run, on the terminal, in the summary and on the page."""
    said = "partly known: $0.0030"
    with loopback(handler=good) as server:
        path = catalogue(server)
        head, middle, tail = path.read_text(encoding="utf-8").split(PRICED)
        own = [PRICED, "deadline: 9"][:: 1 if unpriced == "judge" else -1]
        path.write_text(f"{head}{own[0]}{middle}{own[1]}{tail}", encoding="utf-8")
        shown = capitals.run_in_process(
            *SPECS, "--limit", "3", "--dry-run", "qa"
        ).stdout.str()
        capitals.run_in_process(*SPECS, "--limit", "3", "qa")
    assert f"; cost {said}" in shown
    assert f"price unknown: {unpriced}; give prices" in shown
    page = capitals.text("report.html")
    assert f"<li>cost {said}: no price for {unpriced}</li>" in page
    assert f"; cost {said}." in capitals.text("summary.md")
    assert f"<dd>{said}</dd>" in capitals.text("report.html")


def plan(project: Project) -> str:
    result = project.run_in_process("--dry-run", *SPECS, "qa")
    assert result.ret == 0
    return result.stdout.str()


def test_a_dry_run_foretells(
    capitals: Project, catalogue: Catalogue, monkeypatch: Patch
) -> None:
    """Before: calls, tokens, cost and the gates' reach; then what the ledger holds is free."""

    def no_judge(seen: Seen) -> Answer:
        return (
            good(seen) if seen.tool is None else Answer(status=413, body={"error": {}})
        )

    for name in FREE_OF_KEYS:
        monkeypatch.delenv(name, raising=False)
    with loopback(handler=no_judge) as server:
        catalogue(server)
        before = plan(capitals)
        assert server.count == 0
        assert not (capitals.path / ".qa").exists()
        capitals.run_in_process(*SPECS, "qa")
        half = plan(capitals)
    with loopback(handler=good, port=server.port):
        capitals.run_in_process(*SPECS, "qa")
    count, whole = server.count, plan(capitals)
    assert server.count == count
    assert "30 items     60 calls" in before
    assert "none recorded" in before
    assert "600 out; about $0.0600, at most $0.0600" in before
    assert f"answererfrom{capitals.path}/models.yaml,judgefrom" in "".join(
        before.split()
    )
    can = "drop <= 0.03: can never pass with 30 independent pairs; it takes 125 even if none"
    assert can in " ".join(before.split())
    assert max(map(len, before.partition("qa plan")[2].split("\n"))) <= 100
    assert "30 of them recorded (free)" in half
    assert "300 out; about $0.0300" in half
    assert "60 of them recorded (free); about 0 tokens in, 0 out; about $0.00" in whole


YAML: str = kept(__file__, "yaml")
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
ROW = re.compile(
    r"exit 0 with (\d.\d\d), 1 with (\d.\d\d), 6 with (\d.\d\d), ± (\d.\d\d): (.*?), (\d+) %"
)


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: Patch) -> None:
    """Simulate half of the runs: what is shown of them is what is tested here."""
    monkeypatch.setattr(odds, "MOST_RUNS", 200)


def shown(project: Project, *arguments: str) -> str:
    result = project.run_in_process("--dry-run", *arguments, "qa")
    assert result.ret == 0
    return re.sub(r"\s*\n\s+", " ", "\n".join(result.outlines))


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("bar", "blamed"), [(0.1, "drop <= 0.15"), (0.58, "correct >= 0.58")]
)
def test_chances_are_those_of_the_baseline(
    project: Project, bar: float, blamed: str
) -> None:
    """Six models, shares that sum to one, the worse the rarer exit 0; who is to blame."""
    wrong = ["Plovdiv"] * 16
    project.dataset("capital", {"en": ["Sofia"] * 24 + wrong}, YAML.format(bar=bar))
    project.run_in_process("qa", "--report-dir", "old")
    # Answers of another file: the same file again would decide nothing.
    answers = {"en": ["Sofia, surely"] * 24 + wrong}
    project.dataset("capital", answers, YAML.format(bar=bar))
    text = shown(project, "--baseline=old")
    rows = ROW.findall(text)
    assert [(model, share) for *_, model, share in rows] == [
        *(("unchanged", share) for share in ("10", "20", "30")),
        ("worse by half the margin", "10"),
        ("worse by the margin", "10"),
        ("worse by two margins", "10"),
    ]
    assert all(sum(map(float, row[:3])) == pytest.approx(1, abs=0.011) for row in rows)
    passes = [float(row[0]) for row in rows]
    assert passes[0] > passes[3] > passes[4] >= passes[5]
    assert passes[0] > passes[2]
    assert f"not PASS in the first line: capital:en {blamed}" in text
    calls, usd, chances = text[text.index("calls: ") :].splitlines()[:3]
    assert (calls, usd) == (
        "calls: 0 to make, 0 recorded",
        "USD: about $0.00, at most $0.00",
    )
    unchanged = ", ".join(
        f"{code} with {odd}" for code, odd in zip("016", rows[0], strict=False)
    )
    half = rows[0][3]
    assert chances.startswith(
        f"odds: exit {unchanged}, ± {half} (unchanged, 10 % of items differ)"
    )


@pytest.mark.untraced
def test_another_judge_than_the_baselines_leaves_no_gate_open(project: Project) -> None:
    """It reads the answers of both runs."""
    answers = {"en": ["Sofia"] * 24 + ["Plovdiv"] * 16}
    project.dataset("capital", answers, YAML.format(bar=0.1))
    project.run_in_process("qa", "--report-dir", "old")
    # Answers of another file: the same file again would decide nothing.
    others = {"en": ["Sofia, surely"] * 24 + ["Plovdiv"] * 16}
    project.dataset("capital", others, YAML.format(bar=0.1))
    text = shown(project, "--baseline=old", "--judge", "openai:g@http://127.0.0.1:9/v1")
    assert "for all answers" not in text


def test_without_a_baseline_what_is_recorded_tells(project: Project) -> None:
    """Recorded answers need no call; a model never asked has no figure, but a way to get one."""
    project.dataset(
        "capital", {"en": ["Sofia"] * 30 + ["Plovdiv"] * 10}, YAML.format(bar=0.1)
    )
    text = shown(project)
    (first, *_) = ROW.findall(text)
    assert first[:3] == ("1.00", "0.00", "0.00")
    assert first[4:] == ("unchanged", "10")
    assert "not PASS in the first line: no gate" in text
    project.dataset("capital", {"en": ["Sofia"] * 2}, YAML.format(bar=0.1))
    project.write("qa/capital/answer.en.yaml", PROMPT)
    model = "openai:m@http://127.0.0.1:9/v1"
    text = shown(project, "--model", model, "--judge", "lexical")
    assert (
        text.count(
            "not known, as only 0 of 2 items have a verdict; give --baseline=RUN"
        )
        == 1
    )
    assert "exit 0 with" not in text


def test_the_share_that_differs_is_looked_up() -> None:
    """In the baseline's repeats, else it is not known."""
    once = before(run_of(answered("c" * 40)))
    assert known_discordance(once)[0] == known_discordance(None)[0] == DISCORDANCES
    again = [
        replace(one, repeat=2, key=f"{one.key}~r2")
        for one in answered("i" * 4 + "c" * 36)
    ]
    assert known_discordance(before(run_of([*answered("c" * 40), *again])))[0] == (0.1,)


BATCHED = 6
LINE = "calls are still with the provider; run the same command again"
OF_TIME = {"seconds", "answer_seconds", "asked_at", "graded_at"}
OF_MONEY = {"cost", "answer_cost"}
OF_THE_RUN = {"asked_by", "graded_by"}
TAKEN = OF_TIME | OF_MONEY | OF_THE_RUN
"""What a record says of time, money and the run, which are others in a batch."""


def judged(seen: Seen) -> Answer:
    """Grade by an item's number, as a content model."""
    prompt = seen.prompt
    return plausible(
        lambda asked, name, schema: grade(prompt) if name == "grade" else "so"
    )(seen)


@contextmanager
def served(project: Project, **given: Any) -> Iterator[BatchServer]:
    """Serve a project of six items with a prompt, a rubric and one gate."""
    project.asked(BATCHED)
    with batch_server(judged, **given) as server:
        yield server


def models(server: BatchServer, wires: str = "openai anthropic") -> tuple[str, ...]:
    """Return the options for model and judge, by their wire formats."""
    urls = {"openai": f"{server.url}/v1", "anthropic": server.url}
    model, judge = wires.split()
    return (
        "--model",
        f"{model}:m@{urls[model]}",
        "--judge",
        f"{judge}:j@{urls[judge]}",
    )


def plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one[key] for key in one if key not in TAKEN} for one in records]


@pytest.mark.parametrize("wires", ["openai anthropic", "anthropic openai"])
def test_records_and_gates_are_those_of_a_direct_run(
    project: Project, wires: str
) -> None:
    """Answers in one batch, judgements in the next, in both wire formats: the same run."""
    with served(project) as server:
        options = models(server, wires)
        assert project.run_in_process(*options, "--ledger", "direct", "qa").ret == 0
        records, report = project.records(), project.report()
        assert len(server.direct) == 2 * BATCHED
        assert project.run_in_process(*options, "--batch", "qa").ret == 0
        assert [len(batch.lines) for batch in server.batches.values()] == [
            BATCHED,
            BATCHED,
        ]
        assert server.repeats == 0
        assert len(server.direct) == 2 * BATCHED
    assert plain(project.records()) == plain(records)
    assert told_by(project.report()) == told_by(report)


def told_by(report: dict[str, Any]) -> str:
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
        assert first.outlines[-1].endswith(f"; {BATCHED} {LINE}")
        codes = [project.run_in_process(*options).ret for _ in range(4)]
        assert codes[-1] == 0
        assert set(codes[:-1]) <= {0, 6}
        assert [len(batch.lines) for batch in server.batches.values()] == [
            BATCHED,
            BATCHED,
        ]
        assert (server.repeats, server.direct) == (0, [])


BATCH_MODELS = """
answerer: {{provider: openai, model: m, base_url: "{0}/v1", {1}}}
judge: {{provider: anthropic, model: j, base_url: "{0}", {1}}}
"""


def test_a_limit_of_the_cost_cuts_one_wave(project: Project) -> None:
    """Two batches at half the price; the rest is MISSING, and one line says what it needs."""
    priced = "parameters: {max_tokens: 10}, prices: {input: 0, output: 10000}"
    with served(project) as server:
        project.write("models.yaml", BATCH_MODELS.format(server.url, priced))
        words = (
            "--model=answerer",
            "--judge=judge",
            "--models=models.yaml",
            "--batch",
            "qa",
        )
        done = project.run_in_process(*words, "--max-cost=0.22")
        assert [len(batch.lines) for batch in server.batches.values()] == [4, 2]
        assert project.outcomes() == {"passed": 2, "missing": 4}
        assert done.ret == 6
        why = "4 items ungraded: budget: --max-cost $0.22 has no room for 4 calls: with them the "
        assert (
            f"{why}batches could cost $0.40; give --max-cost 0.40, or a"
            in project.notes()
        )
        assert project.report()["run"]["spent"] == pytest.approx(6 * 5 * 0.01 / 2)
        assert project.run_in_process(*words, "--max-cost=0.40").ret == 0
        assert [len(batch.lines) for batch in server.batches.values()] == [
            4,
            2,
            2,
            2,
            2,
        ]
        assert server.repeats == 0


def test_a_refused_batch_is_said_in_one_line(project: Project) -> None:
    """Exit 4 with the provider's words; calls that are out are exit 6, also without gates."""
    said = {"error": {"message": "m has no batches", "type": "invalid_request_error"}}

    def step(name: str, seen: Seen) -> Answer | None:
        return Answer(status=400, body=said) if name == "create" else None

    with served(project, step=step) as server:
        done = project.run_in_process(*models(server), "--batch", "qa")
        assert done.ret == 4
        for told in (
            "provider took no batch",
            "m has no batches",
            "leave --batch out to ask",
        ):
            assert told in done.outlines[-1]
        assert server.submitted == {}
    with served(project, looks=9) as server:
        options = (
            *models(server),
            "--batch",
            "--batch-wait",
            "0",
            "--gates",
            "off",
            "qa",
        )
        done = project.run_in_process(*options)
        assert (done.ret, done.outlines[-1]) == (
            6,
            f"gates off: exit 6; {BATCHED} {LINE}",
        )


def test_ledger_batches_and_cancel(project: Project, capsys: Captured) -> None:
    """What is out is named with its calls; what is given up is read as far as it was done."""

    def listed(*words: str) -> str:
        main(["ledger", "batches", *words])
        told = capsys.readouterr()
        return told.out + told.err

    with served(project, looks=9) as server:
        options = (*models(server), "--batch", "--batch-wait", "0", "qa")
        assert project.run_in_process(*options).ret == 6
        told = listed()
        for said in ("batch_1", "with the provider", f"{BATCHED} calls not back yet"):
            assert said in told
        assert "batch_1 is cancelled" in listed("--cancel", "batch_1")
        assert server.batches["batch_1"].cancelled
        server.looks = 1
        assert "no such batch is known" in listed("--cancel", "batch_7")
        assert project.run_in_process(*models(server), "--batch", "qa").ret == 0
        assert listed().count(" read") == 2
        assert "open any more" in listed("--cancel", "batch_1")
        assert server.repeats == 0


def test_a_batch_that_is_over_can_be_cancelled(
    project: Project, capsys: Captured
) -> None:
    """A provider refuses that, and what it has is read by the next run."""

    def step(name: str, seen: Seen) -> Answer | None:
        refusal = {"error": {"message": "cannot cancel a completed batch"}}
        return Answer(status=409, body=refusal) if name == "cancel" else None

    with served(project, looks=9, step=step) as server:
        options = (*models(server), "--batch", "qa")
        project.run_in_process(*options, "--batch-wait", "0")
        main(["ledger", "batches", "--cancel", "batch_1"])
        assert "not cancelled: " in capsys.readouterr().err
        server.looks = 1
        main(["ledger", "batches", "--cancel", "batch_1"])
        assert "batch_1 is cancelled" in capsys.readouterr().out
        assert project.run_in_process(*options).ret == 0
        assert server.repeats == 0


def test_a_batch_that_is_cancelled_twice_is_dropped_unread(
    project: Project, capsys: Captured
) -> None:
    """Whatever its provider does: the next run asks its calls again."""
    with served(project, looks=9) as server:
        options = (*models(server), "--batch", "qa")
        project.run_in_process(*options, "--batch-wait", "0")
        main(["ledger", "batches", "--cancel", "batch_1"])
        main(["ledger", "batches", "--cancel", "batch_1"])
        assert "given up: it was cancelled before" in capsys.readouterr().out
        server.looks = 1
        assert project.run_in_process(*options).ret == 0
        assert server.repeats == len(server.batches["batch_1"].lines)


def test_a_batch_that_no_provider_lists_can_be_cancelled(
    project: Project, capsys: Captured
) -> None:
    """The answer with its id was lost, and the server has no list of batches."""

    def step(name: str, seen: Seen) -> Answer | None:
        if name == "create":
            return Answer(status=500)
        return Answer(status=404) if name == "list" else None

    with served(project, step=step) as server:
        options = (*models(server), "--batch", "qa")
        assert project.run_in_process(*options).ret == 6
        with Ledger(project.path / ".qa/ledger.sqlite3", read_only=True) as ledger:
            (wave,) = waves_in(ledger).values()
        main(["ledger", "batches", "--cancel", wave.named])
        assert "given up" in capsys.readouterr().out
        server.step = lambda name, seen: None
        assert project.run_in_process(*options).ret == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400)],
)
def test_times_are_read_with_their_unit(text: str, seconds: float) -> None:
    """Seconds without one."""
    assert options_of("--batch", "--batch-wait", text).batch_wait == seconds
