"""The last step: a balanced set is chosen by seed, and written as a dataset folder that runs.

The set is half yes and half no in every source and in every split.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cases.builder.build_step import ModelCalls, Step
from cases.builder.datasheet import Facts, datasheet, filled_template, public
from cases.builder.people import agreed, verdicts_on
from cases.builder.recipe import Recipe
from cases.builder.sampling import COUNT
from cases.builder.work_folder import BuildError, Item, Values, kept
from cases.config import FILE, NAME, load_dataset
from cases.dataset import Slice
from evaluators.core import NO, YES, UsageError
from evaluators.output import write_texts
from evaluators.text import shown

README = "README.md"
BUNDLED = Path(__file__).parents[1] / "boolq"
STEPS_BEFORE = ("sample", "generate", "check", "validate", "probe", "review", "accept")
Files = Mapping[Path, str]


def balanced(
    items: Sequence[Item], sizes: Mapping[str, int], shares: Mapping[str, float], seed: int
) -> list[Item]:
    """Return the items; those that are not selected are dropped with the reason.

    From every source as many yes as no are taken, ``sizes`` items of it at most; reviewed ones
    first, otherwise by a hash of seed and id. Of two with one address the second is dropped.
    ``shares`` (1 together) names the splits: each is half yes and half no in every source.
    """
    single = _without_twins(items)
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in kept(single):
        groups[item.origin.group].append(item)
    pairs = [
        pair
        for group, members in sorted(groups.items())
        for pair in _pairs(members, sizes[group] // 2, seed)
    ]
    taken = dict.fromkeys(shares, 0)
    split_of: dict[str, str] = {}
    for number, pair in enumerate(pairs, 1):
        # The split furthest behind its share of the pairs so far: rounding in one source is made
        # good in the next, and no split is off by a whole pair in the end.
        behind = {name: (share * number - taken[name], share) for name, share in shares.items()}
        split = max(behind, key=lambda name: behind[name], default="")
        taken[split] = taken.get(split, 0) + 1
        split_of |= {item.id: split for item in pair}
    answers = Counter((item.origin.group, item.answer) for item in kept(single))
    return [
        replace(item, split=split_of[item.id])
        if item.id in split_of
        else _left_out(item, answers)
        if item.state == "kept"
        else item
        for item in single
    ]


def _without_twins(items: Sequence[Item]) -> list[Item]:
    seen: set[str] = set()
    found = []
    for item in items:
        url = item.origin.url
        found.append(item.dropped("same_article", url) if url and url in seen else item)
        seen.add(url)
    return found


def _pairs(members: Sequence[Item], most: int, seed: int) -> list[tuple[Item, Item]]:
    """Return pairs of a yes and a no, in an order that the seed gives."""

    def rank(item: Item) -> bytes:
        return sha256(f"freeze:{seed}:{item.id}".encode()).digest()

    order = sorted(members, key=lambda item: (not verdicts_on(item), rank(item)))
    yes = [item for item in order if item.answer == YES][:most]
    no = [item for item in order if item.answer == NO][:most]
    return sorted(zip(yes, no, strict=False), key=lambda pair: rank(pair[0]))


def _left_out(item: Item, answers: Counter[tuple[str, str]]) -> Item:
    """Return an item as dropped; ``answers`` counts the items of each source and answer."""
    group, other = item.origin.group, NO if item.answer == YES else YES
    if answers[group, item.answer] > answers[group, other]:
        return item.dropped("balance", f"not enough {other} in {group}")
    return item.dropped("surplus", "more than wanted of its source")


def rows_of(items: Iterable[Item], labels: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the items as rows of a data file, by id; what is empty is left out."""
    rows = []
    for item in sorted(items, key=lambda one: one.id):
        origin = item.origin
        row: dict[str, object] = {
            "id": item.id,
            "passage": item.paragraph,
            "question": item.question,
            "answer": labels[item.answer],
            "split": item.split,
            "source": origin.group,
            "title": origin.title,
            "url": origin.url,
            "licence": origin.licence,
            "revision": origin.revision,
            "generator": public(item.generator.get("model")),
            "validator": public(item.validator.get("model")),
            "reviewers": len(verdicts_on(item)),
            "corrected": "answer_before" in item.review,
        }
        rows.append({key: value for key, value in row.items() if value not in ("", None)})
    return rows


def data_files(folder: Path, language: str, rows: Sequence[Mapping[str, object]]) -> Files:
    """Return the data file, and one for each split, with their texts.

    The name of the first is the one that the folder's dataset.yaml gives for the language, else
    ``<language>.jsonl``. Raises UsageError where that is a format of another kind.
    """
    main = data_file(folder, language)
    by_path = {main: list(rows)}
    for split in sorted({str(row["split"]) for row in rows if "split" in row}):
        by_path[folder / f"{language}.{split}.jsonl"] = [
            row for row in rows if row.get("split") == split
        ]
    return {
        path: json.dumps(some, ensure_ascii=False, indent=2) + "\n"
        if path.suffix == ".json"
        else "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in some)
        for path, some in by_path.items()
    }


def data_file(folder: Path, language: str) -> Path:
    """Return the file of the whole set. Raises UsageError for a format that is not written."""
    slices = declared(folder)
    if language not in slices:
        return folder / f"{language}.jsonl"
    path = slices[language].path
    if not slices[language].kind.words or path.suffix not in (".json", ".jsonl"):
        raise UsageError(
            f"{folder / FILE}: {path.name} cannot be frozen into: "
            "want .json or .jsonl of kind yes_no"
        )
    return path


def declared(folder: Path) -> Mapping[str, Slice]:
    """Return the languages that a folder's dataset.yaml declares; none without that file."""
    settings = folder / FILE
    return load_dataset(settings).slices if settings.is_file() else {}


def readme(folder: Path, text: str, language: str) -> Path:
    """Return where a datasheet goes: README.md, unless that is there and is not one of this set."""
    path = folder / README
    title = text.split("\n", 1)[0]
    theirs = path.is_file() and path.read_text("utf-8", "replace").split("\n", 1)[0] != title
    return folder / f"README.{language}.md" if theirs else path


def missing_files(folder: Path, recipe: Recipe, shares: Values, splits: Iterable[str]) -> Files:
    """Return what a dataset folder still needs beside its data: prompt, test module, settings.

    ``shares`` are what rules reach that see the question alone; the best is the bar, and that of
    ``majority`` stands beside it. What is there stays as it is.
    """
    language, labels = recipe.language, recipe.labels
    prompt, name = f"answer.{language}.yaml", dataset_name(folder)
    bundled = BUNDLED / prompt
    settings = filled_template(
        "dataset.yaml.j2",
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
    files[folder / f"test_{name}.py"] = filled_template("test_module.py.j2", name=name)
    files[folder / FILE] = settings  # last: it makes the folder a dataset
    return {path: text for path, text in files.items() if not path.exists()}


def dataset_name(folder: Path) -> str:
    """Return the name of the dataset in a folder. Raises UsageError where it cannot be one."""
    name = folder.resolve().name
    if not NAME.fullmatch(name):
        raise UsageError(
            f"build: --to {shown(str(folder))}: names the dataset: letters, digits and _ only"
        )
    return name


def changed(files: Files, *, force: bool) -> Files:
    """Return the files that are not yet as they shall be.

    Raises UsageError where one is there with other content, unless ``force`` allows to write
    over it.
    """
    found = {
        path: text
        for path, text in files.items()
        if not path.is_file() or path.read_bytes() != text.encode()
    }
    for path in found:
        if path.exists() and not force:
            raise UsageError(
                f"{path}: is there already, with other content; name another --to, or give --force"
            )
    return found


class FreezeStep(Step):
    """Chooses the final set and writes it as a dataset."""

    name = "freeze"
    help = "choose a balanced set and write it as a dataset with its datasheet (--to)"
    after = "accept"
    by_people = True
    renewed = True

    def settle(self) -> Values:
        """Return the seed, the splits and where the dataset goes."""
        values = self.remembered(to=None, splits={}, seed=self.sample_seed)
        self.need("to", values, "say where the dataset goes: --to cases/NAME")
        dataset_name(Path(values["to"]))
        return values

    def work(self, items: Sequence[Item], _: ModelCalls) -> list[Item]:
        """Return the items with those dropped that are not of the final set.

        Raises UsageError where the dataset's folder has other data, BuildError where nothing is
        left.
        """
        build, values = self.build, self.values
        sample = build.folder.options("sample")
        sizes = {group: sample["counts"].get(group, COUNT) for group in sample["sources"]}
        selected = balanced(items, sizes, values["splits"], values["seed"])
        counts = Counter(item.origin.group for item in kept(selected))
        if not counts:
            raise BuildError(
                "freeze: no item is left, or all of a source have one answer; sample more"
            )
        changed(self._data(selected), force=build.options.force)
        for group, wanted in sizes.items():
            if counts[group] < wanted // 2 * 2:
                build.say(
                    f"freeze: {group}: only {counts[group]} of {wanted} items, half and half; a "
                    "larger --oversample in another --folder makes more"
                )
        return selected

    def _data(self, items: Sequence[Item]) -> Files:
        rows = rows_of(kept(items), self.build.recipe.labels)
        return data_files(Path(self.values["to"]), self.build.recipe.language, rows)

    def finish(self, report: Values) -> None:
        """Put the dataset's files in place; the same steps give the same bytes."""
        build, to = self.build, Path(self.values["to"])
        folder, recipe, force = build.folder, build.recipe, build.options.force
        language, items = recipe.language, kept(folder.read("freeze"))
        data = self._data(items)
        facts = Facts(
            name=dataset_name(to),
            language=language,
            labels=recipe.labels,
            items=items,
            options={step: folder.options(step) for step in STEPS_BEFORE},
            report=report,
            agreement=agreed(folder.read("accept"), recipe),
            files={path.name: sha256(text.encode()).hexdigest() for path, text in data.items()},
        )
        sheet = datasheet(facts)
        write_texts(changed({**data, readme(to, sheet, language): sheet}, force=force).items())
        shares, splits = report["question_only"]["shares"], self.values["splits"]
        write_texts(missing_files(to, recipe, shares, splits).items())
        main = next(iter(data))
        build.say(f"freeze: the items stand in {main}; datasheet and hashes beside it")
        if language not in declared(to):
            name = f"{facts.name}:{language}={main}"
            build.say(f"freeze: run it with --items {name}, or add it to dataset.yaml")
