"""Make the table of be-villages.yaml from the files of two public repositories.

Names, districts and rural councils are those of the normative handbooks "Назвы населеных пунктаў
Рэспублікі Беларусь" (grodzenskaya.csv, homelskaya.csv, mahiljouskaja.csv and vitsebskaya.csv of
github.com/jekhor/belarus-place-names at 046a8b17), positions those of opendata.by's list
(src/data/result.csv of github.com/unutranyholas/belarus-oikonyms at cbb87915). Run it as

    python be_villages.py FOLDER > be-villages.csv

where FOLDER holds these five files.
"""

import csv
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

HANDBOOKS = (
    "grodzenskaya.csv",
    "homelskaya.csv",
    "mahiljouskaja.csv",
    "vitsebskaya.csv",
)
FAR = (0.6, 1.0)
"""Degrees from the middle of a district beyond which a position is taken for an error."""
STRESS = "\u0301"
ADJECTIVE = re.compile("(?:[аое]ў|[іы]н)?[сц]кі$")


def villages(folder: Path) -> list[dict[str, str]]:
    """Return the villages of the four handbooks, each with its district and council."""
    rows = []
    for handbook in HANDBOOKS:
        text = (folder / handbook).read_text(encoding="utf-8").replace(STRESS, "")
        for cells in csv.reader(text.splitlines()):
            if len(cells) < 5 or cells[3] != "в.":
                continue
            region, district, council, _, name = cells[:5]
            row = {"region": region, "district": district.title(), "name": name}
            row["district_in"] = row["district"] + "м"  # the locative
            row["is_seat"] = f"{int(_gave_its_name(name, council))}"
            rows.append(row)
    return rows


def _gave_its_name(name: str, council: str) -> bool:
    """Return whether a rural council is named after this village: Гервяты, Гервяцкі."""
    village, adjective = name.casefold(), council.casefold()
    same = [one == other for one, other in zip(village, adjective, strict=False)]
    shared = [*same, False].index(False)
    stem = ADJECTIVE.sub("", adjective)
    return shared >= max(4, len(village) - 3, len(stem) - 2)


def place(rows: list[dict[str, str]], positions: Path) -> None:
    """Add the positions of villages whose name stands once in both lists."""
    with positions.open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    in_list = Counter(entry["Bel"] for entry in listed)
    in_handbooks = Counter(row["name"] for row in rows)
    found = {entry["Bel"]: entry for entry in listed if in_list[entry["Bel"]] == 1}
    by_district = defaultdict(list)
    for row in rows:
        row["latitude"] = row["longitude"] = ""
        if row["name"] in found and in_handbooks[row["name"]] == 1:
            by_district[row["region"], row["district"]].append(row)
    for district in by_district.values():
        entries = [found[row["name"]] for row in district]
        north = median(float(entry["Latitude"]) for entry in entries)
        east = median(float(entry["Longitude"]) for entry in entries)
        for row, entry in zip(district, entries, strict=True):
            away_north = abs(float(entry["Latitude"]) - north)
            away_east = abs(float(entry["Longitude"]) - east)
            if away_north <= FAR[0] and away_east <= FAR[1]:
                row["latitude"], row["longitude"] = (
                    entry["Latitude"],
                    entry["Longitude"],
                )


def main() -> None:
    """Write the table to standard output."""
    folder = Path(sys.argv[1])
    rows = villages(folder)
    place(rows, folder / "result.csv")
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main()
