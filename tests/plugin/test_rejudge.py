"""``qagate rejudge RUN``: the answers of a run judged anew, the way out after data were edited."""

import json
from collections.abc import Sequence
from unittest.mock import Mock

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


@pytest.fixture
def edited(project: Project) -> Project:
    """Return a project whose file is about to get other golds."""
    project.asked(ITEMS, GATES)
    project.write("qa/capital/en.jsonl", rows(["old, new"] * 28 + ["old"] * 12))
    return project


def ran(project: Project, server: Loopback, model: str, *words: str) -> pytest.RunResult:
    """Run a model; of its SPEC and the judge's, the name says what it answers."""
    return project.run_in_process(*specs(server.url, model), *words, "qa")


def judged(project: Project, server: Loopback, *words: str) -> pytest.RunResult:
    """Judge the answers of the run ``before`` anew."""
    given = ("--model=recorded:before", "--report-dir=rejudged", *specs(server.url)[2:])
    return project.run_in_process(*given, *words, "qa")


@pytest.mark.parametrize("ids", [True, False])
def test_edited_golds_are_answered_by_judging_anew_what_was_said_then(
    edited: Project, ids: bool
) -> None:
    """No answer is asked for, replies are kept, and the new run compares with all answers."""
    edited.write("qa/capital/en.jsonl", rows(["old, new"] * 28 + ["old"] * 12, ids=ids))
    with loopback(handler=handle) as server:
        ran(edited, server, "old")
        edited.out.rename(edited.path / "before")
        assert ran(edited, server, "new", "--baseline=before").ret == 1
        golds = ["old, new, x"] * 28 + ["old, x"] * 12
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
        notes = " ".join(made["notes"]).replace(f"{edited.path}/", "")
        assert "the answers of before, judged anew" in notes
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
        lost = "the baseline has 30% of capital:en's items, and this run does not"
        assert lost in result.outlines[-1]
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
    run = Mock(return_value=0)
    monkeypatch.setattr("reports.commands.run.main", run)
    first, words = "--model=recorded:OLD", ["--judge", "J", "-k=a b", "-n", "2"]
    assert qagate.main(["rejudge", "OLD", "qa"]) == 0
    assert qagate.main(["rejudge", *words, "OLD", "--report-dir", "mine", "qa", "-q"]) == 0
    assert [list(call.args[0]) for call in run.call_args_list] == [
        [first, "--report-dir=reports/rejudged", "qa"],
        [first, "--report-dir=mine", *words, "qa", "-q"],
    ]
    assert qagate.main(["rejudge"]) == 4
    assert "RUN" in capsys.readouterr().err
