"""Claims about verdicts by people: kept in a file, put in the judge's place for one answer only."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import PlannedItem, Slice
from cases.review.adjudications import (
    load_adjudications,
    load_folders,
    merged,
    save_adjudications,
)
from cases.tasks import make_tasks
from evaluators.core import Case, JudgeError, Model, Reply, Request, UsageError, Verdict
from evaluators.judges.ensemble import AdjudicatedJudge, Adjudication, answer_digest
from evaluators.judges.forecast import single_judges
from evaluators.judges.lexical.judge import LexicalJudge
from evaluators.judges.llm import ChoiceJudge
from evaluators.kinds import kind_of
from evaluators.rubric import Rubric
from tests.support.judging import judges
from tests.support.scripted import Scripted, make_case
from tests.support.tables import tabled

CASE = make_case()
KEY = answer_digest(CASE, "Sofia, perhaps")
RUBRIC = Rubric(name="r", language="bg", protocol="tool", system="", user="", version="v")
MODEL = Scripted(lambda request: Reply(text="x"))


def decided(label: str = "CORRECT", digest: str = KEY, name: str = "Ана") -> Adjudication:
    return Adjudication(
        item="d-bg-q1", digest=digest, label=label, name=name, reason="so: it's", date="2026-11-21"
    )


async def never(model: Model, request: Request) -> Reply:
    raise AssertionError("no call may be made")


def judged(judge: AdjudicatedJudge, answer: str, case: Case = CASE) -> Verdict:
    return asyncio.run(judge.judge(case, answer, never))


def adjudicated(*given: Adjudication, labels: Sequence[str] = ("CORRECT",)) -> AdjudicatedJudge:
    kept = {one.digest: one for one in given}
    return AdjudicatedJudge(behind=LexicalJudge(), adjudications=kept, labels=labels)


def test_a_person_decides_for_that_answer_alone() -> None:
    """The verdict, who gave it and why, and what rules say without a call; others as before."""
    judge = adjudicated(decided())
    verdict = judged(judge, "Sofia, perhaps")
    assert (verdict.grade, verdict.adjudicated_by, verdict.votes) == ("CORRECT", "Ана", ())
    assert verdict.reason.startswith("adjudicated by Ана, 2026-11-21: so: it's; lexical: ")
    other = judged(judge, "Варна")
    assert (other.grade, other.adjudicated_by) == ("INCORRECT", "")
    assert judged(judge, "Sofia, perhaps", make_case(digest="changed")).adjudicated_by == ""
    assert judge.spec == "lexical"


def test_a_model_is_not_asked_about_it() -> None:
    """No call, and no word of a judge that would need one."""
    behind = ChoiceJudge(model=MODEL, rubric=RUBRIC)
    judge = AdjudicatedJudge(behind=behind, adjudications={KEY: decided()}, labels=("CORRECT",))
    assert judged(judge, "Sofia, perhaps").reason == "adjudicated by Ана, 2026-11-21: so: it's"
    assert list(single_judges(judge)) == [behind]


def test_a_rating_is_a_rating_and_a_misfit_an_error() -> None:
    """Never a silent fall-back to the judge."""
    verdict = judged(adjudicated(decided("7"), labels=("7",)), "Sofia, perhaps")
    assert (verdict.grade, verdict.rating) == (None, 7)
    with pytest.raises(JudgeError, match="Ана gave '7' where CORRECT fit; correct") as raised:
        judged(adjudicated(decided("7")), "Sofia, perhaps")
    assert raised.value.kind == "adjudication"


@tabled("kind", "label", "fits")
def test_each_kind_takes_its_verdicts(kind: str, label: str | None, fits: list[str] | None) -> None:
    """A judge that is itself tested is never overridden, and nothing changes without verdicts."""
    own = {"kind": kind_of(kind), "path": Path("x"), "rubric": RUBRIC, "yes": "Да", "no": "Не"}
    slice_ = Slice(dataset="d", language="bg", **own)  # type: ignore[arg-type]
    item = PlannedItem(key="k", slice=slice_, case=make_case(label=label), repeat=1)
    judge = make_tasks([item], None, judges("lexical"), {KEY: decided()})["k"].judge
    found = [*judge.labels] if isinstance(judge, AdjudicatedJudge) else None
    assert found == fits
    plain = make_tasks([item], None, judges("lexical"))["k"].judge
    assert not isinstance(plain, AdjudicatedJudge)


def test_the_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Whatever a person wrote; sorted by item, readable, stable."""
    first = Adjudication(item="b", digest="0" * 32, label="NO", name="No: 'x' # y")
    second = Adjudication(item="a", digest="1" * 32, label="10", name="Ł\u200b", reason="- \n1")
    path = tmp_path / "new" / "adjudications.yaml"
    save_adjudications({one.digest: one for one in (first, second)}, path)
    assert list(load_adjudications(path).values()) == [second, first]
    text = path.read_text(encoding="utf-8")
    save_adjudications(load_adjudications(path), path)
    assert path.read_text(encoding="utf-8") == text
    path.write_text("", encoding="utf-8")
    assert load_adjudications(path) == {}


@tabled("text", "message")
def test_a_wrong_entry_is_named(text: str, message: str, tmp_path: Path) -> None:
    """By file, line and key."""
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_adjudications(path)


def test_a_contradiction_is_refused_and_a_repetition_kept_as_it_was() -> None:
    """The first verdict stands until somebody takes it out."""
    new = [decided(name="B"), decided("INCORRECT", name="C")]
    together, refused = merged({KEY: decided()}, new)
    assert together == {KEY: decided()}
    assert refused == (
        "d-bg-q1: C says INCORRECT, but Ана decided CORRECT; take that entry out to decide anew",
    )


def test_files_beside_the_data_are_found_and_must_agree(tmp_path: Path) -> None:
    """A folder without one has none."""
    folders = [tmp_path / name for name in "abc"]
    save_adjudications({KEY: decided()}, folders[0] / "adjudications.yaml")
    save_adjudications({KEY: decided()}, folders[1] / "adjudications.yaml")
    assert load_folders(folders) == {KEY: decided()}
    save_adjudications({KEY: decided("NO")}, folders[2] / "adjudications.yaml")
    with pytest.raises(UsageError, match=r"c/adjudications\.yaml: d-bg-q1: Ана says NO, but"):
        load_folders(folders)


def test_comments_say_what_was_judged(tmp_path: Path) -> None:
    """Question and answer above each verdict; they stay when more is added, and decide nothing."""
    path = tmp_path / "adjudications.yaml"
    about = ("question: Where is it? \\n- item: forged", "answer: \\u202e # not: [yaml")
    first, second = replace(decided(), about=about), decided(digest="f" * 32)
    save_adjudications({one.digest: one for one in (first, second)}, path)
    text = path.read_text("utf-8")
    assert f"\n\n# {about[0]}\n# {about[1]}\n- item: d-bg-q1\n" in text
    assert load_adjudications(path) == {KEY: first, "f" * 32: second}
    save_adjudications(load_adjudications(path), path)
    assert path.read_text("utf-8") == text
    path.write_text(text.replace(f"# {about[0]}\n", ""), "utf-8")
    assert load_adjudications(path)[KEY] == replace(first, about=about[1:])
