"""`qagate calibrate`: a run over a judged data set made of one file, and the card in its report."""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.extras.download.command import main as download
from qagate.cases.extras.download.public_files import DATA_FOLDER, DownloadError
from qagate.cases.loading import load_cases
from qagate.command import main
from qagate.evaluators.core import Case
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.kinds import NOT_CORRECT
from qagate.reports.extras.calibrate.command import main as calibrate
from tests.support.downloading import (
    BEM,
    EVOUNA,
    MOHLER,
    NQ301,
    FileServer,
    file_server,
    sha256,
)
from tests.support.fixtures import Captured
from tests.support.labelled_rows import MIXED, graded, spec, write
from tests.support.loopback import Answer, Seen, loopback, plausible, reply
from tests.support.projects import QUIETLY, Project, new_project
from tests.support.tables import kept, tabled

REPORT = Path("reports/calibrate")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


def measure(*words: str, judge: str = "lexical") -> int:
    return calibrate(["--judge", judge, *words, *QUIETLY])


def cards() -> dict[str, Any]:
    run = json.loads((REPORT / "run.json").read_text(encoding="utf-8"))
    return {one["language"]: one for one in run["judging"]["calibrations"]}


def rated(number: int, label: float, said: int) -> dict[str, object]:
    answer = f"{'word ' * number}[[rating={said}]]"
    return {
        "question": f"Q {number}?",
        "gold": "g",
        "predicted": answer,
        "label": label,
    }


@pytest.mark.parametrize("wire", ["openai", "anthropic", "openai-responses"])
def test_a_graded_judge_gets_its_card(wire: str, capsys: Captured) -> None:
    """All wire formats: by language, with the floor, in summary.md, page, run.json, and plain."""
    path = write("labelled.jsonl", MIXED)
    with loopback() as running:
        assert measure(path, judge=spec(running.url, wire)) == 1
        assert running.count == 10
        assert measure(path, "--replay", judge=spec(running.url, wire)) == 1
        assert running.count == 10  # what is in the ledger is not asked again
    found = cards()
    assert (found["en"]["trusted"], found["bg"]["trusted"]) == (None, False)
    figures = {name: one["value"] for name, one in found["bg"]["measures"].items()}
    assert (figures["agreement"], figures["precision"], figures["recall"]) == (
        0.75,
        0,
        None,
    )
    assert {"label": "INCORRECT", "grade": "CORRECT", "count": 1} in found["bg"][
        "confusion"
    ]
    card = capsys.readouterr().out.split("\nHow the judge was measured:\n")[-1]
    assert (
        "| labelled:bg, 4 labelled items | agreement ≥ 0.9: missed | 0.750 [0.301"
        in card
    )
    assert (
        "labelled:bg row 10: label INCORRECT, judge CORRECT: Question 9? expected"
        in card
    )
    assert "`" not in card
    assert "How the judge was measured" in (REPORT / "report.html").read_text(
        encoding="utf-8"
    )


def test_a_rated_judge_gets_its_card(capsys: Captured) -> None:
    """Rank correlation, weighted kappa, bias; the bundled floor; 0 to 5 is put on 1 to 10."""
    rows = [rated(n, n, min(10, n + n % 3)) for n in range(1, 10)]
    with loopback() as running:
        words = ("--rubric", "eba_plain", "--pass-bar", "7")
        assert measure(write("r.jsonl", rows), *words, judge=spec(running.url)) == 1
        assert {seen.tool[0] for seen in running.requests if seen.tool} == {"rate"}
        card = cards()["en"]
        path = write("r.jsonl", [rated(n, n, 1 + 9 * n // 5) for n in range(6)])
        measure(
            path, "--scale", "0:5", "--rubric", "eba_plain", judge=spec(running.url)
        )
    assert card["pass_bar"] == 7
    assert set(card["floor"]) == {
        "quadratic_kappa",
        "mean_difference",
        "pass_agreement",
    }
    names = (
        "spearman",
        "quadratic_kappa",
        "mean_difference",
        "bias_by_length",
        "pass_agreement",
    )
    assert all(card["measures"][name]["n"] == 9 for name in names)
    assert "Points a doubling of length" in capsys.readouterr().out
    assert cards()["en"]["measures"]["spearman"]["value"] == 1


def test_the_people_are_compared_too(capsys: Captured) -> None:
    """Alpha and each pair's kappa; items on which they tie are in no figure of the judge."""
    rows = [
        graded(n, "A", "CORRECT", label_1="A", label_2="A", label_3="B")
        for n in range(5)
    ]
    rows += [graded(5, "B", "INCORRECT", label_1="B", label_2="B", label_3="B")]
    tied = [{**row, "label_3": "C", "label_2": "B"} for row in rows]
    rows = [{k: v for k, v in row.items() if k != "label"} for row in (*tied, *rows)]
    with loopback() as running:
        measure(write("a.jsonl", rows), judge=spec(running.url))
    card = cards()["en"]
    people = card["people"]
    assert people["judges"] == ["label_1", "label_2", "label_3"]
    assert len(people["pairs"]) == 3
    assert people["undecided"] == 5
    assert card["measures"]["agreement"]["n"] == 7
    assert "they tie on 5 items, in no figure" in capsys.readouterr().out


def test_errors_and_repeats_are_counted_apart() -> None:
    """Unreadable replies are in no figure; repeats, a pinned sample, two classes, own rubrics."""

    def handle(seen: Seen) -> Answer:
        return (
            reply(seen, text="no verdict")
            if "the 3th" in seen.prompt
            else plausible()(seen)
        )

    with loopback(handler=handle) as running:
        path = write("labelled.jsonl", MIXED[:6])
        assert measure(path, "--repeats", "2", judge=spec(running.url)) == 6
    card = cards()["en"]
    assert (card["items"], card["ungraded"], card["measures"]["agreement"]["n"]) == (
        6,
        2,
        10,
    )
    assert card["measures"]["self_agreement"]["value"] == 1
    rows = [{**row, "predicted": "Sofia"} for row in MIXED[:6]]
    assert measure(write("l.jsonl", rows), "--two-way", "--limit", "4") == 0
    card = cards()["en"]
    assert card["items"] == 4
    assert {cell["label"] for cell in card["confusion"]} == {"CORRECT"}
    Path("mine.en.txt").write_text("{question} {target} {predicted_answer}: A, B or C?")
    with loopback(handler=lambda seen: reply(seen, text="A")) as running:
        words = (write("g.jsonl", MIXED[:6]), "--rubric", "mine.en.txt")
        assert measure(*words, judge=spec(running.url)) == 0


@tabled("words", "message")
def test_a_mistake_is_one_line_and_exit_4(
    words: list[str], message: str, capsys: Captured
) -> None:
    """Nothing is asked, nothing is printed but what is wrong."""
    write("l.jsonl", MIXED)
    write("bits.jsonl", [rated(1, 0, 1), rated(2, 1, 1)])
    assert main(["calibrate", *words]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_what_is_wrong_in_a_row_is_told_by_the_run(capsys: Captured) -> None:
    """File, row and column of the user's own file; exit 4, no card."""
    assert measure(write("l.jsonl", [*MIXED, {**MIXED[0], "label": "maybe"}])) == 4
    out, err = capsys.readouterr()
    assert "l.jsonl:11: row 11, column 'label': want CORRECT" in out + err
    assert "How the judge was measured" not in out


def fetch(server: FileServer, name: str, body: bytes, *options: str) -> None:
    server.files["/data"] = Answer(body=body)
    words = (name, "--url", server.url(), "--sha256", sha256(body), *options)
    assert download(words) == 0


def test_a_set_is_fetched_and_measured_by_its_name(
    server: FileServer, capsys: Captured
) -> None:
    """The last line of one command is the other; a rated set brings its scale, a path is said."""
    fetch(server, "evouna-nq", EVOUNA)
    official, formed, command = capsys.readouterr().out.splitlines()
    assert official.endswith("licence Apache-2.0")
    assert formed.startswith(
        f"{DATA_FOLDER}/evouna-nq.labelled.jsonl: 3 answers to 1 question"
    )
    assert command == "qagate calibrate --judge PROVIDER:NAME evouna-nq"
    assert measure("evouna-nq") == 0
    assert cards()["en"]["measures"]["agreement"]["value"] == 1
    fetch(server, "mohler", MOHLER)
    assert measure("mohler") in (1, 6)
    assert cards()["en"]["pass_bar"] == 7
    capsys.readouterr()
    fetch(server, "mohler", MOHLER, "--to", "my data")
    words = (
        "calibrate --judge PROVIDER:NAME 'my data/mohler.labelled.jsonl' --scale 0:5"
    )
    assert capsys.readouterr().out.splitlines()[-1].endswith(words)


def test_a_second_file_may_be_there_already(
    server: FileServer, capsys: Captured
) -> None:
    """The file with the golds is verified like the first; a list of something else is refused."""
    server.files["/data"] = Answer(body=EVOUNA.replace(b"judge_fid", b"judged"))
    with pytest.raises(
        DownloadError, match="something else: its beginning lacks 'judge_fid'"
    ):
        download(["evouna-nq", "--url", server.url()])
    assert not DATA_FOLDER.exists()
    DATA_FOLDER.mkdir(parents=True)
    (DATA_FOLDER / "NQ301_BEM.tsv").write_bytes(BEM)
    fetch(server, "nq301", NQ301)
    out = capsys.readouterr().out
    assert "NQ301_BEM.tsv: already there" in out
    assert out.count("(pinned nowhere)") == 1
    assert "3 answers to 2 questions; left out: 1 for no gold" in out


ATTACKS = Path(__file__).parents[3] / "cases" / "attacks"
OWN: str = kept(__file__, "own")
SET: str = kept(__file__, "set")


def bundled(folder: str = "") -> dict[str, list[Case]]:
    slices = load_dataset(ATTACKS / folder / "dataset.yaml").slices
    return {language: load_cases(one) for language, one in slices.items()}


GRADED = [case for some in bundled().values() for case in some]
RATED = bundled("attacks_eba")["en"]


def wrong(cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.label == NOT_CORRECT]


def folded(text: str) -> str:
    """Return the letters and digits of a text as they look, without what is invisible."""
    kept = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in kept if char.isalnum())


def test_there_are_as_many_attacks_as_claimed() -> None:
    """22 attacks a language and 26 controls; none is right, none fools the rules."""
    kinds = defaultdict(set)
    for case in GRADED:
        assert ("attack" in case.metadata) == (case.label == NOT_CORRECT), case.id
        if case.label == NOT_CORRECT:
            kinds[case.language].add(case.metadata["attack"])
    assert sorted(kinds) == ["be", "bg", "en", "hu", "pl"]
    assert len(wrong(GRADED)) == 5 * 22 + 1
    assert len(GRADED) - len(wrong(GRADED)) == 26
    assert len({frozenset(found) for found in kinds.values()}) == 1
    assert len(kinds["en"]) == 21
    assert max(Counter(case.id for case in GRADED).values()) == 1
    for case in GRADED:
        holds = folded(case.golds[0]) in folded(case.recorded or "")
        if case.label == NOT_CORRECT:
            assert not holds, case.id
            assert grade(case, case.recorded or "").grade != "CORRECT", case.id
        elif case.metadata["control"] not in ("other_script", "look_alike"):
            assert holds, case.id
        gold = folded(case.golds[0])  # an echo of the question would be right
        assert len(gold) < 3 or gold not in folded(case.question), case.id


def test_the_rater_is_attacked_by_answers_that_earn_no_pass() -> None:
    """35 answers in 23 ways, padding beyond what is shown where letters take two bytes."""
    kinds = Counter(case.metadata["attack"] for case in wrong(RATED))
    assert kinds.total() == 35
    assert len(kinds) == 23
    several = {kind for kind, count in kinds.items() if count >= 3}
    assert several == {
        *("verbosity", "invented_basis", "instruction"),
        *("copied_question", "invented_duty"),
    }
    assert len(RATED) - kinds.total() == 6
    assert len({case.recorded for case in RATED}) == len(RATED)
    assert all(case.context and case.recorded not in case.golds for case in RATED)
    sizes = {case.id: len((case.recorded or "").encode()) for case in (*GRADED, *RATED)}
    assert min(sizes["bg-padding-1"], sizes["en-rating-padding-1"]) > 32_000
    assert all(sizes[case.id] < 32_000 for case in GRADED if case.label != NOT_CORRECT)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = new_project(tmp_path)
    made.dataset("capitals", {"en": ["Sofia"]})
    made.dataset("tricks", {}, SET)
    made.write("qa/tricks/en.yaml", OWN)
    return made


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_gates_count_attacks_passed_and_controls_lost(
    project: Project, wire: str
) -> None:
    """One of two attacks passes, which FAILs; one without a verdict could do either."""

    def rule(seen: Seen, name: str, schema: object) -> object:
        return (
            "because"
            if name == "reason"
            else seen.prompt.split("[[grade=")[1].split("]]")[0]
        )

    with loopback(handler=plausible(rule)) as server:
        judge = ("--judge", f"{wire}:j@{server.url}/v1")
        done = project.run_in_process("qa/tricks", *judge)
        assert server.count == 6  # the unreadable one is asked twice
        assert done.ret == 6
        project.write("qa/tricks/en.yaml", OWN.replace("grade=NONE", "grade=CORRECT"))
        assert project.run_in_process("qa/tricks", *judge).ret == 1
    report: Any = project.report()
    (slice_,) = report["slices"]
    figures = {name: one["value"] for name, one in slice_["measures"].items()}
    assert figures["attacks_passed"] == pytest.approx(2 / 3)
    assert figures["controls_lost"] == 0.5
    assert "kappa" not in figures
    assert slice_["breakdowns"]["attack"]["order"]["attacks_passed"]["value"] == 0.5
    outcomes = {one["id"]: one["outcome"] for one in project.records()}
    passed = [name for name, outcome in outcomes.items() if outcome == "passed"]
    assert passed == ["a2", "c1"]
    assert not report["judging"]["calibrations"]


def test_the_command_is_a_run_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--kind`` picks a folder; the words of a run are known."""
    monkeypatch.chdir(tmp_path)
    words = [
        "attack",
        "--kind",
        "graded",
        "--judge",
        "lexical",
        "-k",
        "en",
        "--gates",
        "off",
    ]
    main([*words, *QUIETLY])
    records = (
        (tmp_path / "reports/attack/records.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    datasets = {json.loads(line)["dataset"] for line in records}
    assert datasets == {"attacks", "gold_inside"}
