"""The options of a run as its command line gives them, without pytest."""

from pathlib import Path

from qagate.reports.plugin.options import RunOptions, read_words


def options_of(*words: str, here: Path = Path()) -> RunOptions:
    options, others = read_words(words, here)
    assert others == []
    return options
