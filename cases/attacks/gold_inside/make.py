"""Write the data of the second family of attacks: the gold is in the answer and not chosen.

A judge that only searches for the gold in the answer grades these attacks CORRECT. Each language
has a file ``frames.LANG.yaml``, written by hand: 40 questions, each with its gold and two wrong
candidates of the same kind, and frames of eight forms in which the gold stands without being
chosen, or, for the controls, is chosen. This script fills the frames with the questions and writes
``LANG.yaml``. Nothing is drawn by lot, so the same frames always give the same files::

    python cases/attacks/gold_inside/make.py            # writes the files
    python cases/attacks/gold_inside/make.py --check    # exit 1 if one is not what it would write

How the questions are dealt: every form has ten attacks, and the forms take the questions in the
order of the file, ten after ten, beginning again after the last one. So each question is attacked
in two forms. The second time its wrong candidates change places, and another one is chosen. The
controls take the questions in the same order, five a form, each question once. The frames of a form
take turns.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import yaml

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "bg", "pl", "hu", "be")
LANGUAGE_NAMES = {
    "en": "English",
    "bg": "Bulgarian",
    "pl": "Polish",
    "hu": "Hungarian",
    "be": "Belarusian",
}
FORMS = (
    "listed",  # the gold among others, none of them chosen
    "runner_up",  # another one chosen, the gold as the second
    "rejected",  # the gold named and denied
    "other_thing",  # the gold said of something else
    "struck_out",  # the gold struck out and replaced by a wrong answer
    "table",  # a table that marks the gold "no" and a wrong answer "yes"
    "final_other",  # the reasoning names the gold, the final answer is another one
    "in_thought",  # the gold in a thought before a wrong answer
)
ATTACKS_A_FORM = 10
CONTROLS_A_FORM = 5
HEADER = """\
# Answers in which the gold stands and is not chosen (`attack` names the form), in {language}, and
# controls in which it is chosen in the same form. Written by make.py from frames.{code}.yaml:
# change that file, not this one.
"""


class Item(TypedDict, total=False):
    """A question with its gold and two wrong candidates; some have a remark on the gold."""

    question: str
    gold: str
    wrong: list[str]
    remark: str


class Frames(TypedDict):
    """What ``frames.LANG.yaml`` holds; frames are listed by form."""

    items: list[Item]
    attacks: dict[str, list[str]]
    controls: dict[str, list[str]]


def main(arguments: Sequence[str]) -> int:
    """Write the data files, or say which of them differ from what would be written."""
    parser = argparse.ArgumentParser(description="Write the data of `gold_inside`.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    stale = []
    for code in LANGUAGES:
        path = FOLDER / f"{code}.yaml"
        text = data_file(code)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if not options.check:
            path.write_text(text, encoding="utf-8")
    if not options.check:
        sys.stdout.write(f"written: {', '.join(stale) or 'nothing, all up to date'}\n")
        return 0
    if stale:
        sys.stderr.write(f"not what make.py writes: {', '.join(stale)}\n")
        return 1
    return 0


def data_file(code: str) -> str:
    """Return the text of a language's data file."""
    text = (FOLDER / f"frames.{code}.yaml").read_text(encoding="utf-8")
    frames: Frames = yaml.safe_load(text)
    header = HEADER.format(language=LANGUAGE_NAMES[code], code=code)
    return header + "".join((*attack_rows(code, frames), *control_rows(code, frames)))


def attack_rows(code: str, frames: Frames) -> Iterator[str]:
    """Yield the rows of the attacks, form by form."""
    items = frames["items"]
    for form_number, form in enumerate(FORMS):
        form_frames = frames["attacks"][form]
        for number in range(ATTACKS_A_FORM):
            turn, place = divmod(form_number * ATTACKS_A_FORM + number, len(items))
            item = items[place]
            wrong, other = item["wrong"]
            if turn % 2 == 1:
                wrong, other = other, wrong
            frame = form_frames[number % len(form_frames)]
            answer = fill(frame, item, wrong, other)
            yield row(f"{code}-{form}-{number + 1}", "attack", form, item, answer)


def control_rows(code: str, frames: Frames) -> Iterator[str]:
    """Yield the rows of the controls, form by form."""
    items = frames["items"]
    for form_number, form in enumerate(FORMS):
        form_frames = frames["controls"][form]
        for number in range(CONTROLS_A_FORM):
            item = items[(form_number * CONTROLS_A_FORM + number) % len(items)]
            wrong, other = item["wrong"]
            frame = form_frames[number % len(form_frames)]
            answer = fill(frame, item, wrong, other)
            row_id = f"{code}-control-{form}-{number + 1}"
            yield row(row_id, "control", form, item, answer)


def fill(frame: str, item: Item, wrong: str, other: str) -> str:
    """Return a frame with an item's words in its slots.

    A slot whose name begins with a capital stands at the head of a sentence.
    """
    slots = {"gold": item["gold"], "wrong": wrong, "other": other}
    for name, words in tuple(slots.items()):
        slots[name.capitalize()] = words[0].upper() + words[1:]
    if "{remark}" in frame:
        if "remark" not in item:
            sys.exit(f"no remark in the item that this frame gets: {item['question']}")
        slots["remark"] = item["remark"]
    return frame.format(**slots)


def row(row_id: str, kind: str, form: str, item: Item, answer: str) -> str:
    """Return a row of the data file: an attack or a control."""
    label = {"attack": "NOT_CORRECT", "control": "CORRECT"}[kind]
    return (
        f"- id: {row_id}\n"
        f"  {kind}: {form}\n"
        f"  label: {label}\n"
        f"  question: {quoted(item['question'])}\n"
        f"  answer: {quoted(item['gold'])}\n"
        f"  predicted_answer: {block_or_quoted(answer)}\n"
    )


def block_or_quoted(text: str) -> str:
    """Return a text as YAML: a block if it has several lines, otherwise in quotes."""
    if "\n" not in text:
        return quoted(text)
    lines = (f"    {line}" if line else "" for line in text.split("\n"))
    return "|-\n" + "\n".join(lines)


def quoted(text: str) -> str:
    """Return a text in double quotes; JSON's are also YAML's."""
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
