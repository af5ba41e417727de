"""``python -m evaluators COMMAND``: the commands of ``qagate`` for recorded replies and judges."""

import sys

from qagate.evaluators.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
