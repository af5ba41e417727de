"""Where the bundled data lie: data sets, rubrics, models and languages.

A checkout keeps them in the folders ``cases`` and ``evaluators`` at its top, where a team edits
them. An installed package has the same folders next to its code.
"""

from pathlib import Path

_CODE = Path(__file__).parent
_IS_INSTALLED = (_CODE / "evaluators" / "rubrics").is_dir()
_DATA = _CODE if _IS_INSTALLED else _CODE.parent

CASES = _DATA / "cases"
"""The bundled data sets, each a folder with a ``dataset.yaml``."""
BUNDLED_LABELS = CASES / "judges"
"""The labelled data sets among them, which measure a judge."""
EVALUATORS = _DATA / "evaluators"
"""``rubrics/``, ``models.yaml`` and ``languages.yaml``."""


def bundled_dataset(name: str) -> Path | None:
    """Return the folder of the bundled data set of this name, or None."""
    for declaration in sorted(CASES.rglob("dataset.yaml")):
        if declaration.parent.name == name:
            return declaration.parent
    return None
