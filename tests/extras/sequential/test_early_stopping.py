"""Runs that stop once they are decided: over a loopback server, with workers and without."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.plugin.test_plugin_judges import spec, truthful, with_labels, with_rubrics
from tests.support.fixtures import Patch
from tests.support.loopback import Answer, Loopback, Seen, loopback, reply
from tests.support.projects import RIGHT, WRONG, Project
from tests.support.tables import kept, tabled

ITEMS = 240
PROMPT = 'name: answer\nlanguage: {0}\nversion: "1"\nuser: "{0}: {{question}}"\n'
YAML: str = kept(__file__, "yaml")
OLD = [RIGHT if number % 3 else WRONG for number in range(ITEMS)]
SMALL = 40  # items of the slice that is asked whole


@contextmanager
def serving(*, worse: bool) -> Iterator[Loopback]:
    """Return a server whose model answers as the old one did, or nothing right any more."""

    def answer(seen: Seen) -> Answer:
        number = int(re.findall(r"number (\d+)", seen.prompt)[-1])
        return reply(seen, text=WRONG if worse else OLD[number - 1])

    with loopback(handler=answer) as running:
        yield running


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(worse=False) as running:
        yield running


@pytest.fixture
def capitals(project: Project, monkeypatch: Patch) -> Project:
    """Return a project whose old run is in ``before``."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    project.dataset("capital", {"en": OLD, "bg": OLD[:SMALL]}, YAML)
    for language in ("en", "bg"):
        project.write(f"qa/capital/answer.{language}.yaml", PROMPT.format(language))
    with serving(worse=False) as earlier:
        old_model = f"openai:old@{earlier.url}/v1"
        project.run_in_process(
            *("--gates", "off", "-q", "--judge", "lexical", "--model", old_model, "qa")
        )
    project.keep("before")
    return project


def options(server: Loopback, *more: str) -> tuple[str, ...]:
    model = f"openai:m@{server.url}/v1"
    return (
        *("--baseline=before", "--until-decided", "--judge", "lexical"),
        *("--model", model, *more, "qa"),
    )


def counts(project: Project, name: str) -> dict[str, int]:
    (found,) = (
        one["counts"] for one in project.report()["slices"] if one["name"] == name
    )
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_slice_is_asked_until_settled(
    capitals: Project, server: Loopback, workers: int
) -> None:
    """Few calls, counts sum to the plan, a gate of another evidence asks all; STOPPED is said."""
    result = capitals.run_with(workers, *options(server))
    assert result.ret == 0
    english = counts(capitals, "capital:en")
    stopped = english["stopped"]
    assert english["plan"] == ITEMS == sum(english.values()) - english["plan"]
    assert stopped > ITEMS / 2
    assert capitals.report()["gates"][0]["state"] == "PASS"
    assert counts(capitals, "capital:bg")["stopped"] == 0
    assert server.count == ITEMS - stopped + SMALL
    said = [f"*{stopped} without a grade", f"GATES PASS*{stopped} items not asked*"]
    result.stdout.fnmatch_lines(said)
    for name in ("summary.md", "gates.xml", "report.html", "run.json"):
        assert f"settled after {ITEMS - stopped} of {ITEMS}" in capitals.text(name), (
            name
        )
    assert capitals.text("capital-en-graded.csv").count("STOPPED") == stopped
    records = [one for one in capitals.records() if one["outcome"] == "stopped"]
    assert len(records) == stopped
    assert {one["error"].partition(":")[0] for one in records} == {"decided"}
    assert capitals.run_with(workers, *options(server)).ret == 0
    # A busy machine may let a few more go before it hears that the slice is settled.
    asked = [seen.prompt for seen in server.requests]
    assert len(set(asked)) == len(asked) < ITEMS / 2 + SMALL
    stopped = counts(capitals, "capital:en")["stopped"]
    assert server.count == ITEMS - stopped + SMALL, "all that was paid for counts"


@pytest.mark.slow
def test_a_worse_model_fails_at_once(capitals: Project) -> None:
    """Two thirds of the answers lost: the gate FAILs, and most items are never asked."""
    with serving(worse=True) as server:
        result = capitals.run_in_process(*options(server, "--languages", "en"))
        assert (result.ret, server.count < ITEMS / 4) == (1, True)
    assert capitals.only("gates")["state"] == "FAIL"


@pytest.mark.slow
def test_a_slice_picked_by_hand_is_not_stopped(
    capitals: Project, server: Loopback
) -> None:
    """A part is asked whole, its gate open."""
    assert capitals.run_in_process(*options(server, "-k", "en-q1")).ret == 6
    assert counts(capitals, "capital:en")["stopped"] == 0


@pytest.mark.slow
@tabled("given", "words")
def test_what_cannot_be_decided_is_refused(
    capitals: Project, given: list[str], words: str
) -> None:
    """Without a baseline the slice has no gate that could settle."""
    assert words in capitals.refused(*given, "--languages", "en", "qa")


@pytest.mark.slow
def test_what_is_spared(
    capitals: Project, server: Loopback, monkeypatch: Patch
) -> None:
    """The expected number of items, with and without; the gate's own line too."""
    monkeypatch.setattr("qagate.reports.extras.odds.odds.MOST_RUNS", 5)
    result = capitals.run_in_process(*options(server, "--dry-run", "--languages", "en"))
    result.stdout.fnmatch_lines(
        [
            "*if unchanged and 10, 20 or 30 % differ: about *, * or * items*; all: 240*",
            "*--until-decided takes about *, * or * of 240*",
        ]
    )
    assert not Path("reports/out").exists()


JUDGED: str = kept(__file__, "judged")


def told(version: int) -> list[str | None]:
    """Return answers of a version of a model, a third of them wrong, whose truth a judge sees."""
    truth = ["CORRECT", "CORRECT", "INCORRECT"]
    return [
        f"Version {version}: [[truth={truth[number % 3]}]]" for number in range(ITEMS)
    ]


@pytest.fixture
def judged(project: Project) -> Project:
    """Return a project whose answers a model judges, which eighty labels measure."""
    project.dataset("capital", {"en": told(1)}, JUDGED)
    return with_labels(with_rubrics(project, "capital"), count=80)


def settled(
    project: Project, server: Loopback, *words: str
) -> tuple[pytest.RunResult, int]:
    """Run two versions of a model, the second compared with the first; return its calls too."""
    judge = ("--judge", spec(server), "--languages", "en", "qa/capital")
    project.run_in_process(*judge, "--gates", "off")
    project.keep("before")
    project.dataset("capital", {"en": told(2)}, JUDGED)
    before = server.count
    result = project.run_in_process(
        "--baseline=before", "--until-decided", *words, *judge
    )
    return result, server.count - before


@pytest.mark.slow
def test_the_judge_is_measured_before_anything_is_settled(judged: Project) -> None:
    """Labels and canaries come first; then items, until the gate is settled."""
    with loopback(handler=truthful()) as server:
        result, asked = settled(judged, server)
    assert result.ret == 0
    items_asked = ITEMS - counts(judged, "capital:en")["stopped"]
    canaries = 45 + 30  # kept grades of the earlier answers, wrong ones and right ones
    assert asked == 80 + canaries + items_asked
    assert items_asked < ITEMS / 3
    assert "Youden's J" in judged.only("gates")["reason"]


@pytest.mark.slow
def test_what_no_item_can_decide_is_not_paid_for(judged: Project) -> None:
    """A judge below its floor: the labels are judged, hardly an item, and a line says why."""
    with loopback(handler=truthful(wrong_in="en")) as server:
        result, _ = settled(judged, server, "-v")
    stopped = counts(judged, "capital:en")["stopped"]
    assert (result.ret, stopped > ITEMS / 2) == (6, True)
    asked = f"capital:en: stopped after {ITEMS - stopped} of {ITEMS} items"
    assert f"{asked}, as no further item could decide drop <= 0.2: " in judged.notes()
