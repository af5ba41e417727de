"""Which form a result has, found by its content, and how to read it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.imports import deepeval_runs, inspect_logs, lm_eval, promptfoo, score_tables
from reports.imports.foreign import Choice, ForeignRun, ResultFile, document, problem
from reports.run.report_folder import RUN


@dataclass(frozen=True, slots=True)
class ResultForm:
    """One form of result."""

    recognises: Callable[[ResultFile], bool]
    read: Callable[[Sequence[ResultFile], Choice], ForeignRun]


FORMS: Mapping[str, ResultForm] = {
    name: ResultForm(module.recognises, module.read)
    for name, module in (
        ("inspect", inspect_logs),
        ("lm_eval", lm_eval),
        ("promptfoo", promptfoo),
        ("deepeval", deepeval_runs),
        ("table", score_tables),
    )
}
"""By the word for ``--from``; a table comes last, as any rows are one."""
_SUFFIXES = (".eval", ".json", ".jsonl", ".csv")


def load(path: Path, word: str, choice: Choice) -> ForeignRun:
    """Return the run in a file or folder. ``word`` names its form; empty finds it.

    Raises UsageError where nothing, or more than one run, can be read there.
    """
    if path.name == RUN or (path / RUN).is_file():
        raise problem(path, "a run of qagate itself; say `qagate gate RUN --baseline OLD`")
    found = [document(one) for one in _files(path)]
    for name, form in FORMS.items():
        own = [one for one in found if form.recognises(one)]
        if own and word in ("", name) and (name != "table" or path.is_file()):
            try:
                run = form.read(own, choice)
            except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
                what = f"not as {name} writes it ({type(error).__name__}: {error})"
                raise problem(path, f"{what:.200}; give the file whole, or as a table") from None
            if not run.samples:
                raise problem(path, "holds no sample; write the log with its samples")
            return run
    wanted = f"a result of {word}" if word else f"a result of any of {', '.join(FORMS)}"
    raise problem(path, f"not {wanted}; say what it is with --from")


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise problem(path, "no such file or folder; give a result of another tool")
    files = [one for one in sorted(path.rglob("*")) if one.suffix in _SUFFIXES and one.is_file()]
    if not files:
        raise problem(path, f"no file ending in {', '.join(_SUFFIXES)} there")
    return files
