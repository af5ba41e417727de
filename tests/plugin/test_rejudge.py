"""Verdicts anew, of a judge (``qagate rejudge RUN``) or of people in the judge's place."""

import json
from collections.abc import Iterator, Sequence
from unittest.mock import Mock

import pytest

from qagate import command
from qagate.cases.adjudication_files import save_adjudications
from qagate.evaluators.adjudications import Adjudication, answer_digest
from qagate.reports.extras.sequential.human_review import pick
from qagate.reports.run.run_json import load_report
from tests.plugin.test_plugin_judges import spec, truthful
from tests.support.fixtures import Captured, Patch
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible, reply
from tests.support.projects import RUBRIC, Project, specs
from tests.support.tables import kept

ITEMS = 40
GATES = "drop: {max: 0.1}"


def rows(golds: Sequence[str], *, ids: bool = True) -> str:
    """Return the lines of a data file; a gold stands in each question's rubric alone."""
    found = (
        {"question": f"Asked {n}?", "answer": gold} for n, gold in enumerate(golds)
    )
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


def ran(
    project: Project, server: Loopback, model: str, *words: str
) -> pytest.RunResult:
    """Run a model; of its SPEC and the judge's, the name says what it answers."""
    return project.run_in_process(*specs(server.url, model), *words, "qa")


def judged(project: Project, server: Loopback, *words: str) -> pytest.RunResult:
    """Judge the answers of the run ``before`` anew."""
    given = ("--model=recorded:before", "--report-dir=rejudged", *specs(server.url)[2:])
    return project.run_in_process(*given, *words, "qa")


@pytest.fixture
def read_anew(edited: Project) -> Iterator[tuple[Project, Loopback, pytest.RunResult]]:
    """Judge a run anew after an alias was added to some golds: 12 answers turn out right."""
    with loopback(handler=handle) as server:
        ran(edited, server, "new")
        edited.keep("before")
        edited.write("qa/capital/en.jsonl", rows(["old, new, x"] * ITEMS))
        server.requests.clear()
        yield edited, server, judged(edited, server)


ReadAnew = tuple[Project, Loopback, pytest.RunResult]


def test_no_model_is_asked_for_an_answer(read_anew: ReadAnew) -> None:
    """The judge alone reads, once an answer."""
    _, server, _ = read_anew
    assert len(server.requests) == ITEMS
    assert all(request.tool for request in server.requests)


def test_a_second_reading_asks_nothing(read_anew: ReadAnew) -> None:
    """Its grades are kept."""
    project, server, _ = read_anew
    judged(project, server)
    assert len(server.requests) == ITEMS


def test_both_readings_are_told_apart(read_anew: ReadAnew) -> None:
    """The line says how many answers are graded otherwise than then."""
    _, _, result = read_anew
    line = f"READ ANEW: exit 0; {ITEMS} answers of"
    assert line in result.outlines[-1]
    assert "12 graded otherwise than then" in result.outlines[-1]


def test_the_report_lists_what_reads_otherwise(read_anew: ReadAnew) -> None:
    """Each with the grade of then."""
    project, _, _ = read_anew
    comparison = load_report(project.path / "rejudged").comparison
    assert comparison is not None
    grades = {change.grade for change in comparison.changes if change.flip == "fixed"}
    assert grades == {"INCORRECT"}


def test_the_answers_keep_what_they_took(read_anew: ReadAnew) -> None:
    """Model and tokens are those of the run that asked."""
    project, _, _ = read_anew
    record = load_report(project.path / "rejudged").records[0]
    assert (record.answer, record.model) == ("says new", "new")
    assert record.answer_tokens_out == 5


def test_a_reading_is_no_baseline(read_anew: ReadAnew) -> None:
    """A run reads its baseline's answers itself."""
    project, server, _ = read_anew
    result = ran(project, server, "new", "--baseline=rejudged")
    assert result.ret == 4
    assert "decided nothing" in result.stderr.str()


def test_a_reading_cannot_be_gated_into_a_pass(
    read_anew: ReadAnew, capsys: Captured
) -> None:
    """A run beside its own answers loses nothing: whatever counts them again decides nothing."""
    project, _, _ = read_anew
    code = command.main(["gate", str(project.path / "rejudged")])
    said = " ".join(capsys.readouterr().out.split())
    assert code == 6, said
    assert f"{ITEMS} of {ITEMS} answers are the baseline's own" in said


@pytest.mark.parametrize("ids", [True, False])
def test_items_without_ids_of_their_own_keep_their_answers(
    edited: Project, ids: bool
) -> None:
    """Another gold gives them another id; their question does not change."""
    edited.write("qa/capital/en.jsonl", rows(["old"] * ITEMS, ids=ids))
    with loopback(handler=handle) as server:
        ran(edited, server, "old")
        edited.keep("before")
        edited.write("qa/capital/en.jsonl", rows(["old, x"] * ITEMS, ids=ids))
        assert judged(edited, server).ret == 0


def test_a_changed_question_has_no_answer(edited: Project) -> None:
    """The answer belongs to the question of then: a grade is lacking."""
    with loopback(handler=handle) as server:
        ran(edited, server, "old")
        edited.keep("before")
        text = rows(["old"] * ITEMS).replace("Asked 3?", "Told 3?")
        edited.write("qa/capital/en.jsonl", text)
        result = judged(edited, server)
    assert result.ret == 6
    assert "1 grade lacking" in result.outlines[-1]


def test_no_part_of_a_run_may_be_chosen(edited: Project) -> None:
    """All its data sets are named."""
    with loopback(handler=handle) as server:
        ran(edited, server, "old")
        edited.keep("before")
    edited.dataset("other", {"en": ["Sofia"]})
    assert "also has answers of capital:en; name the paths" in edited.refused(
        "--model=recorded:before", "qa/other"
    )


def test_a_run_that_is_not_there_is_named(edited: Project) -> None:
    """In one line."""
    assert "no such path" in edited.refused("--model=recorded:nowhere", "qa")


def test_rejudge_is_a_run(monkeypatch: Patch, capsys: Captured) -> None:
    """The run may follow options and their values; ``reports/rejudged`` is the default folder."""
    run = Mock(return_value=0)
    monkeypatch.setattr("qagate.reports.commands.run.main", run)
    first, words = (
        "--model=recorded:OLD",
        ["--judge", "J", "-k=a b", "-n", "2", "--tb", "short", "-r", "A"],
    )
    assert command.main(["rejudge", "OLD", "qa"]) == 0
    assert (
        command.main(["rejudge", *words, "OLD", "--report-dir", "mine", "qa", "-q"])
        == 0
    )
    assert [list(call.args[0]) for call in run.call_args_list] == [
        [first, "--report-dir=reports/rejudged", "qa"],
        [first, "--report-dir=mine", *words, "qa", "-q"],
    ]
    assert command.main(["rejudge"]) == 4
    assert "RUN" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["rejudge", "--help"])
    assert "usage: qagate rejudge RUN [PATH …] [options" in capsys.readouterr().out


YAML: str = kept(__file__, "yaml")
ANSWERS = ["Sofia", "Varna", "The city at the foot of Vitosha"]


def capitals(project: Project) -> Project:
    project.dataset("capital", {"en": ANSWERS}, YAML)
    project.write("qa/capital/plain.en.yaml", RUBRIC.format("en"))
    return project


def adjudicate(project: Project, where: str, item: str, label: str) -> None:
    """Keep a person's verdict on the answer of the last run to one item."""
    (one,) = (
        one for one in pick(load_report(project.out), 99) if one.record.id == item
    )
    name, _, digest = one.id.rpartition("@")
    kept = Adjudication(
        item=name, digest=digest, label=label, name="Ana", reason="I know it"
    )
    save_adjudications({digest: kept}, project.path / where)


def grades(project: Project) -> list[object]:
    return [record["grade"] for record in project.records()]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_verdict_beside_the_data_overrides_the_judge(
    project: Project, workers: int
) -> None:
    """For that answer; record and note name the person, and the judge's grade stands beside."""
    capitals(project)
    with loopback(handler=truthful()) as server:
        judge = ("--judge", spec(server))
        project.run_in_process(*judge, "qa")
        assert grades(project) == ["CORRECT"] * 3
        adjudicate(project, "qa/capital/adjudications.yaml", "q2", "INCORRECT")
        before = server.count
        result = project.run_with(workers, *judge, "--ledger", "other.sqlite3", "qa")
    assert server.count == before + 3
    result.assert_outcomes(passed=2)
    record = project.records()[1]
    assert (record["grade"], record["adjudicated_by"]) == ("INCORRECT", "Ana")
    assert record["judge_grade"] == "CORRECT"
    assert str(record["reason"]).startswith("adjudicated by Ana: I know it; openai:")
    report = project.report()
    assert "1 verdict by people (Ana)" in report["notes"]
    assert report["provenance"]["adjudications"]["verdicts"] == 1
    result.stdout.fnmatch_lines(["*1 verdict by people (Ana)*"])


def test_a_different_answer_is_judged_as_usual(project: Project) -> None:
    """The verdict is not the item's but the answer's."""
    capitals(project)
    project.run_in_process("qa")
    adjudicate(project, "mine.yaml", "q2", "CORRECT")
    option = "--adjudications=mine.yaml"
    project.run_in_process(option, "qa").assert_outcomes(passed=2)
    assert grades(project)[1] == "CORRECT"
    reason = str(project.records()[1]["reason"])
    assert reason == "adjudicated by Ana: I know it; lexical: INCORRECT"
    project.dataset("capital", {"en": [ANSWERS[0], "Plovdiv", ANSWERS[2]]}, YAML)
    project.run_in_process(option, "qa").assert_outcomes(passed=1)
    assert project.records()[1]["adjudicated_by"] == ""


def test_people_decide_an_audited_gate(project: Project) -> None:
    """INCONCLUSIVE names the command; with their verdicts on both sides the same run passes."""
    audited = YAML.replace(
        "correct: {min: 0.1}", "drop: {max: 0.5, evidence: audited, share: 1}"
    )
    old = [f"{n}: Sofia" for n in range(60)]
    new = [f"{n}: it is Sofia" for n in range(60)]
    project.dataset("capital", {"en": old}, audited)
    project.write("qa/capital/plain.en.yaml", RUBRIC.format("en"))
    project.run_in_process("--report-dir=old", "qa")
    project.promote("old")
    project.dataset("capital", {"en": new}, audited)
    result = project.run_in_process("--baseline=old", "qa")
    assert result.ret == 6
    kept = {}
    for folder in ("old", "reports/out"):
        for record in load_report(project.path / folder).records:
            digest = answer_digest(record, record.answer or "")
            kept[digest] = Adjudication(
                item=record.key, digest=digest, label="CORRECT", name="Ana"
            )
    save_adjudications(kept, project.path / "people.yaml")
    result = project.run_in_process(
        "--baseline=old", "--adjudications=people.yaml", "qa"
    )
    assert result.ret == 0
    (gate,) = load_report(project.out).decision.gates
    assert gate.reason.startswith("people: new - old is 0, 95 % interval -0.")


def test_the_file_can_be_switched_off_and_must_be_right(project: Project) -> None:
    """off asks the judge again; a wrong file ends the run before any call, a dry run too."""
    capitals(project)
    project.run_in_process("qa")
    adjudicate(project, "qa/capital/adjudications.yaml", "q2", "CORRECT")
    for word in (
        "--adjudications=qa/capital/adjudications.yaml",
        "--adjudications=off",
    ):
        assert project.run_in_process(word, "qa").ret != 4
        assert grades(project)[1] == (
            "INCORRECT" if word.endswith("off") else "CORRECT"
        )
    for words in (
        ["--adjudications=none.yaml"],
        ["--adjudications=none.yaml", "--dry-run"],
    ):
        assert "none.yaml: cannot be read" in project.refused(*words, "qa")
    project.run_in_process("qa")  # a refused run leaves no verdict behind
    adjudicate(project, "qa/capital/adjudications.yaml", "q1", "7")
    project.run_in_process("qa")
    assert "adjudication: Ana gave '7' where" in str(project.records()[0]["error"])
