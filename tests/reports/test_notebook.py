"""Claims about a run in a notebook: one tidy row an item, and the four questions people ask."""

from pathlib import Path

import pandas as pd
import pytest

import reports
from evaluators.core import UsageError
from reports.run.notebook import Run
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of, written

BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def frame_of(new: str = "ccie", old: str = "") -> pd.DataFrame:
    """Return the frame of a run in two languages, beside a baseline where one is given."""
    baseline = run_of([*answered(old), *answered(old, "bg")], BOTH) if old else None
    records = [*answered(new), *answered("i" * len(new), "bg")]
    return Run(report=run_of(records, BOTH, baseline=baseline)).frame()


def test_a_run_is_loaded_from_its_folder(tmp_path: Path) -> None:
    """From the report folder or run.json, by ``reports.load``."""
    folder = written(run_of(answered("cci")), tmp_path)
    assert len(reports.load(str(folder)).frame()) == 3
    assert reports.load(folder / "run.json").report.model == "openai:new"
    with pytest.raises(UsageError, match="nowhere"):
        reports.load(tmp_path / "nowhere")


def test_accuracy_by_language() -> None:
    """Languages in declared order; an item without a grade counts neither way."""
    shares = frame_of().groupby("language", observed=True)["passed"].mean()
    assert shares.to_dict() == {"en": pytest.approx(2 / 3), "bg": 0.0}
    assert list(shares.index) == ["en", "bg"]


def test_worst_topics() -> None:
    """Metadata fields are columns."""
    frame = frame_of("cicicici")
    shares = frame[frame["language"] == "en"].groupby("topic")["passed"].mean().sort_values()
    assert shares.to_dict() == {"Art": 0.0, "Sport": 1.0}


def test_flips_against_a_baseline() -> None:
    """Every item has a flip, in a fixed order; old grade and answer stand beside the new."""
    frame = frame_of("cinc", "ccii")
    english = frame[frame["language"] == "en"]
    assert english["flip"].tolist() == ["same", "broke", "same", "fixed"]
    assert english["old_grade"].tolist() == ["CORRECT", "CORRECT", "INCORRECT", "INCORRECT"]
    assert english["old_answer"].isna().tolist() == [True, False, False, False]
    assert list(frame["flip"].cat.categories[:3]) == ["fixed", "broke", "same"]


def test_what_the_baseline_lacks_has_no_old_grade() -> None:
    """A new item is new, and without a baseline there is no flip at all."""
    frame = frame_of("cc", "c")
    english = frame[frame["language"] == "en"]
    assert english["flip"].tolist() == ["same", "new"]
    assert english["old_grade"].isna().tolist() == [False, True]
    assert frame_of()["flip"].isna().all()


def test_cost() -> None:
    """Tokens, cost and seconds are numbers."""
    grouped = frame_of().groupby("language", observed=True)
    assert grouped["cost"].sum().to_dict() == {
        "en": pytest.approx(0.004),
        "bg": pytest.approx(0.004),
    }
    assert grouped["tokens"].sum().to_dict() == {"en": 40, "bg": 40}


def test_rows_are_tidy() -> None:
    """One an item by its key; grades and outcomes in order; errors by kind."""
    frame = frame_of()
    assert frame.index.name == "key"
    assert frame.index.is_unique
    assert frame["outcome"].cat.ordered
    assert frame.loc["facts-en-i3", "error_kind"] == "timeout"
    assert frame["passed"].isna().sum() == 1
    assert frame["grade"].cat.categories.tolist() == ["CORRECT", "INCORRECT"]
    assert str(frame["rating"].dtype) == "Int64"


def test_metadata_never_hides_a_column() -> None:
    """A field named like a column of ours is set apart; what one item lacks is missing there."""
    records = [*answered("c", metadata={"kind": "x", "key": "y"}), *answered("cc")[1:]]
    frame = Run(report=run_of(records)).frame()
    assert frame["kind"].tolist() == ["graded", "graded"]
    assert frame["meta_kind"].tolist()[0] == "x"
    assert frame["meta_key"].isna().tolist() == [False, True]


def test_lone_surrogates_are_escaped() -> None:
    """A frame can be shown and saved whatever the model wrote."""
    frame = Run(report=run_of(answered("c", answer="a\ud83d"))).frame()
    assert frame["answer"].tolist() == ["a\\ud83d"]
    str(frame).encode()
