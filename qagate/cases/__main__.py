"""``python -m cases COMMAND``: the commands of ``qagate`` for data sets."""

import sys

from qagate.evaluators.command_line import PROGRAMS

main = PROGRAMS["cases"].run

if __name__ == "__main__":
    sys.exit(main())
