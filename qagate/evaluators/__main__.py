"""``python -m evaluators COMMAND``: the commands of ``qagate`` for recorded replies and judges."""

import sys

from qagate.evaluators.command_line import PROGRAMS

main = PROGRAMS["evaluators"].run

if __name__ == "__main__":
    sys.exit(main())
