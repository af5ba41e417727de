"""Make the table of pl-settlements.yaml from the registers of Statistics Poland.

SIMC names every locality, TERC every unit that it lies in. Run it as

    python pl_settlements.py FOLDER > pl-settlements.csv

where FOLDER holds SIMC_Urzedowy_2020-09-26.csv and TERC_Urzedowy_2020-09-26.csv out of the two
zip files in data/ of github.com/datainq/teryt at dfdc8f1c (state of 1 January 2020).
"""

import csv
import sys
from collections import Counter
from pathlib import Path

SETTLEMENT = "04"
"""RM of a small settlement (osada); others are villages, colonies, parts of them, towns …"""


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a register of TERYT."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def main() -> None:
    """Write the settlements whose name no other locality of Poland has."""
    folder = Path(sys.argv[1])
    units = {}
    for unit in rows(folder / "TERC_Urzedowy_2020-09-26.csv"):
        units[unit["WOJ"], unit["POW"], unit["GMI"], unit["RODZ"]] = unit["NAZWA"]
    localities = rows(folder / "SIMC_Urzedowy_2020-09-26.csv")
    named = Counter(locality["NAZWA"] for locality in localities)
    columns = [
        "simc",
        "name",
        "gmina",
        "powiat",
        "teryt",
        "powiat_in",
        "voivodeship_in",
    ]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for locality in sorted(localities, key=lambda locality: locality["SYM"]):
        if locality["RM"] != SETTLEMENT or named[locality["NAZWA"]] > 1:
            continue
        region, county = locality["WOJ"], locality["POW"]
        gmina = units[region, county, locality["GMI"], locality["RODZ_GMI"]]
        powiat = units[region, county, "", ""]
        voivodeship = units[region, "", "", ""].lower()
        if not powiat.endswith("ki"):  # a city with the rights of a powiat
            continue
        if any(word in locality["NAZWA"] for word in gmina.split()):  # it would tell
            continue
        rest = [region + county, powiat + "m", voivodeship.removesuffix("e") + "m"]
        writer.writerow([locality["SYM"], locality["NAZWA"], gmina, powiat, *rest])


if __name__ == "__main__":
    main()
