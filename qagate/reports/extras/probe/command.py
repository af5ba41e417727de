"""The command: options in, findings and an entry for a models file out."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import read_place
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import NAME, load_catalogue
from qagate.evaluators.models.keys import KEY_ENV, read_key_names, require_key
from qagate.evaluators.models.spec import MODELS_FILE, Spec, parse
from qagate.evaluators.models.versions import version_of
from qagate.evaluators.output import say
from qagate.evaluators.runtime.caller import Caller, CallSettings
from qagate.evaluators.runtime.session import CallSession
from qagate.evaluators.text import PLACEHOLDER, Key
from qagate.reports.extras.probe.probing import MAX_TOKENS, Probed, probe

DONE = 0


def main(argv: Sequence[str]) -> int:
    """Probe a model, print what was found, and return 0. Raises UsageError or CallError."""
    options = _parser().parse_args(argv)
    spec = parse(options.spec, load_catalogue(own=options.models))
    if spec.function or spec.http:
        raise UsageError(
            f"{spec.text}: a function or service of yours is asked as you declare it, and "
            "cannot be probed; name a model of a provider"
        )
    key = require_key(spec, read_key_names(options.key_env))
    model = connect(spec, key)
    settings = CallSettings(ledger=options.ledger, fresh=options.fresh)
    session = CallSession({spec.text: model}, {spec.text: spec}, settings)

    async def work(caller: Caller) -> Probed:
        if options.fresh:
            caller.negotiations.forget(model)
        return await probe(caller, model)

    probed = session.run(work)
    findings = [
        f"  {name:<18}{finding}" for name, finding in _findings(probed, spec, key)
    ]
    say(
        sys.stdout,
        spec.text,
        *findings,
        "",
        "An entry for a models file (--models FILE):",
        "",
        *_entry(probed, spec),
    )
    return DONE


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="qagate probe",
        description="Find out by three short calls what a model's server takes, and print its "
        "entry for a models file. The calls are kept in the ledger, and what was found serves "
        "later runs.",
        epilog="exit codes: 0 done, 1 the model does not answer, 4 wrong arguments",
    )
    add = parser.add_argument
    add("spec", metavar="SPEC", help="a model, as --model and --judge take it")
    add("--key-env", action="append", default=[], metavar="URL=NAME", help=KEY_ENV)
    add("--models", type=Path, metavar="FILE", help=MODELS_FILE)
    ledger = Path(".qa/ledger.sqlite3")
    text = "default: %(default)s"
    add("--ledger", type=read_place, default=ledger, metavar="PLACE", help=text)
    text = "ask again under this name, and forget what was known of the model"
    add("--fresh", default="", metavar="NAME", help=text)
    return parser


def _findings(probed: Probed, spec: Spec, key: Key) -> Iterator[tuple[str, str]]:
    """Yield what was found, each with its name."""
    reply, negotiated = probed.reply, probed.negotiated
    yield "answers as", reply.model or "(its replies carry no name)"
    finish = reply.finish or "none"
    if probed.stops:
        yield "stops", f"yes (finish: {finish})"
    else:
        yield "stops", f"no: cut after {MAX_TOKENS} tokens (finish: {finish})"
    usage = f"{reply.input_tokens} tokens in, {reply.output_tokens} out"
    if not reply.input_tokens:
        usage = "tokens are not counted"
    yield "usage", usage
    yield "system message", "yes" if negotiated.takes_system else "no"
    is_random = "temperature" in negotiated.omit
    yield "temperature", "no" if is_random else "yes"
    yield "token limit", negotiated.max_tokens_as or spec.max_tokens_as
    yield "function calls", _yes_or_no(negotiated.takes_calls, probed)
    yield "JSON by a schema", _yes_or_no(negotiated.takes_schema, probed)
    sent_key = "none was sent, and none is wanted"
    if key.reveal() != PLACEHOLDER:
        sent_key = "sent"
    yield "key", sent_key


def _yes_or_no(is_taken: bool, probed: Probed) -> str:
    if probed.refusal:
        return f"unknown: {probed.refusal}"
    return "yes" if is_taken else "no"


def _entry(probed: Probed, spec: Spec) -> Iterator[str]:
    """Yield the lines of the model's entry. What it cannot say is negotiated in each run."""
    negotiated = probed.negotiated
    name = re.sub(r"[^A-Za-z0-9._-]", "-", spec.name)
    if not NAME.fullmatch(name):
        name = f"m-{name}"
    quoted = partial(json.dumps, ensure_ascii=False)
    yield f"{name}:"
    yield f"  provider: {spec.provider}"
    yield f"  model: {quoted(spec.name)}"
    version = version_of(probed.reply.model, spec.name)
    if version:
        yield f"  # a dated release of it answered: {quoted(probed.reply.model)}"
    if not spec.is_at_provider:
        yield f"  base_url: {quoted(spec.base_url)}"
    if spec.api_key_env and not spec.is_at_provider:
        yield f"  api_key_env: {spec.api_key_env}"
    if spec.parameters:
        yield f"  parameters: {quoted(spec.parameters)}"
    elif not probed.stops:
        yield "  parameters: {max_tokens: 1024}"
    omit = list(dict.fromkeys((*spec.omit, *negotiated.omit)))
    if omit:
        yield f"  omit: [{', '.join(omit)}]"
    limit = negotiated.max_tokens_as or spec.max_tokens_as
    if limit != spec.adapter.max_tokens_as:
        yield f"  max_tokens_as: {limit}"
