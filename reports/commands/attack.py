"""``qagate attack``: an ordinary run over the bundled attacks on judges."""

from collections.abc import Sequence
from pathlib import Path

import cases
from evaluators.command_line import CommandParser
from reports.commands.run import main as run

ATTACKS = Path(cases.__file__).parent / "attacks"
PATHS = {
    "all": ATTACKS,
    "graded": ATTACKS / "test_attacks.py",
    "rated": ATTACKS / "attacks_eba",
}
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # the plugin is loaded already


def main(argv: Sequence[str]) -> int:
    """Run the attacks with the words of a run, and return its exit code."""
    parser = CommandParser(
        prog="qagate attack",
        description="Put attacks, and odd right answers as controls, to a judge: the same as "
        "`pytest cases/attacks --judge SPEC`. All options of a run are known.",
        epilog="exit codes are those of a run: 1 where more attacks pass than the gates allow",
    )
    add = parser.add_argument
    add("--kind", choices=tuple(PATHS), default="all", help="judges of grades, raters, or both")
    add("--report-dir", default="reports/attack", metavar="DIR", help="default: %(default)s")
    options, words = parser.parse_known_args(argv)
    return run([*QUIET, f"--rootdir={ATTACKS}", f"--report-dir={options.report_dir}",
                *words, str(PATHS[options.kind])])  # fmt: skip
