"""Claims about what a run was asked with: versions, hashes, and datasets as declared."""

import json
from dataclasses import replace
from importlib.metadata import version

import pytest

from cases.dataset import Plan, PlannedItem, Selection, Threshold
from evaluators.core import Outcome
from reports.run import provenance as made
from reports.run.provenance import OutcomeFacts, dump_datasets, load_datasets
from tests.support.made_runs import RUBRIC, facts_dataset, graded_slice
from tests.support.scripted import make_case

DROP = Threshold(measure="drop", max=0.1, evidence="confident")
POOLED = replace(DROP, pool=True)


def test_a_run_names_what_could_change_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models as returned, data, rubric and package versions; only of slices that were run."""
    monkeypatch.setattr(made, "PACKAGES", ("pytest", "no-such-package"))
    slices = {one.language: one for one in (graded_slice("en"), graded_slice("bg"))}
    items = {
        f"k{n}": PlannedItem(key=f"k{n}", slice=one, case=make_case(n), repeat=1)
        for n, one in enumerate(slices.values())
    }
    hashes = {"facts:en": "ab", "facts:bg": "cd"}
    plan = Plan(datasets=(facts_dataset(*slices.values()),), items=items, hashes=hashes)
    outcome = Outcome(key="k0", state="passed", model="new-1", judge="judge-1")
    facts = OutcomeFacts.of([(items["k0"], outcome)])
    found = made.provenance(plan, Selection(seed=7), facts, {"model": {"name": "new"}})
    assert found["models_returned"] == ["new-1"]
    assert found["judges_returned"] == ["judge-1"]
    assert found["slices"] == {
        "facts:en": {
            "file": "en.csv",
            "data_sha256": "ab",
            "prompt": "",
            "rubric": RUBRIC.version,
            "pass_bar": None,
            "metrics": [],
            "checks": [],
        }
    }
    assert (found["model"], found["seed"], found["limit"]) == ({"name": "new"}, 7, None)
    assert found["packages"] == {"pytest": version("pytest"), "no-such-package": "not installed"}


def test_what_was_declared_comes_back() -> None:
    """Rules, floors, bars and what the rubric is: all that gates need, without paths and texts."""
    one = graded_slice("en", DROP, floor={"kappa": 0.5}, pass_bar=7, penalty=2.0, by=("topic",))
    dataset = facts_dataset(one, pooled=(POOLED,), holm=True, require_calibration=True)
    (found,) = load_datasets(json.loads(json.dumps(dump_datasets([dataset]))))
    assert (found.pooled, found.holm, found.require_calibration) == ((POOLED,), True, True)
    assert found.slices == {"en": one}
    bare = facts_dataset(graded_slice("en", rubric=None))
    assert load_datasets(dump_datasets([bare]))[0].slices["en"].rubric is None
