"""The seed alone decides what is taken, whatever the order of the articles."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from cases.builder.sampling import Group, Sampler
from cases.builder.work_folder import Article, Item, Origin
from tests.support.building import recipe
from tests.support.building_texts import paragraph

RECIPE = recipe()


def article(number: int, text: str = "", group: str = "news") -> Article:
    origin = Origin(group=group, source="x/news.jsonl", page=f"{number}", title=f"{number}")
    return Article(origin=origin, text=text or paragraph(number))


FOREIGN = "Щука ищет пищу и не находит её"
ARTICLES = [
    *(article(number) for number in range(80)),
    *(article(number, "Занадта коратка.") for number in range(80, 90)),
    *(article(number, f"{paragraph(number)} {FOREIGN}, {number}.") for number in range(90, 95)),
]


def sample(
    articles: Iterable[Article] | Callable[[], Iterable[Article]],
    *,
    seed: int = 1,
    wanted: int = 20,
    drawn: bool = False,
) -> list[Item]:
    sampler = Sampler(recipe=RECIPE, seed=seed)
    read = articles if callable(articles) else lambda: articles
    return sampler.sample([Group(name="news", wanted=wanted, articles=read, drawn=drawn)])


def kept(items: Sequence[Item]) -> list[str]:
    return [item.id for item in items if item.state == "kept"]


@settings(max_examples=3, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_articles_does_not_matter(order: random.Random) -> None:
    """A dump that is sorted in another way gives the same sample, drops and reasons included."""
    shuffled = list(ARTICLES)
    order.shuffle(shuffled)
    assert sample(shuffled) == sample(ARTICLES)


def test_the_seed_decides() -> None:
    """The same seed gives the same sample, another one another."""
    assert sample(ARTICLES, seed=3) == sample(ARTICLES, seed=3)
    assert kept(sample(ARTICLES, seed=3)) != kept(sample(ARTICLES, seed=4))


def test_as_many_as_wanted_and_the_rest_with_a_reason() -> None:
    """What was passed over on the way is counted; what was never reached is not."""
    found = sample(ARTICLES)
    assert len(kept(found)) == 20
    assert {item.reason for item in found if item.state == "dropped"} <= {
        "length",
        "letters",
        "similar",
    }
    every = sample(ARTICLES, wanted=1000)
    assert len(every) == len(ARTICLES), "each article is in exactly one state"
    assert [item.reason for item in every].count("length") == 10


def test_a_larger_sample_holds_the_smaller_one() -> None:
    """Asking for more later adds articles and takes none away."""
    assert set(kept(sample(ARTICLES, wanted=10))) <= set(kept(sample(ARTICLES, wanted=30)))


def test_an_article_gives_one_paragraph() -> None:
    """Of several fitting paragraphs the seed takes one."""
    texts = [paragraph(number) for number in (1, 2, 3)]
    (item,) = sample([article(1, "\n\n".join(texts))])
    assert item.paragraph in texts
    found = {sample([article(1, "\n\n".join(texts))], seed=seed)[0].paragraph for seed in range(20)}
    assert found == set(texts)


def test_nearly_the_same_text_is_taken_once() -> None:
    """A copy with a few words changed is dropped, in another group too."""
    copy = paragraph(1).replace("мост", "новы мост")
    groups = [
        Group(name="news", wanted=5, articles=lambda: [article(1)]),
        Group(name="wiki", wanted=5, articles=lambda: [article(2, copy, "wiki")]),
    ]
    sampler = Sampler(recipe=RECIPE, seed=1)
    found = {item.origin.group: item for item in sampler.sample(groups)}
    assert (found["news"].state, found["wiki"].reason) == ("kept", "similar")


def test_an_article_that_stands_twice_is_one_item() -> None:
    """A file that repeats an article gives it once."""
    assert len(sample([article(1), article(1)])) == 1
    assert len(sample([article(1, "Коратка."), article(1, "Коратка.")])) == 1


def test_a_wiki_that_never_ends_is_left_when_there_is_enough() -> None:
    """Pages that come at random are taken as they come, and no more of them than needed."""
    seen = []

    def endless() -> Iterator[Article]:
        for number in range(10_000):
            seen.append(number)
            yield article(number, "" if number % 2 else "Коратка.")

    found = sample(endless, wanted=5, drawn=True)
    assert len(kept(found)) == 5
    assert len(seen) < 60


def test_a_wiki_that_has_nothing_fitting_is_given_up() -> None:
    """After twenty pages for each one wanted no more are asked for."""
    short = (article(number, "Коратка.") for number in range(5000))
    found = sample(short, wanted=1, drawn=True)
    assert len(found) == 20 * (1 + 11)


def test_a_source_full_of_copies_is_read_further() -> None:
    """A wiki of machine-made stubs still gives as many texts as were asked for."""
    copies = [article(number, f"{paragraph(1)} Яна вядомая {number}.") for number in range(120)]
    others = [article(number) for number in range(1000, 1020)]
    found = sample([*copies, *others], wanted=8)
    assert len(kept(found)) == 8
    assert "similar" in {item.reason for item in found}
    assert set(kept(found)) <= set(kept(sample([*copies, *others], wanted=14)))
