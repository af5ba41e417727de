"""Articles from dumps and files become paragraphs; rules refuse other languages and questions."""

import bz2
import csv
import gzip
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.extras.builder import rules, sampling
from qagate.cases.extras.builder.recipe import (
    ParagraphRules,
    SourceGroup,
    SpellingRules,
)
from qagate.cases.extras.builder.work_folder import DraftItem, Origin
from qagate.evaluators.core import NO, YES, UsageError
from tests.support.building import (
    dump_xml,
    make_item,
    models,
    pages,
    paragraph,
    recipe,
    rows,
    write_dump,
    write_news,
)
from tests.support.building_site import site
from tests.support.tables import kept, tabled

RECIPE = recipe()
ENTAILMENT = (
    Path(__file__).parents[4] / "shared/data/belarusian_entailment/bertewd.json"
)

BOUNDS = ParagraphRules(shortest=20, longest=60, sentences=2, media=())

MEDIA = ("файл", "катэгорыя")


def found(path: Path, licence: str = "CC0") -> list[sampling.Article]:
    source = sampling.TextSource(
        SourceGroup(name="news", files=(path,), licence=licence), path
    )
    source.check()
    return list(source.articles(lambda _: None))


@pytest.mark.parametrize("suffix", [".xml", ".xml.bz2", ".xml.gz"])
def test_a_dump_gives_its_articles(tmp_path: Path, suffix: str) -> None:
    """Talk pages and redirects are left out; title, address, revision and licence are kept."""
    content = dump_xml(pages(3)).encode()
    packed = {
        ".xml": content,
        ".bz2": bz2.compress(content),
        ".gz": gzip.compress(content),
    }
    path = tmp_path / f"wiki{suffix}"
    path.write_bytes(packed[path.suffix])
    made = found(path)
    titles = [article.origin.title for article in made]
    assert titles == ["Мясцовасць 1", "Мясцовасць 2", "Мясцовасць 3", "Накід"]
    first = made[0].origin
    assert (first.page, first.revision, first.licence) == ("1", "10", "CC0")
    assert first.url.startswith("https://be.example.org/wiki/%D0%9C")
    assert made[0].is_wiki
    assert list(sampling.wiki_paragraphs(made[0].text, MEDIA)) == [paragraph(1)]


@pytest.mark.parametrize(
    "content",
    [
        bz2.compress(dump_xml(pages(30)).encode())[:-200],
        b"no archive",
        bz2.compress(b"<html></html>"),
        bz2.compress(dump_xml(pages(3)).encode()[:-400]),
        bz2.compress(b"<mediawiki><page></page></mediawiki>"),
    ],
    ids=["cut", "no-bz2", "no-dump", "cut-xml", "no-siteinfo"],
)
def test_a_broken_dump_is_named(tmp_path: Path, content: bytes) -> None:
    """For any fault of the file, the message is one line with its path."""
    path = tmp_path / "wiki.xml.bz2"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"wiki\.xml\.bz2: not a whole MediaWiki dump"):
        found(path)


def test_a_long_dump_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are counted aloud, those left out too; a page without text is none."""
    monkeypatch.setattr(sampling, "PAGES_A_LINE", 2)
    content = dump_xml(pages(3)).replace("</page>", "<revision></revision></page>", 1)
    (tmp_path / "wiki.xml").write_text(content, encoding="utf-8")
    said: list[str] = []
    group = SourceGroup(name="news", files=(), licence="CC0")
    source = sampling.TextSource(group, tmp_path / "wiki.xml")
    assert "Мясцовасць 1" not in [
        article.origin.title for article in source.articles(said.append)
    ]
    assert said[0] == "sample: wiki.xml: 2 pages read"


def test_rows_are_read_by_name_of_column(tmp_path: Path) -> None:
    """JSONL and CSV give the same article; a row's own licence wins; each .txt is an article."""
    (tmp_path / "texts" / "in").mkdir(parents=True)
    (tmp_path / "texts" / "in" / "адзін.txt").write_text("Тэкст.", encoding="utf-8")
    (text,) = found(tmp_path / "texts")
    assert (text.origin.title, text.origin.page, text.text) == (
        "адзін",
        "in/адзін.txt",
        "Тэкст.",
    )
    (one,) = found(write_news(tmp_path / "a.jsonl", 1))
    assert (one.origin.page, one.origin.licence) == ("n10001", "CC BY 4.0")
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["Headline", "Body"], ["Навіна", one.text]])
    (other,) = found(tmp_path / "a.csv")
    assert (other.text, other.origin.title, other.origin.licence) == (
        one.text,
        "Навіна",
        "CC0",
    )
    assert other.origin.page.isalnum()


@tabled("name", "content", "message")
def test_no_articles(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    """A wrong file is a usage problem that says what is wanted."""
    path = tmp_path / name
    if content is None:
        path.mkdir()
    elif content:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        found(path)


def test_a_source_without_a_licence_is_refused(tmp_path: Path) -> None:
    """Every item needs one, so a source that names none has to be told."""
    path = write_dump(tmp_path / "wiki.xml", pages(1))
    with pytest.raises(UsageError, match="names no licence; say `licence` under"):
        found(path, licence="")


@tabled("code", "expected")
def test_markup_case_by_case(code: str, expected: list[str]) -> None:
    """Each kind of markup is read as a reader sees it, or the paragraph is left out."""
    assert list(sampling.wiki_paragraphs(code, MEDIA)) == expected


@tabled("text", "expected")
def test_plain_text_is_cut_and_cleaned(text: str, expected: list[str]) -> None:
    """Empty lines part paragraphs; without any, each line is one."""
    assert list(sampling.plain_paragraphs(text)) == expected


@tabled("text", "expected")
def test_paragraphs_are_bounded(text: str, expected: str | None) -> None:
    """Too short is left out, too long is cut after a whole sentence."""
    assert sampling.bounded(text, BOUNDS) == expected


@settings(deadline=None)
@given(st.text(alphabet=st.characters(), max_size=300))
def test_a_bounded_paragraph_is_within_its_bounds(text: str) -> None:
    """For any text, what is taken of it has the length asked for and is in UTF-8."""
    for one in sampling.plain_paragraphs(text):
        one.encode("utf-8")
        cut = sampling.bounded(one, BOUNDS)
        assert cut is None or (20 <= len(cut) <= 60 and one.startswith(cut))


def article(number: int, text: str = "", group: str = "news") -> sampling.Article:
    origin = Origin(
        group=group, source="x/news.jsonl", page=f"{number}", title=f"{number}"
    )
    return sampling.Article(origin=origin, text=text or paragraph(number))


FOREIGN = "Щука ищет пищу и не находит её"

ARTICLES = [
    *(article(number) for number in range(80)),
    *(article(number, "Занадта коратка.") for number in range(80, 90)),
    *(
        article(number, f"{paragraph(number)} {FOREIGN}, {number}.")
        for number in range(90, 95)
    ),
]


def sample(
    articles: Iterable[sampling.Article], *, seed: int = 1, wanted: int = 20
) -> list[DraftItem]:
    made = replace(RECIPE, build=replace(RECIPE.build, seed=seed))
    return sampling.sample({"news": (wanted, lambda: articles)}, made)


def ids_kept(items: Sequence[DraftItem]) -> list[str]:
    return [item.id for item in items if item.state == "kept"]


@settings(max_examples=3, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_articles_does_not_matter(order: random.Random) -> None:
    """A dump sorted in another way gives the same sample; another seed gives another."""
    assert ids_kept(sample(ARTICLES, seed=3)) != ids_kept(sample(ARTICLES, seed=4))
    shuffled = list(ARTICLES)
    order.shuffle(shuffled)
    assert sample(shuffled) == sample(ARTICLES)


def test_as_many_as_wanted_and_the_rest_with_a_reason() -> None:
    """What was passed over is counted; what was never reached is not; a larger sample only adds."""
    found = sample(ARTICLES)
    assert len(ids_kept(found)) == 20
    reasons = {item.reason for item in found if item.state == "dropped"}
    assert reasons <= {"length", "letters", "similar"}
    every = sample(ARTICLES, wanted=1000)
    assert len(every) == len(ARTICLES), "each article is in exactly one state"
    assert [item.reason for item in every].count("length") == 10
    assert set(ids_kept(found)) <= set(ids_kept(sample(ARTICLES, wanted=30)))


def test_an_article_gives_one_paragraph() -> None:
    """Of several fitting paragraphs the seed takes one; a repeated article is one item."""
    texts = [paragraph(number) for number in (1, 2, 3)]
    (item,) = sample([article(1, "\n\n".join(texts))])
    assert item.paragraph in texts
    found = {
        sample([article(1, "\n\n".join(texts))], seed=seed)[0].paragraph
        for seed in range(20)
    }
    assert found == set(texts)
    assert len(sample([article(1), article(1)])) == 1
    assert len(sample([article(1, "Коратка."), article(1, "Коратка.")])) == 1


def test_nearly_the_same_text_is_taken_once() -> None:
    """A copy with a few words changed is dropped, in another group too."""
    copy = paragraph(1).replace("мост", "новы мост")
    groups: sampling.Sources = {
        "news": (5, lambda: [article(1)]),
        "wiki": (5, lambda: [article(2, copy, "wiki")]),
    }
    found = {item.origin.group: item for item in sampling.sample(groups, RECIPE)}
    assert (found["news"].state, found["wiki"].reason) == ("kept", "similar")


@pytest.mark.untraced
def test_a_source_full_of_copies_is_read_further() -> None:
    """A dump of machine-made stubs still gives as many texts as were asked for."""
    copies = [
        article(number, f"{paragraph(1)} Яна вядомая {number}.")
        for number in range(300)
    ]
    others = [article(number) for number in range(1000, 1020)]
    found = sample([*copies, *others], wanted=8)
    assert len(ids_kept(found)) == 8
    assert "similar" in {item.reason for item in found}
    assert set(ids_kept(found)) <= set(ids_kept(sample([*copies, *others], wanted=14)))


RUSSIAN: str = kept(__file__, "russian")


def reason(text: str, language: str = "be") -> str:
    return (
        rules.language_fault(
            text, rules.known_language(language), recipe(language).spelling
        )
        or ("", "")
    )[0]


@tabled("text", "language", "expected")
def test_a_language_is_told_from_its_neighbours(
    text: str, language: str, expected: str
) -> None:
    """Only наркамаўка passes for Belarusian, and by the same code only English for English."""
    assert reason(text, language) == expected


OTHER_SPELLING: str = kept(__file__, "other_spelling")

STANDARD_WORDS: str = kept(__file__, "standard_words")


def test_one_word_in_the_other_spelling_is_noticed() -> None:
    """In a short text; a soft sign that the standard keeps is no mark of the other spelling."""
    assert reason(paragraph(3)) == ""
    for words, expected in ((OTHER_SPELLING, "spelling"), (STANDARD_WORDS, "")):
        for word in words.split():
            assert reason(f"У горадзе быў {word}, і людзі яго ведалі.") == expected, (
                word
            )


def test_sentences_and_languages() -> None:
    """Abbreviations end no sentence; frequent words tell a language where no letter does."""
    loose = SpellingRules()
    found, detail = rules.language_fault(
        RUSSIAN, rules.known_language("be"), loose
    ) or ("", "")
    assert (found, "'ru'" in detail) == ("language", True)
    with pytest.raises(UsageError, match="'xx'"):
        rules.known_language("xx")
    text = "Я. Колас нарадзіўся ў 1882 г. Вёска была малая. «Добра!» Потым ён паехаў."
    assert rules.sentences(text) == [
        "Я. Колас нарадзіўся ў 1882 г. Вёска была малая.",
        "«Добра!»",
        "Потым ён паехаў.",
    ]


PARAGRAPH: str = kept(__file__, "paragraph")

ENGLISH: str = kept(__file__, "english")


def checked(
    *questions: str, language: str = "be", **changes: object
) -> list[DraftItem]:
    text = PARAGRAPH if language == "be" else ENGLISH
    items = [
        make_item(number, question=asked, paragraph=text, answer=YES, **changes)
        for number, asked in enumerate(questions)
    ]
    return check(items, language)


def check(items: Sequence[DraftItem], language: str = "be") -> list[DraftItem]:
    return rules.check_questions(items, recipe(language))


@tabled("asked", "reason")
def test_a_question_is_checked(asked: str, reason: str) -> None:
    """Each fault has its reason, and a good question has none; English is another YAML file."""
    english = asked.startswith("en: ")
    (item,) = checked(asked.removeprefix("en: "), language="en" if english else "be")
    assert item.reason == reason, item.detail
    assert (item.state == "dropped") == bool(reason)


def test_repeats_and_swaps_are_dropped() -> None:
    """The first of two nearly equal questions stays; of another text, its words tell."""
    before = make_item(1, state="dropped", reason="unreadable")
    assert check([before]) == [before]
    found = checked(
        "Ці было ў Лугавінах некалькі гадоў без школы?",
        "Ці было ў Лугавінах некалькі год без школы?",
        "Ці мог вучань скончыць першую школу ў 1923 годзе?",
    )
    assert [item.reason for item in found] == ["", "repeated", ""]
    assert found[1].detail.startswith("nearly: ці было")
    assert checked(f"Ці {'вельмі ' * 42}доўга?")[0].reason == "length"
    other = "Станцыя згарэла, і Лугавіны засталіся без чыгункі."
    batch = ("be-0001", "be-0002")
    found = check(
        [
            make_item(
                1, question="Ці праўда, што станцыя Лугавіны згарэла?", batch=batch
            ),
            make_item(2, paragraph=other, question="Ці ёсць там мора?", batch=batch),
        ]
    )
    assert [item.reason for item in found] == ["swapped", ""]
    assert found[0].detail.startswith("fits the text of be-0002")


@pytest.mark.parametrize(
    ("theirs", "reason"), [("Станцыя згарэла зімой", "swapped"), ("Дом", "")]
)
def test_one_word_in_common_does_not_hide_a_swap(theirs: str, reason: str) -> None:
    """A question that has a word of its own text, and four of another's, is of the other text."""
    own = "Музей у Лугавінах адчынілі пазней."
    batch = ("be-0001", "be-0002")
    found = check(
        [
            make_item(
                1,
                paragraph=own,
                question="Ці згарэла зімой станцыя Лугавіны?",
                batch=batch,
            ),
            make_item(
                2, paragraph=f"{theirs}, а Лугавіны — не.", batch=batch, state="dropped"
            ),
        ]
    )
    assert found[0].reason == reason


def test_a_dataset_that_its_words_give_away_is_found_out() -> None:
    """Where every yes begins in one way, or every no is negated, that rule is always right."""

    def shares(question: str, yes: str, no: str) -> dict[str, float]:
        items = [
            make_item(
                n,
                question=question.format((no, yes)[n % 2], n),
                answer=(NO, YES)[n % 2],
            )
            for n in range(200)
        ]
        found = rules.question_only(items, frozenset({"не"}))
        assert found["shares"][found["best"]] == 1.0
        return cast("dict[str, float]", found["shares"])

    first = shares("{}, што тут {} хат?", "Ці праўда", "Няўжо")
    assert (first["first word"], first["majority"]) == (1.0, 0.5)
    assert shares("Ці {}маглі там жыць {} чалавек?", "", "не ")["word of denial"] == 1.0


@pytest.mark.skipif(not ENTAILMENT.is_file(), reason="the shared data is not here")
def test_real_sentences_are_sampled(tmp_path: Path) -> None:
    """Belarusian that people wrote passes the checks of language and spelling."""
    with site(tmp_path, models(), articles=5) as made:
        source = f"  pairs: {{from: {ENTAILMENT}, licence: not stated}}\n"
        made.recipe(sources=source, more="paragraph: {shortest: 20, longest: 900}\n")
        assert made.build("sample") == 0
    kept = [row for row in rows(tmp_path / "work", "sample") if row["state"] == "kept"]
    assert len(kept) > 0.8 * len(json.loads(ENTAILMENT.read_text("utf-8")))
