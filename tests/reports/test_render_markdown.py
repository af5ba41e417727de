"""``summary.md``, ``gates.xml``, annotations and the terminal, for any texts."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from qagate.cases.dataset import Threshold
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate
from qagate.reports.plugin.finish import ci_link
from qagate.reports.plugin.terminal import ci_lines
from qagate.reports.render import console, markdown, words, worst_first, writer
from qagate.reports.render.console import LIMIT, annotations
from qagate.reports.run import clean
from qagate.reports.run.evidence import Change, Comparison
from qagate.reports.run.report import Cause, Decision, GateResult, Report
from tests.support.hostile import HOSTILE
from tests.support.junit_schema import violations
from tests.support.made_records import make_record
from tests.support.made_runs import answered, run_of
from tests.support.projects import Project, graded
from tests.support.samples import ended, full, gate, part, record, report
from tests.support.tables import tabled


def test_the_verdict_comes_first() -> None:
    """FAIL before INCONCLUSIVE before PASS; no gates is no pass; what limits it is said."""
    text = markdown.render(full())
    assert text.startswith(
        "## FAIL. Do not ship: Bulgarian in simpleqa is right on 21%"
    )
    assert "\nGATES FAIL (3 of 7 pass, 2 fail, 2 inconclusive): exit 1" in text
    assert "compared with ` last-release `" in text
    states = re.findall(r"\| (FAIL|INCONCLUSIVE|PASS) \|", text)
    assert states == ["FAIL"] * 2 + ["INCONCLUSIVE"] * 2 + ["PASS"] * 3
    for word in ("boolq:be (partial)", "- 23 error: ` model: timeout `",
                 "- The judge was not measured for hu.",
                 "- eba:en: overlap: a placeholder judge"):  # fmt: skip
        assert word in text
    made = report(
        decision=Decision(gates=(), code=0, cause=Cause.PASSED, line="no gates")
    )
    assert markdown.render(made).startswith("## NO GATES")


def test_no_measure_stands_without_its_interval() -> None:
    """One item is an item; a row keeps its columns where names hold pipes and line ends."""
    span = Estimate(value=0.5, low=0.25, high=0.75, n=1)
    one = replace(
        part("graded", (record(1),), {}), measures={"correct": span, "f_score": span}
    )
    text = markdown.render(replace(report(), slices=(one,)))
    assert r"correct 0.500 \[0.250, 0.750\], f\_score 0.500 \[0.250, 0.750\]" in text
    assert "1 item planned" in text
    odd = gate("FAIL", dataset="a|b\nc", reason="x | y\n| z |")
    text = markdown.render(
        report(
            decision=Decision(gates=(odd,), code=1, cause=Cause.GATE_FAILED, line="")
        )
    )
    table = (
        text.partition("<summary>Gates (")[2].partition("</details>")[0].splitlines()
    )
    lines = [line for line in table if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}


def test_checks_by_code_stand_beside_the_headline() -> None:
    """BLEU and ROUGE are read in the pull request too, not only on the page."""
    span = Estimate(value=0.5, low=0.25, high=0.75, n=1)
    measures = dict.fromkeys(
        ("correct", "check_bleu", "faithfulness", "tokens_in"), span
    )
    one = replace(part("graded", (record(1),), {}), measures=measures)
    text = markdown.render(replace(report(), slices=(one,)))
    assert r"check\_bleu 0.500 \[0.250, 0.750\], faithfulness 0.500" in text
    assert "tokens" not in text.partition("Slices (")[2].partition("</details>")[0]


def test_answers_of_a_file_of_their_own_are_named_by_it() -> None:
    slices = {"s:en": {"file": "en.csv", "recorded_file": "mistral.csv"}}
    made = report(model="recorded", provenance={"slices": slices})
    assert "Model ` recorded (mistral.csv) `," in markdown.render(made)


@tabled("files", "shown")
def test_recorded_answers_are_named_by_their_file(
    files: tuple[str, ...], shown: str
) -> None:
    """Two models' recorded answers can be told apart, where a run reads one file."""
    slices = {f"s:{number}": {"file": file} for number, file in enumerate(files)}
    made = report(model="recorded", provenance={"slices": slices} if files else {})
    assert f"Model {shown}," in markdown.render(made)
    live = report(model="openai:new", provenance={"slices": slices})
    assert "Model ` openai:new `," in markdown.render(live)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_in_its_span(hostile: str) -> None:
    """With the code spans taken out, nothing of a model's text is left."""
    items = (
        record(
            1, outcome="failed", grade="INCORRECT", question=hostile, answer=hostile
        ),
    )
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", markdown.render(report(items)))
    for word in (
        "<script",
        "<img",
        "@everyone",
        "Fixes",
        "x.invalid",
        "CNRY",
        "owned",
        "long",
    ):
        assert word not in text
    assert len(text.splitlines()) < 40


@pytest.mark.slow
def test_the_summary_fits_a_comment_however_large_the_run() -> None:
    """Below 60,000 bytes, cut at a line end, and said; however long answers are."""
    gates = tuple(gate("FAIL", reason="я" * 5000) for _ in range(300))
    wide = tuple(
        record(
            n, dataset=f"d{n}", outcome="failed", question="😀" * 300, answer="`" * 300
        )
        for n in range(200)
    )
    slices = tuple(part("graded", (item,), {"correct": 0.5}) for item in wide)
    made = report(
        wide,
        decision=Decision(gates=gates, code=1, cause=Cause.GATE_FAILED, line="x"),
        slices=slices,
    )
    text = markdown.render(made)
    assert len(text.encode()) <= markdown.MAX_BYTES
    assert "250 more in the report." in text
    assert text.rstrip().endswith("have it all.*")
    old = run_of(answered("c" * 400, answer="x" * 5000))
    text = markdown.render(run_of(answered("i" * 400, answer="щ" * 5000), baseline=old))
    assert len(text) < 65_536
    assert len(text.encode()) <= markdown.MAX_BYTES


@tabled("code", "complete", "word")
def test_the_word_for_each_code(code: int, complete: bool, word: str) -> None:
    """A run that was cut short is never shown as passed."""
    decision = replace(report().decision, code=code)
    assert report(decision=decision, complete=complete).verdict == word


def test_what_decides_stands_before_the_first_fold() -> None:
    """2,500 characters decide; three misses a slice, wrong ones before unanswered."""
    gates = tuple(gate("FAIL", dataset=f"data{n}", reason="x" * 900) for n in range(30))
    made = replace(
        report(),
        decision=Decision(
            gates=gates, code=1, cause=Cause.GATE_FAILED, line="GATES FAIL (30 of 30)"
        ),
    )
    above, _, below = markdown.render(made).partition("<details>")
    assert len(above) <= 2500
    assert "### Gates that did not pass" in above
    assert "more below" in above
    assert below.count("<details>") + 1 == below.count("</details>")
    misses = (
        ended(1, "bg", "failed", grade="NOT_ATTEMPTED", answer="Не зная."),
        *(ended(n, "bg", "failed") for n in range(2, 5)),
        record(9, outcome="failed", grade=None, rating=2, answer=""),
    )
    text = markdown.render(report(misses))
    assert len([line for line in text.splitlines() if " row " in line]) == 4
    assert "NOT\\_ATTEMPTED" not in text
    assert "row 9, rating 2" in text
    assert text.count("got *(empty)*") == 1


def test_figures_have_words() -> None:
    """An address in a code span; undefined and unknown in words; the furthest fall first."""
    said = "openai:m@http://127.0.0.1:4111/v1, see https://example.org/a_b."
    assert clean.prose(said) == (
        "`openai:m@http://127.0.0.1:4111/v1`, see `https://example.org/a_b`."
    )
    assert words.interval(Estimate(value=1.0, low=None, high=1.0, n=1)) == "–"
    assert words.cost(report(cost=float("inf"))) == "unknown"
    assert words.cost(report(cost=1234.5)) == "$1,234.5000"
    assert words.bounds(gate("FAIL", worst=None, best=None)) == "undefined"
    new = [make_record(n, rating=r, outcome="failed") for n, r in enumerate((5, 2, 4))]
    changes = tuple(
        Change(key=one.key, flip="broke", rating=7 + n) for n, one in enumerate(new)
    )
    made = report(
        tuple(new), comparison=Comparison(model="m", judge="j", changes=changes)
    )
    assert [lost.record.rating for lost in worst_first.lost_answers(made)] == [2, 4, 5]
    assert [words.mark(new[0]), words.mark(make_record(1))] == [
        "rating 5",
        "not graded",
    ]


def regressed() -> Report:
    """A run of seven regressions against its baseline, with hostile text in answers and reasons."""
    new = answered("nniiiiicc", answer=HOSTILE[0], reason=HOSTILE[1])
    return run_of(new, baseline=run_of(answered("cccccccci", answer=HOSTILE[2])))


def test_the_worst_regressions_come_first_and_are_few() -> None:
    """Wrong before silent, five at most, with both answers; the comparison is a row a slice."""
    text = markdown.render(regressed())
    part = text.partition("The worst lost answers</summary>")[2].partition(
        "</details>"
    )[0]
    lines = [line for line in part.splitlines() if line.startswith("| Question ")][1:]
    assert [line.split("?")[0] for line in lines] == [
        f"| Question {number}" for number in range(2, 7)
    ]
    assert "Some of the misses" not in text
    assert "| facts:en | 9 | 1 | 7 | -0.667 \\[-0.907, -0.053\\] | 0.070 | 0.14" in text
    assert "Compared with the baseline" not in markdown.render(report())


@tabled("figures", "odds", "signed")
def test_effect_sizes_have_words(
    figures: list[float | None], odds: str, signed: str
) -> None:
    """An end without bound is infinite, and undefined is neither 0 nor NaN."""
    value, low, high = figures
    estimate = Estimate(value=value, low=low, high=high, n=4)
    if odds == "–":
        estimate = UNDEFINED
    assert (words.odds(estimate), words.signed(estimate)) == (odds, signed)
    assert [words.p_value(p) for p in (None, 0.0004, 0.04)] == ["–", "< 0.001", "0.040"]


def test_the_terminal_shows_comparison_and_gates_within_100_columns() -> None:
    """One line a line, hidden characters written out; another judge, who read both, is no news."""
    for made in (regressed(), full()):
        lines = [*console.comparison(made), *console.gates(made)]
        assert max(map(len, lines)) <= console.WIDTH
        assert not any(
            "\x1b" in line or "\u202e" in line or "\n" in line for line in lines
        )
    made = run_of(answered("cce"), baseline=run_of(answered("cc", judge="judge-2025")))
    lines = list(console.comparison(made))
    assert not any("the judge changed" in line for line in lines)
    assert any("1 new" in line for line in lines)
    assert list(console.comparison(report())) == []


def parse(made: Report) -> ET.Element:
    return ET.fromstring(writer.junit(made).encode())


def test_a_suite_a_slice_and_a_case_a_gate() -> None:
    """Counts are those of the elements; notes end the last suite, nothing else is added."""
    root = parse(full())
    assert root.tag == "testsuites"
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "time")} == {
        "tests": "7", "failures": "2", "errors": "2", "time": "0",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == [
        "simpleqa:en", "simpleqa:bg", "simpleqa:*", "simpleqa:hu", "judges:en", "eba:en",
    ]  # fmt: skip
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("errors") == str(len(suite.findall("testcase/error")))
    notes = ("gates left out by the gates file: simpleqa:en drop <= 0.1", "b\x1b[31m")
    made = replace(full(), notes=notes)
    *others, last = parse(made)
    assert all(suite.find("system-out") is None for suite in others)
    assert (last[-1].tag, last[-1].text) == ("system-out", f"{notes[0]}\nb\\u001b[31m")
    assert violations(writer.junit(made)) == []
    assert parse(report()).get("tests") == "1"


@pytest.mark.parametrize(
    ("state", "tags"),
    [("PASS", []), ("FAIL", ["failure"]), ("INCONCLUSIVE", ["error"])],
)
def test_states_become_what_ci_shows(state: str, tags: list[str]) -> None:
    """FAIL is a failure; INCONCLUSIVE is an error, for its exit code is not 0 either."""
    one = gate(state)  # type: ignore[arg-type]
    (case,) = parse(
        report(decision=Decision(gates=(one,), code=0, cause=Cause.PASSED, line=""))
    ).iter("testcase")
    assert [child.tag for child in case] == [*tags, "system-out"]
    out = case.findtext("system-out") or ""
    for word in (state, "95 % interval", ">= 0.35", "worst", "best", one.reason):
        assert word in out


@tabled("code", "complete", "tag", "kind")
def test_a_red_run_with_green_gates_is_red(
    code: int, complete: bool, tag: str, kind: str
) -> None:
    """An interrupt or an ordinary failing test does not publish as success."""
    decision = replace(report().decision, code=code, line="3 tests failed")
    root = parse(report(decision=decision, complete=complete))
    (problem,) = root.iter(tag)
    assert (problem.get("type"), problem.get("message")) == (kind, "3 tests failed")
    assert root.get("tests") == "2"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_xml(text: str) -> None:
    """Reasons and names may quote models and users; the document's shape does not change."""
    raw = writer.junit(
        replace(gated(gate("FAIL", dataset=text, reason=text)), notes=(text,))
    )
    assert "<!" not in raw
    assert len(list(ET.fromstring(raw.encode()).iter("testcase"))) == 1
    assert violations(raw) == []


@pytest.mark.parametrize(
    "made",
    [
        full(),
        report(decision=Decision(gates=(), code=6, cause=Cause.GATE_OPEN, line="NO")),
        report(complete=False),
    ],
    ids=["full", "none", "partial"],
)
def test_the_file_is_valid_by_the_schema_of_jenkins_and_gitlab(made: Report) -> None:
    """Elements in the schema's order, with its attributes and no other."""
    assert violations(writer.junit(made)) == []


@tabled("wrong", "found")
def test_the_check_itself_finds_what_the_schema_forbids(wrong: str, found: str) -> None:
    """A check that accepted everything would prove nothing."""
    assert found in violations(wrong)


def gated(*gates: GateResult) -> Report:
    return report(
        decision=Decision(
            gates=gates, code=1, cause=Cause.GATE_FAILED, line="GATES FAIL"
        )
    )


def test_failed_and_undecided_gates_are_annotated() -> None:
    """Errors first, then warnings; a reason stays out, what would end a command is escaped."""
    made = gated(gate("INCONCLUSIVE"), gate("PASS"), gate("FAIL"))
    assert list(annotations(made)) == [
        "::error title=FAIL%3A simpleqa%3Aen correct::correct 0.210, 95 %25 interval 0.100 to "
        "0.320, n=60; bar >= 0.35",
        "::warning title=INCONCLUSIVE%3A simpleqa%3Aen correct::correct 0.400, 95 %25 interval "
        "0.290 to 0.510, n=60; bar >= 0.35",
    ]
    shown = [list(annotations(gated(gate("FAIL", reason=text)))) for text in HOSTILE]
    assert all(lines == shown[0] for lines in shown)
    rule = Threshold(measure="a,b:c%\r\n::error::d", min=0.5)
    (line,) = annotations(gated(gate("FAIL", threshold=rule)))
    assert "\n" not in line
    assert "\r" not in line
    assert "title=FAIL%3A simpleqa%3Aen a%2Cb%3Ac%25%0D%0A%3A%3Aerror%3A%3Ad::" in line


def test_a_failed_gate_is_annotated(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line at the start of a line, on GitHub alone, ten of each; the run's plain address."""
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("CI_JOB_URL", "https://ci.example/7")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.dataset(
        "capital", {"en": ["Sofia", "Varna"]}, graded({"en": "correct: {min: 0.9}"})
    )
    lines = [
        line for line in project.run_in_process("qa").outlines if line.startswith("::")
    ]
    assert len(lines) == 1
    assert lines[0].startswith(
        "::error title=FAIL%3A capital%3Aen correct::correct 0.500"
    )
    assert project.report()["run"]["link"] == "https://ci.example/7"
    assert "[The whole report](https://ci.example/7)" in project.text("summary.md")
    for odd in ("javascript:alert(1)", "https://a b", "https://a)x](y", "ftp://a"):
        made = replace(report(), run={"link": odd})
        assert "The whole report" not in markdown.render(made)
    for said, count in (("", 0), ("false", 0), ("true", 1)):
        known = {"GITHUB_ACTIONS": said} if said else {}
        assert len(list(ci_lines(gated(gate("FAIL")), known))) == count
    made = gated(*[gate("FAIL")] * 15, *[gate("INCONCLUSIVE")] * 3)
    assert len(list(annotations(made))) == LIMIT + 3
    server, link = "https://github.com", "https://gitlab.com/a/-/jobs/1"
    github = {
        "GITHUB_SERVER_URL": server,
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_RUN_ID": "7",
    }
    assert ci_link(github) == {"link": "https://github.com/a/b/actions/runs/7"}
    assert ci_link({"CI_JOB_URL": link}) == {"link": link}
    assert ci_link({**github, "GITHUB_RUN_ID": ""}) == {}
