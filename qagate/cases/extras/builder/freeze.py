"""The last step: a set, half yes and half no, chosen by seed; its dataset folder and datasheet."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from qagate.cases.config import NAME, load_dataset
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.extras.builder.recipe import COUNT, Recipe
from qagate.cases.extras.builder.steps import STEPS, BuildStep, ModelCalls
from qagate.cases.extras.builder.validation import (
    INTERVAL,
    KNOWN,
    PROMPTS,
    agreed,
    is_contested,
    verdicts_on,
)
from qagate.cases.extras.builder.work_folder import (
    BuildError,
    DraftItem,
    Items,
    Values,
    kept,
    sha256,
)
from qagate.cases.extras.review.sheet import filled_template, visible
from qagate.evaluators.core import NO, YES, UsageError
from qagate.evaluators.output import write_texts
from qagate.evaluators.statistics.agreement import Agreement
from qagate.evaluators.text import shown

README = "README.md"
TEMPLATES = Path(__file__).parent / "templates"
SURPLUS = ("surplus", "more than wanted of its source")
FileTexts = Mapping[Path, str]
Row = tuple[str, ...]


def balanced(
    items: Items, sizes: Mapping[str, int], shares: Mapping[str, float], seed: int
) -> list[DraftItem]:
    """Return the items; those that are not chosen are dropped with the reason.

    From every source as many yes as no are taken, at most ``sizes`` items of it: reviewed ones
    first, otherwise by a hash of seed and id; one of each address. ``shares`` (1 together) names
    the splits: each is half yes and half no in every source.
    """

    def rank(item: DraftItem) -> str:
        return sha256(f"freeze:{seed}:{item.id}")

    seen, single = dict[str, str](), list[DraftItem]()
    for item in items:
        first = seen.setdefault(url := item.origin.url or item.id, item.id) == item.id
        single.append(item if first else item.dropped("same_article", url))
    left = sorted(kept(single), key=lambda item: (not verdicts_on(item), rank(item)))
    taken, split_of, pairs = (
        Counter[str](),
        dict[str, str](),
        list[tuple[DraftItem, DraftItem]](),
    )
    for name in sorted({item.origin.group for item in left}):
        some = [item for item in left if item.origin.group == name]
        yes, no = ([one for one in some if one.answer == word] for word in (YES, NO))
        fitting = [*zip(yes, no, strict=False)][: sizes[name] // 2]
        pairs += sorted(fitting, key=lambda pair: rank(pair[0]))
    for number, pair in enumerate(pairs, 1):
        # The split furthest behind its share so far, so that none is off by a whole pair.
        behind = {
            name: (share * number - taken[name], share)
            for name, share in shares.items()
        }
        split = max(behind, key=behind.__getitem__, default="")
        taken[split] += 1
        split_of |= dict.fromkeys((item.id for item in pair), split)
    answers = Counter((item.origin.group, item.answer) for item in left)
    for at, item in enumerate(single):
        group, other = item.origin.group, NO if item.answer == YES else YES
        if item.id in split_of:
            single[at] = replace(item, split=split_of[item.id])
        elif item.state == "kept":
            few = answers[group, other] < answers[group, item.answer]
            why = ("balance", f"not enough {other} in {group}") if few else SURPLUS
            single[at] = item.dropped(*why)
    return single


def data_files(folder: Path, recipe: Recipe, items: Iterable[DraftItem]) -> FileTexts:
    """Return the data file ``<language>.jsonl`` and one for each split: rows by id, with texts."""
    lines: dict[str, list[str]] = {"": []}
    for item in sorted(items, key=lambda one: one.id):
        row: dict[str, object] = {
            "id": item.id,
            "passage": item.paragraph,
            "question": item.question,
            "answer": recipe.labels[item.answer],
            "question_type": recipe.type_of(item.question),
            "split": item.split,
            "source": item.origin.group,
            "title": item.origin.title,
            "url": item.origin.url,
            "licence": item.origin.licence,
            "revision": item.origin.revision,
            "generator": public(item.generator.get("model")),
            "validator": public(item.validator.get("model")),
            "reviewers": len(verdicts_on(item)),
            "corrected": "answer_before" in item.review,
        }
        row = {key: value for key, value in row.items() if value not in ("", None)}
        for split in {"", item.split}:
            lines.setdefault(split, []).append(
                f"{json.dumps(row, ensure_ascii=False)}\n"
            )
    files = {}
    for split in sorted(lines):
        name = f"{recipe.language}.{split}" if split else recipe.language
        files[folder / f"{name}.jsonl"] = "".join(lines[split])
    return files


def missing_files(
    folder: Path, recipe: Recipe, shares: Values, splits: Iterable[str]
) -> FileTexts:
    """Return what the folder lacks: prompt, module, settings; the best of ``shares`` is its bar."""
    language, labels = recipe.language, recipe.labels
    prompt, name = f"answer.{language}.yaml", dataset_name(folder)
    bundled = PROMPTS / prompt
    settings = filled_template(
        TEMPLATES / "dataset.yaml.j2",
        language=language,
        prompt=prompt if bundled.is_file() or (folder / prompt).is_file() else "",
        yes=json.dumps(labels[YES], ensure_ascii=False),
        no=json.dumps(labels[NO], ensure_ascii=False),
        bar=min(0.99, math.ceil(100 * max(shares.values())) / 100),
        majority=shares["majority"],
        splits=list(splits),
        name=name,
    )
    files = {folder / prompt: bundled.read_text("utf-8")} if bundled.is_file() else {}
    files[folder / f"test_{name}.py"] = filled_template(
        TEMPLATES / "test_module.py.j2", name=name
    )
    files[folder / DATASET_FILE] = settings  # last: it makes the folder a dataset
    return {path: text for path, text in files.items() if not path.exists()}


def dataset_name(folder: Path) -> str:
    """Return the name of the dataset in a folder. Raises UsageError if it cannot be one."""
    name = folder.resolve().name
    if not NAME.fullmatch(name):
        what = f"build: --to {shown(str(folder))}: names the dataset: letters, digits and _ only"
        raise UsageError(what)
    return name


def changed(files: FileTexts) -> FileTexts:
    """Return the files that do not exist yet. Raises UsageError if one has other content."""
    found = {path: text for path, text in files.items() if not path.exists()}
    for path, text in files.items():
        if path not in found and path.read_bytes() != text.encode():
            what = f"{path}: is there already, with other content; delete it, or name another --to"
            raise UsageError(what)
    return found


def readme(folder: Path, text: str, language: str) -> Path:
    """Return the datasheet's path: README.md, unless that is not the datasheet of this set."""
    path = folder / README
    title = text.split("\n", 1)[0]
    theirs = (
        path.is_file() and path.read_text("utf-8", "replace").split("\n", 1)[0] != title
    )
    return folder / f"README.{language}.md" if theirs else path


def datasheet(
    items: Items,
    options: Mapping[str, Values],
    report: Values,
    *,
    name: str,
    language: str,
    labels: Mapping[str, str],
    agreement: Iterable[Agreement],
    files: Mapping[str, str],
) -> str:
    """Return the datasheet as Markdown, from the ``options`` of each step and its report.

    ``files`` has the SHA-256 of each data file by its name.
    """
    sample, probed = options.get("sample", {}), options.get("probe", {}).get("probe")
    origins = [item.origin for item in items]
    balance = Counter((item.origin.group, item.split, item.answer) for item in items)
    generator = options.get("generate", {}).get("generator")
    validator = options.get("validate", {}).get("validator")
    models = [
        _model_row("generator", generator, [item.generator for item in items]),
        _model_row("validator", validator, [item.validator for item in items]),
    ]
    return filled_template(
        TEMPLATES / "datasheet.md.j2",
        facts={
            "name": name,
            "language": language,
            "labels": labels,
            "files": files,
            "report": report,
            "options": options,
        },
        total=len(items),
        balance=balance,
        groups=sorted({key[:2] for key in balance}),
        answers=Counter(item.answer for item in items),
        sources=Counter(
            (one.group, Path(one.source).name, one.licence) for one in origins
        ),
        hashes={Path(path).name: sha for path, sha in sample.get("files", {}).items()},
        prose=prose,
        models=models,
        contested=sum(map(is_contested, items)),
        known=report["steps"]["probe"].get("dropped_why", {}).get(KNOWN, 0)
        if probed
        else None,
        recipes={
            step: made["recipe"] for step, made in options.items() if "recipe" in made
        },
        seen=sum(bool(item.review.get("said")) for item in items),
        turned=sum("answer_before" in item.review for item in items),
        reworded=sum("question_before" in item.review for item in items),
        agreement=[_agreement(group) for group in agreement],
    )


def _model_row(role: str, asked: str | None, accounts: Iterable[Values]) -> Row:
    """Return a row of the table of models: as asked for, as returned, and the prompts."""
    returned = set[str]()
    prompts = set[str]()
    for account in accounts:
        returned.add(public(account.get("returned") or account.get("model")))
        prompts.add(f"{account.get('prompt')}")
    return (
        role,
        _code(public(asked)),
        ", ".join(map(_code, sorted(returned))),
        ", ".join(map(_code, sorted(prompts))),
    )


def _agreement(one: Agreement) -> Row:
    """Return a row of the table; people are numbered, for the dataset must not name them."""
    names = sorted({name for pair in one.pairs for name in (pair.first, pair.second)})
    pairs = (
        (names.index(p.first) + 1, names.index(p.second) + 1, p.kappa)
        for p in one.pairs
    )
    kappas = [
        f"{first} and {second}: {kappa.text(INTERVAL)}"
        for first, second, kappa in pairs
    ]
    figures = (one.raw.text(INTERVAL), one.alpha.text(INTERVAL))
    return one.group or "all", f"{one.items:,}", *figures, "; ".join(kappas) or "–"


def public(model: object) -> str:
    """Return the name of a model as it was asked for, without the address of its server."""
    return str(model or "").partition("@")[0]


def prose(value: str) -> str:
    """Return somebody else's text for a cell of a Markdown table."""
    flat = visible(" ".join(value.split()))
    return "".join(f"\\{char}" if char in "\\`*_[]<>|&~" else char for char in flat)


def _code(value: str | None) -> str:
    return f"`{value.replace('`', '')}`" if value else "–"


class FreezeStep(BuildStep):
    """Chooses the final set and writes it as a dataset."""

    name = "freeze"
    help = "choose a balanced set and write it as a dataset with its datasheet (--to)"
    renewed = True

    def settings(self) -> Values:
        """Return the seed, the splits and where the dataset goes."""
        destination, asks = self.build.destination(), self.build.recipe.build
        if not destination:
            raise UsageError("build: say where the dataset goes: --to cases/NAME")
        dataset_name(Path(destination))
        return {"to": destination, "splits": dict(asks.splits), "seed": asks.seed}

    def work(self, items: Items, _: ModelCalls) -> list[DraftItem]:
        """Return the final set's items. Raises UsageError over other data, BuildError if none."""
        build, values = self.build, self.values
        sample = build.folder.options("sample")
        sizes = {
            group: sample["counts"].get(group, COUNT) for group in sample["sources"]
        }
        selected = balanced(items, sizes, values["splits"], values["seed"])
        counts = Counter(item.origin.group for item in kept(selected))
        if not counts:
            what = "freeze: no item is left, or all of a source have one answer; sample more"
            raise BuildError(what)
        changed(data_files(Path(values["to"]), build.recipe, kept(selected)))
        for group, wanted in sizes.items():
            if counts[group] < wanted // 2 * 2:
                advice = (
                    "a larger `oversample` in the recipe and another --folder make more"
                )
                what = f"only {counts[group]} of {wanted} items, half and half"
                build.say(f"freeze: {group}: {what}; {advice}")
        return selected

    def finish(self, report: Values) -> None:
        """Put the dataset's files in place; the same steps give the same bytes."""
        build, to = self.build, Path(self.values["to"])
        folder, recipe, language = build.folder, build.recipe, build.recipe.language
        items = kept(folder.read(self.name))
        data = data_files(to, recipe, items)
        sheet = datasheet(
            items,
            {step: folder.options(step) for step in STEPS if step != self.name},
            report,
            name=dataset_name(to),
            language=language,
            labels=recipe.labels,
            agreement=agreed(folder.read("accept"), recipe),
            files={path.name: sha256(text) for path, text in data.items()},
        )
        texts = changed({**data, readme(to, sheet, language): sheet})
        write_texts(texts.items(), to_commit=True)
        shares = report["question_only"]["shares"]
        texts = missing_files(to, recipe, shares, self.values["splits"])
        write_texts(texts.items(), to_commit=True)
        main = next(iter(data))
        build.say(f"freeze: the items are in {main}, with a datasheet and hashes")
        declared = load_dataset(to / DATASET_FILE).slices.get(language)
        if declared is None or declared.path != main:
            name = f"{dataset_name(to)}:{language}={main}"
            build.say(f"freeze: run it with --items {name}, or add it to dataset.yaml")
