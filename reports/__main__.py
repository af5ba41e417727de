"""``python -m reports COMMAND``: the commands of ``qagate`` for recorded runs, offline."""

import sys

from qagate.reports.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
