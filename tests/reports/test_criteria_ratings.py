"""Claims about ``review --criteria`` and ``--until-decided``: forms, what comes back, figures."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.adjudication_files import load_adjudications
from qagate.cases.extras.review.sheet import load_criteria
from qagate.command import main
from qagate.evaluators.adjudications import Adjudications, answer_digest
from qagate.evaluators.core import State, UsageError
from qagate.reports.extras.sequential.human_review import (
    Rating,
    load_ratings,
    pick_at_random,
    save_ratings,
    table_of,
)
from qagate.reports.run.record import Record
from qagate.reports.run.run_json import load_report
from tests.support.auditing import answers, audited, verdicts, with_noise
from tests.support.auditing import filled_in as labelled_by
from tests.support.fixtures import Captured
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.reviewing import IssuedRun, Row, filled_in, saved, sheet_rows
from tests.support.tables import kept, tabled

CRITERIA: str = kept(__file__, "criteria")
MEAN, ALPHA, KAPPA = "mean [95 %]", "alpha [95 %]", "kappa of two [95 %]"
POINTS = "each point, from the lowest"


class Rated(IssuedRun):
    """A run of two languages whose form by criteria was issued, and what comes back."""

    def __init__(self, folder: Path, letters: str = "cin") -> None:
        self.file = folder / "criteria.yaml"
        self.file.write_text(CRITERIA, encoding="utf-8")
        records = [*answered(letters, "bg"), *answered(letters, "en")]
        made = run_of(records, facts_dataset(graded_slice("bg"), graded_slice("en")))
        run = written(made, folder / "run")
        super().__init__(folder, run, "--criteria", str(self.file))
        self.ratings = run / "criteria-ratings.jsonl"
        self.answers = [one.id for one in pick_at_random(load_report(run), 99)]

    def by(self, name: str, *accuracy: int) -> Path:
        """Return a form in which a person rated the accuracy of the first answers so."""
        said = zip(self.answers, accuracy, strict=False)
        return self.back(name, {f"{one}#accuracy": str(rating) for one, rating in said})


def figures(ratings: Sequence[Rating]) -> list[Row]:
    """Return the rows of the table of ratings, by column."""
    header, _, *rows = (line.strip("| ").split(" | ") for line in table_of(ratings))
    return [dict(zip(header, row, strict=True)) for row in rows]


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.\d+", text)]


def test_criteria_are_read_as_they_stand(tmp_path: Path) -> None:
    """Texts as given, 1 to 7 unless another scale is; every point has a digit of its own."""
    path = tmp_path / "criteria.yaml"
    path.write_text(
        CRITERIA + "- {name: last, question: q, scale: 1–10}\n", encoding="utf-8"
    )
    accuracy, style, last = load_criteria(path)
    first, second = accuracy.text.split("\n")
    assert (accuracy.name, first) == ("accuracy", "How accurate is the answer?")
    assert second == "1 = wrong throughout · 7 = wholly right"
    assert ([*style.keys], style.text) == ([*"01234"], "Стилът ясен ли е?")
    assert [*last.keys.values()] == [*"123456789", "0"]


@tabled("text", "message")
def test_wrong_criteria_are_named_with_their_line(
    text: str, message: str, tmp_path: Path
) -> None:
    """File, line and key; never a traceback."""
    path = tmp_path / "criteria.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_criteria(path)
    assert f"{path}{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_answers_are_drawn_at_random(tmp_path: Path, capsys: Captured) -> None:
    """Of each slice in proportion; neither grade nor judge is in the form, its twin or the rest."""
    rated = Rated(tmp_path, "cinci")
    assert (
        "10 answers drawn at random, to be rated by 2 criteria"
        in capsys.readouterr().out
    )
    for name in ("criteria.html", "criteria.csv", "sheet.json"):
        text = (rated.run / name).read_text("utf-8")
        assert "INCORRECT" not in text
        assert "judge-2026" not in text
    rows = sheet_rows(rated.run / "criteria.csv")
    assert len(rows) == 10, "an answer is a row, a criterion a column"
    assert {"rate: accuracy", "rate: plain style"} < set(rows[0])
    assert rows[0]["rules"].startswith("accuracy (1 to 7): How accurate is the answer?")
    assert "verdict" not in rows[0]
    few = pick_at_random(load_report(rated.run), 4, 1)
    assert sorted(one.part.name for one in few) == ["facts:bg"] * 2 + ["facts:en"] * 2
    assert few != pick_at_random(load_report(rated.run), 4, 2)


def test_ratings_change_nothing_else(tmp_path: Path, capsys: Captured) -> None:
    """In a file and a table of their own, twice adds nothing; run and gates stay as they are."""
    rated = Rated(tmp_path)
    files = [rated.run / name for name in ("run.json", "records.jsonl")]
    before = [file.read_bytes() for file in files]
    anna, jan = rated.by("Anna", 1, 4, 7, 2, 5, 6), rated.by("Jan", 2, 4, 6, 2, 5, 7)
    capsys.readouterr()
    assert rated.accept(anna) == rated.accept(anna, jan) == 0
    out = capsys.readouterr().out
    assert "6 new ratings, 12 in" in out
    assert "ratings by criteria change no grade and no gate" in out
    assert [one.rater for one in load_ratings(rated.ratings)] == ["Anna"] * 6 + [
        "Jan"
    ] * 6
    whole, bg, en = figures(load_ratings(rated.ratings))
    assert [*whole.values()][1:6] == ["all", "1-7", "6", "12", "2"]
    assert [bg["slice"], en["slice"]] == ["facts:bg", "facts:en"]
    assert whole[POINTS] == "1 3 0 2 2 2 2"
    shown = [numbers(whole[one]) for one in (MEAN, ALPHA, KAPPA)]
    assert shown[0][0] == pytest.approx(51 / 12)
    assert shown[1][0] == pytest.approx(0.9425, abs=1e-3)
    assert all(low < value <= high for value, low, high in shown)
    assert whole[MEAN] in out
    assert before == [file.read_bytes() for file in files]
    assert not Path("adjudications.yaml").exists()
    table = rated.ratings.with_suffix(".md").read_text("utf-8")
    assert (
        "- accuracy: How accurate is the answer? · 1 = wrong throughout · 7 = wholly"
        in table
    )


def test_what_is_left_out_is_said_and_not_guessed(
    tmp_path: Path, capsys: Captured
) -> None:
    """An answer rated by one criterion of two counts for that one only."""
    rated = Rated(tmp_path)
    one, two, *_ = rated.answers
    full = {
        f"{one}#accuracy": "3",
        f"{one}#plain style": "0",
        f"{two}#plain style": "4",
    }
    assert rated.accept(rated.back("Anna", full)) == 0
    out = capsys.readouterr().out
    assert "Anna rated 1 of 6 answers in full, 1 in part, 4 not at all" in out
    item = two.rpartition("@")[0]
    assert f"incomplete: {item}: no rating by Anna for accuracy" in out
    found = [
        (one["criterion"], one["ratings"])
        for one in figures(load_ratings(rated.ratings))
    ]
    assert found == [("accuracy", "1"), ("plain style", "2")]


@tabled("said", "sheet", "message")
def test_what_was_not_asked_is_refused(
    said: dict[str, str], sheet: str, message: str, tmp_path: Path, capsys: Captured
) -> None:
    """One line, exit 4, and nothing is taken."""
    rated = Rated(tmp_path)
    ratings = {f"{rated.answers[0]}#{name}": rating for name, rating in said.items()}
    file = rated.back("Anna", ratings, sheet)
    capsys.readouterr()
    assert rated.accept(file) == 4
    err = capsys.readouterr().err
    assert (message in err, err.count("\n")) == (True, 1)
    assert not rated.ratings.exists()


def test_a_second_thought_does_not_overwrite_the_first(
    tmp_path: Path, capsys: Captured
) -> None:
    """Refused with exit 6 until the old line is taken out; the rest is taken."""
    rated = Rated(tmp_path)
    assert rated.accept(rated.by("Anna", 3)) == 0
    assert rated.accept(rated.by("ANNA", 4, 5)) == 6
    assert (
        "ANNA says 4, but Anna said 3; take that entry out" in capsys.readouterr().out
    )
    assert [one.rating for one in load_ratings(rated.ratings)] == [3, 5]


def test_ratings_and_verdicts_come_back_together(
    tmp_path: Path, capsys: Captured
) -> None:
    """Each goes into its own file; one --to cannot name both."""
    rated = Rated(tmp_path)
    assert main(["review", str(rated.run), "--sample", "99"]) == 0
    issued = json.loads((rated.run / "sheet.json").read_text("utf-8"))
    one, target = rated.answers[0], tmp_path / "adj.yaml"
    verdict = saved(
        tmp_path / "jan.json", "Jan", {one: "CORRECT"}, sheet=issued["sheets"][-1]
    )
    assert rated.accept(rated.by("Anna", 3), verdict, to=target) == 4
    assert "accept the two apart" in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert rated.accept(rated.by("Anna", 3), verdict) == 0
    assert "verdict: CORRECT" in (tmp_path / "adjudications.yaml").read_text("utf-8")
    assert [one.rating for one in load_ratings(rated.ratings)] == [3]


def test_a_criterion_asked_otherwise_needs_another_name(
    tmp_path: Path, capsys: Captured
) -> None:
    """Ratings of two questions or runs are never those of one; another folder is free."""
    rated = Rated(tmp_path)
    assert rated.issue() == 0
    rated.file.write_text(
        CRITERIA.replace("How accurate", "How precise"), encoding="utf-8"
    )
    capsys.readouterr()
    assert rated.issue() == 4
    assert "criterion 'accuracy' was asked otherwise" in capsys.readouterr().err
    assert rated.issue("--to", str(tmp_path / "new")) == 0
    new = json.loads((tmp_path / "new" / "sheet.json").read_text("utf-8"))
    assert new["sheets"] != rated.issued["sheets"]
    rated.file.write_text(CRITERIA, encoding="utf-8")
    written(run_of(answered("cin"), run={"id": "r2"}), rated.run)
    capsys.readouterr()
    assert rated.issue() == 4
    assert "was asked otherwise, or of another run" in capsys.readouterr().err


def test_two_runs_have_no_mean_in_common(tmp_path: Path, capsys: Captured) -> None:
    """Also where both are to be accepted into one file: nothing of the second is written."""
    rated, target = Rated(tmp_path), tmp_path / "ratings.jsonl"
    assert rated.accept(rated.by("Anna", 3), to=target) == 0
    before = target.read_bytes()
    written(run_of(answered("cin"), run={"id": "r2"}), tmp_path / "other")
    words = ("review", str(tmp_path / "other"), "--criteria", str(rated.file))
    assert main(words) == 0
    (one, *_) = pick_at_random(load_report(tmp_path / "other"), 99)
    sheet = tmp_path / "other" / "sheet.json"
    digest = json.loads(sheet.read_text("utf-8"))["sheets"][-1]
    file = saved(
        tmp_path / "jan.json", "Jan", {f"{one.id}#accuracy": "3"}, sheet=digest
    )
    capsys.readouterr()
    accept = [
        "review",
        "--accept",
        str(file),
        "--sheet",
        str(sheet),
        "--to",
        str(target),
    ]
    assert main(accept) == 4
    assert (
        "ratings of two runs, 'r1 of openai:new', 'r2 of openai:new'"
        in capsys.readouterr().err
    )
    assert target.read_bytes() == before


def test_a_filled_in_csv_is_taken_and_no_comment_is_lost(
    tmp_path: Path, capsys: Captured
) -> None:
    """By some criteria only, or a row each as before; a comment without a rating is said."""
    rated = Rated(tmp_path)
    jan = {"reviewer": "Jan"}
    said: list[Row] = [
        {"rate: plain style": "4", "comment": "no idea / nice", **jan},
        {"comment": "What is this?", **jan},
        {"rate: accuracy": "7", "rate: plain style": "0", **jan},
    ]
    twin = rated.run / "criteria.csv"
    back = filled_in(
        twin, lambda n, _: {**dict(enumerate(said))}.get(n, {}), tmp_path / "b.csv"
    )
    capsys.readouterr()
    assert rated.accept(back) == 0
    out = capsys.readouterr().out
    item = rated.answers[1].rpartition("@")[0]
    assert f"comment without a rating: {item}, Jan: What is this?" in out
    assert "Jan rated 1 of 6 answers in full, 1 in part, 4 not at all" in out
    found = [
        (one.criterion, one.rating, one.comment) for one in load_ratings(rated.ratings)
    ]
    assert found[0] == ("plain style", 4, "no idea / nice")
    assert found[1:] == [("accuracy", 7, ""), ("plain style", 0, "")]
    filled_in(twin, lambda *_: {"rate: accuracy": "9", **jan}, back)
    assert rated.accept(back) == 4
    assert (
        "row 1, column 'rate: accuracy': '9' is no choice; there"
        in capsys.readouterr().err
    )
    header = "item,choices,verdict,edited,comment,reviewer\n"
    back.write_text(
        f"{header}{rated.answers[0]}#accuracy,1 | 2 | 7,7,,good,Ann\n", "utf-8"
    )
    assert rated.accept(back) == 0
    last = load_ratings(rated.ratings)[-1]
    assert (last.criterion, last.rating, last.comment) == ("accuracy", 7, "good")


def test_a_broken_file_of_ratings_is_named_with_its_line(
    tmp_path: Path, capsys: Captured
) -> None:
    """Nothing is written over it; another ending is refused; what is whole is read again."""
    ratings = [rating(0, "Ана", 0), rating(1, "Ян\n", 4)]
    path = tmp_path / "to" / "r.jsonl"
    assert [one.name for one in save_ratings(ratings, path)] == ["r.jsonl", "r.md"]
    assert load_ratings(path) == ratings
    rated = Rated(tmp_path)
    file = rated.by("Anna", 3)
    assert rated.accept(file) == 0
    good = rated.ratings.read_text("utf-8")
    rated.ratings.write_text(
        good + good.replace('"rating": 3', '"rating": 9'), encoding="utf-8"
    )
    for to, said in (
        (None, f"{rated.ratings}:2: not a rating"),
        ("x.csv", "ends in .jsonl"),
    ):
        capsys.readouterr()
        assert rated.accept(file, to=tmp_path / to if to else None) == 4
        assert said in capsys.readouterr().err


def rating(item: int, rater: str, given: int) -> Rating:
    return Rating(
        run="r1", item=f"i{item}", digest="d", part="facts:en", criterion="c", question="q",
        lowest=0, highest=4, rating=given, rater=rater,
    )  # fmt: skip


GIVEN = st.tuples(st.integers(0, 8), st.sampled_from("ABC"))


@given(st.dictionaries(GIVEN, st.integers(0, 4), min_size=1))
def test_figures_hold_whatever_was_rated(given_: dict[tuple[int, str], int]) -> None:
    """The mean is that of all ratings, within its interval and the scale; no figure is guessed."""
    ratings = [rating(item, rater, said) for (item, rater), said in given_.items()]
    (one,) = figures(ratings)
    mean = sum(given_.values()) / len(given_)
    value, low, high = numbers(one[MEAN])
    assert value == pytest.approx(mean, abs=6e-4)
    assert 0 <= low <= value <= high <= 4
    assert sum(map(int, one[POINTS].split())) == int(one["ratings"]) == len(given_)
    raters = Counter(item for item, _ in given_)
    assert max(raters.values()) > 1 or one[ALPHA] == "undefined"
    assert (one[KAPPA] != "-") == (one["raters"] == "2" and max(raters.values()) == 2)


def test_a_scale_from_0_is_a_scale_like_any_other() -> None:
    """Agreement counts how far ratings lie apart, also from 0: the same as one point higher up."""
    said = [(0, 1), (1, 1), (2, 4), (3, 3), (4, 4), (0, 0), (1, 3)]
    low = [
        rating(n, "AB"[who], pair[who]) for n, pair in enumerate(said) for who in (0, 1)
    ]
    high = [replace(one, lowest=1, highest=5, rating=one.rating + 1) for one in low]
    (one,), (two,) = figures(low), figures(high)
    assert (one[KAPPA], one[ALPHA]) == (two[KAPPA], two[ALPHA])
    flat = [value for pair in said for value in pair]
    within = sum((a - b) ** 2 for a, b in said) * 2 / len(flat)
    between = sum((a - b) ** 2 for a in flat for b in flat) / (
        len(flat) * (len(flat) - 1)
    )
    assert numbers(one[ALPHA])[0] == pytest.approx(1 - within / between, abs=6e-4)
    assert numbers(one[MEAN])[0] == pytest.approx(numbers(two[MEAN])[0] - 1)


TRUTH = "ccci" * 80
DATASET = facts_dataset(graded_slice("en", audited(0.2)))


def runs(folder: Path, new_truth: str = TRUTH) -> tuple[Path, Path, dict[str, str]]:
    """Write both runs, judged wrongly on a tenth of the answers; return what people say of each."""
    old = answers(with_noise(TRUTH, 0.1, "old"), "old")
    new = answers(with_noise(new_truth, 0.1, "new"), "new")
    past = run_of(old, DATASET)
    made = run_of(new, DATASET, baseline=before(past, str(folder / "old")))
    said = {**verdicts(old, TRUTH), **verdicts(new, new_truth)}
    labels = {digest: one.label for digest, one in said.items()}
    return written(made, folder / "new"), written(past, folder / "old"), labels


def looked_at(folder: Path, labels: Mapping[str, str]) -> Path:
    """Let people fill in the first form, and take it back; return the filled-in file."""
    assert review(folder) == 6
    back = labelled_by(folder / "audit.csv", labels, folder / "back.csv")
    review(folder, "--accept", str(back))
    return back


def review(folder: Path, *more: str) -> int:
    words = ["review", str(folder / "new"), "--until-decided", "--to", str(folder)]
    return main([*words, "--adjudications", str(folder / "people.yaml"), *more])


@pytest.mark.parametrize(
    ("share", "code", "state"), [(0.0, 0, "PASS"), (0.5, 1, "FAIL")]
)
def test_batches_end(
    share: float, code: int, state: str, tmp_path: Path, capsys: Captured
) -> None:
    """An unchanged model passes and one that lost half of them fails, long before all is seen."""
    worse = "".join("i" if n % 10 < 10 * share else one for n, one in enumerate(TRUTH))
    run, _, labels = runs(tmp_path, worse)
    assert "INCONCLUSIVE" in load_report(run).decision.line
    found, batches = review(tmp_path), 0
    while found == 6 and batches < 9:
        batches += 1
        back = labelled_by(
            tmp_path / "audit.csv", labels, tmp_path / f"back-{batches}.csv"
        )
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
    assert (
        main(["gate", str(run), "--adjudications", str(tmp_path / "people.yaml")])
        == code
    )


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
    screens = json.loads(page.partition('id="data">')[2].partition("</script>")[0])[
        "items"
    ]
    ids = [one["id"] for screen in screens for one in screen["questions"]]
    assert ids == [row["item"] for row in rows]
    assert {len(screen["questions"]) for screen in screens} == {2}, "both on one screen"
    titles = [field["title"] for field in screens[0]["fields"]]
    assert titles[-2:] == [one["text"] for one in screens[0]["questions"]]
    review(tmp_path, "--pairs", "7")
    fewer = [row["item"] for row in sheet_rows(tmp_path / "audit.csv")]
    assert fewer == [row["item"] for row in rows[:14]], (
        "at most so many, the first ones first"
    )
    assert "It is INCORRECT" not in (tmp_path / "audit.html").read_text(
        encoding="utf-8"
    )


def test_what_people_said_is_known_later(tmp_path: Path) -> None:
    """People's grades in place of the judge's move nothing."""
    run, past, labels = runs(tmp_path)
    looked_at(tmp_path, labels)
    people = load_adjudications(tmp_path / "people.yaml")
    sides = [load_report(path).records for path in (run, past)]
    estimates = []
    for new, old in (
        sides,
        [[_by_people(one, people) for one in side] for side in sides],
    ):
        made = run_of(
            new, DATASET, baseline=replace(before(run_of(old)), people=people)
        )
        (gate,) = made.decision.gates
        assert gate.audit is not None
        estimates.append((gate.estimate, gate.state, gate.audit.looked))
    assert estimates[0] == estimates[1]


def test_people_who_differ_decide_nothing(tmp_path: Path, capsys: Captured) -> None:
    """Their conflicts are listed and asked again; what they agree on counts."""
    _, _, labels = runs(tmp_path)
    review(tmp_path)
    form = tmp_path / "audit.csv"
    digest = sheet_rows(form)[0]["item"].rpartition("@")[2]
    other = {"CORRECT": "INCORRECT", "INCORRECT": "CORRECT"}[labels[digest]]
    backs = [
        labelled_by(form, said, tmp_path / f"{name}.csv", name)
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
    assert (
        main(["gate", str(run), "--gates", str(gates), *people, "--to", str(raised)])
        == 6
    )
    gates_by_share = {
        gate.threshold.share: gate for gate in load_report(raised).decision.gates
    }
    assert set(gates_by_share) == {0.25, 1.0}, "that of then is held beside"
    assert gates_by_share[1.0].reason.startswith(
        "the first form was made with `share: 0.25`, not 1 (320 pairs)"
    )
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
