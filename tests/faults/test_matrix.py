"""Which test shows each row of the fault matrix, and each fault of an independent trial.

F1 to F29, R1 to R12: the test is there, names its row, and can fail.

``NOT_SHOWN`` says honestly what no test shows yet.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATRIX = {
    "F1": ["evaluators/test_replies_calls.py::test_a_reason_that_is_no_text_is_asked_again",
           "plugin/test_plugin_models.py::test_an_unreadable_judge_is_asked_three_times"],
    "F2": ["plugin/test_plugin_models.py::test_a_provider_that_fails_in_one_language"],
    "F3": ["plugin/test_plugin_exit_codes.py::test_exit_code",
           "plugin/test_plugin_exit_codes.py::test_exit_code_with_workers"],
    "F4": ["plugin/test_interrupts.py::test_what_a_killed_run_paid_for_is_kept"],
    "F5": ["evaluators/test_ledger_runs.py::test_a_complete_run_is_repeated_without_a_request"],
    "F6": ["plugin/test_interrupts.py::test_runs_killed_one_after_the_other_lose_nothing"],
    "F7": ["plugin/test_interrupts.py::test_a_signal_leaves_a_partial_report"],
    "F8": ["plugin/test_plugin_models.py::test_a_dead_workers_item_is_given_to_another",
           "faults/test_dead_workers_run.py::test_workers_that_die_without_end"],
    "F9": ["faults/test_servers.py::test_a_rate_limit_is_used_up_and_hardly_bothered",
           "faults/test_servers.py::test_an_hour_is_not_waited_for"],
    "F10": ["faults/test_servers.py::test_five_minutes_of_overload_are_waited_out"],
    "F11": ["evaluators/test_models_wire.py::test_the_deadline_is_for_the_whole_call",
            "evaluators/test_models_wire.py::test_an_endless_body_is_cut"],
    "F12": ["faults/test_faults_calls.py::test_no_broken_body_is_an_answer"],
    "F13": ["faults/test_faults_calls.py::test_what_no_call_can_get_past_stops_the_run"],
    "F14": ["faults/test_faults_calls.py::test_a_context_that_is_too_long_is_that_item_s_error"],
    "F15": ["plugin/test_plugin_models.py::test_a_full_disk_stops_the_run_at_once",
            "evaluators/test_ledger_runs.py::test_a_full_disk_stops_the_run_and_is_survived",
            "plugin/test_plugin.py::test_a_report_that_cannot_be_written_is_said"],
    "F16": ["evaluators/test_ledger_damage.py::test_a_hundred_damaged_files_give_no_wrong_reply"],
    "F17": ["evaluators/test_ledger_claims.py::test_processes_at_once_make_each_call_once",
            "evaluators/test_ledger_runs.py::test_two_runs_at_once_pay_once"],
    "F18": ["faults/test_surroundings.py::test_a_clock_that_jumps_changes_nothing",
            "faults/test_surroundings.py::test_an_address_that_leads_nowhere_is_named",
            "evaluators/test_models_proxies.py::test_nobody_listens_at_the_proxy",
            "evaluators/test_models_proxies.py::test_a_proxy_may_ask_for_a_password"],
    "F19": ["test_robustness_kit.py::test_hostile_answers_each_have_a_case_in_every_xml_file"],
    "F20": ["faults/test_input_bounds.py::test_a_bound_is_reached_soon",
            "cases/test_loading.py::test_a_blank_gold_is_refused_with_file_and_row"],
    "F21": ["test_robustness_kit.py::test_the_kit_finds_no_attack_that_works"],
    "F22": ["reports/test_page_sizes.py::test_the_attacks_of_the_kit_are_inert",
            "faults/test_hostile_runs.py::test_free_texts_of_a_run_cannot_command_a_log"],
    "F23": ["faults/test_canaries.py::test_no_channel_of_a_loud_run_holds_a_key",
            "evaluators/test_models_failures.py::test_a_key_that_the_api_echoes_is_masked",
            "evaluators/test_models_failures.py::test_logs_do_not_hold_the_key",
            "faults/test_junit_property.py::test_votes_and_metadata_are_masked_and_cut"],
    "F24": ["evaluators/test_models_failures.py::test_a_redirect_is_not_followed",
            "evaluators/test_metric_runs.py::test_measures_are_taken_gated_and_kept"],
    "F25": ["faults/test_surroundings.py::test_locale_and_hash_seed_change_no_byte_of_a_verdict",
            "faults/test_surroundings.py::test_no_code_comes_from_a_file_in_the_ledgers_place",
            "evaluators/test_ledger_private.py::test_a_file_that_others_can_change_is_refused",
            "plugin/test_options.py::test_the_real_rerun_plugin_is_refused",
            "reports/test_reports_main.py::test_the_module_runs_in_any_locale"],
    "F26": ["reports/test_fail_closed.py::test_what_is_left_out_never_makes_a_run_pass",
            "reports/test_summary.py::test_thousands_of_tables_give_sound_figures",
            "reports/test_summary.py::test_an_empty_slice_has_undefined_measures",
            "reports/test_summary.py::test_one_class_only_is_undefined_where_it_must_be"],
    "F27": ["evaluators/test_hosting.py::test_where_another_thread_runs_nothing_is_forked",
            "evaluators/test_metric_host.py::test_assert_test_and_evaluate_take_our_metrics"],
    "F28": ["evaluators/test_ledger.py::test_the_first_reply_stands"],
    "F29": ["faults/test_soak.py::test_a_run_among_faults_ends_as_one_without"],
    "R1": ["faults/test_recovery.py::test_a_run_is_soon_at_its_former_pace"],
    "R2": ["plugin/test_interrupts.py::test_an_interrupt_of_the_imports_is_one_line"],
    "R3": ["evaluators/test_ledger_claims.py::test_a_killed_run_holds_nothing_up"],
    "R4": ["faults/test_lost_ledger.py::test_a_table_that_is_dropped_ends_the_run"],
    "R5": ["faults/test_output.py::test_a_terminal_that_is_gone_costs_no_report"],
    "R6": ["faults/test_gateways.py::test_a_server_that_wants_no_retry_gets_none"],
    "R7": ["evaluators/test_replies_calls.py::test_a_reason_that_is_no_text_is_asked_again"],
    "R8": ["faults/test_dead_workers_run.py::test_workers_that_die_without_end"],
    "R9": ["evaluators/test_outcomes.py::test_a_silent_engine_is_given_up_by_other_processes"],
    "R10": ["evaluators/test_ledger_runs.py::test_a_full_disk_stops_the_run_and_is_survived"],
    "R11": ["cases/test_loading.py::test_a_blank_gold_is_refused_with_file_and_row"],
    "R12": ["plugin/test_plugin.py::test_a_report_that_cannot_be_written_is_said"],
}  # fmt: skip
NOT_SHOWN: dict[str, str] = {}


def function(node_id: str) -> ast.FunctionDef:
    """Return a test. Raises KeyError where there is none."""
    path, _, name = node_id.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    tests = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return tests[name]


def can_fail(test: ast.FunctionDef) -> bool:
    """Return whether a test asserts something, itself or by a helper that says so in its name."""
    calls = (node.func for node in ast.walk(test) if isinstance(node, ast.Call))
    names = (ast.unparse(call).rpartition(".")[2] for call in calls)
    helped = any(name.startswith(("assert", "check", "raises", "fnmatch")) for name in names)
    return helped or any(isinstance(node, ast.Assert) for node in ast.walk(test))


def test_every_row_is_in_the_table_once() -> None:
    """A row is shown by a test, or it is said why not."""
    rows = {f"F{number}" for number in range(1, 30)} | {f"R{number}" for number in range(1, 13)}
    assert MATRIX.keys() | NOT_SHOWN.keys() == rows
    assert MATRIX.keys() & NOT_SHOWN.keys() == set()


@pytest.mark.parametrize("row", MATRIX)
def test_a_row_has_its_tests(row: str) -> None:
    """Each test named here exists and says in its docstring which row it shows."""
    for node_id in MATRIX[row]:
        test = function(node_id)
        said = (ast.get_docstring(test) or "").replace("(", " ").replace(")", " ").replace(",", " ")
        assert row in said.replace(".", " ").replace(":", " ").split(), node_id
        assert can_fail(test), node_id
