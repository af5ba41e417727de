"""The command line: every mistake is one line before anything is run; datasets under its paths."""

import re
from pathlib import Path

import pytest

from evaluators.command_line import REMOVED, VALUED, CommandParser, removed
from evaluators.core import UsageError
from evaluators.judge_spec import parse_judges
from reports.plugin.options import NAMES, shares
from reports.plugin.run import RunModels, connect_models
from reports.plugin.run_paths import dataset_files
from tests.conftest import Project
from tests.support.run_options import options_of
from tests.support.tables import grown, kept, tabled

PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
YAML = """
kind: graded
languages:
  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}
  bg: {file: bg.jsonl}
  default: {rubric_language: en}
"""

# What pytest-rerunfailures, pytest-retry and flaky declare, as a plug-in of the test's own.
RERUNS: str = kept(__file__, "reruns")


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project with a miss."""
    project.dataset("capital", {"en": ["Sofia", "Sofia", "Plovdiv"], "bg": ["Sofia"]}, YAML)
    return project


@tabled("options", "message")
def test_the_users_mistakes_are_one_line(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """Exit 4 and one line, before anything is run or written, or a worker exists."""
    capitals.write("other.yaml", "river: {en: {correct: {min: 0.5}}}\n")
    capitals.write("own.yaml", PROMPT)
    capitals.write("second/capital/dataset.yaml", YAML)
    assert_refused(capitals, message, *map(grown, options), "qa")


@tabled("options", "message")
def test_a_mistyped_or_doubled_option_says_what_is_wanted(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """pytest's usage error names the options that come near; a run has one model."""
    result = capitals.run_in_process(*options, "qa")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message}*"])


def test_an_option_that_was_removed_names_what_to_use(capitals: Project) -> None:
    """Exit 4 and one line, for pytest's options as for those of a command."""
    assert_refused(capitals, removed("--first"), "--first", "5", "qa")
    for option in REMOVED:
        with pytest.raises(UsageError, match=f"^{re.escape(removed(option))}$"):
            CommandParser("qagate review").parse_args([f"{option}=5"])


def test_there_are_at_most_thirty_options(capitals: Project) -> None:
    """What can stand in a file, or in another option, needs none of its own."""
    listed = capitals.run_in_process("--help").stdout.str()
    ours = listed.partition("question answering: may this model ship?")[2].partition("\n\n")[0]
    assert len(NAMES) <= 30
    assert set(re.findall(r"^  --([a-z-]+)", ours, re.MULTILINE)) == set(NAMES)
    valued = re.findall(r"^  (--[a-z-]+)[ =]\S", ours, re.MULTILINE)
    assert {one for one in VALUED if one.strip("-") in NAMES} == set(valued)


def assert_refused(project: Project, message: str, *arguments: str) -> None:
    assert message in project.refused(*arguments)
    assert not (project.path / "reports").exists()


def test_a_missing_key_is_a_usage_error(capitals: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that must be set is named before anything is asked."""
    capitals.write("qa/capital/answer.en.yaml", PROMPT)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    line = capitals.refused("--model=openai:gpt-4o", "--languages=en", "qa")
    said = "ERROR: openai:gpt-4o: no API key; set the environment variable OPENAI_API_KEY"
    assert line.startswith(said)


def test_running_misses_again_is_refused(
    capitals: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4 and the reason, from the environment or an ini file; 0 switches it off.

    Under --gates off the report only notes what was done.
    """
    capitals.write("again.py", RERUNS)
    monkeypatch.syspath_prepend(capitals.path)
    for option in ("--reruns=3", "--force-reruns=1", "--retries=2", "--force-flaky"):
        monkeypatch.setenv("PYTEST_ADDOPTS", f"{option} -x -p again")
        name = option.partition("=")[0]
        assert_refused(capitals, f"ERROR: {name}: a miss is a finding and is not run again", "qa")
    monkeypatch.delenv("PYTEST_ADDOPTS")
    words = ("-p", "again", "--languages=en", "qa")
    assert_refused(capitals, "ERROR: reruns (in the ini file): ", "-o", "reruns=2", *words)
    assert capitals.run_in_process("-o", "reruns=0", *words).ret == 0
    result = capitals.run_in_process("--retries=2", "--gates", "off", *words)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["WARNING: failing tests were run again: --retries"])


def test_the_plugin_that_deepeval_brings_is_refused(capitals: Project) -> None:
    """pytest-rerunfailures itself, by its own option; without it a run goes its way."""
    pytest.importorskip("pytest_rerunfailures")
    words = ("-p", "pytest_rerunfailures", "--languages=en", "qa")
    assert_refused(capitals, "ERROR: --reruns: a miss is a finding", "--reruns=2", *words)
    assert capitals.run_in_process(*words).ret == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with datasets in places to search and in places to pass over."""
    for folder in ("cases/a", "cases/b", "cases/.hidden", "cases/node_modules/x", "tests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "dataset.yaml").touch()
    (tmp_path / "tests" / "dataset.yaml").unlink()
    (tmp_path / "cases" / "a" / "test_a.py").touch()
    return tmp_path


@tabled("arguments", "found")
def test_what_a_path_holds(tree: Path, arguments: list[str], found: list[str]) -> None:
    """Folders are searched, hidden and foreign ones passed over; a file looks beside itself."""
    expected = [tree.resolve() / name / "dataset.yaml" for name in found]
    assert dataset_files(arguments, tree, tree) == expected


def test_a_moved_rootdir_is_refused(tree: Path) -> None:
    """A dataset outside of rootdir means that an option's value was taken for a path."""
    with pytest.raises(UsageError, match="write --option=PATH"):
        dataset_files(["cases"], tree, tree / "tests")


def test_a_shard_has_its_share_of_the_limits(tmp_path: Path) -> None:
    """All shares together are what was given, or what a models file allows."""
    limits = ("--concurrency", "10", "--rpm", "3", "--max-cost", "2")
    shares_of = [options_of(*limits, "--shard", f"{number}/4") for number in (1, 2, 3, 4)]
    assert [one.concurrency for one in shares_of] == [3, 3, 2, 2]
    assert [one.rpm for one in shares_of] == [1, 1, 1, 1]
    assert [one.max_cost for one in shares_of] == [0.5] * 4
    assert shares(shares_of[0]) == ["shard 1 of 4: --concurrency 3, --rpm 1, --max-cost 0.5"]
    whole = options_of(*limits, "--shard", "1/1")
    assert (whole.concurrency, shares(whole)) == (10, [])
    models = tmp_path / "models.yaml"
    models.write_text(
        "m: {provider: openai, model: n, concurrency: 9, rpm: 40, tpm: 1000}\n", encoding="utf-8"
    )
    words = ("--models", str(models), "--model", "m")
    for number, expected in ((1, (3, 10, 250)), (2, (2, 10, 250))):
        options = options_of(*words, "--shard", f"{number}/4")
        (spec,) = connect_models(options, needs_key=False).specs.values()
        assert (spec.concurrency, spec.rpm, spec.tpm) == expected


A, B = (f"openai:{name}@http://127.0.0.1:9/v1" for name in "ab")


def chosen(*words: str) -> RunModels:
    """Return the models that these options connect, without any key."""
    return connect_models(options_of(*words), needs_key=False)


def judges(*specs: str) -> list[str]:
    return [word for spec in specs for word in ("--judge", spec)]


def test_who_judges_is_connected_once() -> None:
    """Rules unless a model is named; the model under test first; a cascade, a panel, itself."""
    found = chosen()
    assert found.judges.spec == parse_judges(["lexical"])
    assert (found.judges.first_model, found.models, found.specs) == (None, {}, {})
    found = chosen("--model", B, *judges(A))
    assert list(found.specs) == [B, A]
    assert found.judges.first_model is found.models[A]
    usual = chosen(*judges(f"lexical+{A}")).judges
    assert usual.spec.is_cascade
    assert (usual.seed, list(usual.models)) == (0, [A])
    assert chosen(*judges(f"lexical+{A}"), "--seed", "7").judges.seed == 7
    found = chosen(*judges(A, "lexical", B))
    assert list(found.specs) == [A, B]
    assert found.judges.spec.names == (A, "lexical", B)
    assert list(found.judges.models.values()) == list(found.models.values())
    assert list(chosen("--model", A, *judges(A, B), "--allow-self-judge").specs) == [A, B]


@tabled("arguments", "message")
def test_what_cannot_be_meant_is_refused(arguments: list[str], message: str) -> None:
    """The option, what was got and what to do; nothing that would do nothing passes silently."""
    with pytest.raises(UsageError, match=message):
        chosen(*arguments)
