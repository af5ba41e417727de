"""The command line of the builder: steps, options that are remembered, and plain refusals."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.building import confirmed, hashed, models, rows
from tests.support.building_people import sheet_rows
from tests.support.building_site import ALL_STEPS, STEPS, Site, funnel_adds_up, site
from tests.support.building_texts import WikiServer, english_paragraph, pages, write_news
from tests.support.loopback import Answer, Seen, loopback, reply

ROOT = Path(__file__).parents[2]
ENTAILMENT = ROOT.parent / "shared/data/belarusian_entailment/bertewd.json"


@pytest.fixture
def good(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, models(), articles=36) as made:
        yield made


def refused(made: Site, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line that a command ends with when its words are wrong."""
    capsys.readouterr()
    assert made.build(*words) == 4
    said = capsys.readouterr().err.strip().splitlines()
    assert "Traceback" not in "".join(said)
    return said[-1]


def test_one_step_at_a_time(good: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step takes up where the one before ended; options of earlier ones are remembered."""
    assert good.build("sample", *good.sources(12)) == 0
    assert good.generator.count == 0
    assert "check comes after generate" in refused(good, capsys, "--step", "check")
    assert good.build("generate", *good.writer) == 0
    assert good.build("check") == 0
    assert good.build("validate", *good.checker) == 0
    assert good.build("probe") == 0
    report = funnel_adds_up(good.path / "work")
    assert report["steps"]["generate"]["in"] == 24
    assert report["sources"] == {"encyclopaedia": 16, "news": 8}
    asked = good.generator.count + good.validator.count
    assert good.build() == 0
    assert good.generator.count + good.validator.count == asked


def test_other_options_for_a_step_that_is_done_are_refused(
    good: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is overwritten that was made with something else."""
    assert good.build("sample", *good.sources(6), "--seed", "3") == 0
    said = refused(good, capsys, "sample", "--seed", "4")
    assert "made with another seed (3, now 4)" in said
    assert good.build("sample") == 0
    assert good.build("sample", "--seed", "3") == 0
    assert "another sources" in refused(good, capsys, "sample", "--source", "news=other.jsonl")


def test_a_file_changed_by_hand_is_not_written_over(
    good: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody's work in a step's file is kept, and the way out is said."""
    assert good.build("sample", *good.sources(6)) == 0
    path = good.path / "work" / "sample.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("а", "о"), encoding="utf-8")
    assert "changed since it was made" in refused(good, capsys, "sample")
    path.unlink()
    assert good.build("sample", *good.sources(6), "--seed", "9") == 0


def test_a_step_made_from_something_older_is_made_again(good: Site) -> None:
    """When a step's file is deleted, those after it follow, and only new requests are sent."""
    assert good.all(count=6) == 0
    before = good.generator.count, good.validator.count
    (good.path / "work" / "sample.jsonl").unlink()
    assert good.all(count=9) == 0
    assert good.generator.count > before[0]
    assert funnel_adds_up(good.path / "work")["steps"]["sample"]["kept"] == 12 + 6
    assert max(good.asked.values()) == 1


def test_what_was_cut_short_is_done_again_from_the_ledger(
    good: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without time left the step says so; the next run finishes it, and --replay repeats it."""
    assert good.all("--deadline", "0", count=6) == 1
    said = capsys.readouterr().err
    assert "items are not done" in said
    assert "--deadline" in said
    assert {row["state"] for row in rows(good.path / "work", "generate")} == {"pending"}
    assert good.build("check") == 1, "not before generate is done"
    assert good.all(count=6) == 0
    made, asked = good.files("work"), sum(good.asked.values())
    for step in STEPS[1:]:
        (good.path / "work" / f"{step}.jsonl").unlink()
    assert good.all("--replay", count=6) == 0
    assert (good.files("work"), sum(good.asked.values())) == (made, asked)


def test_what_the_validator_answers_otherwise_goes_to_people(tmp_path: Path) -> None:
    """It confirms all, but says yes to all by itself: people see every no, or it is dropped."""
    good = models()

    def always_yes(seen: Seen) -> Answer:
        is_blind = "Прачытай тэкст і адкажы" in seen.prompt
        return reply(seen, text="Так") if is_blind else good(seen)

    with site(tmp_path, always_yes, articles=36) as made:
        assert made.all(count=6) == 0
        no = [row["id"] for row in rows(tmp_path / "work", "probe") if row["answer"] == "NO"]
        assert made.build("review", "--share", "0.1", "--reviewer", "Ганна") == 0
        sheet = sheet_rows(tmp_path / "work" / "review" / "be-1.csv")
        assert set(no) <= {row["item"] for row in sheet}
        assert {row["item"] for row in sheet if "разыходзяцца" in row["why"]} == set(no)
        assert made.build("accept", "--unreviewed") == 0
        report = funnel_adds_up(tmp_path / "work", ALL_STEPS[:-1])
    assert report["final"]["dropped at accept: contested"] == len(no) > 3


def test_a_second_validator_sees_what_the_first_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It confirms what it is asked; those items go on as contested, and no other is put to it."""
    good, asked = models(), []

    def strict(seen: Seen) -> Answer:
        if "Прапанаваны адказ" not in seen.prompt:
            return good(seen)
        if seen.body["model"] == "second":
            asked.append(seen.prompt)
            return confirmed(seen)
        return confirmed(seen, "INCORRECT" if hashed(seen.prompt) % 2 else "CORRECT")

    with site(tmp_path, strict, articles=36) as made:
        first = made.checker[1]
        second = ["--second-validator", first.replace("checker", "second")]
        assert "is the first one" in refused(
            made, capsys, *made.sources(6), *made.writer, *made.checker, second[0], first
        )
        assert made.all("--no-blind", *second, count=6) == 0
        items = rows(tmp_path / "work", "validate")
    contested = [row for row in items if row["validator"].get("contested")]
    assert 0 < len(contested) == len(asked) < len(items)
    assert all(row["state"] == "kept" for row in items)
    assert all("second@" in row["validator"]["second"]["model"] for row in contested)


def test_what_both_models_know_without_the_text_is_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The generator says yes to all, the validator knows half: only what both know goes."""
    good = models()
    asked: list[str] = []

    def knowing(seen: Seen) -> Answer:
        if "Невядома" not in seen.prompt:
            return good(seen)
        asked.append(seen.prompt)
        if seen.body["model"] == "writer":
            return reply(seen, text="Так")
        return reply(seen, text="Так." if hashed(seen.prompt) % 2 else "Невядома")

    with site(tmp_path, knowing, articles=36) as made:
        assert made.all(count=6) == 0
        report = funnel_adds_up(tmp_path / "work")
        items = rows(tmp_path / "work", "probe")
        before = len(asked)
        assert made.all("--no-probe", count=6, folder="other") == 0
        assert len(asked) == before, "switched off, it asks nothing"
    dropped = [row for row in items if row["state"] == "dropped"]
    assert all(row["answer"] == "YES" for row in dropped)
    assert len(dropped) == report["final"]["dropped at probe: closed_book"] > 1
    assert all(row["detail"].endswith("by openai:writer, openai:checker") for row in dropped)
    yes = [row for row in items if row["answer"] == "YES"]
    assert before == len(items) + len(yes), "the second is asked what the first knew"
    assert "closed_book" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--step", "everything"], "invalid choice"),
        (["check", "--step", "sample"], "name one step"),
        (["--seed", "x"], "invalid int value"),
        (["--source", "news"], "write GROUP=VALUE"),
        (["--count", "news=0"], "whole number from 1"),
        (["--oversample", "0.5"], "a number from 1 to 10"),
        (["--oversample", "x"], "a number from 1 to 10"),
        (["--concurrency", "0"], "whole number from 1"),
        ([], "say where texts come from"),
        (["--source", "news=nothing.jsonl"], "no such file"),
        (["--source", "news={news}"], "name the model that writes"),
        (["--source", "news={news}", "--count", "books=5"], "no --source books"),
        (["--source", "news={news}", "--licence", "books=CC0"], "no --source books"),
        (["--source", "news=http://127.0.0.1:1/a", "--source", "news={news}"], "group of its own"),
        (["--source", "news={news}", "--generator", "openia:x"], "--generator: unknown model"),
        (["--source", "news={news}", "--generator", "openai:a"], "--validator provider:NAME"),
        (
            ["--source", "news={news}", "--generator", "openai:a", "--validator", "openai:a"],
            "is the generator",
        ),
        (
            ["--source", "news={news}", "--generator", "openai:a", "--validator", "anthropic:b"],
            "no API key",
        ),
        (["--recipe", "{news}"], "not valid YAML"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_done(
    good: Site,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    """One line says what is wrong; no step is begun."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    filled = [word.format(news=good.path / "news.jsonl") for word in words]
    assert message in refused(good, capsys, *filled)
    assert not (good.path / "work" / "sample.jsonl").exists()


def test_a_budget_needs_prices(good: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """A limit that could not be kept is refused."""
    words = [*good.sources(6), *good.writer, *good.checker, "--max-cost", "1"]
    assert "no price is known" in refused(good, capsys, *words)


def test_a_language_without_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The languages there are are named."""
    with site(tmp_path, models(), articles=5) as made:
        assert "there is be, en" in refused(made, capsys, "--language", "fr")


def test_a_recipe_of_another_language(good: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """A file given by mistake is noticed."""
    english = ROOT / "cases/builder/recipes/boolq.en.yaml"
    said = refused(good, capsys, "--recipe", str(english))
    assert "a recipe for 'en', not for 'be'" in said


def test_a_recipe_without_a_prompt_for_the_probe(
    good: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told before anything is asked; --no-probe goes without."""
    text = (ROOT / "cases/builder/recipes/boolq.be.yaml").read_text(encoding="utf-8")
    path = good.path / "mine.yaml"
    path.write_text(text.partition("\nprobe:")[0] + "\n", encoding="utf-8")
    words = ["--recipe", str(path), *good.sources(4), *good.writer, *good.checker]
    assert "no key 'probe'" in refused(good, capsys, *words)
    assert good.generator.count == 0
    assert good.build(*words, "--no-probe") == 0


def test_a_damaged_settings_file(good: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """What the folder says of itself must be readable."""
    (good.path / "work").mkdir()
    for content in ("{", "[]"):
        (good.path / "work" / "settings.json").write_text(content, encoding="utf-8")
        assert "settings.json" in refused(good, capsys, "sample")


def test_english_is_another_file_and_no_other_code(tmp_path: Path) -> None:
    """The whole way in a second language, from a JSONL alone."""
    with site(tmp_path, models(), articles=5) as made:
        source = write_news(tmp_path / "en.jsonl", 60, text=english_paragraph)
        words = ["--source", f"news={source}", "--count", "news=20", *made.writer, *made.checker]
        assert made.build(*words, "--language", "en") == 0
        report = funnel_adds_up(tmp_path / "work")
        prompt = made.generator.requests[0].prompt
    assert report["steps"]["validate"]["kept"] > 15
    assert '"answer": "Yes"' in prompt
    assert '"answer": "No"' in prompt


def test_a_wiki_is_sampled_to_the_end(tmp_path: Path) -> None:
    """A hundred and fifty pages of an API, and a second run that asks the wiki nothing."""
    server = WikiServer(pages(150), parts=2)
    with loopback(handler=server) as wiki, site(tmp_path, models(), articles=5) as made:
        source = ["--source", f"encyclopaedia={wiki.url}/w/api.php"]
        words = [*source, "--count", "encyclopaedia=60", "--oversample", "1.2"]
        assert made.build("sample", *words) == 0
        asked = wiki.count
        assert made.build("sample", *words) == 0
        assert wiki.count == asked
    kept = [row for row in rows(tmp_path / "work", "sample") if row["state"] == "kept"]
    assert len(kept) == 72
    assert {row["origin"]["licence"] for row in kept} == {"CC BY-SA 4.0"}
    assert len({row["origin"]["revision"] for row in kept}) == 72


@pytest.mark.skipif(not ENTAILMENT.is_file(), reason="the shared data is not here")
def test_real_sentences_are_sampled(tmp_path: Path) -> None:
    """Human-written Belarusian passes the checks of language and spelling."""
    recipe = tmp_path / "short.yaml"
    text = (ROOT / "cases/builder/recipes/boolq.be.yaml").read_text("utf-8")
    text = text.replace("shortest: 200", "shortest: 20").replace("sentences: 2", "sentences: 1")
    recipe.write_text(text, encoding="utf-8")
    with site(tmp_path, models(), articles=5) as made:
        words = ["--source", f"pairs={ENTAILMENT}", "--licence", "pairs=not stated"]
        assert made.build("sample", *words, "--recipe", str(recipe)) == 0
    found = rows(tmp_path / "work", "sample")
    total = len(json.loads(ENTAILMENT.read_text("utf-8")))
    kept = [row for row in found if row["state"] == "kept"]
    assert len(kept) > 0.8 * total
