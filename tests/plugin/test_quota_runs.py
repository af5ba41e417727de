"""Whole runs with ``--quota``: what all of them may spend, and what their reports say of it."""

from collections import Counter

import pytest

from evaluators.ledger_place import PostgresUrl
from tests.conftest import Project
from tests.plugin.test_plugin_money import good
from tests.support.loopback import loopback
from tests.support.places import server

__all__ = ["server"]

ITEMS = 30
MODELS = """
answerer:
  provider: openai
  model: m
  base_url: "{url}/v1"
  prices: {{input: 0, output: 100}}
  parameters: {{max_tokens: 10}}
"""


@pytest.mark.slow
def test_runs_of_one_quota_spend_one_limit(project: Project, server: PostgresUrl) -> None:
    """0.001 USD a call: of 0.05 the first run spends 0.03, so that the second has 20 calls."""
    project.dataset("capital", {"en": [None] * ITEMS})
    prompt = "name: answer\nlanguage: en\nversion: '1'\nuser: 'Answer: {question}'\n"
    project.write("qa/capital/answer.en.yaml", prompt)
    with loopback(handler=good) as model:
        path = project.write("models.yaml", MODELS.format(url=model.url))
        words = ("--models", str(path), "--model", "answerer", "--ledger", server.url)
        shared = (*words, "--max-cost", "0.05", "--gates", "off", "qa", "--quota")
        project.run_in_process(*shared, "team")
        assert model.count == ITEMS
        again = project.run_in_process(*shared, "team", "--fresh", "second")
        assert model.count == 50
        project.run_in_process(*shared, "other", "--fresh", "second")
        assert model.count == 60
    again.stdout.fnmatch_lines(["*$0.05* of --max-cost $0.05* spent by all runs of the quota*"])
    assert Counter(str(one["outcome"]) for one in project.records())["missing"] == 0
