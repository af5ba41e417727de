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
from tests.support.tables import tabled

PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
YAML = """
kind: graded
languages:
  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}
  bg: {file: bg.jsonl}
  default: {rubric_language: en}
"""

# What pytest-rerunfailures, pytest-retry and flaky declare, as a plug-in of the test's own.
RERUNS = """
def pytest_addoption(parser):
    parser.addoption("--reruns", dest="reruns", type=int)
    parser.addoption("--force-reruns", dest="force_reruns", type=int)
    parser.addoption("--retries", dest="retries", type=int)
    parser.addoption("--force-flaky", dest="force_flaky", action="store_true")
    parser.addini("reruns", "", default=None)
"""


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project with a miss."""
    project.dataset("capital", {"en": ["Sofia", "Sofia", "Plovdiv"], "bg": ["Sofia"]}, YAML)
    return project


@tabled("options", "message")
def test_the_users_mistakes_are_one_line(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """A wrong option ends the run with exit 4 and one line, before anything is run or written."""
    assert_refused(capitals, message, *prepared(capitals, options))


@tabled("options", "message")
def test_a_mistyped_or_doubled_option_says_what_is_wanted(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """pytest's usage error names the options that come near; a run has one model."""
    result = capitals.run_in_process(*options, "qa")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message}*"])


@pytest.mark.parametrize("option", REMOVED)
def test_an_option_that_was_removed_names_what_to_use(capitals: Project, option: str) -> None:
    """Exit 4 and one line, for pytest's options as for those of a command."""
    assert_refused(capitals, removed(option), option, "5", "qa")
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--concurrency", "9" * 5000), "--concurrency: a whole number"),
        (("absent/path",), "not found"),
    ],
)
def test_with_workers_a_mistake_is_still_one_line(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """It is found before a worker exists."""
    assert_refused(capitals, message, "-n", "2", *prepared(capitals, options))


def prepared(project: Project, options: tuple[str, ...]) -> tuple[str, ...]:
    """Write what wrong options name; return the whole command line."""
    project.write("other.yaml", "river: {en: {correct: {min: 0.5}}}\n")
    project.write("own.yaml", PROMPT)
    project.write("second/capital/dataset.yaml", YAML)
    return (*options, "qa")


def assert_refused(project: Project, message: str, *arguments: str) -> None:
    assert message in project.refused(*arguments)
    assert not (project.path / "reports").exists()


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
@pytest.mark.parametrize(
    ("options", "message"),
    [(("-m", "nope"), "nope"), (("-m", "bg and"), "bg and"), (("-k", "two words"), "two words")],
)
def test_a_wrong_expression_is_a_usage_error(
    capitals: Project, workers: tuple[str, ...], options: tuple[str, ...], message: str
) -> None:
    """pytest's own line and exit 4; with workers too, where it is found before one is started."""
    assert message in capitals.refused(*workers, *options, "qa")


def test_a_missing_key_is_a_usage_error(capitals: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that must be set is named before anything is asked."""
    capitals.write("qa/capital/answer.en.yaml", PROMPT)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    line = capitals.refused("--model=openai:gpt-4o", "--languages=en", "qa")
    said = "ERROR: openai:gpt-4o: no API key; set the environment variable OPENAI_API_KEY"
    assert line.startswith(said)


@pytest.mark.parametrize(
    "option", ["--reruns=3", "--force-reruns=1", "--retries=2", "--force-flaky"]
)
def test_running_misses_again_is_refused(
    capitals: Project, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4 and the reason, from the environment as from the command line."""
    with_reruns(capitals, monkeypatch)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{option} -x -p again")
    name = option.partition("=")[0]
    assert_refused(capitals, f"ERROR: {name}: a miss is a finding and is not run again", "qa")


def test_the_plugin_that_deepeval_brings_is_refused(capitals: Project) -> None:
    """pytest-rerunfailures itself, by its own option; without it a run goes its way."""
    pytest.importorskip("pytest_rerunfailures")
    words = ("-p", "pytest_rerunfailures", "--languages=en", "qa")
    assert_refused(capitals, "ERROR: --reruns: a miss is a finding", "--reruns=2", *words)
    assert capitals.run_in_process(*words).ret == 0


def with_reruns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a project a plug-in that could run its miss again."""
    project.write("again.py", RERUNS)
    monkeypatch.syspath_prepend(project.path)


def test_an_ini_file_is_no_way_around(capitals: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting counts as the option does; 0 switches it off."""
    with_reruns(capitals, monkeypatch)
    words = ("-p", "again", "-o", "reruns=2", "qa")
    assert_refused(capitals, "ERROR: reruns (in the ini file): ", *words)
    assert capitals.run_in_process("-p", "again", "-o", "reruns=0", "--languages=en", "qa").ret == 0


def test_without_gates_reruns_are_allowed_and_said(
    capitals: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--gates off is plain pytest: the report only notes what was done."""
    with_reruns(capitals, monkeypatch)
    result = capitals.run_in_process("-p", "again", "--retries=2", "--gates", "off", "qa")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["WARNING: failing tests were run again: --retries"])


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


def test_a_shard_has_its_share_of_the_limits() -> None:
    """All shares together are what was given, with one call in flight for each at least."""
    limits = ("--concurrency", "10", "--rpm", "3", "--max-cost", "2")
    shares_of = [options_of(*limits, "--shard", f"{number}/4") for number in (1, 2, 3, 4)]
    assert [one.concurrency for one in shares_of] == [3, 3, 2, 2]
    assert [one.rpm for one in shares_of] == [1, 1, 1, 1]
    assert [one.max_cost for one in shares_of] == [0.5] * 4
    assert shares(shares_of[0]) == ["shard 1 of 4: --concurrency 3, --rpm 1, --max-cost 0.5"]
    whole = options_of(*limits, "--shard", "1/1")
    assert (whole.concurrency, shares(whole)) == (10, [])


def test_a_shard_has_its_share_of_the_limits_of_a_models_file(tmp_path: Path) -> None:
    """Of each model's own, so that all shares together are what its server allows."""
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


def test_rules_judge_unless_a_model_is_named() -> None:
    """The default asks nobody and connects to nothing."""
    found = chosen()
    assert found.judges.spec == parse_judges(["lexical"])
    assert found.judges.first_model is None
    assert (found.models, found.specs) == ({}, {})


def test_one_model() -> None:
    """A SPEC alone is a model; the one under test comes first among the connections."""
    found = chosen("--model", B, *judges(A))
    assert list(found.specs) == [B, A]
    assert found.judges.first_model is found.models[A]


def test_rules_before_a_model() -> None:
    """The seed that draws the audit is that of the options."""
    usual = chosen(*judges(f"lexical+{A}")).judges
    assert usual.spec.is_cascade
    assert (usual.seed, list(usual.models)) == (0, [A])
    assert chosen(*judges(f"lexical+{A}"), "--seed", "7").judges.seed == 7


def test_a_panel() -> None:
    """Each model is connected once; rules may be a member."""
    found = chosen(*judges(A, "lexical", B))
    assert list(found.specs) == [A, B]
    assert found.judges.spec.names == (A, "lexical", B)
    assert list(found.judges.models.values()) == list(found.models.values())


@tabled("arguments", "message")
def test_what_cannot_be_meant_is_refused(arguments: list[str], message: str) -> None:
    """The option, what was got and what to do; nothing that would do nothing passes silently."""
    with pytest.raises(UsageError, match=message):
        chosen(*arguments)


def test_a_model_may_be_allowed_to_judge_itself() -> None:
    """In so many words, for every member."""
    found = chosen("--model", A, *judges(A, B), "--allow-self-judge")
    assert list(found.specs) == [A, B]
