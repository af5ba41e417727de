"""``--recorded``: a run over answers that stand in a file of their own."""

from tests.support.projects import Project


def test_answers_of_a_file_are_judged_and_a_missing_one_is_an_error(
    project: Project,
) -> None:
    """What stands with the items is another model's answer, and is not taken."""
    project.dataset("capital", {"en": ["Sofia", "Sofia", "Sofia"]})
    rows = project.path / "qa" / "capital" / "en.jsonl"
    ids = [line.partition('"id": "')[2].partition('"')[0] for line in rows.open()]
    project.write("answers.csv", f"id,output\n{ids[0]},Sofia\n{ids[1]},Ruse\n")
    project.run_in_process("qa", "--recorded", "capital:en=answers.csv")
    answers = {record["id"]: record["answer"] for record in project.records()}
    assert answers == {ids[0]: "Sofia", ids[1]: "Ruse", ids[2]: None}
    assert project.outcomes() == {"passed": 1, "failed": 1, "error": 1}
    slices = project.report()["provenance"]["slices"]
    assert slices["capital:en"]["recorded_file"] == "answers.csv"
