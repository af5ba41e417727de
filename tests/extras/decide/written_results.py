"""Small results of each tool, as the tool writes them: for tests of all forms alike.

``written`` makes a file of a form over numbered items. What each tool's newest version really
wrote stands in ``recorded``; here an answer may be right, wrong, or ungraded in the tool's own way.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

Ending = Literal["right", "wrong", "judge broke", "call broke"]
"""How an item ended; the last two have no grade."""
Rows = list[dict[str, Any]]
Writer = Callable[[Path, Sequence[Ending], str], Path]


def _question(n: int) -> str:
    return f"What is number {n}?"


def _answer(n: int, ending: Ending, model: str) -> str:
    return f"{model} says {n if ending == 'right' else -1}"


def _json(path: Path, value: object) -> Path:
    path = path.with_suffix(".json")
    path.write_text(json.dumps(value), "utf-8")
    return path


def _lines(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _score(ending: Ending) -> float | None:
    return {"right": 1.0, "wrong": 0.0}.get(ending)


def _inspect(path: Path, endings: Sequence[Ending], model: str) -> Path:
    samples = []
    for n, ending in enumerate(endings):
        sample: dict[str, Any] = {
            "id": f"q{n}",
            "epoch": 1,
            "input": _question(n),
            "target": str(n),
            "output": {"completion": _answer(n, ending, model)},
            "scores": {"match": {"value": "C" if ending == "right" else "I"}},
            "metadata": {"language": "en"},
        }
        if ending == "judge broke":
            sample["scores"] = {"match": {"value": None}}
        if ending == "call broke":
            sample |= {"scores": {}, "error": {"message": "time-out"}}
        samples.append(sample)
    about = {
        "task": "numbers",
        "model": f"mock/{model}",
        "run_id": model,
        "dataset": {"name": "numbers", "samples": len(endings)},
        "config": {},
        "packages": {"inspect_ai": "0.3.285"},
    }
    results = {"headline": {"scorer": "match", "score": "match", "metric": "accuracy"}}
    log = {"eval": about, "plan": {}, "status": "success", "results": results}
    return _json(path, {**log, "samples": samples})


def _lm_eval(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows = []
    for n, ending in enumerate(endings):
        row = {
            "doc_id": n,
            "doc": {"question": _question(n)},
            "target": str(n),
            "arguments": {"gen_args_0": {"arg_0": _question(n)}},
            "filtered_resps": [_answer(n, ending, model)],
            "filter": "none",
            "metrics": ["exact_match"],
            "doc_hash": f"d{n}",
            "target_hash": f"t{n}",
        }
        if ending != "call broke":
            row["exact_match"] = _score(ending)
        rows.append(row)
    return _lines(
        path / "samples_numbers_2026-11-01T00-00-00.000000.jsonl", rows
    ).parent


def _promptfoo(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows = []
    for n, ending in enumerate(endings):
        right = ending == "right"
        row: dict[str, Any] = {
            "provider": {"id": f"mock:{model}", "label": model},
            "prompt": {"raw": _question(n), "label": "{{question}}"},
            "vars": {"n": n},
            "testCase": {
                "vars": {"n": n},
                "assert": [{"type": "llm-rubric", "value": str(n)}],
            },
            "response": {"output": _answer(n, ending, model)},
            "success": right,
            "score": int(right),
            "namedScores": {},
            "failureReason": 0 if right else 1,
            "gradingResult": {"pass": right, "score": int(right), "reason": "compared"},
        }
        if ending == "judge broke":
            mark = {"graderError": True}
            row["gradingResult"]["componentResults"] = [
                {"pass": False, "metadata": mark}
            ]
        if ending == "call broke":
            row |= {
                "response": {"error": "API error"},
                "failureReason": 2,
                "gradingResult": None,
            }
        rows.append(row)
    return _json(path, {"evalId": model, "results": {"version": 3, "results": rows}})


def _deepeval(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows = []
    for n, ending in enumerate(endings):
        right = ending == "right"
        metric: dict[str, Any] = {"name": "Exact", "threshold": 0.5}
        if _score(ending) is not None:
            metric |= {"success": right, "score": float(right)}
        if ending == "call broke":
            metric["error"] = "ValueError: no answer"
        rows.append(
            {
                "name": f"number-{n}",
                "input": _question(n),
                "actualOutput": _answer(n, ending, model),
                "expectedOutput": str(n),
                "success": ending != "wrong",  # of a metric that raised it says nothing
                "metricsData": [metric],
            }
        )
    return _json(path, {"testFile": "test_numbers.py", "testCases": rows})


def _assessments(ending: Ending) -> list[dict[str, Any]]:
    feedback: dict[str, Any] = {"value": _score(ending)}
    if ending == "judge broke":
        feedback = {
            "error": {"error_code": "SCORER_ERROR", "error_message": "time-out"}
        }
    if ending == "call broke":
        feedback = {"value": False}  # scorers run on nothing
    return [
        {
            "assessment_name": "right",
            "source": {"source_type": "CODE", "source_id": "right"},
            "feedback": feedback,
        },
        {"assessment_name": "expected_response", "expectation": {"value": 7}},
    ]


def _state(ending: Ending) -> str:
    return "ERROR" if ending == "call broke" else "OK"


def _mlflow(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows: Rows = []
    for n, ending in enumerate(endings):
        assessments = _assessments(ending)
        rows.append(
            {
                "trace_id": f"tr-{model}-{n}",
                "right/value": assessments[0]["feedback"].get("value"),
                "right/error_message": "time-out" if ending == "judge broke" else None,
                "expected_response/value": 7,
                "state": _state(ending),
                "request": {"question": _question(n)},
                "response": _answer(n, ending, model),
                "tags": {"language": "en"},
                "assessments": assessments,
            }
        )
    return _json(path, rows)


def _traces(endings: Sequence[Ending], model: str) -> Rows:
    traces: Rows = []
    for n, ending in enumerate(endings):
        info = {
            "trace_id": f"tr-{model}-{n}",
            "state": _state(ending),
            "trace_metadata": {
                "mlflow.traceInputs": json.dumps({"question": _question(n)}),
                "mlflow.traceOutputs": json.dumps(_answer(n, ending, model)),
            },
            "assessments": _assessments(ending),
        }
        traces.append({"info": info, "data": {"spans": []}})
    return traces


def _mlflow_traces(path: Path, endings: Sequence[Ending], model: str) -> Path:
    return _json(path, {"traces": _traces(endings, model)})


def _mlflow_trace_list(path: Path, endings: Sequence[Ending], model: str) -> Path:
    return _lines(path.with_suffix(".jsonl"), _traces(endings, model))


def _mlflow_2(path: Path, endings: Sequence[Ending], model: str) -> Path:
    data = [
        [_question(n), str(n), _answer(n, ending, model), _score(ending)]
        for n, ending in enumerate(endings)
    ]
    columns = ["inputs", "ground_truth", "outputs", "right/v1/score"]
    return _json(path, {"columns": columns, "data": data})


def _azure_rows(endings: Sequence[Ending], model: str) -> Rows:
    rows: Rows = []
    for n, ending in enumerate(endings):
        score = _score(ending)
        rows.append(
            {
                "inputs.id": f"q{n}",
                "inputs.query": _question(n),
                "inputs.ground_truth": str(n),
                "outputs.response": _answer(n, ending, model),
                "outputs.judge.judge_result": None
                if score is None
                else ["fail", "pass"][int(score)],
                "outputs.judge.judge_threshold": 3,
                "outputs.judge.judge_reason": "compared",
            }
        )
    return rows


def _azure(path: Path, endings: Sequence[Ending], model: str) -> Path:
    result: dict[str, Any] = {
        "rows": _azure_rows(endings, model),
        "metrics": {},
        "studio_url": None,
    }
    return _json(path, result)


def _azure_lines(path: Path, endings: Sequence[Ending], model: str) -> Path:
    return _lines(path.with_suffix(".jsonl"), _azure_rows(endings, model))


def _pydantic_evals(path: Path, endings: Sequence[Ending], model: str) -> Path:
    cases, failures = [], []
    for n, ending in enumerate(endings):
        case: dict[str, Any] = {
            "name": f"q{n}",
            "inputs": _question(n),
            "expected_output": str(n),
            "metadata": {"language": "en"},
        }
        if ending == "call broke":
            failures.append({**case, "error_message": "ValueError: no answer"})
            continue
        assertions = {"Right": {"value": ending == "right", "reason": None}}
        broken = []
        if ending == "judge broke":
            assertions, broken = {}, [{"name": "Right", "error_message": "time-out"}]
        answer = _answer(n, ending, model)
        case |= {"output": answer, "scores": {}, "labels": {}, "assertions": assertions}
        cases.append({**case, "evaluator_failures": broken})
    return _json(path, {"name": "numbers", "cases": cases, "failures": failures})


def _langfuse(path: Path, endings: Sequence[Ending], model: str) -> Path:
    data = []
    for n, ending in enumerate(endings):
        score = {
            "name": "right",
            "dataType": "NUMERIC",
            "value": _score(ending),
            "source": "API",
        }
        data.append(
            {
                "id": f"{model}-{n}",
                "traceId": f"{model}-t{n}",
                "level": "ERROR" if ending == "call broke" else "DEFAULT",
                "experimentItemId": f"item-{n}",
                "input": _question(n),
                "expectedOutput": str(n),
                "output": _answer(n, ending, model),
                "scores": [] if _score(ending) is None else [score],
            }
        )
    return _json(path, {"data": data, "meta": {}})


def _openai_evals(path: Path, endings: Sequence[Ending], model: str) -> Path:
    data = []
    for n, ending in enumerate(endings):
        sample: dict[str, Any] = {"output": [{"role": "assistant", "content": str(n)}]}
        if ending == "call broke":
            sample["error"] = {"code": "timeout", "message": "time-out"}
        results = [
            {"name": "match", "passed": ending == "right", "score": _score(ending)}
        ]
        data.append(
            {
                "object": "eval.run.output_item",
                "datasource_item_id": n,
                "datasource_item": {"question": _question(n), "language": "en"},
                "results": [] if ending == "judge broke" else results,
                "sample": sample,
            }
        )
    return _json(path, {"object": "list", "data": data})


def _braintrust_rows(endings: Sequence[Ending], model: str) -> Rows:
    rows: Rows = []
    for n, ending in enumerate(endings):
        broke = (
            {"scorer_errors": {"Right": "time-out"}} if ending == "judge broke" else {}
        )
        rows.append(
            {
                "input": _question(n),
                "expected": str(n),
                "output": _answer(n, ending, model),
                "scores": {"Right": _score(ending)},
                "metadata": {"id": f"q{n}", **broke},
                "error": "no answer" if ending == "call broke" else None,
            }
        )
    return rows


def _braintrust(path: Path, endings: Sequence[Ending], model: str) -> Path:
    summary = {"project_name": "numbers"}
    return _json(
        path, {"summary": summary, "results": _braintrust_rows(endings, model)}
    )


def _braintrust_lines(path: Path, endings: Sequence[Ending], model: str) -> Path:
    return _lines(path.with_suffix(".jsonl"), _braintrust_rows(endings, model))


def _ragas(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows: Rows = [
        {
            "user_input": _question(n),
            "response": _answer(n, ending, model),
            "reference": str(n),
            "answer_correctness": _score(ending)
            if ending != "judge broke"
            else float("nan"),
        }
        for n, ending in enumerate(endings)
    ]
    return _lines(path.with_suffix(".jsonl"), rows)


def _helm(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows: Rows = []
    for n, ending in enumerate(endings):
        stats = [
            {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1}
        ]
        stats[0]["mean"] = _score(ending)
        rows.append(
            {
                "instance_id": f"id{n}",
                "train_trial_index": 0,
                "stats": stats if _score(ending) is not None or n == 0 else [],
            }
        )
    return _json(path, rows)


def _lighteval(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows: Rows = [
        {
            "doc": {
                "id": str(n),
                "query": _question(n),
                "choices": [str(n)],
                "gold_index": 0,
            },
            "model_response": {"text": [_answer(n, ending, model)]},
            "metric": {"em": _score(ending)},
        }
        for n, ending in enumerate(endings)
    ]
    return _lines(path.with_suffix(".jsonl"), rows)


def _table(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows: Rows = [
        {
            "id": f"q{n}",
            "question": _question(n),
            "answer": _answer(n, ending, model),
            "score": _score(ending),
            "error": "no answer" if ending == "call broke" else "",
        }
        for n, ending in enumerate(endings)
    ]
    return _lines(path.with_suffix(".jsonl"), rows)


def _wrapped_table(path: Path, endings: Sequence[Ending], model: str) -> Path:
    rows: Rows = [
        {"id": n, "evaluations": {"right": {"value": _score(ending)}}}
        for n, ending in enumerate(endings)
    ]
    return _json(path, {"summary": {"model": model}, "items": rows})


WRITERS: Mapping[str, Writer] = {
    "inspect": _inspect,
    "lm_eval": _lm_eval,
    "promptfoo": _promptfoo,
    "deepeval": _deepeval,
    "mlflow": _mlflow,
    "mlflow_traces": _mlflow_traces,
    "mlflow_trace_list": _mlflow_trace_list,
    "mlflow_2": _mlflow_2,
    "azure": _azure,
    "azure_rows": _azure_lines,
    "pydantic_evals": _pydantic_evals,
    "langfuse": _langfuse,
    "openai_evals": _openai_evals,
    "braintrust": _braintrust,
    "braintrust_rows": _braintrust_lines,
    "ragas": _ragas,
    "helm": _helm,
    "lighteval": _lighteval,
    "table": _table,
}
"""By the name of the form in ``forms.yaml``."""

NESTED_TABLE: Writer = _wrapped_table
"""A list in an object, whose scores are nested: no tool of the table writes so."""


def written(form: str, path: Path, endings: Sequence[Ending], model: str) -> Path:
    """Write a result of this form, and return what to give to ``qagate decide``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return WRITERS[form](path, endings, model)
