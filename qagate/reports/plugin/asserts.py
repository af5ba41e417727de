"""Whether an assertion that failed is the verdict's own: ``assert verdict.passed``.

Such a test is a miss, which the gates count. Any other assertion of a test is the user's own
finding: it keeps its message, and counts as a failure that no gate allows.
"""

import ast
import linecache
from functools import lru_cache
from types import TracebackType


def is_miss(error: AssertionError, test_name: str) -> bool:
    """Return whether ``assert verdict.passed`` failed in the test of this name itself."""
    frame = _last_frame(error.__traceback__)
    if frame is None:
        return False
    code = frame.tb_frame.f_code
    if code.co_name != test_name:
        return False
    return frame.tb_lineno in _verdict_asserts(code.co_filename)


def _last_frame(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


@lru_cache(maxsize=256)  # a module's tests miss again and again
def _verdict_asserts(path: str) -> frozenset[int]:
    """Return the lines of a file on which ``assert verdict.passed`` stands."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return frozenset()
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and _is_verdict_passed(node.test):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def _is_verdict_passed(expression: ast.expr) -> bool:
    if not isinstance(expression, ast.Attribute) or expression.attr != "passed":
        return False
    return isinstance(expression.value, ast.Name) and expression.value.id == "verdict"
