"""The first screen and the gates: what differs, pictures that obey verdicts, worst first."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.dataset import Threshold
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.gates.bands import limit_of, obeying
from qagate.reports.render import html, markdown, worst_first
from qagate.reports.render.difference_marks import Piece, difference
from qagate.reports.render.first_screen import (
    cost_of,
    duration,
    first_screen,
    gates_text,
    plain_model,
)
from qagate.reports.render.gate_families import gate_families
from qagate.reports.render.judge_words import judge_sentence
from qagate.reports.render.language_rows import language_rows, row_of
from qagate.reports.render.names import Names, language_name, listed
from qagate.reports.render.pictures import Axis, draw
from qagate.reports.render.sentence import sentence_of
from qagate.reports.run.evidence import Judging
from qagate.reports.run.report import Cause, Decision, GateResult, GateState, Report
from tests.reports.test_sentence import JUDGE, ROWS, bar, loss
from tests.support.pages import Page
from tests.support.samples import report
from tests.support.signing_runs import (
    FAILING,
    OLD,
    OPEN,
    PASSING,
    Release,
    signing_run,
)

VERDICTS: dict[str, tuple[Release, GateState]] = {
    "FAIL": (FAILING, "FAIL"),
    "INCONCLUSIVE": (OPEN, "INCONCLUSIVE"),
    "PASS": (PASSING, "PASS"),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Report]:
    """A release in each verdict, beside the same old one."""
    old = signing_run(OLD)
    return {name: signing_run(release, old) for name, (release, _) in VERDICTS.items()}


# Pictures


STATES: tuple[GateState, ...] = ("PASS", "FAIL", "INCONCLUSIVE")
ENDS = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted)
RULES = (
    Threshold(measure="drop", max=0.1, fail="margin"),
    Threshold(measure="drop", max=0.1, fail="zero"),
    Threshold(measure="rise", of="incorrect", max=0.1),
    Threshold(measure="correct", min=0.3),
    Threshold(measure="incorrect", max=0.3),
    Threshold(measure="attempted", min=0.2, max=0.7),
)


def verdict_of(band: tuple[float, float], limit: tuple[float, float]) -> str:
    """Return what a reader takes from a picture: grey is what may not be."""
    low, high = band
    floor, ceiling = limit
    if high < floor or low > ceiling:
        return "FAIL"
    if low >= floor and high <= ceiling:
        return "PASS"
    return "INCONCLUSIVE"


@given(ENDS, st.sampled_from(RULES), st.sampled_from(STATES))
def test_no_picture_contradicts_a_verdict(
    ends: list[float], rule: Threshold, state: GateState
) -> None:
    """Whatever decided beside the band, its ends lie where the verdict says."""
    limit = limit_of(rule, state)
    band = obeying((ends[0], ends[1]), limit, state)
    assert band[0] <= band[1]
    assert verdict_of(band, limit) == state


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_every_gate_of_a_run_is_drawn_as_it_ended(
    runs: dict[str, Report], name: str
) -> None:
    """From the verdict of the pairs and labels to the places in the picture."""
    for family in gate_families(runs[name]):
        for gate in family.rows:
            band = gate.row.band
            assert band is not None
            assert verdict_of(band, gate.row.limit) == gate.row.state
            assert gate.picture.band is not None
            assert gate.row.name in gate.picture.label


def test_a_picture_says_in_words_what_it_draws() -> None:
    row = row_of(loss("pl", "FAIL", 0.24), Names(datasets=("simpleqa",), slices=()))
    picture = draw(row, Axis.of([row]))
    assert picture.label == "Polish fails, −24.0, may be −29.0 to −19.0, limit −10.0"


def test_axes_have_the_limit_and_round_figures() -> None:
    names = Names(datasets=("simpleqa",), slices=())
    row = row_of(loss("pl", "FAIL", 0.24), names)
    assert [tick.text for tick in Axis.of([row]).ticks([row])] == [
        "−30", "−20", "−10", "0",
    ]  # fmt: skip
    row = row_of(
        bar("correct", 0.7, threshold=Threshold(measure="correct", min=0.36)), names
    )
    assert [tick.text for tick in Axis.of([row]).ticks([row])] == ["0%", "36%", "100%"]
    slow = Threshold(measure="seconds_p95", max=8.0)
    row = row_of(bar("seconds_p95", 9.0, threshold=slow), names)
    axis = Axis.of([row])
    assert [tick.text for tick in axis.ticks([row]) if tick.is_limit] == ["8"]
    assert draw(row, axis).label.endswith("limit 8 s")


def test_ratings_are_drawn_from_1_to_10() -> None:
    rule = Threshold(measure="mean_rating", min=5.5)
    row = row_of(
        bar("mean_rating", 6.0, threshold=rule), Names(datasets=("eba",), slices=())
    )
    axis = Axis.of([row])
    assert axis.start < 1
    assert axis.end > 10


# Rows and reasons


def told(*gates: GateResult, code: int = 1, **changes: object) -> Report:
    decision = Decision(gates=gates, code=code, cause=Cause.GATE_FAILED, line="-")
    return report((), **{"decision": decision, **changes})


def test_the_figure_is_about_what_the_sentence_is_about() -> None:
    rise = Threshold(measure="rise", of="incorrect", max=0.1)
    made = told(
        loss("pl", "PASS"), loss("pl", "FAIL", -0.2, threshold=rise, old=0.04, new=0.24)
    )
    rows = language_rows(made)
    assert rows is not None
    assert rows.title == "Wrong answers"
    assert [row.name for row in rows.rows] == ["Polish"]


def test_a_pool_is_a_row_where_no_language_says_why() -> None:
    made = told(loss("", "FAIL", 0.12), loss("pl", "PASS"))
    rows = language_rows(made)
    assert rows is not None
    assert [row.name for row in rows.rows] == ["all languages together", "Polish"]


def test_a_pool_that_fails_by_a_language_is_that_language() -> None:
    row = ROWS["a pool that fails by a language"]
    rows = language_rows(row.report)
    assert rows is not None
    assert [(row.name, row.state, row.value) for row in rows.rows] == [
        ("Polish", "FAIL", -0.24),
        ("Polish", "PASS", -0.24),
    ]


def test_without_figures_there_are_no_rows() -> None:
    assert language_rows(told(bar("kappa", 0.5))) is None
    assert first_screen(told()).languages is None


WHY = {
    "lost": (loss("pl", "FAIL", 0.24), "Even at best 19% are lost; at most 10% may be."),
    "worse at all": (
        loss("pl", "FAIL", 0.24, threshold=Threshold(measure="drop", max=0.1, fail="zero")),
        "Even at best 19% are lost.",
    ),
    "kept": (loss("pl", "PASS", 0.01), "At worst 6% are lost."),
    "won": (loss("pl", "PASS", -0.2), "None are lost at worst."),
    "rose": (
        loss("pl", "FAIL", -0.2, threshold=Threshold(measure="rise", of="incorrect", max=0.1)),
        "Even at best they rose by 15%; 10% may be.",
    ),
    "rose a little": (
        loss("pl", "PASS", -0.02, threshold=Threshold(measure="rise", of="cut", max=0.1)),
        "At worst they rose by 7%; 10% may be.",
    ),
    "counted": (bar("correct", 0.7), "238 of 340 right; 323 needed."),
    "measured": (bar("f_score", 0.7), "0.700, of 340; 0.950 needed."),
    "at most": (
        bar("incorrect", 0.12, threshold=Threshold(measure="incorrect", max=0.05)),
        "12%, of 340; 5% allowed.",
    ),
    "open": (
        loss("pl", "INCONCLUSIVE", 0.05),
        "Polish lost 5%, perhaps more than 10%.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("gate", "text"), WHY.values(), ids=list(WHY))
def test_a_gate_says_why_in_a_sentence(gate: GateResult, text: str) -> None:
    (family,) = gate_families(told(gate))
    assert family.rows[0].why == text
    assert gate.reason in family.rows[0].record


def test_gates_on_one_thing_stand_together_with_their_limit() -> None:
    made = told(
        loss("hu", "PASS"), bar("correct", 0.97, state="PASS"), loss("pl", "FAIL", 0.2)
    )
    families = [
        (family.title, family.limit, [row.row.name for row in family.rows])
        for family in gate_families(made)
    ]
    assert families == [
        ("Right answers lost", "against the old model; at most 10% of the questions",
         ["Polish", "Hungarian"]),
        ("Right answers", "at least 95%", ["English"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ("FFPPP", "2 of 5 gates fail."),
        ("FIP", "1 of 3 gates fails. 1 cannot be decided."),
        ("IIP", "2 of 3 gates cannot be decided."),
        ("PP", "2 gates hold."),
        ("P", "1 gate holds."),
        ("", "There are no gates."),
    ],
)
def test_gates_are_counted_in_a_sentence(states: str, text: str) -> None:
    names: dict[str, GateState] = {"F": "FAIL", "I": "INCONCLUSIVE", "P": "PASS"}
    gates = [replace(loss("pl", "PASS"), state=names[state]) for state in states]
    assert gates_text(told(*gates)) == text


# What differs


MARKS = {
    "a name": ("Kto?", "Vicenza", "Wygrała Vicenza.", "Wygrała Padova."),
    "a number": ("Ile?", "78", "Zmarł w wieku 78 lat.", "Zmarł mając 66 lat."),
    "a date": ("Kiedy?", "5 lipca 1993", "Od 5 lipca 1993 r.", "Od 1 stycznia 1994 r."),
    "an initial": ("Who?", "Aldo Neri", "Aldo Neri.", "Robert W. Faid."),
    "no case or accent": ("Where?", "Łódź", "łódź", "w Gdańsku"),
    "nothing alike": ("Q?", "b", "a", ""),
}
MARKED = {
    "a name": ("Vicenza", "Padova"),
    "a number": ("78", "66"),
    "a date": ("5 lipca 1993", "1 stycznia 1994"),
    "an initial": ("Aldo Neri", "Robert W. Faid"),
    "no case or accent": ("łódź", "Gdańsku"),
    "nothing alike": ("a", ""),
}


@pytest.mark.parametrize("name", MARKS)
def test_what_differs_is_marked(name: str) -> None:
    marked = difference(*MARKS[name])
    assert (marked.old_words, marked.new_words) == MARKED[name]


@given(
    st.text(max_size=60),
    st.text(max_size=20),
    st.text(max_size=60),
    st.text(max_size=60),
)
def test_no_part_of_an_answer_is_lost_by_marks(
    question: str, expected: str, old: str, new: str
) -> None:
    marked = difference(question, expected, old, new)
    assert "".join(piece.text for piece in marked.old) == old
    assert "".join(piece.text for piece in marked.new) == new


# Whole runs


def test_worst_lost_answers_are_of_the_language_that_fails(
    runs: dict[str, Report],
) -> None:
    """Five, plainly wrong, one a topic; the English twin of each question stands below it."""
    made = runs["FAIL"]
    five = worst_first.five_lost(made)
    assert [answer.slice for answer in five] == ["simpleqa:pl"] * 5
    assert all(worst_first.is_plainly_wrong(answer.record) for answer in five)
    assert len({answer.record.metadata["topic"] for answer in five}) == 5
    screen = first_screen(made)
    assert all(row.twin for row in screen.lost)
    assert screen.lost_title == "The five worst lost answers in Polish"
    assert screen.lost_filter.endswith("language=pl&flip=broke")


def test_a_refusal_has_no_mark(runs: dict[str, Report]) -> None:
    """There is nothing wrong in it to show."""
    lost = worst_first.lost_answers(runs["FAIL"])
    silent = next(one for one in lost if not worst_first.is_plainly_wrong(one.record))
    row = first_screen(replace(runs["FAIL"], records=(silent.record,))).lost
    assert all(
        isinstance(piece, Piece) and not piece.is_marked
        for piece in row[0].difference.new
    )


@pytest.mark.parametrize("name", VERDICTS)
def test_one_order_everywhere(runs: dict[str, Report], name: str) -> None:
    """Terminal, summary, figure and list begin with the same language."""
    made = runs[name]
    first = worst_first.slices(made)[0]
    rows = language_rows(made)
    assert rows is not None
    assert rows.rows[0].slice == first
    assert worst_first.items(made)[0].language == first.partition(":")[2]
    assert worst_first.by_slice(made, made.slices)[0].name == first
    assert worst_first.by_slice(made, made.health)[0].name == first
    called = Names.of(made).of_slice(first)
    table = re.findall(r"^\| (\w+) \|", markdown.render(made), re.MULTILINE)
    assert table[0] == called


@pytest.mark.parametrize("name", VERDICTS)
def test_page_tab_and_summary_have_the_same_sentence(
    runs: dict[str, Report], name: str
) -> None:
    made = runs[name]
    text = sentence_of(made).text
    page = html.render(made)
    assert f"<title>{text} – " in page
    assert f"<h1>{text}</h1>" in page
    assert markdown.render(made).startswith(f"## {name}. {text}\n")


def test_the_first_screen_needs_no_script(runs: dict[str, Report]) -> None:
    """Sentence, figure, five answers, judge, time and cost are plain text of the page."""
    text = Page(html.render(runs["FAIL"])).text
    for words in (
        "Do not ship: Polish fell from",
        "Read the lost Polish answers.",
        "The five worst lost answers in Polish",
        "It agreed with 1,162 of 1,200 answers graded beforehand (97%), in Polish with",
        "None of them are yours.",
        "1,703 answers, 76 s, $17.42.",
        "assistant-2026-11 in place of assistant-2026-05",
    ):
        assert words in text


def test_what_was_waived_stands_on_the_first_screen() -> None:
    made = told(loss("pl", "PASS"), code=0)
    decision = replace(
        made.decision, cause=Cause.PASSED, cautions=("accepted: slices=simpleqa:hu",)
    )
    text = html.render(replace(made, decision=decision))
    first, _, _ = text.partition("<main>")
    assert "accepted: slices=simpleqa:hu" in first


# Words


def test_languages_have_names() -> None:
    assert language_name("pl") == "Polish"
    assert language_name("pt-BR") == "Portuguese (BR)"
    assert language_name("zz") == "zz"
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(76, "76 s"), (240, "4 min"), (7100, "118 min"), (7500, "2 h 5 min")],
)
def test_times_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_without_a_price_tokens_are_named() -> None:
    assert cost_of(report(cost=None, tokens=6_109_628)).startswith("6,109,628 tokens")


def test_models_are_named_without_their_provider() -> None:
    assert plain_model("openai:gpt-4.1") == "gpt-4.1"
    assert plain_model("recorded answers") == "recorded answers"


@pytest.mark.parametrize(
    ("judging", "text"),
    [
        (Judging(), "No judge was needed: code read the answers."),
        (Judging(graded=9), "Nothing shows how often it is right."),
        (Judging(calibrations=(replace(JUDGE, stand_in="rules"),)), "A placeholder judge graded"),
        (Judging(graded=9, calibrations=(JUDGE,)), "All of them are yours."),
        (
            Judging(graded=9, calibrations=(JUDGE, replace(JUDGE, bundled=True))),
            "115 of them are yours.",
        ),
    ],
)  # fmt: skip
def test_the_judge_is_told_in_a_sentence(judging: Judging, text: str) -> None:
    assert text in judge_sentence(report(judging=judging), ["simpleqa:pl"])


def test_a_judge_without_figures_is_no_agreement() -> None:
    nothing = replace(JUDGE, measures={"agreement": Estimate.of(None, None, 0)})
    made = report(judging=Judging(graded=9, calibrations=(nothing,)))
    assert judge_sentence(made, []) == "Nothing shows how often it is right."
