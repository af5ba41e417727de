"""Who answers and who judges in a run: SPECs of the command line become connected models."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from qagate.evaluators.core import (
    RECORDED,
    Model,
    PanelSpec,
    UsageError,
    parse_judges,
)
from qagate.evaluators.judges.factory import (
    JudgeFactory,
    check_panel,
    is_same_model,
    resolve_judges,
)
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import load_catalogue, replaced_entries
from qagate.evaluators.models.keys import require_key
from qagate.evaluators.models.spec import Spec, parse
from qagate.reports.plugin.options import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """Who answers and who judges."""

    model: Model | None
    """None means the recorded answers."""
    judges: JudgeFactory
    models: Mapping[str, Model]
    """All connections, by SPEC."""
    specs: Mapping[str, Spec]
    replaced: str
    """Which bundled names ``--models`` has too; empty without any."""


def connect_models(options: RunOptions, *, needs_key: bool) -> RunModels:
    """Return a run's models and judges; ``needs_key`` False reads no key. Raises UsageError."""
    judges = parse_judges(options.judges)
    catalogue = _catalogue(options, judges)
    answering = None
    if options.model != RECORDED:
        answering = parse(options.model, catalogue)
    judging = resolve_judges(judges, catalogue)
    _check_prompts(options, answering)
    _check_judges(options, answering, judges, judging)
    check_panel(judges, judging)

    specs: dict[str, Spec] = {}
    if answering:
        specs[answering.text] = answering
    for spec in judging.values():
        specs[spec.text] = spec
    models: dict[str, Model] = {}
    for text, spec in specs.items():
        key = require_key(spec, options.key_names) if needs_key else None
        models[text] = connect(spec, key)
    factory = JudgeFactory(
        spec=judges,
        models={text: models[text] for text in judging},
        specs=judging,
    )
    return RunModels(
        model=models[answering.text] if answering else None,
        judges=factory,
        models=models,
        specs=specs,
        replaced=replaced_entries(options.models),
    )


def _catalogue(options: RunOptions, judges: PanelSpec) -> Mapping[str, Spec]:
    """Return the models by name, with this shard's part of their limits.

    A user's file is read, and so checked, even where nothing of it is needed.
    """
    asks_models = options.model != RECORDED or judges.models()
    if not asks_models and not options.models:
        return {}
    catalogue = load_catalogue(own=options.models)
    shard = options.choice.shard
    if shard is None:
        return catalogue

    def share_of(limit: int | None) -> int | None:
        """Return this shard's share; None, which is no limit, stays None."""
        return None if limit is None else shard.share(limit, options.shards_at_once)

    shares = {}
    for name, spec in catalogue.items():
        shares[name] = replace(
            spec,
            concurrency=share_of(spec.concurrency),
            rpm=share_of(spec.rpm),
            tpm=share_of(spec.tpm),
        )
    return shares


def _check_prompts(options: RunOptions, answering: Spec | None) -> None:
    if answering is None and options.choice.prompts:
        raise UsageError(
            "--prompt: the recorded answers need no prompt; name a --model"
        )


def _check_judges(
    options: RunOptions,
    answering: Spec | None,
    judges: PanelSpec,
    judging: Mapping[str, Spec],
) -> None:
    """Raise UsageError if the model under test judges itself, and nobody allowed that."""
    if answering is None or options.allow_self_judge:
        return
    for member in judges.members:
        if member.model and is_same_model(answering, judging[member.model]):
            raise UsageError(
                f"--judge {member.name} is the model under test; "
                "name another judge, or give --allow-self-judge"
            )
