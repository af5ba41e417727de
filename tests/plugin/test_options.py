"""The command line: mistakes in one line, datasets under its paths, what is known before."""

import json
import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from qagate.evaluators.core import UsageError, parse_judges
from qagate.evaluators.models.catalogue import DEFAULT_PATH
from qagate.evaluators.runtime.process import EngineProcess
from qagate.reports.commands.run import VALUED
from qagate.reports.plugin import worker
from qagate.reports.plugin.head_start import takes_all_items
from qagate.reports.plugin.option_table import NAMES
from qagate.reports.plugin.options import read_options, shard_header
from qagate.reports.plugin.run_models import RunModels, connect_models
from qagate.reports.plugin.start import start_early
from tests.support.projects import BAR, RUBRIC, Project, graded
from tests.support.run_options import options_of
from tests.support.tables import grown, kept, tabled

PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
YAML: str = kept(__file__, "yaml")

# What pytest-rerunfailures, pytest-retry and flaky declare, as a plug-in of the test's own.
RERUNS: str = kept(__file__, "reruns")


@pytest.fixture
def capitals(project: Project) -> Project:
    project.dataset(
        "capital", {"en": ["Sofia", "Sofia", "Plovdiv"], "bg": ["Sofia"]}, YAML
    )
    return project


@tabled("options", "message")
def test_mistakes_are_one_line(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """Exit 4 and one line, before anything is run or written, or a worker exists."""
    capitals.write("other.yaml", "river: {en: {correct: {min: 0.5}}}\n")
    capitals.write("own.yaml", PROMPT)
    capitals.write("second/capital/dataset.yaml", YAML)
    capitals.write("second/capital/plain.en.yaml", RUBRIC.format("en"))
    assert_refused(capitals, message, *map(grown, options), "qa")


@tabled("options", "message")
def test_a_mistyped_one_is_said(
    capitals: Project, options: tuple[str, ...], message: str
) -> None:
    """pytest's usage error names the options that come near; a run has one model."""
    result = capitals.run_in_process(*options, "qa")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message}*"])


def test_a_models_file_is_read_before_the_run(capitals: Project) -> None:
    """Also where no model is needed; the report names what of the bundled file it replaces."""
    capitals.write("own.yaml", DEFAULT_PATH.read_text(encoding="utf-8"))
    assert capitals.run_in_process("--models=own.yaml", "--languages=en", "qa").ret == 0
    assert "as there, not as bundled" in capitals.text("run.json")


def test_every_option_has_a_twin_with_a_prefix(capitals: Project) -> None:
    """`--qa-model` is `--model`; which options take a value is known to commands too."""
    listed = capitals.run_in_process("--help").stdout.str()
    ours = listed.partition("qagate: may this model ship?")[2].partition("\n\n")[0]
    rows = re.findall(
        r"^  --([a-z-]+)(?:=\S+)?, --qa-([a-z-]+)(=)?", ours, re.MULTILINE
    )
    assert [short for short, _, _ in rows] == [twin for _, twin, _ in rows]
    assert {short for short, _, _ in rows} == set(NAMES)
    valued = {f"--{short}" for short, _, takes_value in rows if takes_value}
    assert {option for option in VALUED if option.strip("-") in NAMES} == valued


def assert_refused(project: Project, message: str, *arguments: str) -> None:
    assert message in project.refused(*arguments)
    assert not (project.path / "reports").exists()


def test_a_missing_key_is_a_usage_error(
    capitals: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable to set is named; so is --reruns of pytest-rerunfailures itself."""
    capitals.write("qa/capital/answer.en.yaml", PROMPT)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    line = capitals.refused("--model=openai:gpt-4o", "--languages=en", "qa")
    said = (
        "ERROR: openai:gpt-4o: no API key; set the environment variable OPENAI_API_KEY"
    )
    assert line.startswith(said)
    pytest.importorskip("pytest_rerunfailures")
    words = ("-p", "pytest_rerunfailures", "--languages=en", "qa")
    assert_refused(
        capitals, "ERROR: --reruns: a miss is a finding", "--reruns=2", *words
    )
    assert capitals.run_in_process(*words).ret == 0


def test_reruns_of_misses_are_refused(
    capitals: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the environment or an ini file exit 4, unless 0; under --gates off it is only noted."""
    capitals.write("again.py", RERUNS)
    monkeypatch.syspath_prepend(capitals.path)
    for option in ("--reruns=3", "--force-reruns=1", "--retries=2", "--force-flaky"):
        monkeypatch.setenv("PYTEST_ADDOPTS", f"{option} -x -p again")
        name = option.partition("=")[0]
        assert_refused(
            capitals, f"ERROR: {name}: a miss is a finding and is not run again", "qa"
        )
    monkeypatch.delenv("PYTEST_ADDOPTS")
    words = ("-p", "again", "--languages=en", "qa")
    assert_refused(
        capitals, "ERROR: reruns (in the ini file): ", "-o", "reruns=2", *words
    )
    assert capitals.run_in_process("-o", "reruns=0", *words).ret == 0
    result = capitals.run_in_process("--retries=2", "--gates", "off", *words)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["WARNING: failing tests were run again: --retries"])


def test_a_shard_has_its_share_of_the_limits(tmp_path: Path) -> None:
    """All shares together are what was given, or what a models file allows."""
    limits = ("--concurrency", "10", "--rpm", "3", "--max-cost", "2")
    shares_of = [
        options_of(*limits, "--shard", f"{number}/4") for number in (1, 2, 3, 4)
    ]
    assert [one.concurrency for one in shares_of] == [3, 3, 2, 2]
    assert [one.rpm for one in shares_of] == [1, 1, 1, 1]
    assert [one.max_cost for one in shares_of] == [0.5] * 4
    assert shard_header(shares_of[0]) == [
        "shard 1 of 4: --concurrency 3, --rpm 1, --max-cost 0.5"
    ]
    whole = options_of(*limits, "--shard", "1/1")
    assert (whole.concurrency, shard_header(whole)) == (10, [])
    models = tmp_path / "models.yaml"
    models.write_text(
        "m: {provider: openai, model: n, concurrency: 9, rpm: 40, tpm: 1000}\n",
        encoding="utf-8",
    )
    words = ("--models", str(models), "--model", "m")
    shards = {
        ("--shard", "1/4"): (3, 10, 250),
        ("--shard", "2/4"): (2, 10, 250),
        ("--shard", "2/4", "--shards-at-once", "2"): (4, 20, 500),
    }
    for shard, expected in shards.items():
        options = options_of(*words, *shard)
        (spec,) = connect_models(options, needs_key=False).specs.values()
        assert (spec.concurrency, spec.rpm, spec.tpm) == expected


def test_shards_that_run_at_a_time_share_the_limits_on_calls() -> None:
    """With eight shares no two of eight could use the quota. Money is spent once by each."""
    limits = ("--concurrency", "10", "--rpm", "60", "--max-cost", "8")
    options = options_of(*limits, "--shard", "8/8", "--shards-at-once", "2")
    assert (options.concurrency, options.rpm, options.max_cost) == (5, 30, 1.0)
    assert shard_header(options) == [
        "shard 8 of 8: --concurrency 5, --rpm 30, --max-cost 1; "
        "2 at a time share the limits on calls"
    ]


def test_more_shards_at_once_than_there_are_are_all() -> None:
    plain = options_of("--shard", "2/4")
    assert options_of("--shard", "2/4", "--shards-at-once", "9") == plain


A, B = (f"openai:{name}@http://127.0.0.1:9/v1" for name in "ab")


def chosen(*words: str) -> RunModels:
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
    assert list(usual.models) == [A]
    found = chosen(*judges(A, "lexical", B))
    assert list(found.specs) == [A, B]
    assert [one.name for one in found.judges.spec.members] == [A, "lexical", B]
    assert list(found.judges.models.values()) == list(found.models.values())
    assert list(chosen("--model", A, *judges(A, B), "--allow-self-judge").specs) == [
        A,
        B,
    ]


@tabled("arguments", "message")
def test_what_cannot_be_meant_is_refused(arguments: list[str], message: str) -> None:
    """The option, what was got and what to do; nothing that would do nothing passes silently."""
    with pytest.raises(UsageError, match=message):
        chosen(*arguments)


DROPPING = """
def pytest_collection_modifyitems(items):
    del items[0]
"""


@pytest.fixture
def capital(project: Project) -> Project:
    """Return a project with one dataset of two items."""
    project.dataset("capital", {"bg": ["Sofia", "Paris"]})
    return project


def known(project: Project, *arguments: str) -> bool:
    """Return what is said of a run with these arguments in a project."""
    config = project.parse_config(*arguments)
    return takes_all_items(config, sorted(project.path.glob("qa/*/dataset.yaml")))


@pytest.mark.parametrize(
    ("words", "is_known"),
    [
        *((words, True) for words in ("qa", "qa/capital", "qa -x", "-v qa")),
        *(
            (f"qa {words}", False)
            for words in ("-k bg", "-m capital", "--deselect qa/capital")
        ),
        *(
            (f"qa --ignore{words}", False)
            for words in (" qa/capital", "-glob *capital*")
        ),
        *(
            (f"qa --{words}", False)
            for words in ("collect-only", "setup-plan", "fixtures")
        ),
        ("qa/capital/test_capital.py", False),
        ("qa/capital/test_capital.py::test_capital", False),
    ],
)
def test_only_whole_folders_are_known(
    capital: Project, words: str, is_known: bool
) -> None:
    """Folders hold just what is planned; a filter, a module or a listing must be seen first."""
    assert known(capital, *words.split()) is is_known


def test_failed_first_may_drop_tests(capital: Project) -> None:
    """``--lf`` and ``--sw`` decide by an earlier run."""
    ini = (capital.path / "pytest.ini").read_text().replace("-p no:cacheprovider", "")
    capital.write("pytest.ini", ini)
    assert known(capital, "qa")
    assert not known(capital, "qa", "--lf")
    assert not known(capital, "qa", "--sw")


@pytest.mark.parametrize(
    ("path", "text", "is_known"),
    [
        ("conftest.py", DROPPING, False),
        ("conftest.py", "collect_ignore_glob = ['*capital*']\n", False),
        ("qa/capital/conftest.py", DROPPING, False),
        ("qa/conftest.py", "def pytest_report_header():\n    return 'ours'\n", True),
    ],
    ids=["drops", "ignores", "not loaded yet", "harmless"],
)
def test_a_conftest_is_waited_for(
    capital: Project, path: str, text: str, is_known: bool
) -> None:
    """One that drops tests, or is not loaded yet; a harmless one that is loaded changes nothing."""
    capital.write(path, text)
    assert known(capital, "qa") == is_known


LABELS = (
    "kind: judged\n"
    "languages: {en: {file: en.jsonl, rubric: plain.en.yaml, floor: {agreement: 0.8}}}\n"
)
NONE = "no test with @pytest.mark.qa("


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_without_collected_tests_is_missed(
    project: Project, workers: int
) -> None:
    """For any reason; not where an option, a node id or another folder left it out."""
    for name in ("one", "two"):
        project.dataset(name, {"en": ["Sofia"] * 4}, graded({"en": BAR}))
    module = project.path / "qa/two/test_two.py"
    text = module.read_text()
    skipped = "import pytest\npytest.skip('', allow_module_level=True)\n"
    changes = ("", text.replace("@pytest.mark.qa", "# "), skipped)
    for change in changes[: 1 if workers else 3]:
        module.write_text(change)
        result = project.run_with(workers, "qa")
        assert result.ret == 4
        assert f'qa/two/dataset.yaml: {NONE}"two") was collected' in result.stderr.str()
    module.rename(module.with_name("two_cases.py"))
    if not workers:
        for words in (["qa/two"], ["qa/one", "qa/two"], ["qa", "--dry-run"]):
            assert f'{NONE}"two")' in project.run_in_process(*words).stderr.str()
        chosen = (["qa/one"], ["qa", "-m", "one"], ["qa", "--ignore=qa/two"])
        assert [project.run_in_process(*words).ret for words in chosen] == [0] * 3
    assert project.run_with(workers, "qa", "-k", "one").ret == 6
    assert project.run_with(workers, "qa/one/test_one.py::test_one[one-en-q1]").ret == 6


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_labels_without_a_test_measure_when_named(
    project: Project, workers: int
) -> None:
    """Their folder among the paths is no worse than out of them; alone it is missed. A wrong file
    is refused by a dry run too."""
    yaml = graded({"en": BAR}, "rubric: plain.en.yaml")
    project.dataset("facts", {"en": ["Sofia"] * 20}, yaml)
    rows = [
        {"question": f"Asked {n}?", "gold": "Sofia", "predicted": said, "label": label}
        for n in range(20)
        for said, label in (("Sofia", "CORRECT"), ("Plovdiv", "INCORRECT"))
    ]
    project.write("qa/labels/dataset.yaml", LABELS)
    project.write("qa/labels/plain.en.yaml", RUBRIC.format("en"))
    project.write("qa/labels/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for words in (
        ["qa/facts", "qa/labels"],
        *([] if workers else [["qa/facts"], ["qa"]]),
    ):
        assert project.run_with(workers, *words).ret == 0
        assert [
            one["items"] for one in project.report()["judging"]["calibrations"]
        ] == [40]
    assert f'{NONE}"labels")' in project.run_with(workers, "qa/labels").stderr.str()
    project.write("qa/labels/en.jsonl", '{"question": "Asked?"}\n')
    for option in ("-q", "--dry-run"):
        if not workers:
            assert "en.jsonl:1: no column 'label'" in project.refused(
                "qa/facts", option
            )


MODEL, OTHER = "openai:m@http://127.0.0.1:9/v1", "anthropic:a@http://127.0.0.1:9"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return, for each head start, the names of the models it is for; none is really made."""
    made: list[tuple[str, ...]] = []

    def note(load: Callable[[], None]) -> EngineProcess | None:
        assert isinstance(load, partial)
        made.append(tuple(spec.text for spec in load.args[0]))
        return None

    monkeypatch.setattr("qagate.evaluators.runtime.process.fork_early", note)
    return made


def start(project: Project, *words: str) -> pytest.Config:
    """Read a command line as a run does, and begin."""
    config = project.parse_config(*words)
    start_early(config, read_options(config.getoption, project.path))
    return config


@tabled("words", "specs")
def test_every_model_that_may_be_asked_is_loaded(
    words: list[str],
    specs: list[str] | None,
    loads: list[tuple[str, ...]],
    project: Project,
) -> None:
    """Under test, judging, behind rules, of a panel, named in models.yaml; rules load no SDK."""
    start(project, *words)
    assert [[*one] for one in loads] == ([specs] if specs else [])


def test_a_vain_head_start_ends(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something turns out to be wrong later the process does not stay."""
    monkeypatch.setattr("qagate.evaluators.runtime.process.can_fork", lambda: True)
    config = start(project, "--model", MODEL)
    process = config.stash[worker.EARLY_ENGINE]._process
    assert process.is_alive()
    config._ensure_unconfigure()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("option", "starts"),
    [
        ("--replay", False),
        ("--dry-run", False),
        ("--collect-only", False),
        ("--seed=1", True),
    ],
)
def test_who_sends_nothing_starts_nothing_early(
    option: str, starts: bool, project: Project, loads: list[tuple[str, ...]]
) -> None:
    """Replays, dry runs and listings have no use for an SDK."""
    project.dataset("capital", {"en": ["Sofia"]})
    project.run_in_process("qa", f"--model={MODEL}", option)
    assert bool(loads) == starts
