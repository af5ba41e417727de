"""`check` finds what is wrong with items and slices; `qagate` ends in one line and a code."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.cases.extras.check.checks import (
    DATASET_CHECKS,
    SLICE_CHECKS,
    balance,
    check_datasets,
    closed_book,
    cue_words,
    findings,
    narrow_margins,
    too_easy,
    twins,
    unclustered,
    ungated,
)
from qagate.cases.extras.check.item_checks import Finding, Subject, ids, read_subject
from qagate.command import main
from qagate.evaluators.core import NO, YES, Case, UsageError
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.languages.detection import known, language_of
from tests.support.downloading import file_server
from tests.support.fixtures import Captured, Patch
from tests.support.hostile import HOSTILE
from tests.support.loopback import Answer
from tests.support.tables import tabled

Check = Callable[[Subject], Iterable[Finding]]


def slice_of(language: str = "en", kind: str = "graded", **more: object) -> Slice:
    fields: dict[str, object] = {
        "dataset": "d",
        "path": Path(f"{language}.csv"),
        **more,
    }
    return Slice(language=language, kind=kind_of(kind), **fields)  # type: ignore[arg-type]


def item(row: int, question: str, *golds: str, **more: object) -> Case:
    fields: dict[str, object] = {
        "id": f"q{row}",
        "dataset": "d",
        "language": "en",
        **more,
    }
    return Case(row=row, question=question, golds=golds or ("x",), **fields)  # type: ignore[arg-type]


def subject(*cases: Case, language: str = "en", kind: str = "graded") -> Subject:
    return Subject(slice_=slice_of(language, kind), cases=cases)


def from_file(
    folder: Path, text: str, suffix: str = "csv", kind: str = "graded"
) -> Subject:
    path = folder / f"data.{suffix}"
    path.write_text(text, encoding="utf-8")
    return read_subject(slice_of(kind=kind, path=path))


def found(check: Check, looked_at: Subject) -> list[tuple[str, int]]:
    return [(note.severity, note.row) for note in check(looked_at)]


def said(check: Check, looked_at: Subject) -> str:
    (note,) = check(looked_at)
    return note.message


def dataset_of(
    *subjects: Subject, pooled: tuple[Threshold, ...] = ()
) -> tuple[Dataset, dict[str, Subject]]:
    by_language = {own.slice_.language: own for own in subjects}
    made = Dataset(
        name="d",
        folder=Path("d"),
        kind=subjects[0].slice_.kind,
        slices={language: own.slice_ for language, own in by_language.items()},
        pooled=pooled,
    )
    return made, by_language


EXAMPLES = yaml.safe_load(
    Path(__file__).with_name("item_checks.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("name", "example"),
    [(name, one) for name, some in EXAMPLES.items() for one in some],
)
def test_a_check_finds_what_is_wrong_and_no_more(
    name: str, example: Mapping[str, Any]
) -> None:
    """Each example has just these findings, and their message says what to look at."""
    language, cases = example.get("lang", "en"), []
    for row, one in enumerate(example.get("items", [example]), 1):
        golds = one.get("gold", "x")
        fields = {
            key: one[key]
            for key in ("context", "recorded", "label", "metadata", "options")
            if key in one
        }
        golds = [golds] if isinstance(golds, str) else golds
        cases.append(item(row, one["q"], *golds, language=language, **fields))
    own = subject(*cases, language=language, kind=example.get("kind", "graded"))
    findings = list(SLICE_CHECKS[name](own))
    assert [f"{one.severity} {one.row}" for one in findings] == example.get("found", [])
    assert all(example.get("said", "") in one.message for one in findings)


def test_ids_that_change_with_the_content_are_told_where_others_do_not(
    tmp_path: Path,
) -> None:
    """A file without ids is a choice, one row without is a slip; odd ids become hashes."""
    mixed = from_file(tmp_path, "id,question,answer\na,Who?,x\n,What?,y\n")
    assert found(ids, mixed) == [("warning", 2)]
    assert not found(ids, from_file(tmp_path, "question,answer\nWho?,x\nWhat?,y\n"))
    odd = from_file(
        tmp_path, "id,question,answer\nok,Who?,x\nид-1,What?,y\na b,When?,z\n"
    )
    assert found(ids, odd) == [("warning", 2)]
    assert "2 of 3 ids are replaced by hashes, such as 'ид-1', 'a b'" in said(ids, odd)


def test_language_entries_and_long_texts() -> None:
    """Frequent words are in a language's own letters; towers of marks are checked in one walk."""
    for code, entry in known().items():
        letters = set("".join(entry.stops)) - {"'"}
        assert letters <= (entry.letters or letters), code
        assert entry.expected <= entry.letters, code
        assert len(entry.stops) > 60, code
    assert language_of("en-GB") is language_of("en")
    assert language_of("be-tarask") is language_of("xx") is None
    for text in (
        "a" + "\u0301" * 20_000,
        "ж" * 50_000 + "  y",
        "(„" * 20_000,
        "a" + " " * 50_000,
    ):
        own = Subject(slice_=slice_of("be"), cases=(item(1, text, context=text),))
        assert len(findings(SLICE_CHECKS, own.slice_.path, own)) < 4


KINDS: tuple[str, ...] = ("graded", "rated", "yes_no", "judged")
LANGUAGES = ("en", "bg", "pl", "hu", "be", "zh")
TEXT = st.one_of(
    st.text(max_size=60),
    st.text('aаαIІ \u0301\u200b„“"«.,?сьцяня|\u2000\n', max_size=60),
    st.sampled_from(HOSTILE[:-3]),
)


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    kind, language = draw(st.sampled_from(KINDS)), draw(st.sampled_from(LANGUAGES))
    fields = st.sampled_from(("fact_id", "label_1", "difficulty", "twin", "story_id"))
    cases: list[Case] = []
    for row in range(1, draw(st.integers(1, 4)) + 1):
        golds = draw(st.lists(TEXT, min_size=1, max_size=2))
        metadata = draw(st.dictionaries(fields, TEXT, max_size=3))
        cases.append(
            item(row, draw(TEXT), *golds, context=draw(TEXT), metadata=metadata)
        )
    return Subject(slice_=slice_of(language, kind, by=("topic",)), cases=tuple(cases))


@pytest.mark.untraced
@settings(max_examples=60, deadline=None)
@given(subjects())
def test_no_text_makes_the_linter_fail(own: Subject) -> None:
    """For any content of a file, every check ends, and every finding is one printable line."""
    for finding in (
        *findings(SLICE_CHECKS, own.slice_.path, own),
        *findings(DATASET_CHECKS, own.slice_.path, *dataset_of(own)),
    ):
        assert "\n" not in finding.line
        assert finding.line.startswith(f"{finding.file}: ")


TODAY = datetime.now(UTC).date()
NOUNS = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(300)]
PASSAGE = "The mill has two wheels and the older one was built of oak by a smith in the year {}."


@tabled("kind", "labels", "told")
def test_classes_out_of_balance_are_told(
    kind: str, labels: list[str | None], told: str
) -> None:
    """Yes and no, and the grades of judged items; ten items are the fewest that say anything."""
    rows = [item(row, f"{row}?", label=label) for row, label in enumerate(labels, 1)]
    notes = list(balance(subject(*rows, kind=kind)))
    assert [note.message.split(";")[0] for note in notes] == [told] * bool(told)


def yes_or_no(count: int, write: Callable[[int, str], str]) -> Subject:
    labels = [YES if n % 2 else NO for n in range(count)]
    told = ((n, label, write(n, label)) for n, label in enumerate(labels))
    rows = [item(n + 1, text, label=label, context=f"p{n}") for n, label, text in told]
    return subject(*rows, kind="yes_no")


def test_a_word_that_means_yes_is_told_with_its_share() -> None:
    """In 40 of 100 yes and in 20 of 100 no it answers 60 %; fewer than 150 items are too few."""

    def write(n: int, label: str) -> str:
        cued = n // 2 < (40 if label == YES else 20)
        return f"Is {NOUNS[n // 2]} {'more' if cued else NOUNS[100 + n // 2]}?"

    message = said(cue_words, yes_or_no(200, write))
    assert "means yes: that rule alone answers 60% right, above 58%" in message
    assert message.startswith("the word 'more' in a question")
    assert not found(
        cue_words, yes_or_no(200, lambda n, _: f"Is {NOUNS[n // 2]} here?")
    )
    assert not found(cue_words, yes_or_no(149, lambda _, label: f"Is it {label}?"))


def test_the_share_of_a_rule_is_balanced() -> None:
    """Nine yes for every no is another check's finding, not that of every rare word."""
    rows = [
        item(n, f"Is {NOUNS[n]} here?", label=YES if n % 10 else NO)
        for n in range(1, 201)
    ]
    assert not found(cue_words, subject(*rows, kind="yes_no"))
    assert not found(
        cue_words, subject(*(replace(row, label=YES) for row in rows), kind="yes_no")
    )


def test_words_that_answer_together_are_told() -> None:
    """No one word is a rule, and yet the topic of a question says its answer."""
    topics = {YES: NOUNS[:15], NO: NOUNS[15:30]}

    def write(n: int, label: str) -> str:
        return f"Is {topics[label][n // 2 % 15]} {NOUNS[30 + n]} here?"

    own = yes_or_no(200, write)
    assert not found(cue_words, own)
    message = said(closed_book, own)
    assert "answer 100% right, above 58%: 200 of 200 items, most surely rows" in message


def test_words_by_chance_answer_nothing() -> None:
    """Answers drawn by lot follow from no words."""
    for seed in range(5):
        draw = random.Random(seed).sample  # no secret
        own = yes_or_no(
            200, lambda *_, draw=draw: f"Is {' '.join(draw(NOUNS[:40], 6))}?"
        )
        assert not found(closed_book, own)


def test_twins_teach_nothing_about_each_other() -> None:
    """One question about two passages has both answers; learnt from its twin it would be wrong."""
    rows = [
        item(
            n,
            f"Is {NOUNS[n // 2]}?",
            label=YES if n % 2 else NO,
            metadata={"twin": n // 2},
        )
        for n in range(200)
    ]
    own = subject(*rows, kind="yes_no")
    clustered = replace(own, slice_=replace(own.slice_, cluster="twin"))
    assert not found(closed_book, clustered)
    other = [replace(row, question=f"{row.question} {n}") for n, row in enumerate(rows)]
    alone = subject(*other, kind="yes_no")
    assert found(unclustered, alone) == [("warning", 0)]
    assert "'cluster: twin'" in said(unclustered, alone)
    assert not found(unclustered, own), (
        "copies of a question are one cluster as they are"
    )
    assert not found(unclustered, clustered)


def pair(*labels: str, passages: tuple[str, ...] = ("1801", "1810")) -> Subject:
    rows: list[Case] = [
        item(
            row,
            "Was it?",
            label=label,
            context=PASSAGE.format(year),
            metadata={"twin": "t1"},
        )
        for row, (label, year) in enumerate(zip(labels, passages, strict=True), 1)
    ]
    return subject(
        *rows, item(9, "Is it?", label=YES, metadata={"twin": ""}), kind="yes_no"
    )


def test_twins_are_two_with_opposite_answers_and_one_fact_changed() -> None:
    """A lone twin, an equal answer and an equal or quite different passage are told."""
    assert not found(twins, pair(YES, NO))
    assert found(twins, pair(YES, YES)) == [("error", 2)]
    assert found(twins, pair(YES, passages=("1801",))) == [("error", 1)]
    assert found(twins, pair(YES, NO, YES, passages=("1", "2", "3"))) == [("error", 1)]
    same = pair(YES, NO, passages=("1801", "1801"))
    assert "are the same" in said(twins, same)
    asked = tuple(
        replace(one, question=f"{one.question} {one.row}") for one in same.cases
    )
    assert not found(twins, replace(same, cases=asked)), (
        "two questions about one passage"
    )
    far = " and ".join(NOUNS[:30])
    assert "more than a fact" in said(twins, pair(YES, NO, passages=("1801", far)))


def answered(right: int, wrong: int, kind: str, **more: object) -> Subject:
    words = {"graded": ("Paris", "Rome"), "yes_no": ("Yes", "No")}.get(
        kind, ("a b c", "")
    )
    rows = [
        item(row, f"{row}?", words[0], label="YES", recorded=words[row > right], **more)
        for row in range(1, right + wrong + 1)
    ]
    return Subject(slice_=slice_of(kind=kind, yes="Yes", no="No"), cases=tuple(rows))


@pytest.mark.parametrize("kind", ["graded", "yes_no", "rated"])
def test_a_slice_that_its_own_answers_pass_cannot_see_a_loss(kind: str) -> None:
    """Above 95 % of twenty items or more; 95 % is where it begins."""
    assert found(too_easy, answered(20, 0, kind)) == [("warning", 0)]
    assert not found(too_easy, answered(19, 1, kind))
    assert not found(too_easy, answered(19, 0, kind))
    message = said(too_easy, answered(39, 1, kind))
    assert "cannot see a loss: recorded answers are right in 98% of 40" in message
    assert not found(too_easy, answered(30, 0, "judged"))


def test_choices_that_are_nearly_all_right_cannot_see_a_loss() -> None:
    options = {"options": ("Paris", "Rome"), "label": "B"}
    right = [
        item(row, f"{row}?", "Rome", recorded="B", **options) for row in range(1, 21)
    ]
    wrong = [
        item(row, f"{row}?", "Rome", recorded="A", **options) for row in range(1, 21)
    ]
    assert found(too_easy, subject(*right, kind="choice")) == [("warning", 0)]
    assert not found(too_easy, subject(*right[1:], wrong[0], kind="choice"))


def test_the_difficulty_that_was_published_counts_before_recorded_answers() -> None:
    """It is the share of models that were right; what is no share, as a percentage, is an error."""
    for value in ("1.5", "-1", "nan", "easy"):
        odd = subject(item(4, "?", metadata={"difficulty": value}))
        assert found(too_easy, odd) == [("error", 4)]
    easy = answered(0, 30, "graded", metadata={"difficulty": "0.97"})
    assert "by the mean 'difficulty', in 97% of 30" in said(too_easy, easy)
    assert not found(
        too_easy, answered(30, 0, "graded", metadata={"difficulty": "0.5"})
    )


@tabled("given", "told")
def test_a_difficulty_of_old_models_is_a_warning(
    tmp_path: Path, given: str, told: str
) -> None:
    """It must say when they answered; without the column there is nothing to ask."""
    given = re.sub(
        r"\{(\d+) days ago\}",
        lambda days: f"{TODAY - timedelta(days=int(days[1]))}",
        given,
    )
    rows = "question,answer,difficulty\nWho?,Vazov,0.5\nWhere?,Sofia,1\n"
    (tmp_path / "dated").mkdir()
    path = tmp_path / "dated" / "dataset.yaml"
    text = (
        "kind: graded\nlanguages: {en: {file: en.csv, gates: {correct: {min: 0.5}}}}\n"
    )
    path.write_text(f"{text}check:\n  waive: {{}}\n  {given}\n", encoding="utf-8")
    for data, message in ((rows, told), (rows.replace("difficulty", "source"), "")):
        path.with_name("en.csv").write_text(data, encoding="utf-8")
        lines = check_datasets([path]).lines
        assert bool(lines) is bool(message)
        assert re.search(message, "".join(lines))
    path.write_text(f"{text}check: {{difficulty_date: last year}}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="key 'difficulty_date': want a date"):
        check_datasets([path])


def with_rules(
    language: str, items: int, *rules: Threshold, fact: bool = False
) -> Subject:
    cases = tuple(
        item(
            n, f"{n}?", language=language, metadata={"fact_id": f"f{n}"} if fact else {}
        )
        for n in range(items)
    )
    return Subject(slice_=slice_of(language, thresholds=rules), cases=cases)


def test_a_language_without_gates_is_a_warning() -> None:
    """Every declared language has a gate of its own."""
    gated = with_rules("en", 1, Threshold(measure="correct", min=0.5))
    (note,) = ungated(*dataset_of(gated, with_rules("bg", 1)))
    assert "'bg' has no gates" in note.message


@tabled("items", "rule", "told")
def test_a_margin_too_narrow_is_told(
    items: int, rule: dict[str, Any], told: str
) -> None:
    """Of a language's own drop gate, and of one that pools the languages."""
    bar = Threshold(**{"measure": "drop", "evidence": "confident", **rule})
    own = list(narrow_margins(*dataset_of(with_rules("en", items, bar))))
    halves = with_rules("en", items // 2), with_rules("bg", items - items // 2)
    pooled = list(narrow_margins(*dataset_of(*halves, pooled=(bar,))))
    for notes in (own, pooled):
        assert len(notes) == bool(told)
        assert all(told in note.message for note in notes)


@pytest.mark.parametrize("fact", [False, True])
def test_a_fact_in_several_languages_counts_once_for_a_pooled_margin(
    *, fact: bool
) -> None:
    """Forty items in two languages are enough for a margin of 0.1; twenty facts in both are not."""
    rule = Threshold(measure="drop", max=0.1, evidence="confident")
    halves = [with_rules(code, 20, fact=fact) for code in ("en", "bg")]
    notes = [
        note.message for note in narrow_margins(*dataset_of(*halves, pooled=(rule,)))
    ]
    assert len(notes) == fact
    assert all(
        "20 independent items can never show a drop below 0.1" in note for note in notes
    )


ROOT = Path(__file__).parents[3]
ROW = b'{"question": "is it", "passage": "It is.", "answer": true}\n'


@tabled("words", "message")
def test_wrong_arguments_exit_with_4(
    words: list[str], message: str, capsys: Captured
) -> None:
    """One line on stderr, nothing on stdout."""
    assert main(words) == 4
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


def test_check_takes_what_lies_below(
    tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    """The user's own data sets where there are any; `--as` still asks for a file."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "folk", "--to", "deep"]) == 0
    assert main(["check"]) == 0
    assert "0 errors, 2 warnings: 1 item in 1 file" in capsys.readouterr().out
    assert main(["check", "--as", "simpleqa:bg"]) == 4
    assert "no file given" in capsys.readouterr().err


@pytest.mark.slow
@tabled("name", "as_", "code", "checks")
def test_public_files(
    name: str, as_: str, code: int, checks: list[str], capsys: Captured
) -> None:
    """Published sets hold leaks, look-alikes, conflicts and control characters; they are found."""
    file = ROOT.parent / "shared" / "data" / name
    if not file.is_file():
        pytest.skip("the shared data is not here")
    assert main(["check", "--as", as_, str(file)]) == code
    told = capsys.readouterr().out
    assert all(f": {check}: " in told for check in checks)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX here")
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    """Exit code 130, no traceback and no part of a file."""
    with file_server() as server:
        server.files["/data"] = Answer(action="headers", body=ROW)
        words = ["download", "boolq", "--to", str(tmp_path), "--url", server.url()]
        command = [sys.executable, "-m", "cases", *words]
        with subprocess.Popen(
            command, cwd=ROOT, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            while not server.server.count:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.stderr.read() == "interrupted\n"
        assert process.returncode == 130
        assert not any(tmp_path.iterdir())
