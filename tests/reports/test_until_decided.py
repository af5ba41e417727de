"""Claims about ``qagate review --until-decided``: forms, verdicts and the end of it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cases.review.adjudications import load_adjudications
from evaluators.core import State
from evaluators.judges.ensemble import Adjudications, answer_digest
from reports.__main__ import main
from reports.run.record import Record
from reports.run.run_json import load_report
from tests.support.auditing import answers, audited, filled_in, verdicts, with_noise
from tests.support.captured import Captured
from tests.support.made_runs import before, facts_dataset, graded_slice, run_of, written
from tests.support.reviewing import sheet_rows

TRUTH = "ccci" * 80
DATASET = facts_dataset(graded_slice("en", audited(0.2)))


def runs(folder: Path, new_truth: str = TRUTH) -> tuple[Path, Path, dict[str, str]]:
    """Write both runs, judged wrongly on a tenth of the answers; return what people say of each."""
    old = answers(with_noise(TRUTH, 0.1, "old"), "old")
    new = answers(with_noise(new_truth, 0.1, "new"), "new")
    past = run_of(old)
    made = run_of(new, DATASET, baseline=before(past, str(folder / "old")))
    said = {**verdicts(old, TRUTH), **verdicts(new, new_truth)}
    labels = {digest: one.label for digest, one in said.items()}
    return written(made, folder / "new"), written(past, folder / "old"), labels


def looked_at(folder: Path, labels: Mapping[str, str]) -> Path:
    """Let people fill in the first form, and take it back; return the filled-in file."""
    assert review(folder) == 6
    back = filled_in(folder / "audit.csv", labels, folder / "back.csv")
    review(folder, "--accept", str(back))
    return back


def review(folder: Path, *more: str) -> int:
    words = ["review", str(folder / "new"), "--until-decided", "--to", str(folder)]
    return main([*words, "--adjudications", str(folder / "people.yaml"), *more])


@pytest.mark.parametrize(("share", "code", "state"), [(0.0, 0, "PASS"), (0.5, 1, "FAIL")])
def test_batches_decide_the_gate(
    share: float, code: int, state: str, tmp_path: Path, capsys: Captured
) -> None:
    """An unchanged model passes and one that lost half of them fails, long before all is seen."""
    worse = "".join("i" if n % 10 < 10 * share else one for n, one in enumerate(TRUTH))
    run, _, labels = runs(tmp_path, worse)
    assert "INCONCLUSIVE" in load_report(run).decision.line
    found, batches = review(tmp_path), 0
    while found == 6 and batches < 9:
        batches += 1
        back = filled_in(tmp_path / "audit.csv", labels, tmp_path / f"back-{batches}.csv")
        capsys.readouterr()
        found = review(tmp_path, "--accept", str(back))
    assert (found, batches > 0) == (code, True)
    said = capsys.readouterr().out
    assert f"{state} facts:en, drop <= 0.2: people: new - old is" in said
    assert f"decided; `qagate gate {run} --baseline={tmp_path / 'old'}" in said
    people = load_adjudications(tmp_path / "people.yaml")
    assert len(people) < 0.6 * len(labels)
    assert {one.picked for one in people.values()} == {"flipped", "sample"}
    assert {one.probability for one in people.values()} == {0.25, 1.0}
    words = ["gate", str(run), "--adjudications", str(tmp_path / "people.yaml")]
    assert main(words) == code


def test_the_form_is_blind_and_in_random_order(tmp_path: Path) -> None:
    """Both answers of a pair stand together, the new one first as often as not, and no reason."""
    runs(tmp_path)
    assert review(tmp_path) == 6
    rows = sheet_rows(tmp_path / "audit.csv")
    shown = [row["shown: answer"] for row in rows]
    asked = [one.partition(" on ")[2] for one in shown]
    assert asked[::2] == asked[1::2]
    first_is_new = [one.startswith("new") for one in shown[::2]]
    assert 0.3 < sum(first_is_new) / len(first_is_new) < 0.7
    assert {row["why"] for row in rows} == {""}
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    screens = json.loads(page.partition('id="data">')[2].partition("</script>")[0])["items"]
    ids = [one["id"] for screen in screens for one in screen["questions"]]
    assert ids == [row["item"] for row in rows]
    assert {len(screen["questions"]) for screen in screens} == {2}, "both on one screen"
    titles = [field["title"] for field in screens[0]["fields"]]
    assert titles[-2:] == [one["text"] for one in screens[0]["questions"]]
    review(tmp_path, "--pairs", "7")
    fewer = [row["item"] for row in sheet_rows(tmp_path / "audit.csv")]
    assert fewer == [row["item"] for row in rows[:14]], "at most so many, the first ones first"
    assert "It is INCORRECT" not in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_what_people_said_is_known_later(tmp_path: Path) -> None:
    """The records of a re-run have people's grades in place of the judge's: nothing moves.

    Exported as labelled items they say why they were picked, with the audit's probability.
    """
    run, past, labels = runs(tmp_path)
    looked_at(tmp_path, labels)
    target, file = tmp_path / "labels.jsonl", tmp_path / "people.yaml"
    assert main(["review", "--export-judges", str(target), str(file), str(run)]) == 0
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    found = {(row["picked_because"], row["picked_probability"]) for row in rows}
    assert {("flipped", "1"), ("sample", "0.25")} <= found
    people = load_adjudications(file)
    sides = [load_report(path).records for path in (run, past)]
    estimates = []
    for new, old in (sides, [[_by_people(one, people) for one in side] for side in sides]):
        made = run_of(new, DATASET, baseline=replace(before(run_of(old)), people=people))
        (gate,) = made.decision.gates
        assert gate.audit is not None
        estimates.append((gate.estimate, gate.state, gate.audit.looked))
    assert estimates[0] == estimates[1]


def test_people_who_differ_decide_nothing(tmp_path: Path, capsys: Captured) -> None:
    """Their conflicts are listed and asked again; what they agree on counts."""
    _, _, labels = runs(tmp_path)
    review(tmp_path)
    form = tmp_path / "audit.csv"
    odd = sheet_rows(form)[0]["item"]
    digest = odd.rpartition("@")[2]
    other = {"CORRECT": "INCORRECT", "INCORRECT": "CORRECT"}[labels[digest]]
    backs = [
        filled_in(form, said, tmp_path / f"{name}.csv", name)
        for name, said in (("Ана", labels), ("Jan", labels | {digest: other}))
    ]
    capsys.readouterr()
    review(tmp_path, "--accept", *map(str, backs))
    said = capsys.readouterr().out
    assert "conflict, for a third person: facts-en-" in said
    assert "seen by more than one: agreement 0.9" in said
    assert digest not in load_adjudications(tmp_path / "people.yaml")


def _by_people(record: Record, people: Adjudications) -> Record:
    said = people.get(answer_digest(record, record.answer or ""))
    if said is None:
        return record
    outcome: State = "passed" if said.label == "CORRECT" else "failed"
    return replace(record, grade=said.label, outcome=outcome, adjudicated_by=said.name)


def test_another_share_is_refused_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    """The first form fixes the plan, before any verdict: review is exit 4, `gate` INCONCLUSIVE."""
    run, past, labels = runs(tmp_path)
    back = looked_at(tmp_path, labels)
    plan = json.loads((tmp_path / "people.plan.json").read_text(encoding="utf-8"))
    assert len(plan) == len(TRUTH)
    gates = tmp_path / "gates.yaml"
    gates.write_text("facts: {en: {drop: {max: 0.2, evidence: audited, share: 1}}}")
    raised = tmp_path / "raised"
    people = ("--adjudications", str(tmp_path / "people.yaml"))
    assert main(["gate", str(run), "--gates", str(gates), *people, "--to", str(raised)]) == 6
    (gate,) = load_report(raised).decision.gates
    assert gate.reason.startswith("the first form was made with `share: 0.25`, not 1 (320 pairs)")
    words = ["review", str(raised), "--until-decided", "--to", str(tmp_path), *people]
    capsys.readouterr()
    assert main([*words, f"--baseline={past}", "--accept", str(back)]) == 4
    assert capsys.readouterr().err.count("\n") == 1
    (tmp_path / "people.plan.json").write_text("[]")
    assert main([*words, f"--baseline={past}"]) == 4
    assert "people.plan.json" in capsys.readouterr().err


def test_what_is_missing_is_said(tmp_path: Path, capsys: Captured) -> None:
    """Without a baseline, and without a gate that people decide."""
    written(run_of(answers("cc", "new"), DATASET), tmp_path / "new")
    assert review(tmp_path) == 4
    assert "--baseline=OLD" in capsys.readouterr().err
    past = run_of(answers("cc", "old"))
    written(run_of(answers("cc", "new"), baseline=before(past)), tmp_path / "new")
    written(past, tmp_path / "old")
    assert review(tmp_path, "--baseline", str(tmp_path / "old")) == 4
    assert "people decide no gate of it" in capsys.readouterr().err
