"""Runs with a cascade, a panel, and judges that are measured, waived or switched off."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from qagate.bundled import BUNDLED_LABELS
from qagate.cases.config import load_dataset
from qagate.cases.extras.new.command import main as new
from qagate.cases.loading import load_cases
from qagate.command import main
from tests.support.loopback import Answer, Handler, Loopback, Seen, loopback, plausible
from tests.support.projects import RUBRIC, Project, graded
from tests.support.tables import kept

pytestmark = pytest.mark.untraced
YAML = graded(
    dict.fromkeys(("en", "bg"), "correct: {min: 0.1}"), "judge: unmeasured", judged=True
)
LABELS: str = kept(__file__, "labels")
SURE, UNSURE = "Sofia", "The city at the foot of Vitosha"
REFUSAL = "I do not know what the town at that place was called back then"
"""Rules settle it; it has too many words for the reader of answers."""


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project of four items in each of two languages, two of them easy to settle."""
    answers = [SURE, REFUSAL, UNSURE, UNSURE]
    project.dataset("capital", {"en": answers, "bg": answers}, YAML)
    return with_rubrics(project, "capital")


def with_rubrics(project: Project, name: str) -> Project:
    for language in ("en", "bg"):
        project.write(f"qa/{name}/plain.{language}.yaml", RUBRIC.format(language))
    return project


def with_labels(project: Project, more: str = "", count: int = 4) -> Project:
    """Add labelled items, half of them CORRECT, as a dataset next to the others."""
    project.dataset("labels", {}, LABELS + more)
    for language in ("en", "bg"):
        lines = (json.dumps(label(language, number)) + "\n" for number in range(count))
        project.write(f"qa/labels/{language}.jsonl", "".join(lines))
    return with_rubrics(project, "labels")


def label(language: str, number: int) -> dict[str, str]:
    grade = "INCORRECT" if number % 2 else "CORRECT"
    said = f"A long story number {number} whose truth is [[truth={grade}]]"
    asked = f"In {language}, labelled question number {number}?"
    row = {
        "id": f"l{number}",
        "question": asked,
        "answer": "Sofia",
        "predicted_answer": said,
    }
    return {**row, "label": grade, "label_source": "constructed"}


def truthful(*, wrong_in: str = "", otherwise: str = "CORRECT") -> Handler:
    """Return a judge that grades as the item says, but for the labelled items of a language."""

    def rule(seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
        if name != "grade":
            return "because"
        if wrong_in and f"In {wrong_in}." in seen.prompt:
            return otherwise
        return "INCORRECT" if "[[truth=INCORRECT]]" in seen.prompt else otherwise

    return plausible(rule)


def spec(server: Loopback, name: str = "j", provider: str = "openai") -> str:
    return f"{provider}:{name}@{server.url}/v1"


@pytest.mark.parametrize(("provider", "workers"), [("openai", "2"), ("anthropic", "0")])
def test_a_cascades_rules_are_checked(
    capitals: Project, provider: str, workers: str
) -> None:
    """Of four verdicts of the rules the model differs on two; theirs stand, and no test waits."""
    with loopback(handler=truthful()) as server:
        judge = ("--judge", f"lexical+{spec(server, provider=provider)}")
        assert capitals.run_in_process("-n", workers, *judge, "qa").ret == 0
        assert server.count == 4 + 4
        again = capitals.run_in_process("-n", workers, *judge, "-v", "qa")
        assert server.count == 4 + 4
    assert again.ret == 0
    again.stdout.fnmatch_lines(["note: lexical+*rules settled 4 of 8*"])
    rules = capitals.report()["judging"]["rules"]
    assert (rules["settled"], rules["difference"]["n"]) == (4, 4)
    assert len(rules["differing"]) == 2
    assert (
        "rules settled 4 of 8 verdicts (50%); the model checked 4 of them and differs on 2: "
        "0.500 [0.500, 0.500]"
    ) in capitals.notes()
    grades = [record["grade"] for record in capitals.records()]
    assert grades.count("NOT_ATTEMPTED") == 2


def test_the_checks_of_rules_stand_in_a_dry_run(capitals: Project) -> None:
    with loopback(handler=truthful()) as server:
        judge = ("--judge", f"lexical+{spec(server)}")
        result = capitals.run_in_process("-n", "0", *judge, "--dry-run", "qa")
    result.stdout.fnmatch_lines(["*checks of rules*4*"])
    assert server.count == 0


def test_shards_together_hold_the_checks_of_rules(capitals: Project) -> None:
    """And `gate` counts them again without a call."""
    with loopback(handler=truthful()) as server:
        judge = ("--judge", f"lexical+{spec(server)}")
        for part in (1, 2):
            to = f"--report-dir=parts/{part}"
            capitals.run_in_process("-n", "0", *judge, f"--shard={part}/2", to, "qa")
        asked = server.count
    assert asked == 4 + 4
    assert main(["merge", "parts/1", "parts/2", "--to", "whole"]) == 0
    assert main(["gate", "whole", "--to", "again"]) == 0
    for folder in ("whole", "again"):
        rules = json.loads(capitals.path.joinpath(folder, "run.json").read_text())
        assert len(rules["judging"]["rules"]["grades"]) == 4


def panel(seen: Seen) -> Answer:
    """Judges a and b differ on items 3 and 4; c sides with a."""
    unsure = UNSURE in seen.prompt
    grade = "INCORRECT" if unsure and seen.body["model"] == "b" else "CORRECT"
    return truthful(otherwise=grade)(seen)


def test_rules_without_the_labelled_items_decide_as_with_them(
    capitals: Project,
) -> None:
    """Below the floor of labels next to the data nothing is decided; they are calls, no items."""
    with_labels(capitals)
    for chosen in ("qa", "qa/capital"):
        result = capitals.run_in_process(chosen)
        assert result.ret == 6
        assert "judge measured too little in en: it takes" in result.stdout.str()
    with_labels(capitals)
    with loopback() as server:
        result = capitals.run_in_process(
            "--judge", spec(server), "--dry-run", "qa/capital"
        )
        assert server.count == 0
    result.stdout.fnmatch_lines(
        [
            "capital:en*4 items*4 calls",
            "calibration*8 items*8 calls",
            "all*8 items*16 calls",
        ]
    )


def test_a_panel_that_ties_gives_no_grade(capitals: Project) -> None:
    """Two judges that differ: an ERROR that keeps both votes, an open gate, a note to review it."""
    with loopback(handler=panel) as server:
        judges = ("--judge", spec(server, "a"), "--judge", spec(server, "b"))
        result = capitals.run_in_process(*judges, "--languages", "en", "qa")
        assert server.count == 4 * 2
        tied = [record for record in capitals.records() if record["outcome"] == "error"]
        assert len(tied) == 2
        assert all(str(record["error"]).startswith("panel_tie: ") for record in tied)
        assert [vote["grade"] for vote in tied[0]["votes"]] == ["CORRECT", "INCORRECT"]
        assert result.ret == 0  # any two judges reach a bar of 0.1
        (agreement,) = capitals.report()["judging"]["panels"]
        assert agreement["undecided"] == 2
        assert agreement["split"] == ["capital-en-q3", "capital-en-q4"]
        assert "to be reviewed: capital-en-q3, capital-en-q4" in capitals.notes()
        settled = capitals.run_in_process(*judges, "--judge", spec(server, "c"), "qa")
    assert settled.ret == 0
    assert {record["outcome"] for record in capitals.records()} == {"passed"}


def test_repeats_show_whether_a_judge_agrees_with_itself(capitals: Project) -> None:
    """Each labelled answer is judged anew; how often two judgements agree is measured."""
    with_labels(capitals)
    grades = iter(["CORRECT", "INCORRECT"] * 100)

    def fickle(seen: Seen) -> Answer:
        return plausible(
            lambda asked, name, schema: next(grades) if name == "grade" else "x"
        )(seen)

    with loopback(handler=fickle) as server:
        options = ("--judge", spec(server), "--repeats", "3", "--concurrency", "1")
        capitals.run_in_process(*options, "--languages", "en", "qa/labels")
        assert server.count == 4 * 3
    found = capitals.only("slices")["measures"]["self_agreement"]
    assert found["n"] == 4 * 3
    assert 0 < found["low"] < found["value"] < found["high"] < 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_judge_below_its_floor_decides_nothing(
    capitals: Project, workers: int
) -> None:
    """Only the tests of one dataset are run; the labelled items next to it are judged as well."""
    with_labels(capitals, count=20)
    with loopback(handler=truthful(wrong_in="bg")) as server:
        assert (
            capitals.run_with(workers, "--judge", spec(server), "qa/capital").ret == 6
        )
        assert server.count == 2 * 4 + 2 * 20
        gates = {gate["language"]: gate for gate in capitals.report()["gates"]}
        assert (gates["en"]["state"], gates["bg"]["state"]) == ("PASS", "INCONCLUSIVE")
        reason = gates["bg"]["reason"]
        assert reason.startswith("judge not trusted in bg: kappa 0 does not keep to")
        assert "the judge agrees with 10 of your 20 labels" in reason
        assert capitals.report()["counts"]["plan"] == 8
        assert "judge in en (for capital:en): agreement 1.000" in capitals.notes()
        assert capitals.report()["tokens"] > sum(
            one["tokens"] for one in capitals.records()
        )
        again = capitals.run_with(workers, "--judge", spec(server), "qa/capital")
    assert again.ret == 6
    assert server.count == 48


def test_a_measured_judge_lets_its_gates_pass(capitals: Project) -> None:
    """Above its floor nothing is in the way; where no gate or item asks, nothing is measured."""
    with_labels(capitals, count=20)
    with loopback(handler=truthful()) as server:
        judge = ("--judge", spec(server))
        assert capitals.run_in_process(*judge, "qa/capital", "-k", "zzz").ret == 6
        assert server.count == 0
        assert capitals.run_in_process(*judge, "qa/capital").ret == 0
        assert server.count == 48
        assert capitals.run_in_process(*judge, "qa").ret == 0
        assert server.count == 48  # the same requests, now as tests of their own
        ungated = ("--judge", spec(server, "k"), "--gates", "off", "qa/capital")
        assert capitals.run_in_process(*ungated).ret == 0
        assert server.count == 48 + 8


def measured(project: Project) -> Project:
    """Take ``judge: unmeasured`` out of the data set."""
    project.write("qa/capital/dataset.yaml", YAML.replace("judge: unmeasured\n", ""))
    return project


def test_a_refused_label_does_not_switch_the_floor_off(capitals: Project) -> None:
    """A judge that finds everything CORRECT stays below its floor when one label is refused."""
    with_labels(measured(capitals))
    floor = LABELS.replace("kappa: 0.6", "agreement: 0.6")
    capitals.write("qa/labels/dataset.yaml", floor)
    always = truthful(wrong_in="en")

    def refusing(seen: Seen) -> Answer:
        return (
            Answer(status=400)
            if "labelled question number 1?" in seen.prompt
            else always(seen)
        )

    for ledger, handler, reason in (
        ("always", always, "it takes 2 more labels CORRECT"),
        ("refusing", refusing, "judge measured too little"),
    ):
        with loopback(handler=handler) as server:
            languages = ("--languages", "en", "--judge", spec(server), "qa/capital")
            done = capitals.run_in_process(*languages, "--ledger", ledger)
            assert done.ret == 6
        assert reason in capitals.only("gates")["reason"]
    assert main(["gate", str(capitals.out)]) == 6
    said = (
        "over 4 unit tests of the judge (labels); 1 without a grade; judge measured too"
    )
    assert said in capitals.notes()


BUNDLED_RUBRIC: str = kept(__file__, "bundled_rubric")
OWN = {"question": "Own?", "answer": "Sofia", "predicted_answer": UNSURE}


@pytest.mark.parametrize(("honest", "code"), [(False, 6), (True, 0)])
def test_a_users_own_file_has_a_measured_judge(
    project: Project, honest: bool, code: int
) -> None:
    """In a repository of one's own the bundled labels measure it: cold, warm, or never asked."""
    project.dataset("capital", {"bg": [SURE]}, BUNDLED_RUBRIC)
    project.write("own.jsonl", json.dumps(OWN) + "\n")
    truth = truths("bg")

    def grade(seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
        given = {
            seen.prompt.rindex(answer): label  # the answer stands behind the gold
            for (asked, answer), label in truth.items()
            if asked in seen.prompt and answer in seen.prompt
        }
        return given[max(given)] if given and name == "grade" and honest else "CORRECT"

    with loopback(handler=plausible(grade)) as server:
        run = ("--judge", spec(server), "--items", "capital:bg=own.jsonl", "qa")
        project.run_in_process(*run, "--dry-run").stdout.fnmatch_lines(
            ["calibration*240 items*"]
        )
        counts = set()
        for _ in range(2):
            assert project.run_in_process(*run).ret == code
            counts.add(server.count)
        assert len(counts) == 1
        assert counts.pop() > 100
    assert "unit tests of the judge (judges)" in project.notes()
    gate = project.only("gates")
    assert gate["state"] == ("PASS" if honest else "INCONCLUSIVE")
    assert gate["reason"].startswith("judge not trusted in bg") is not honest


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
def test_labels_are_asked_for_before_a_call(
    project: Project, workers: tuple[str, ...]
) -> None:
    """With the command that writes them; what it writes, or a file given with --items, is used."""
    assert new(["folk", "--lang", "de", "--to", str(project.path / "qa")]) == 0
    missing = (
        "folk:de: INCONCLUSIVE with any answers; judge not measured in de: no labelled answers "
        "by its rubric; label answers of this run (qagate label RUN), or say judge: unmeasured in "
        "the dataset.yaml of folk"
    )
    with loopback(handler=truthful()) as server:
        run = ["--judge", spec(server), "qa"]
        assert missing in " ".join(
            project.run_in_process(*run, "--dry-run").stdout.str().split()
        )
        said = project.run_in_process(*run, "-q")
        assert server.count == 1
        assert said.outlines.index(missing) < 2
    given = project.write("own.csv", OWN_LABELS)
    with loopback(handler=truthful()) as server:
        run = [*workers, "--judge", spec(server), "qa/folk"]
        own = project.run_in_process(*run, "--items", f"judges:de={given}")
        assert missing not in own.outlines
        assert server.count == 3  # the labels; the item's grade is kept
        assert "over 3 labelled items (judges)" in project.notes()
        project.run_in_process("qa/folk", "--items", f"judges:de={given}")
        assert "over 3 labelled items (judges)" in project.notes()
        words = [
            "labels_de",
            "--kind",
            "judged",
            "--lang",
            "de",
            "--to",
            str(project.path / "qa"),
        ]
        assert new(words) == 0
        assert missing not in project.run_in_process(*run).outlines
        assert "over 3 labelled items (labels_de)" in project.notes()


OWN_LABELS: str = kept(__file__, "own_labels")


def truths(language: str) -> dict[tuple[str, str], str]:
    """Return the labels of the bundled items by what the judge is shown of question and answer."""

    def shown(text: str | None) -> str:
        return json.dumps(text, ensure_ascii=False)

    cases = load_cases(load_dataset(BUNDLED_LABELS / "dataset.yaml").slices[language])
    return {(shown(one.question), shown(one.recorded)): str(one.label) for one in cases}


def test_a_judge_that_nothing_measures_decides_only_where_that_is_said(
    capitals: Project,
) -> None:
    """Its rubric is the project's own, so that no bundled label is for it."""
    undecided = "capital:en: INCONCLUSIVE with any answers; judge not measured in en*"
    with loopback(handler=truthful()) as server:
        run = ("--judge", spec(server), "qa")
        capitals.run_in_process(*run, "--dry-run").stdout.no_fnmatch_line(undecided)
        assert capitals.run_in_process(*run).ret == 0
        assert "capital:en, capital:bg: judge: unmeasured" in capitals.notes()
        for name in ("summary.md", "report.html", "run.json"):
            assert "judge: unmeasured; no labels" in capitals.text(name)
        assert main(["gate", str(capitals.out)]) == 0
        assert measured(capitals).run_in_process(*run).ret == 6
        capitals.run_in_process(*run, "--dry-run").stdout.fnmatch_lines([undecided])
    (gate, _) = capitals.report()["gates"]
    assert (
        "judge not measured in en: no labelled answers by its rubric" in gate["reason"]
    )
    assert "say judge: unmeasured in the dataset.yaml of capital" in gate["reason"]
    assert main(["gate", str(capitals.out)]) == 6


def test_a_test_gets_a_copy_of_what_is_decided_on(project: Project) -> None:
    """No matter what it does to verdict and item, the report has what the judge said."""
    project.dataset(
        "capital", {"en": ["Varna"] * 4}, graded({"en": "correct: {min: 0.5}"})
    )
    text = project.path / "qa/capital/test_capital.py"
    lies = """
    object.__setattr__(verdict, "state", "passed")
    object.__setattr__(verdict.verdict, "grade", "CORRECT")
    object.__setattr__(case, "golds", ("Varna",))
    case.metadata["fact_id"] = "one"
    """
    text.write_text(text.read_text().replace("    assert", f"{lies}assert"))
    assert (project.run_in_process("qa").ret, project.outcomes()) == (1, {"failed": 4})
    assert {one["expected"] for one in project.records()} == {"Sofia"}
