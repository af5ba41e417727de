"""Which form a result has, found by its content, and how to read it."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reports.imports import deepeval_runs, inspect_logs, lm_eval, promptfoo, score_tables
from reports.imports.foreign import Choice, ForeignRun, ResultFile, document, part, problem
from reports.run.report_folder import RUN

FORMS: Mapping[str, Callable[[Sequence[ResultFile], Choice], ForeignRun]] = {
    "inspect": inspect_logs.read,
    "lm_eval": lm_eval.read,
    "promptfoo": promptfoo.read,
    "deepeval": deepeval_runs.read,
    "table": score_tables.read,
}
"""By the word for ``--from``; a table comes last, as any rows are one."""
_SUFFIXES = (".eval", ".json", ".jsonl", ".csv")


def load(path: Path, word: str, choice: Choice) -> ForeignRun:
    """Return the run in a file or folder, of form ``word``; empty finds it. Raises UsageError."""
    if path.name == RUN or (path / RUN).is_file():
        raise problem(path, "a run of qagate itself; say `qagate gate RUN --baseline OLD`")
    files = [path]
    if path.is_dir():
        every = sorted(path.rglob("*"))
        files = [one for one in every if one.suffix in _SUFFIXES and one.is_file()]
    if not files:
        raise problem(path, f"no file ending in {', '.join(_SUFFIXES)} there")
    forms = [(_forms(one), one) for one in map(document, files)]
    for name, read in FORMS.items():
        own = [one for some, one in forms if name in some]
        if not own or word not in ("", name) or (name == "table" and path.is_dir()):
            continue
        if len(own) > 1 and name not in ("inspect", "lm_eval"):  # which write several
            raise problem(path, f"holds several results of {name}; name one file")
        try:
            run = read(own, choice)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            what = f"not as {name} writes it ({type(error).__name__}: {error})"
            raise problem(path, f"{what:.200}; give the file whole, or as a table") from None
        if not run.samples:
            raise problem(path, "holds no sample; write the log with its samples")
        return run
    wanted = f"a result of {word}" if word else f"a result of any of {', '.join(FORMS)}"
    raise problem(path, f"not {wanted}; say what it is with --from")


def _forms(found: ResultFile) -> set[str]:
    """Return the forms whose signs a file has."""
    data, keys = found.data, found.keys
    names = data.namelist() if isinstance(data, zipfile.ZipFile) else ()
    signs = {
        "inspect": {"eval", "plan", "status"} <= keys
        or any(name.startswith(("samples/", "_journal/")) for name in names),
        "lm_eval": {"doc_id", "doc"} <= keys or {"results", "versions", "configs"} <= keys,
        "promptfoo": isinstance(data, dict)
        and isinstance(part(data, "results").get("results"), list),
        "deepeval": bool(keys & {"testCases", "testRunData"}),
        "table": data is None or isinstance(data, list),
    }
    return {name for name, holds in signs.items() if holds}
