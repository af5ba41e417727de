"""``python -m cases COMMAND``: the commands of ``qagate`` for data sets."""

import sys

from qagate.cases.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
