"""The documents name every option, key, metric, command and file; links lead somewhere."""

import re
from argparse import SUPPRESS
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cases.config import DATASET_KEYS, LABEL_KEYS, LANGUAGE_KEYS
from cases.thresholds import BAR_KEYS, CHANGE_KEYS, CHECK_KEYS, GEVAL_KEYS
from evaluators.command_line import PROGRAMS
from evaluators.extra_metrics import METRICS as DEEPEVAL
from evaluators.models.catalogue import KNOWN, KNOWN_HTTP
from evaluators.statistics.metrics import METRICS, USAGE
from reports.gates.decide import INCONCLUSIVE
from reports.plugin.qagate import main
from reports.run.report_folder import OTHERS, RUN
from tests.conftest import ROOT

DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        *(ROOT / name / "README.md" for name in ("cases", "evaluators", "reports")),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob(".github/*.md"),
    ]
)
STEPS = ("stats", "export", "import", "prune", "batches")
"""Of ``qagate ledger``."""
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, re.S | re.M)
    return str(text)


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from keys(inner)


def examples(title: str) -> set[str]:
    """Return the keys that the YAML examples of a section show."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", section(title), re.S | re.M)
    return {key for block in blocks for key in keys(yaml.load(block, yaml.BaseLoader))}


def test_the_reference_lists_every_option(pytestconfig: pytest.Config) -> None:
    """Each option of our group has a line, and no line is about an option that went."""
    parser = pytestconfig._parser  # pytest has no public list of options
    group = next(group for group in parser._groups if group.name == "qa")
    shown = (option for option in group.options if option.attrs().get("help") != SUPPRESS)
    options = {name for option in shown for name in option.names()}
    assert set(re.findall(r"`(--[\w-]+)", section("Options"))) == options


def test_the_reference_shows_every_key() -> None:
    """Of a data set, a gates file and a models file by example; and each metric."""
    gates = {*BAR_KEYS, *CHANGE_KEYS, "pool"}
    inner = {*LABEL_KEYS, *GEVAL_KEYS, *CHECK_KEYS, "limit", "seed", "waive", "difficulty_date"}
    known = {*DATASET_KEYS, *LANGUAGE_KEYS, *gates, *inner}
    assert known <= set(re.findall(r"[a-z_]+(?=:)", section("dataset.yaml")))
    assert {*DATASET_KEYS, *LANGUAGE_KEYS} <= examples("dataset.yaml")
    shown = examples("Gates file") | examples("dataset.yaml")
    assert {*BAR_KEYS, *CHANGE_KEYS, "pool", "replace", "sample"} <= shown | set(
        re.findall(r"`(\w+): all`", section("Gates file"))
    )
    assert {*KNOWN, *KNOWN_HTTP} <= examples("Models file")
    named = {name for kind in METRICS.values() for name in kind} | {*USAGE, *DEEPEVAL}
    assert named <= set(re.findall(r"`([\w@^]+)`", section("Metrics")))


def test_the_reference_lists_every_command_with_its_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A row is about commands that there are, and names the options that their help does. That help
    also says the exit codes."""
    rows = [re.split(r" ?\| ?", line)[1:4] for line in section("Commands").splitlines()[4:] if line]
    cells = {name: text for names, _, text in rows for name in re.findall(r"`(\w+)", names)}
    known = {name for program in PROGRAMS.values() for name in program.commands}
    assert cells.keys() == {*known, *STEPS[1:]}
    for name in sorted(known - {"run"}):  # pytest's own help
        helped = set[str]()
        for step in STEPS if name == "ledger" else ("",):
            with pytest.raises(SystemExit) as ended:
                main([name, *filter(None, [step]), "--help"])
            text = capsys.readouterr().out
            assert ended.value.code == 0 and "exit codes" in text, name
            assert text.startswith(f"usage: qagate {' '.join([name, step])}".rstrip()), name
            helped |= set(re.findall(r"^ +(--[a-z0-9-]+)", text, re.M))
        of_runs = {"--limit", "--report-dir", "--judge"} if "of `run`" in cells[name] else set()
        assert set(re.findall(r"--[a-z0-9-]+", cells[name])) == helped - of_runs, name


def test_the_reference_lists_every_file_and_exit_code() -> None:
    """Those that a report has, and those that a session can end with."""
    files = section("Files of a report")
    assert [name for name in (*OTHERS, RUN) if f"`{name}`" not in files + section("Commands")] == []
    codes = re.findall(r"^\| (\d) \|", section("Exit codes"), re.M)
    assert list(map(int, codes)) == sorted({int(one) for one in range(INCONCLUSIVE + 1)})


def slug(heading: str) -> str:
    kept = re.sub(r"[^\w\s-]", "", heading.lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    """A link names a file that is there, and an anchor that is a heading of it."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        headings = (
            re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M) if anchor else ()
        )
        assert not anchor or anchor in {slug(heading) for heading in headings}, link
