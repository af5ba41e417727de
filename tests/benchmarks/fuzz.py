"""Give each reader of foreign data damaged input, and look for what nobody foresaw.

Run as ``python -m tests.benchmarks.fuzz [--seconds 180] [--reader NAME] [--seed 1]``.

Every reader has sound inputs, of which each input here is a mutation. It runs in a process of
its own with 500 MB of memory more than it has at its start, and has one second of processor
time an input. It may accept an input, or refuse it by an error that it documents. Any other
error is a finding, and so is an input that takes longer. Prints a line for each reader, and
each finding with the file that holds its input; exit code 1 where there is one.
"""

import argparse
import multiprocessing
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from qagate.cases.adjudication_files import load_adjudications
from qagate.cases.config import load_dataset, load_gates
from qagate.cases.extras.review.reviews import load_issued, read_rows
from qagate.cases.tables import read_table
from qagate.evaluators.core import GRADES, Case, Reply, ToolCall, UsageError
from qagate.evaluators.extras.batches.waves import Wave
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.ledger.rows import PaidReply, Signer, read_line, seal
from qagate.evaluators.ledger.runs import KnownRun
from qagate.evaluators.ledger.voids import VoidForm
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.waits import reset_after, retry_after
from qagate.evaluators.output import say
from qagate.evaluators.reading import parse_json
from qagate.evaluators.replies.readers import read_grade, read_rating
from qagate.evaluators.rubric import load_rubric
from qagate.evaluators.text import mask, one_line
from qagate.evaluators.typed_data import Usd, decode_text
from qagate.reports.extras.decide.foreign_run import Choice
from qagate.reports.extras.decide.reading import read_run
from qagate.reports.run.audit_plan import PLAN_SUFFIX, load_plan
from qagate.reports.run.baselines import PROMOTED, read_promotion
from qagate.reports.run.report_folder import RUN_FILE
from qagate.reports.run.run_json import load_report
from tests.support.made_runs import answered, run_of, written

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "extras" / "decide" / "results"
SECONDS_PER_INPUT = 1.0
"""Of processor time: others may use this machine as well."""
MEMORY_BYTES = 500 * 1024**2
MAX_MUTATIONS = 6
MAX_FINDINGS = 5
"""Of one reader; the rest would be the same."""
ODD_PIECES = (
    *(b"1e999", b"-1e999", b"NaN", b"9" * 5_000, b"-1", b"0.5", b"true", b"null", b"\"\""),
    *(b"[]", b"{}", b"[[[[", b"{\"a\":", b"\"\\ud800\"", b"\x00", b"\xff\xfe", b"\r", b"\n\n"),
    *("\u202e\u0130\u00df".encode(), b"\xf0\x9f\x98\x80", b"[" * 2_000, b" " * 2_000, b"&a *a"),
    *(b": ", b"- ", b"'", b"\"", b",", b"\t", b"=", b"://u:", b"-----BEGIN PRIVATE KEY-----"),
)  # fmt: skip


class TooSlow(BaseException):  # no reader may catch it as an error
    """The input took more than its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One reader, with the inputs to begin from."""

    read: Callable[[Path], object]
    seeds: Sequence[bytes]
    suffix: str
    """Of the file with an input: some readers go by it."""
    refusals: tuple[type[Exception], ...] = (UsageError,)


def _files(*patterns: str) -> list[bytes]:
    contents = []
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            content = path.read_bytes()
            if len(content) < 200_000:
                contents.append(content)
    assert contents, patterns
    return contents[:12]


def _read_dataset(path: Path) -> object:
    return load_dataset(path.rename(path.with_name("dataset.yaml")))


def _decide(path: Path) -> object:
    return read_run(path, "", Choice())


def _decide_rows(path: Path) -> object:
    return read_run(path, "table", Choice(columns={"id": "id", "score": "score"}))


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _read_reply(path: Path) -> object:
    text = _text_of(path)
    call = ToolCall(name="grade", arguments=text)
    for reply in (Reply(text=text), Reply(calls=(call,))):
        read_grade(reply, GRADES)
        read_rating(reply)
    return None


def _grade_by_rules(path: Path) -> object:
    answer, _, gold = _text_of(path).partition("|")
    for language in ("en", "bg", "pl", "hu", "be"):
        case = Case(
            id="q",
            dataset="d",
            language=language,
            row=1,
            question="When, and how many?",
            golds=(gold or "1984",),
        )
        grade(case, answer)
    return None


def _mask(path: Path) -> object:
    return one_line(mask(_text_of(path)))


def _waits(path: Path) -> object:
    text = _text_of(path)
    return retry_after({"retry-after": text}), reset_after({"x-ratelimit-reset": text})


def _ledger_row() -> bytes:
    call = ToolCall(name="grade", arguments='{"grade": "CORRECT"}')
    reply = Reply(text="Sofia", calls=(call,), model="m", input_tokens=3, cost=0.1)
    row = seal(PaidReply(key="k", spec="openai:m", reply=reply, run="r"), 1.0)
    return row.line.encode()


SHEET = b"item,verdict,edited,comment,reviewer\r\nq1,CORRECT,,,ann\r\nq2,INCORRECT,,why,ann\r\n"
ADJUDICATION = b"""- item: smoke-en-q1
  digest: '0123456789abcdef0123456789abcdef'
  verdict: CORRECT
  name: ann
  reason: the gold is too strict
  date: '2026-01-02'
"""
GATES = b"smoke: {en: {correct: {min: 0.5}, drop: {max: 0.1, evidence: confident}}}\n"
SHEET_FILE = b"""{"sheets": ["0123456789abcdef"], "items": {"q1": {"choices": ["CORRECT",
"INCORRECT"], "judged": "CORRECT", "upgrades": [], "about": ["question: q?"]}}}"""
SAVED_FORM = b"""{"sheet": "0123456789abcdef", "reviewer": "ann", "rows": [
{"item": "q1", "verdict": "CORRECT", "edited": "", "comment": "so"}]}"""
AUDIT_PLAN = (
    b"""{"0123": {"why": "", "probability": 0.5, "judged": -1, "share": 0.2}}"""
)
PROMOTION = b'{"name": "v1", "anyway": ""}'
DOCUMENTS: Mapping[str, Any] = {
    '{"id": "r", "started": 5.0, "ended": 6.0, "code": 0, "decided": [{"number": 1, "of": 2}]}': (
        KnownRun
    ),
    '{"id": "w", "spec": "m", "at": 5.0, "run": "r", "calls": 2, "keys": ["k"]}': Wave,
    '["key", "en", "grade@1", 5.0]': VoidForm,
    "0.25": Usd,
}
"""Documents of a ledger, with what each is read as."""


def _run() -> bytes:
    """Return the ``run.json`` of a small run."""
    with tempfile.TemporaryDirectory(prefix="qa-fuzz-") as folder:
        report = run_of(answered("ccine"))
        return (written(report, Path(folder)) / RUN_FILE).read_bytes()


def _load_report(path: Path) -> object:
    return load_report(path.rename(path.with_name(RUN_FILE)).parent, items=False)


def _read_plan(path: Path) -> object:
    plan = path.rename(path.with_name(f"people{PLAN_SUFFIX}"))
    return load_plan(plan.with_name("people.yaml"))


def _read_promotion(path: Path) -> object:
    return read_promotion(path.rename(path.with_name(PROMOTED)).parent)


def _read_document(path: Path) -> object:
    text = path.read_bytes().decode("utf-8")
    for kind in DOCUMENTS.values():
        with suppress(ValueError):
            return decode_text(kind, text)
    raise ValueError("a document of no kind")


KEYS = (
    b"password=hunter22hunter, https://u:p@h.example/x, sk-proj-0123456789abcdef0123"
    b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
)
ANSWERS = (
    b"It was on 14 May 1984, about 2,500 people.|14.05.1984",
    "Около 20-ти, а не 30.|20".encode(),
    b'{"reason": "so", "grade": "CORRECT"}',
)


@cache
def readers() -> Mapping[str, Reader]:
    """Return the readers by name."""
    return {
        "json": Reader(
            read=lambda path: parse_json(path.read_bytes().decode("utf-8")),
            seeds=[_ledger_row(), SHEET_FILE],
            suffix=".json",
            refusals=(ValueError, RecursionError),
        ),
        "table.csv": Reader(
            read=read_table, seeds=_files("cases/smoke/*.csv"), suffix=".csv"
        ),
        "table.jsonl": Reader(
            read=read_table,
            seeds=[b'{"question": "q?", "answer": "a"}\n' * 3],
            suffix=".jsonl",
        ),
        "dataset.yaml": Reader(
            read=_read_dataset, seeds=_files("cases/*/dataset.yaml"), suffix=".yaml"
        ),
        "models.yaml": Reader(
            read=lambda path: load_catalogue(own=path),
            seeds=_files("evaluators/models.yaml"),
            suffix=".yaml",
        ),
        "rubric": Reader(
            read=load_rubric, seeds=_files("evaluators/rubrics/*.yaml"), suffix=".yaml"
        ),
        "gates": Reader(read=load_gates, seeds=[GATES], suffix=".yaml"),
        "adjudications": Reader(
            read=load_adjudications, seeds=[ADJUDICATION], suffix=".yaml"
        ),
        "review form": Reader(
            read=lambda path: list(read_rows([path])), seeds=[SHEET], suffix=".csv"
        ),
        "review sheet": Reader(read=load_issued, seeds=[SHEET_FILE], suffix=".json"),
        "saved form": Reader(
            read=lambda path: list(read_rows([path])),
            seeds=[SAVED_FORM],
            suffix=".json",
        ),
        "audit plan": Reader(read=_read_plan, seeds=[AUDIT_PLAN], suffix=".json"),
        "promotion": Reader(read=_read_promotion, seeds=[PROMOTION], suffix=".json"),
        "ledger document": Reader(
            read=_read_document,
            seeds=[text.encode() for text in DOCUMENTS],
            suffix=".json",
            refusals=(ValueError,),
        ),
        "ledger row": Reader(
            read=lambda path: read_line(path.read_bytes(), Signer()),
            seeds=[_ledger_row()],
            suffix=".jsonl",
            refusals=(ValueError, RecursionError),
        ),
        "run.json": Reader(read=_load_report, seeds=[_run()], suffix=".json"),
        "inspect archive": Reader(
            read=_decide,
            seeds=[path.read_bytes() for path in sorted(RESULTS.glob("*.eval"))],
            suffix=".eval",
        ),
        "result json": Reader(
            read=_decide,
            seeds=[path.read_bytes() for path in sorted(RESULTS.glob("*.json"))],
            suffix=".json",
        ),
        "result jsonl": Reader(
            read=_decide,
            seeds=[path.read_bytes() for path in sorted(RESULTS.glob("*/samples*"))],
            suffix=".jsonl",
        ),
        "result table": Reader(
            read=_decide_rows, seeds=[b"id,score\nq1,1\nq2,0.5\n"], suffix=".csv"
        ),
        "judge's reply": Reader(read=_read_reply, seeds=ANSWERS, suffix=".txt"),
        "rule judge": Reader(read=_grade_by_rules, seeds=ANSWERS, suffix=".txt"),
        "masks": Reader(read=_mask, seeds=[KEYS], suffix=".txt"),
        "waits": Reader(
            read=_waits,
            seeds=[b"20", b"1m30s", b"Wed, 21 Oct 2026 07:28:00 GMT"],
            suffix=".txt",
        ),
    }


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """Return an input that differs from a sound one in some places."""
    content = bytearray(seed)
    for _ in range(chance.randint(1, MAX_MUTATIONS)):
        start = chance.randint(0, len(content))
        end = min(len(content), start + chance.choice((0, 1, 1, 4, 16, 64)))
        piece = bytes(content[start:end])
        content[start:end] = chance.choice(
            (
                chance.choice(ODD_PIECES),
                chance.randbytes(chance.randint(0, 4)),
                piece * chance.choice((0, 2, 50)),
                seed[end : end + 64],
            )
        )
    return bytes(content)


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlow in an input that takes longer than its time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_INPUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def finding_of(reader: Reader, path: Path) -> str:
    """Return what nobody foresaw in reading one input; empty if nothing."""
    try:
        with limited():
            reader.read(path)
    except reader.refusals as error:
        return (
            "" if "\n" not in str(error).strip() else f"several lines: {error!r:.200}"
        )
    except TooSlow:
        return f"more than {SECONDS_PER_INPUT:g} s"
    except Exception as error:  # noqa: BLE001  # that is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return (
            f"{type(error).__name__}: {error!s:.120} ({place.filename}:{place.lineno})"
        )
    return ""


def fuzz(name: str, seconds: float, seed: int, kept: Path) -> None:
    """Fuzz one reader in this process, and end it with the number of findings."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    reader = readers()[name]
    chance = random.Random(f"{name}-{seed}")
    findings: dict[str, Path] = {}
    count = 0
    with tempfile.TemporaryDirectory(prefix="qa-fuzz-") as folder:
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(findings) < MAX_FINDINGS:
            path = Path(folder) / f"input{reader.suffix}"
            content = mutated(chance.choice(reader.seeds), chance)
            path.write_bytes(content)
            finding = finding_of(reader, path)
            count += 1
            if finding and finding not in findings:
                findings[finding] = (
                    kept / f"{name.replace(' ', '-')}-{count}{reader.suffix}"
                )
                findings[finding].write_bytes(content)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - used
    megabytes = largest / 1024**2
    say(
        sys.stdout,
        f"{name:16} {count:9,} inputs, {megabytes:4.0f} MB, {len(findings)} findings",
    )
    for finding, path in findings.items():
        say(sys.stdout, f"    {finding}", f"        {path}")
    sys.exit(min(len(findings), 1))


def main() -> int:
    """Fuzz the readers one after the other; return 1 where there was a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="for each reader")
    parser.add_argument("--reader", choices=list(readers()), action="append")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="qa-fuzz-findings-"))
    failed = False
    for name in given.reader or readers():
        process = multiprocessing.get_context("fork").Process(
            target=fuzz, args=(name, given.seconds, given.seed, kept)
        )
        process.start()
        process.join()
        failed = failed or process.exitcode != 0
    if not failed:
        shutil.rmtree(kept)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
