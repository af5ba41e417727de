"""Runs with ``--limit``: a sample that nobody pinned beforehand decides nothing."""

import pytest

from tests.support.projects import RIGHT, WRONG, Project, graded

PINNED = "sample: {limit: 1, seed: 4}\n"
YAML = graded({"en": "correct: {min: 0.8}"})
LUCKY = 8  # the item, of the twenty, that --limit 1 --seed 4 draws


def prepared(project: Project, pinned: str = "") -> Project:
    """Return a project where one answer of twenty is right: the one that seed 4 draws."""
    answers = [RIGHT if number == LUCKY else WRONG for number in range(1, 21)]
    project.dataset("capital", {"en": answers}, YAML + pinned)
    return project


def test_a_lucky_sample_does_not_turn_fail_into_pass(project: Project) -> None:
    """All items FAIL; the one item that happens to be right ends 6, and says how to pin it."""
    prepared(project)
    assert project.run_in_process("qa").ret == 1
    sampled = project.run_in_process("--limit", "1", "--seed", "4", "qa")
    assert sampled.ret == 6
    assert "correct (run all 20 items)" in sampled.outlines[-1]
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert gate["reason"] == (
        "1 of 20 items, seed 4; pin `sample: {limit: 1, seed: 4}` in the data set or gates file "
        "to let them decide, or run all"
    )


@pytest.mark.parametrize("place", ["the data set", "a gates file"])
def test_the_pinned_sample_decides(project: Project, place: str) -> None:
    """It alone: another seed or another limit ends 6, and without --limit all items decide."""
    prepared(project, PINNED if place == "the data set" else "")
    gates = project.write("pinned.yaml", f"capital: {{{PINNED.strip()}}}\n")
    given = () if place == "the data set" else (f"--gates={gates}",)

    def code(*options: str) -> int:
        return int(project.run_in_process(*given, *options, "qa").ret)

    assert code("--limit", "1", "--seed", "4") == 0
    assert code("--limit", "1", "--seed", "5") == 6
    assert code("--limit", "2", "--seed", "4") == 6
    assert code() == 1
    assert project.only("slices")["sample"] is None


def test_a_limit_that_leaves_nothing_out_is_no_sample(project: Project) -> None:
    """Just as many items as there are, or more: the whole slice decides."""
    prepared(project)
    for limit in ("20", "500"):
        assert project.run_in_process("--limit", limit, "qa").ret == 1
        assert project.only("slices")["sample"] is None


@pytest.mark.parametrize("pinned", ["", PINNED])
def test_every_report_names_the_sample(project: Project, pinned: str) -> None:
    """Terminal, summary.md, gates.xml, report.html and run.json, whether it decides or not."""
    prepared(project, pinned)
    result = project.run_in_process("--limit", "1", "--seed", "4", "qa")
    words = "1 of 20, seed 4"
    result.stdout.fnmatch_lines([f"WARNING: only a sample was asked: capital:en {words}*"])
    for name in ("summary.md", "gates.xml", "report.html"):
        assert words in project.text(name), name
    found = project.only("slices")["sample"]
    assert found == {"items": 1, "of": 20, "seed": 4, "pinned": bool(pinned)}


def test_repeats_do_not_make_a_sample_larger(project: Project) -> None:
    """The sample counts items, however often each is asked."""
    prepared(project)
    project.run_in_process("--limit", "2", "--seed", "4", "--repeats", "3", "qa")
    found = project.only("slices")
    assert (found["sample"]["items"], found["sample"]["of"], found["whole"]) == (2, 20, 6)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_items_decide_nothing(project: Project, workers: int) -> None:
    """--limit first:N asks the first rows, with all their repeats; neither a pin nor luck helps."""
    project.dataset(
        "capital", {"en": [RIGHT, RIGHT, WRONG]}, YAML + "sample: {limit: 2, seed: 0}\n"
    )
    result = project.run_with(workers, "--limit", "first:2", "--repeats", "2", "qa")
    assert result.ret == 6
    keys = ["capital-en-q1", "capital-en-q1~r2", "capital-en-q2", "capital-en-q2~r2"]
    assert [one["key"] for one in project.records()] == keys
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert "only a part of the slice was run" in gate["reason"]
