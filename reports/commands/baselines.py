"""``qagate list|promote``: runs kept by name, to be compared with."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluators.core import UsageError
from evaluators.output import plural, say
from reports.commands.recorded_runs import RUN_HELP, Parser, run_path
from reports.render.views import date
from reports.render.writer import WriteError, keep, previous
from reports.run.run_reader import RUN, load_run, load_summaries
from reports.verdict.promoted import BASELINES, check_name, promoted

OUT = Path("reports", "out")


def promote(argv: Sequence[str]) -> int:
    """Keep a run's report under a name; return the exit code."""
    parser = Parser(
        "promote",
        f"Keep a run as {BASELINES}/NAME, for --baseline=NAME and for the trend of later reports. "
        "Commit that folder: it is what the next model is compared with.",
        "0 kept, 3 could not be written, 4 wrong arguments, no readable run, or one that did not "
        "pass",
    )
    parser.add_argument("name", metavar="NAME", help="such as 2026-11 or gpt-4.1")
    parser.add_argument(
        "run", metavar="RUN", nargs="?", type=run_path, default=OUT, help=f"{RUN_HELP} ({OUT})"
    )
    parser.add_argument("--replace", action="store_true", help="in place of the run of that name")
    parser.add_argument("--anyway", action="store_true", help="also a run that did not pass")
    options = parser.parse_args(argv)
    to = BASELINES / check_name(options.name)
    run, records = load_run(options.run)
    verdict = run.get("verdict")
    if verdict != "PASS" and not options.anyway:
        raise UsageError(
            f"{options.run}: its verdict is {verdict}, and what shipped passed; or say --anyway"
        )
    if to.exists() and not options.replace:
        raise UsageError(
            f"{to}: a run of that name is there; choose another name, or say --replace"
        )
    home = options.run if options.run.is_dir() else options.run.parent
    try:
        keep(home, to)
    except OSError as error:
        raise WriteError(to, sum(file.stat().st_size for file in home.glob("*")), error) from None
    say(sys.stdout, f"{to}: {verdict}, {plural(len(records), 'item')}; --baseline={options.name}")
    return 0


def list_runs(argv: Sequence[str]) -> int:
    """Print the promoted runs, the last run and the one that decided before it; return 0."""
    what = "List the promoted runs and the last ones: name, when, verdict, items, model, judge."
    Parser("list", what, "0").parse_args(argv)
    last = [folder for folder in (previous(OUT), OUT) if (folder / RUN).is_file()]
    lines = [_line(folder) for folder in (*promoted(Path()), *last)]
    none = f"no run yet: `pytest cases/` writes {OUT}, `qagate promote NAME` keeps it"
    say(sys.stdout, *(lines or [none]))
    return 0


def _line(folder: Path) -> str:
    name = folder.name if folder.parent == BASELINES else str(OUT.with_name(folder.name))
    try:
        run, slices = load_summaries(folder)
    except UsageError as problem:
        return f"{name:<24} cannot be read: {problem}"
    about = run.get("run")
    started = about.get("started") if isinstance(about, Mapping) else None
    items = plural(sum(one.counts.planned for one in slices), "item")
    told = (str(run.get(word, "")) for word in ("model", "judge"))
    return (
        f"{name:<24} {date(started)}  {run.get('verdict', ''):<12} {items:>12}  {'  '.join(told)}"
    )
