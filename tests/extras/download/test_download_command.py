"""``qagate download`` and ``check``: the right file in its place, and what is wrong in it told."""

import io
import json
import os
import resource
import socket
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.config import load_dataset, with_items
from qagate.cases.extras.download import public_files
from qagate.cases.extras.download.command import main
from qagate.cases.extras.new.command import main as new_main
from qagate.cases.labels import Scale
from qagate.cases.loading import load_cases
from qagate.evaluators import optional
from qagate.evaluators.core import UsageError
from tests.support.downloading import (
    BOOLQ,
    CASES,
    HUSIMPLEQA,
    SIMPLEQA,
    FileServer,
    failure,
    file_server,
    get,
    raw,
    sha256,
)
from tests.support.fixtures import Captured
from tests.support.loopback import Answer
from tests.support.tables import kept


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


def test_the_file_lands_whole(
    server: FileServer, tmp_path: Path, capsys: Captured
) -> None:
    """The server's bytes, a command whose --items names the file; an unpinned hash is printed."""
    server.files["/data"] = Answer(body=BOOLQ)
    path = get(server, tmp_path / "my data", "--sha256", sha256(BOOLQ).upper())
    assert path.read_bytes() == BOOLQ
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: fetched from {server.url()}, {len(BOOLQ):,} bytes, licence CC BY-SA 3.0",
        f"pytest -n 8 cases/boolq --items 'boolq:en={path}' --model PROVIDER:NAME",
    ]
    server.files["/data"] = Answer(body=BOOLQ)
    for how in ("fetched from", "already there"):
        get(server, tmp_path)
        out = capsys.readouterr().out
        assert how in out
        assert f"SHA-256 {sha256(BOOLQ)} (pinned nowhere)" in out
    assert server.server.count == 2


@pytest.mark.parametrize("body", [b"<!doctype html>", BOOLQ.replace(b"blue", b"grey")])
def test_another_file_there_is_left_alone(
    server: FileServer, tmp_path: Path, body: bytes
) -> None:
    """It may be the user's: the line says what it is and what to do."""
    path = tmp_path / "boolq_dev.jsonl"
    path.write_bytes(body)
    with pytest.raises(
        public_files.DownloadError, match="delete it, or choose another --to"
    ):
        get(server, tmp_path, "--sha256", sha256(BOOLQ))
    assert path.read_bytes() == body
    assert server.server.count == 0


def test_a_pinned_benchmark_takes_no_other_file(
    server: FileServer, tmp_path: Path
) -> None:
    """SimpleQA is pinned; with --sha256 a publisher's new file is taken."""
    server.files["/data"] = Answer(body=SIMPLEQA)
    with pytest.raises(
        public_files.DownloadError,
        match=r"its SHA-256 is .*, not feee3f7e.* with --sha256",
    ):
        get(server, tmp_path, name="simpleqa")
    assert not any(tmp_path.iterdir())
    get(server, tmp_path, "--sha256", sha256(SIMPLEQA), name="simpleqa")


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("boolq", BOOLQ, ["true", "false"]),
        ("simpleqa", SIMPLEQA, ["Vermeer"]),
        ("husimpleqa", HUSIMPLEQA, ["Ez", "Ez", "Ez"]),
    ],
)
def test_the_loader_reads_the_official_form(
    server: FileServer, tmp_path: Path, name: str, body: bytes, expected: list[str]
) -> None:
    """The downloaded form loads as the slice that the printed --items names."""
    server.files["/data"] = Answer(body=body)
    path = get(server, tmp_path, "--sha256", sha256(body), name=name)
    one = public_files.load_benchmarks()[name]
    dataset = load_dataset(CASES / one.dataset / "dataset.yaml")
    cases = load_cases(with_items(dataset, one.language, path).slices[one.language])
    assert [case.expected for case in cases] == expected
    if name == "boolq":
        assert [case.label for case in cases] == ["YES", "NO"]
        assert cases[0].context == "Blue it is."
    if name == "husimpleqa":
        assert [case.id for case in cases] == ["q0", "q1", "q2"]
        assert cases[0].metadata["hu_specific_dim"] == "L"


def archive(member: str, content: bytes) -> bytes:
    """Return a .tar.gz with one file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        entry = tarfile.TarInfo(member)
        entry.size = len(content)
        made.addfile(entry, io.BytesIO(content))
    return file.getvalue()


EXAM = {
    "id": "e1",
    "question": {
        "stem": "Кое е синьо?",
        "choices": [
            {"text": "небето", "label": "A"},
            {"text": "тревата", "label": "B"},
        ],
    },
    "answerKey": "A",
    "info": {"subject": "Biology"},
}
PASSAGE = {
    "link": "https://example.org/1",
    "question_number": 1,
    "flores_passage": "Blue it is.",
    "question": "What is it?",
    "mc_answer1": "red",
    "mc_answer2": "blue",
    "mc_answer3": "green",
    "mc_answer4": "grey",
    "correct_answer_num": "2",
}


@pytest.mark.parametrize(
    ("name", "row"), [("exams-bg", EXAM), ("belebele-en", PASSAGE)]
)
def test_a_set_with_options_runs_in_a_folder_of_its_own(
    server: FileServer,
    tmp_path: Path,
    capsys: Captured,
    name: str,
    row: Mapping[str, object],
) -> None:
    """The printed commands write the folder and name the file, which loads as it came."""
    one = public_files.load_benchmarks()[name]
    content = json.dumps(row, ensure_ascii=False).encode()
    served = archive(one.member, content) if one.member else content
    server.files["/data"] = Answer(body=served)
    path = get(server, tmp_path, "--sha256", sha256(content), name=name)
    assert path.read_bytes() == content
    new, run = capsys.readouterr().out.splitlines()[-2:]
    assert new == f"qagate new {one.dataset} --kind choice --lang {one.language}"
    assert run.startswith(
        f"qagate run {one.dataset} --items {one.dataset}:{one.language}="
    )
    assert new_main([*new.split()[2:], "--to", str(tmp_path)]) == 0
    dataset = load_dataset(tmp_path / one.dataset / "dataset.yaml")
    [case] = load_cases(with_items(dataset, one.language, path).slices[one.language])
    assert case.golds[0] in ("небето", "blue")
    assert case.golds[0] in case.options


REGIONAL = {
    "language": "Belarusian",
    "country": "Belarus",
    "domain": "Social Science",
    "subject": "Geography",
    "regional_feature": "region explicit",
    "level": "Academic",
    "question": "Якая рака цячэ праз Гродна?",
    "answer": 2,
}
RIVERS = ["Дняпро", "Прыпяць", "Нёман", "Сож"]
TRANSLATED = {
    "sample_id": "astronomy/test/0",
    "subject": "astronomy",
    "subject_category": "STEM",
    "question": "Która planeta jest największa?",
    "option_a": "Mars",
    "option_b": "Jowisz",
    "option_c": "Wenus",
    "option_d": "Ziemia",
    "answer": "B",
    "required_knowledge": "[]",
    "cultural_sensitivity_label": None,
    "is_annotated": False,
}


def columns_of(options: Sequence[str]) -> Mapping[str, str]:
    return {f"option_{mark}": text for mark, text in zip("abcd", options, strict=True)}


def parquet(*rows: Mapping[str, object]) -> bytes:
    """Return a Parquet file with these rows; skip where pyarrow is not installed."""
    pyarrow = pytest.importorskip("pyarrow")
    writer = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    writer.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("include-be", {**REGIONAL, "choices": RIVERS}),
        ("include-be", {**REGIONAL, **columns_of(RIVERS)}),
        ("global-mmlu-pl", TRANSLATED),
    ],
    ids=["include-with-a-list", "include-with-columns", "global-mmlu"],
)
def test_a_parquet_set_runs_by_the_printed_commands(
    server: FileServer,
    tmp_path: Path,
    capsys: Captured,
    name: str,
    row: Mapping[str, object],
) -> None:
    """Its rows become JSON lines, which the folder of the first command reads as they are."""
    benchmark = public_files.load_benchmarks()[name]
    server.files["/data"] = Answer(body=parquet(row))
    get(server, tmp_path, name=name)
    items = benchmark.items(tmp_path)
    report, written, new, run = capsys.readouterr().out.splitlines()
    assert report.startswith(f"{tmp_path / benchmark.file}: fetched from")
    assert written == f"{items}: 1 item of {benchmark.file}"
    assert f"--items {benchmark.dataset}:{benchmark.language}={items} " in run
    assert new_main([*new.split()[2:], "--to", str(tmp_path)]) == 0
    dataset = load_dataset(tmp_path / benchmark.dataset / "dataset.yaml")
    with_file = with_items(dataset, benchmark.language, items)
    [case] = load_cases(with_file.slices[benchmark.language])
    assert case.golds in (("Нёман",), ("Jowisz",))
    assert len(case.options) == 4
    assert case.metadata["subject"] == row["subject"]


def test_a_parquet_file_without_the_columns_is_refused(
    server: FileServer, tmp_path: Path
) -> None:
    server.files["/data"] = Answer(body=parquet({"question": "?", "gold": 1}))
    message = failure(server, tmp_path, name="include-be")
    assert "something else: its end lacks 'answer'" in message


def test_a_cut_parquet_file_is_refused(server: FileServer, tmp_path: Path) -> None:
    whole = parquet({**REGIONAL, "choices": RIVERS})
    server.files["/data"] = Answer(body=whole[:-9])
    message = failure(server, tmp_path, name="include-be")
    assert "a Parquet file that is cut" in message
    assert not any(tmp_path.iterdir())


def test_a_damaged_parquet_file_becomes_no_items(
    server: FileServer, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    server.files["/data"] = Answer(body=b"PAR1 question answer PAR1")
    with pytest.raises(UsageError, match=r"include_Belarusian.parquet: a damaged"):
        get(server, tmp_path, name="include-be")
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_parquet_set_says_what_to_install_before_it_is_fetched(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional, "find_spec", lambda module: None)
    with pytest.raises(UsageError, match=r"download include-be: .*'pyarrow>="):
        get(server, tmp_path, name="include-be")
    assert server.server.count == 0


def test_an_archive_without_the_file_is_refused(
    server: FileServer, tmp_path: Path
) -> None:
    server.files["/data"] = Answer(body=archive("other.jsonl", b"{}"))
    message = failure(server, tmp_path, name="exams-bg")
    assert "no archive with train_bg.jsonl" in message
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("body", [b"\x1f\x8bno", archive("x", b"y" * 99)[:40]])
def test_a_broken_archive_is_refused(
    server: FileServer, tmp_path: Path, body: bytes
) -> None:
    server.files["/data"] = Answer(body=body)
    assert "no archive with" in failure(server, tmp_path, name="exams-bg")


def test_a_member_may_not_be_too_large() -> None:
    body = archive("x", b"y" * 100)
    assert public_files.unpacked(body, "x", limit=100) == b"y" * 100
    with pytest.raises(ValueError, match="larger than 99 bytes"):
        public_files.unpacked(body, "x", limit=99)


@pytest.mark.parametrize(
    ("served", "words"),
    [
        *((Answer(**one), said) for one, said in kept(__file__, "no_data")),
        (Answer(body=b"\x1f\x8b\x08"), "a gzip archive"),
        (raw(BOOLQ[:9], 99), "the line broke; try again"),
    ],
)
def test_no_data_is_refused(
    server: FileServer, tmp_path: Path, served: Answer, words: str
) -> None:
    """A status, a page, a pointer, a broken line or a bad redirect: one line, and no file."""
    server.files["/data"] = served
    message = failure(server, tmp_path)
    assert words in message
    assert "pw1" not in message
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "served",
    [
        Answer(body=b"\xef\xbb\xbf\n\n" + BOOLQ),
        raw(BOOLQ),
        Answer(status=302, headers={"Location": "/moved"}),
    ],
    ids=["blank-lines", "no-length", "moved"],
)
def test_harmless_differences_are_taken(
    server: FileServer, tmp_path: Path, served: Answer
) -> None:
    """A BOM and blank lines, a server that does not say the length, and a file that has moved."""
    server.files.update({"/data": served, "/moved": Answer(body=BOOLQ)})
    assert get(server, tmp_path).read_bytes().endswith(BOOLQ)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60))
def test_any_content_is_judged(body: bytes) -> None:
    """No bytes make the look at the content fail, and a missing column is always noticed."""
    assert public_files.load_benchmarks()["boolq"].fault_of(body, "")


def test_an_unreachable_host_is_one_line(tmp_path: Path) -> None:
    """One line without a query, as good as a password; our loopback is not for others."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x?token=secret"
        with pytest.raises(
            public_files.DownloadError, match="cannot be reached"
        ) as caught:
            main(["boolq", "--to", str(tmp_path), "--url", url])
    assert "secret" not in str(caught.value)
    public_files.check_redirect(
        "https://files.example/x", "https://mirror.example/x?token=1"
    )
    with pytest.raises(public_files.DownloadError, match="is this machine"):
        public_files.check_redirect(
            "https://files.example/x", "http://127.0.0.1:8080/x"
        )
    public_files.check_address("https://files.example/x?signature=abc#here")
    assert (
        public_files.without_query("https://u:p@files.example/x?sign=abc")
        == "https://***@files.example/x"
    )
    with pytest.raises(public_files.DownloadError, match="not an address"):
        public_files.fetch("http://127.0.0.1:1/x?\x00", "")


def test_silence_and_size_are_bounded(server: FileServer) -> None:
    """A silent server is given up; a file past the bound is refused, announced or not."""
    server.files["/data"] = Answer(action="headers", body=BOOLQ)
    with pytest.raises(public_files.DownloadError, match="no data in time; try again"):
        public_files.fetch(server.url(), "", read_s=0.3)
    for served in (Answer(body=BOOLQ), raw(BOOLQ)):
        server.files["/data"] = served
        with pytest.raises(public_files.DownloadError, match="larger than 100 bytes"):
            public_files.fetch(server.url(), "", limit=100)


@pytest.mark.skipif(os.name == "nt", reason="limits are POSIX here")
def test_a_full_disk_is_one_line(server: FileServer, tmp_path: Path) -> None:
    """The system's reason is said with the way out, no file is in place, in any folder."""
    server.files["/data"] = Answer(body=BOOLQ)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(
        public_files.DownloadError, match=r"file.*cannot be written or read \(.*--to"
    ):
        get(server, tmp_path / "file" / "below")
    (tmp_path / "file").unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (300, limits[1])
    )  # as good as a full disk
    try:
        message = failure(server, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert message.endswith("(File too large); mend that, or choose another --to")
    assert not any(tmp_path.iterdir())


def test_the_tables_are_as_the_publishers_have_it() -> None:
    """Addresses, files, licences, pins and slices are there; the data's folder is ignored."""
    ignored = (CASES.parent / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"{public_files.DATA_FOLDER.parts[0]}/" in ignored
    benchmarks, sets = public_files.load_benchmarks(), public_files.load_labelled_sets()
    exams = {f"exams-{language}" for language in ("bg", "pl", "hu")}
    belebele = {f"belebele-{language}" for language in ("bg", "pl", "hu", "en")}
    include = {f"include-{language}" for language in ("be", "bg", "hu", "pl")}
    global_mmlu = {f"global-mmlu-{language}" for language in ("en", "pl")}
    facts = {"simpleqa", "simpleqa-verified", "chinese-simpleqa", "husimpleqa", "boolq"}
    labelled_names = {"evouna-nq", "evouna-tq", "nq301", "mohler"}
    choices = exams | belebele | include | global_mmlu
    assert benchmarks.keys() == facts | choices
    assert sets.keys() == labelled_names
    parts = [file for one in sets.values() for file in (one, one.golds) if file]
    assert all(any(len(part) == 40 for part in one.url.split("/")) for one in parts)
    assert len(benchmarks["simpleqa"].sha256) == 64
    files = [*benchmarks.values(), *parts]
    assert len({one.file for one in files}) == len(files)
    for one in files:
        assert one.url.startswith("https://")
        public_files.check_address(one.url)
        assert one.licence
        assert one.hint
    for one in benchmarks.values():
        if one.kind:
            assert one.kind == "choice"
            continue
        dataset = load_dataset(CASES / one.dataset / "dataset.yaml")
        assert with_items(dataset, one.language, Path(one.file)).slices[one.language]
    for labelled in sets.values():
        Scale.parse(labelled.scale or "0:1")
