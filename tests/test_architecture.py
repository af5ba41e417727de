"""The rules of the tree: who may import whom, and what a worker loads."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from qagate.evaluators.optional import REQUIREMENTS

pytestmark = pytest.mark.untraced
ROOT = Path(__file__).parent.parent
PACKAGES = ("evaluators", "cases", "reports")
FORBIDDEN = {
    "evaluators": {"cases", "reports"},
    "cases": {"reports"},
    "reports": set[str](),
}
HEAVY = (
    "anthropic", "deepeval", "numpy", "openai", "pandas", "psycopg", "scipy", "statsmodels"
)  # fmt: skip


@cache
def product() -> Mapping[str, ast.Module]:
    paths = sorted((ROOT / "qagate").rglob("*.py"))
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


@cache
def imported() -> Mapping[str, set[str]]:
    """Return what each file imports anywhere; the last part may be a name in a module."""
    found: dict[str, set[str]] = {path: set() for path in product()}
    for path, tree in product().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found[path] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found[path] |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def users(*packages: str) -> set[str]:
    """Return the files that import something of these packages or modules."""
    heads = tuple(f"{name}." for name in packages)
    return {
        path
        for path, names in imported().items()
        if any(f"{name}.".startswith(heads) for name in names)
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package: str) -> None:
    """evaluators know nothing of cases, and neither knows reports."""
    forbidden = users(*(f"qagate.{name}" for name in FORBIDDEN[package]))
    assert {
        path for path in forbidden if path.startswith(f"qagate/{package}/")
    } == set()


def test_some_packages_have_one_door() -> None:
    """pytest is known to the plugin, tests and the start of a run; deepeval to its metrics."""
    known = {"qagate/reports/commands/run.py", "qagate/door.py"}
    elsewhere = {
        path
        for path in users("pytest", "_pytest", "xdist") - known
        if not path.startswith(("qagate/reports/plugin/", "qagate/reports/extras/"))
        and not Path(path).name.startswith("test_")
    }
    assert elsewhere == set()
    assert users("deepeval") <= {"qagate/evaluators/extras/deepeval/metric.py"}


def without_types(tree: ast.Module) -> set[str]:
    """Return what a page of doors imports when it runs, so not for the type checker alone."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@cache
def imports() -> Mapping[str, set[str]]:
    """Return which files each file imports, in functions and for types too.

    A page of doors names the types of every layer, and every layer asks there. So of such a
    page only what it imports when it runs counts.
    """
    files = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
        for path in product()
    }
    found = {}
    for path, names in imported().items():
        counted = names
        if path.endswith("/doors.py"):
            counted = without_types(product()[path])
        modules = {
            name if name in files else name.rpartition(".")[0] for name in counted
        }
        found[path] = {files[name] for name in modules if name in files} - {path}
    return found


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return nodes that lead back to the first of them; none where there is no such way."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        nodes: list[str] = error.args[1]
        return nodes
    return []


def test_nothing_imports_itself_by_way_of_others() -> None:
    """A circle of files is one file that nobody can read alone. Folders are layers: what one is
    made of does not need it in turn. One holds its own."""
    assert circle(imports()) == []
    graph: dict[str, set[str]] = defaultdict(set)
    for path, others in imports().items():
        if "/extras/" in path:
            continue
        folder = path.rpartition("/")[0]
        trunk = {other for other in others if "/extras/" not in other}
        apart = {f"{other.rpartition('/')[0]}/" for other in trunk}
        near = {
            one
            for one in apart
            if one.startswith(f"{folder}/") or f"{folder}/".startswith(one)
        }
        graph[folder] |= {one[:-1] for one in apart - near}
    assert circle(graph) == []


ROOM = re.compile(r"qagate[./](\w+)[./]extras[./](\w+)")
ROOMS_USED_BY_ROOMS: Mapping[str, set[str]] = {
    "cases/builder": {"cases/review"},
    "cases/check": {"evaluators/lexical"},
    "cases/draw": {"cases/check"},
    "reports/builder": {"cases/builder", "cases/review"},
    "reports/label": {"cases/review"},
    "reports/odds": {"reports/sequential"},
    "reports/sequential": {"cases/review"},
}
"""Which other rooms a room may import; see how-it-works."""


def rooms_in(text: str) -> set[str]:
    """Return the rooms that a module's name or a file's path names, such as evaluators/panel."""
    return {f"{package}/{room}" for package, room in ROOM.findall(text)}


@cache
def rooms_named() -> Mapping[str, set[str]]:
    """Return the rooms that each file names: by import, or in any string."""
    rooms: dict[str, set[str]] = {}
    for path, tree in product().items():
        texts = set(imported()[path])
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
        rooms[path] = set().union(*map(rooms_in, texts))
    return rooms


def test_the_trunk_knows_rooms_by_doors_alone() -> None:
    tied = {
        (path, room)
        for path, rooms in rooms_named().items()
        for room in rooms
        if not rooms_in(path) and Path(path).name != "doors.py"
    }
    assert tied == {
        ("qagate/__init__.py", "reports/notebook"),  # qagate.load
        ("qagate/__init__.py", "reports/side_by_side"),  # qagate.compare
    }


def test_a_room_uses_no_other_room_but_what_the_table_says() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for path, rooms in rooms_named().items():
        for own_room in rooms_in(path):
            used[own_room] |= rooms - {own_room}
    assert {
        room: others for room, others in used.items() if others
    } == ROOMS_USED_BY_ROOMS


ROOMS_OF_SMOKE = {"evaluators/lexical"}
"""The rooms that ``cases/smoke`` names, counting defaults: its judge is ``lexical``."""


def test_smoke_runs_without_the_rooms_that_it_does_not_name(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(
        ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "tests")
    )
    for package in PACKAGES:
        for room in (copy / "qagate" / package / "extras").iterdir():
            if room.is_dir() and f"{package}/{room.name}" not in ROOMS_OF_SMOKE:
                shutil.rmtree(room)
    command = [sys.executable, "-m", "pytest", "-q", "cases/smoke"]
    run = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_commands_are_in_one_folder() -> None:
    """A ``main(argv)`` is in reports/commands or in a room, or is one that finds it there."""
    elsewhere = {
        path
        for path, tree in product().items()
        if any(
            isinstance(node, ast.FunctionDef) and node.name == "main"
            for node in tree.body
        )
        and "/extras/" not in path
        and not path.startswith("qagate/reports/commands/")
        and not path.endswith("/__main__.py")
        and path != "qagate/command.py"
    }
    assert elsewhere == set()


READERS = {
    "qagate/evaluators/typed_data.py",
    "qagate/evaluators/reply_fields.py",
    "qagate/evaluators/bounded_reading.py",
}
"""The modules that turn data of others into values: of a type, of replies, plain ones of JSON."""


def test_data_of_others_have_one_reader() -> None:
    """A second one would check other things: what one lets through the other must bear."""
    converting = set()
    for path, tree in product().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in (
                "msgspec.convert",
                "msgspec.json.decode",
            ):
                converting.add(path)
    assert converting == READERS


def test_public_class_names_are_unique() -> None:
    """A class name that two files share makes a reader ask which one is meant."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in product().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    """A command, a session without datasets and a plan pay for no SDK and no statistics (threads of
    numpy would keep the engine from forking); a command's table for neither pytest nor jinja2."""
    code = """
import json, sys
import qagate.command
first = [*sys.modules]
import qagate.reports.plugin
from pathlib import Path
from qagate.cases.dataset import Selection
from qagate.cases.plan import make_plan
make_plan([Path("cases/smoke/dataset.yaml")], Selection())
print(json.dumps([first, [*sys.modules]]))
"""
    said = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    first, every = json.loads(said)
    assert set(first).isdisjoint({"pytest", "jinja2"})
    assert set(every).isdisjoint(HEAVY)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: Mapping[str, list[str]] = {
    name: wanted
    for name, wanted in PROJECT["project"]["optional-dependencies"].items()
    if name != "all"
}
LOCKS = {
    ".github/action/requirements.lock": [*EXTRAS["inspect"], *EXTRAS["parquet"]],
    "requirements.lock": [
        *EXTRAS["deepeval"],
        *EXTRAS["pandas"],
        *EXTRAS["checks"],
    ],
    "tests/requirements.lock": [
        *chain(*EXTRAS.values()),
        *PROJECT["dependency-groups"]["dev"],
    ],
}
"""What each lock holds beyond the dependencies of the core."""
PINNED = re.compile(
    r"^([\w.-]+)==([\w.]+)(?: ; [^\\]+)? \\\n((?:    --hash=sha256:\w{64}(?: \\)?\n)+)",
    re.MULTILINE,
)


def pins(lock: str) -> dict[str, set[str]]:
    """Return the versions in a lock by name; each has hashes, and nothing else stands there."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    found: dict[str, set[str]] = defaultdict(set)
    for name, version, _ in PINNED.findall(text):
        found[name].add(version)
    assert PINNED.sub("", text) == "--only-binary :all:\n\n"
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_the_project_asks_for(lock: str) -> None:
    """Wheels with hashes alone, in versions that fit, and the same versions in all of them."""
    found, core = pins(lock), pins("requirements.lock")
    for text in (*PROJECT["project"]["dependencies"], *LOCKS[lock]):
        wanted = Requirement(text)
        versions = found[canonicalize_name(wanted.name)]
        assert all(wanted.specifier.contains(version) for version in versions), text
        assert versions, text
    shared = core.keys() & found.keys()
    assert {name: found[name] for name in shared} == {
        name: core[name] for name in shared
    }


OPTIONAL = {
    "backports": {"qagate/reports/extras/decide/containers.py"},
    "deepeval": {"qagate/evaluators/extras/deepeval/metric.py"},
    "jsonschema": {"qagate/evaluators/extras/checks/answer_checks.py"},
    "mwparserfromhell": {"qagate/cases/extras/builder/sampling.py"},
    "pandas": {
        "qagate/__init__.py",  # a type alone
        "qagate/reports/extras/notebook/notebook.py",
        "qagate/reports/extras/side_by_side/tidy.py",
    },
    "psycopg": {"qagate/evaluators/extras/postgres/postgres.py"},
    "pydantic": {"qagate/evaluators/extras/deepeval/metric.py"},
    "referencing": {"qagate/evaluators/extras/checks/answer_checks.py"},
    "regex": {"qagate/evaluators/extras/checks/answer_checks.py"},
    "sacrebleu": {"qagate/evaluators/extras/checks/answer_checks.py"},
    "pyarrow": {"qagate/evaluators/bounded_reading.py"},
}
"""The one file that imports what an extra brings."""


def test_what_is_imported_is_a_dependency_of_the_core_or_of_an_extra() -> None:
    """Nothing hangs on what a dependency happens to bring along."""
    distributions = packages_distributions()
    core = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    core |= {"markupsafe", "multidict", "yarl"}  # types of jinja2's and aiohttp's API
    ours = {"qagate", *sys.stdlib_module_names, "_typeshed", "_pytest"}
    elsewhere: dict[str, set[str]] = defaultdict(set)
    for path, names in imported().items():
        for module in {name.partition(".")[0] for name in names} - ours:
            names_of_module = map(canonicalize_name, distributions.get(module, []))
            if not core.intersection(names_of_module):
                elsewhere[module].add(path)
    assert elsewhere == OPTIONAL


def test_a_missing_extra_is_named_as_it_is_declared() -> None:
    """What to install, without saying which versions of Python need it."""
    declared = {text.partition(";")[0] for wanted in EXTRAS.values() for text in wanted}
    assert set(REQUIREMENTS.values()) == declared


def test_the_extra_all_has_every_extra() -> None:
    (named,) = PROJECT["project"]["optional-dependencies"]["all"]
    assert Requirement(named).extras == set(EXTRAS)
