"""Who answers and who judges: ``--model`` and ``--judge`` read, checked and connected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cases.dataset import Plan
from evaluators.answerers import RECORDED
from evaluators.core import Model, UsageError
from evaluators.judge_spec import PanelSpec, parse_judges
from evaluators.judges.adjudicated import FILE, Adjudications
from evaluators.judges.factory import JudgeFactory, address, check_panel, resolve_judges
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.keys import require_key
from evaluators.models.spec import Spec, parse
from evaluators.text import digest
from reports.plugin.options import RunOptions

if TYPE_CHECKING:
    from reports.run.baseline import Baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """Who answers and who judges."""

    model: Model | None
    """None means the recorded answers."""
    judges: JudgeFactory
    models: Mapping[str, Model]
    """All connections, by SPEC."""
    specs: Mapping[str, Spec]


def judges_of(options: RunOptions) -> PanelSpec:
    """Return the judges that the options name, unchecked."""
    return parse_judges(options.judges)


def connect_models(options: RunOptions, *, needs_key: bool) -> RunModels:
    """Return the models and judges of a run, each model connected once.

    ``needs_key`` False reads no key, for a run that sends nothing. Raises UsageError for an unknown
    SPEC, a judge of its own answers, a judge named twice, an option without effect, or an unset
    key.
    """
    judges = judges_of(options)
    answers = options.model != RECORDED
    catalogue = load_catalogue(own=options.models) if answers or judges.models() else {}
    answering = parse(options.model, catalogue) if answers else None
    judging = resolve_judges(judges, catalogue)
    _check(options, answering, judges, judging)
    check_panel(judges, judging)
    specs = {spec.text: spec for spec in (*([answering] if answering else []), *judging.values())}
    models = {
        text: connect(spec, require_key(spec, options.key_names) if needs_key else None)
        for text, spec in specs.items()
    }
    factory = JudgeFactory(
        spec=judges,
        models={text: models[text] for text in judging},
        specs=judging,
        seed=options.choice.seed,
    )
    return RunModels(
        model=models[answering.text] if answering else None,
        judges=factory,
        models=models,
        specs=specs,
    )


def _check(
    options: RunOptions, answering: Spec | None, judges: PanelSpec, judging: dict[str, Spec]
) -> None:
    if answering is None and options.choice.prompts:
        raise UsageError("--prompt: the recorded answers need no prompt; name a --model")
    for one in judges.members:
        same = answering and one.model and address(answering) == address(judging[one.model])
        if same and not options.allow_self_judge:
            raise UsageError(
                f"--judge {one.name} is the model under test; name another judge, "
                "or give --allow-self-judge"
            )


def adjudications_of(options: RunOptions, plan: Plan) -> Adjudications:
    """Return the run's verdicts by people.

    Raises UsageError if a file that was named is missing, or one cannot be read.
    """
    folders = dict.fromkeys(dataset.folder for dataset in plan.datasets)
    there = options.adjudications or any((folder / FILE).is_file() for folder in folders)
    if options.adjudications_off or not there:
        return {}
    from cases.review.adjudications import (  # noqa: PLC0415  # brings the forms for people along
        load_adjudications,
        load_folders,
    )

    if options.adjudications is not None:
        return load_adjudications(options.adjudications)
    return load_folders(folders)


def provenance_of(adjudications: Adjudications) -> dict[str, object]:
    """Return the report's entry for these verdicts: how many, and a hash of all."""
    if not adjudications:
        return {}
    labels = {key: one.label for key, one in adjudications.items()}
    return {"adjudications": {"verdicts": len(labels), "sha256": digest(labels)}}


def earlier_runs(options: RunOptions) -> "tuple[Baseline | None, Baseline | None]":
    """Return the baseline and the anchor. Raises UsageError if one cannot be read."""
    if options.baseline is None and options.anchor is None:
        return None, None
    from reports.run.baseline import load_baseline  # noqa: PLC0415  # not at the start of every run

    baseline = load_baseline(options.baseline) if options.baseline else None
    return baseline, load_baseline(options.anchor, "anchor") if options.anchor else None
