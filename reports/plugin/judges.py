"""Who answers and who judges: ``--model`` and ``--judge`` read, checked and connected."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from cases.tasks import RULES, Cascade, Judging, Panel, Rules
from evaluators.answerers import RECORDED
from evaluators.core import Model, UsageError
from evaluators.judges.naming import BEFORE, split
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.secrets import require_key
from evaluators.models.spec import Spec, parse
from reports.plugin.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """Who answers and who judges. ``model`` None means the recorded answers.

    ``models`` are all connections, one a model, and ``specs`` what they are connected to.
    """

    model: Model | None
    judge: Judging
    models: tuple[Model, ...]
    specs: tuple[Spec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """One ``--judge``, taken apart: rules, a model, or rules before a model."""

    option: str
    text: str
    rules: Rules | None = None
    spec: Spec | None = None


def connect_models(options: Options, *, needs_key: bool) -> RunModels:
    """Return the parties of a run, each model connected once.

    ``needs_key`` False leaves keys alone, for a run that sends nothing. Raises UsageError for a
    SPEC that names nothing, a judge that would judge its own answers, a judge named twice, an
    option that would do nothing, or a key that is not set.
    """
    answering, judges, breaker = _named(options)
    _check(options, answering, [*judges, *([breaker] if breaker else [])])
    _check_panel(options, judges)
    every = [answering, *(one.spec for one in (*judges, breaker) if one)]
    specs = {spec.text: spec for spec in every if spec}
    models = {text: _connect(spec, needs_key=needs_key) for text, spec in specs.items()}
    members = tuple(_judging(one, models, options) for one in judges)
    judge = members[0]
    if len(members) > 1:
        simple = tuple(one for one in members if not isinstance(one, Cascade | Panel))
        tie_breaker = _simple(breaker, models) if breaker else None
        judge = Panel(members=simple, tie_breaker=tie_breaker)
    return RunModels(
        model=models[answering.text] if answering else None,
        judge=judge,
        models=tuple(models.values()),
        specs=tuple(specs.values()),
    )


def _named(options: Options) -> tuple[Spec | None, list[_Named], _Named | None]:
    breakers = [options.tie_breaker] if options.tie_breaker else []
    words = {options.model, *options.judges, *breakers}
    catalogue = load_catalogue() if words - {RECORDED, *RULES} else {}
    answering = None if options.model == RECORDED else parse(options.model, catalogue)
    judges = [_judge("judge", text, catalogue) for text in options.judges]
    breaker = [_judge("tie-breaker", text, catalogue) for text in breakers]
    return answering, judges, breaker[0] if breaker else None


def _judge(option: str, text: str, catalogue: Mapping[str, Spec]) -> _Named:
    if text in RULES:
        return _Named(option=option, text=text, rules=RULES[text])
    rules, model = split(text, RULES)
    try:
        spec = parse(model, catalogue)
    except UsageError as problem:
        offline = ", ".join(RULES)
        msg = f"--{option}: {problem}; offline: {offline}; before a model: {offline}{BEFORE}SPEC"
        raise UsageError(msg) from None
    return _Named(option=option, text=text, rules=RULES.get(rules), spec=spec)


def _check(options: Options, answering: Spec | None, judges: Sequence[_Named]) -> None:
    if answering is None and options.choice.prompts:
        msg = "--prompt: the recorded answers need no prompt; name a --model"
        raise UsageError(msg)
    for one in judges:
        same = answering and one.spec and _address(answering) == _address(one.spec)
        if same and not options.allow_self_judge:
            msg = (
                f"--{one.option} {one.text} is the model under test; name another judge, "
                "or give --allow-self-judge"
            )
            raise UsageError(msg)
    if options.audit is not None and not any(one.rules and one.spec for one in judges):
        name = next(iter(RULES))
        msg = f"--audit: no rules stand before a model; name --judge {name}{BEFORE}SPEC"
        raise UsageError(msg)


def _check_panel(options: Options, judges: Sequence[_Named]) -> None:
    if len(judges) == 1:
        if options.tie_breaker:
            msg = "--tie-breaker: one judge cannot tie; name a panel (--judge A --judge B)"
            raise UsageError(msg)
        return
    for one in judges:
        if one.rules and one.spec:
            msg = (
                f"--judge {one.text}: rules before a model are no member of a panel; name "
                f"{one.spec.text} alone, or the rules as a judge of their own"
            )
            raise UsageError(msg)
    for one, two in combinations(judges, 2):
        if _who(one) == _who(two):
            msg = f"--judge {two.text}: the same judge as --judge {one.text}; name it once"
            raise UsageError(msg)


def _who(one: _Named) -> object:
    return _address(one.spec) if one.spec else one.text


def _address(spec: Spec) -> tuple[str, str, str]:
    return spec.provider, spec.base_url, spec.name


def _judging(one: _Named, models: Mapping[str, Model], options: Options) -> Judging:
    if one.rules and one.spec:
        share = {} if options.audit is None else {"audit": options.audit}
        model = models[one.spec.text]
        return Cascade(rules=one.rules, model=model, seed=options.choice.seed, **share)
    return _simple(one, models)


def _simple(one: _Named, models: Mapping[str, Model]) -> Model | Rules:
    if one.spec:
        return models[one.spec.text]
    return one.rules or RULES[one.text]


def _connect(spec: Spec, *, needs_key: bool) -> Model:
    return connect(spec, require_key(spec, os.environ) if needs_key else None)
