"""promptfoo: what ``promptfoo eval`` writes as JSON, JSONL and csv, and with ``--repeat 2``."""

import json
import shutil
import subprocess
from pathlib import Path

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
SIDE = Path.cwd().name

shutil.copy(Path(__file__).with_suffix(".js"), "mock.js")
model = {"id": "file://mock.js", "label": f"mock-{SIDE}"}
grader = {"id": "file://mock.js", "config": {"grades": True}}
rubric = {
    "type": "llm-rubric",
    "value": "{{question}} The answer is {{expected}}.",
    "metric": "right",
    "provider": grader,
}
tests = []
for item in ITEMS:
    names = ("question", "expected")
    variables = {name: item[name] for name in names}
    metadata = {"id": item["id"], "language": item["language"]}
    tests.append({"vars": variables, "metadata": metadata, "assert": [rubric]})
config = {
    "prompts": ["{{question}}"],
    "providers": [model],
    "defaultTest": {"options": {"rubricPrompt": "{{rubric}} {{output}}"}},
    "tests": tests,
}
Path("config.json").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")

COMMAND = ["promptfoo", "eval", "-c", "config.json", "--no-cache", "--no-table"]
outputs = ["-o", "results.json", "-o", "results.jsonl", "-o", "results.csv"]
for words in (outputs, ["--repeat", "2", "-o", "repeated.json"]):
    done = subprocess.run([*COMMAND, *words], check=False)
    if done.returncode not in (0, 100):  # 100: some tests failed, as they should
        raise SystemExit(done.returncode)
