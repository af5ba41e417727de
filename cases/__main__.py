"""``python -m cases COMMAND``: what the installed program ``qagate`` does."""

import sys

from qagate.command import main

if __name__ == "__main__":
    sys.exit(main())
