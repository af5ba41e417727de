"""``qagate rejudge RUN``: the answers of a run judged anew, the way out after data were edited."""

import json
from collections.abc import Sequence

import pytest

from reports.plugin import qagate
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible, reply
from tests.support.projects import Project, specs

ITEMS = 40
GATES = "drop: {max: 0.1}"


def rows(golds: Sequence[str], *, ids: bool = True) -> str:
    """Return the lines of a data file; a gold stands in each question's rubric alone."""
    found = ({"question": f"Asked {n}?", "answer": gold} for n, gold in enumerate(golds))
    named = ({"id": f"q{n}", **one} if ids else one for n, one in enumerate(found))
    return "".join(json.dumps(one) + "\n" for one in named)


def handle(seen: Seen) -> Answer:
    """Answer ``old`` or ``new`` by the model's name; an answer is right if the gold names it."""
    if seen.tool is None:
        return reply(seen, text=f"says {seen.body['model']}")
    _, _, asked = seen.prompt.partition("Reference: ")
    gold, _, said = asked.partition(" Submission: ")
    right = "any" in gold or said.partition("says ")[2][:3] in gold
    made = {"reason": "as the gold says", "grade": "CORRECT" if right else "INCORRECT"}
    return plausible(lambda asked, name, schema: made.get(name, "fine"))(seen)


@pytest.fixture(params=[True, False], ids=["ids", "no ids"])
def edited(project: Project, request: pytest.FixtureRequest) -> Project:
    """Return a project whose file is about to get other golds, with ids and without."""
    project.asked(ITEMS, GATES)
    project.write("edited.jsonl", rows(["any"] * ITEMS, ids=request.param))
    project.write("qa/capital/en.jsonl", rows(["old, new"] * 28 + ["old"] * 12, ids=request.param))
    return project


def ran(project: Project, server: Loopback, model: str, *words: str) -> pytest.RunResult:
    """Run a model; of its SPEC and the judge's, the name says what it answers."""
    return project.run_in_process(*specs(server.url, model), *words, "qa")


def judged(project: Project, server: Loopback, *words: str) -> pytest.RunResult:
    """Judge the answers of the run ``before`` anew."""
    judge = specs(server.url)[2:]
    to = "--report-dir=rejudged"
    return project.run_in_process("--model=recorded:before", to, *judge, *words, "qa")


def test_edited_golds_are_answered_by_judging_anew_what_was_said_then(edited: Project) -> None:
    """No answer is asked for, replies are kept, and the new run compares with all answers."""
    with loopback(handler=handle) as server:
        ran(edited, server, "old")
        edited.out.rename(edited.path / "before")
        assert ran(edited, server, "new", "--baseline=before").ret == 1
        golds = ["old, new, x"] * 28 + ["old, x"] * 12
        ids = '"id"' in (edited.path / "edited.jsonl").read_text()
        edited.write("qa/capital/en.jsonl", rows(golds, ids=ids))
        assert ran(edited, server, "new", "--baseline=before").ret == 6
        planned = judged(edited, server, "--dry-run")
        assert f"{ITEMS} calls" in " ".join(planned.stdout.str().split())
        before = len(server.requests)
        judged(edited, server)
        asked = server.requests[before:]
        assert len(asked) == ITEMS
        assert all(one.tool for one in asked)
        judged(edited, server)
        assert len(server.requests) == before + ITEMS
        made = json.loads((edited.path / "rejudged/run.json").read_text())
        assert made["model"] == specs(server.url, "old")[1]
        assert "the answers of before, judged anew" in " ".join(made["notes"]).replace(
            str(edited.path) + "/", ""
        )
        lines = (edited.path / "rejudged/records.jsonl").read_text().splitlines()
        first = json.loads(lines[0])
        assert (first["answer"], first["model"]) == ("says old", "old")
        assert first["answer_tokens_out"] == 5
        result = ran(edited, server, "new", "--baseline=rejudged")
        assert result.ret == 1
        assert "0 fixed, 12 broke of 40 pairs" in edited.only("gates")["reason"]
        assert "WARNING" not in result.stdout.str()


def test_nothing_can_be_chosen_by_judging_anew(edited: Project) -> None:
    """Items cut from the data stay, changed questions have no answer, no slice is left out."""
    with loopback(handler=handle) as server:
        ran(edited, server, "old")
        edited.out.rename(edited.path / "before")
        lines = (edited.path / "qa/capital/en.jsonl").read_text().splitlines()
        edited.write("qa/capital/en.jsonl", "\n".join(lines[:28]))
        judged(edited, server, "--limit=3")
        result = ran(edited, server, "new", "--baseline=rejudged")
        assert result.ret == 6
        assert (
            "the baseline has 30% of capital:en's items, and this run does not"
            in result.outlines[-1]
        )
        changed = [line.replace("Asked", "Told") for line in lines[28:]]
        edited.write("qa/capital/en.jsonl", "\n".join([*lines[:28], *changed]))
        judged(edited, server)
        assert ran(edited, server, "new", "--baseline=rejudged").ret == 6
    edited.write("qa/capital/bg.jsonl", lines[0])
    edited.dataset("other", {"en": ["Sofia"]})
    assert "also has answers of capital:en; name the paths" in edited.refused(
        "--model=recorded:before", "qa/other"
    )
    assert "no such path" in edited.refused("--model=recorded:nowhere", "qa")


def test_rejudge_is_a_run_by_another_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run may follow options and their values; ``reports/rejudged`` is the default folder."""
    given: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> int:
        given.append(words)
        return 0

    monkeypatch.setattr("reports.commands.run.main", run)
    assert qagate.main(["rejudge", "OLD", "qa"]) == 0
    words = ["--judge", "J", "-k=a b", "-n", "2", "OLD", "--report-dir", "mine", "qa", "-q"]
    assert qagate.main(["rejudge", *words]) == 0
    first = "--model=recorded:OLD"
    assert given == [
        [first, "--report-dir=reports/rejudged", "qa"],
        [first, "--report-dir=mine", "--judge", "J", "-k=a b", "-n", "2", "qa", "-q"],
    ]
    assert qagate.main(["rejudge"]) == 4
    assert "RUN" in capsys.readouterr().err
