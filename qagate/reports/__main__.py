"""``python -m reports COMMAND``: the commands of ``qagate`` for recorded runs, offline."""

import sys

from qagate.evaluators.command_line import PROGRAMS

main = PROGRAMS["reports"].run

if __name__ == "__main__":
    sys.exit(main())
