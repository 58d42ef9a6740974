"""The rules of declared workflows and of their runs, each with the stories that show it.

How runs are started by time, queues and rows, and where logs go, are products of their own.
"""

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """A rule in a few words, and tests as `file::test`, both without their `test_`.

    A test is named by how it begins, if no other of its file begins so.
    """

    text: str
    tests: tuple[str, ...]


def _of(text: str, *tests: str) -> Rule:
    return Rule(text, tests)


DURABLE: Final = (
    _of("a run goes on at its step after a restart", "restart::a_run_goes_on_at_the_step"),
    _of(
        "every step has attempts and a backoff of its own; between them the run is only a time",
        "retry_with_backoff::a_step_that_fails_twice_succeeds",
    ),
    _of(
        "waiting costs nothing, for thirty days",
        "sleep::thirty_days_pass",
        "subworkflow::the_parent_is_parked",
    ),
    _of(
        "an effect may come twice, under one id",
        "retry_with_backoff::every_attempt_carries_the_same_id",
        "timeout::a_receiver_that_does_not_answer",
    ),
    _of("the kinds with a side effect do their work", "order_pipeline::an_order_runs_through"),
    _of("an attempt is bounded in time", "timeout::a_receiver_that_does_not_answer"),
    _of("webhooks reach no private network", "refused_address::a_private_address_is_refused"),
)
ACCESS: Final = (
    _of("every request needs a token", "start_body::a_stranger_is_refused"),
    _of(
        "a run of another workflow is not found",
        "list_and_detail::a_run_is_shown_to_its_own",
        "signal_finished::a_run_that_is_not_there",
    ),
)
DEFINITIONS: Final = (
    _of("a name has a form", "definition_rules::the_name_has_a_form"),
    _of("a version is enabled unless told otherwise", "definition_rules::an_enabled_first_version"),
    _of(
        "a PUT makes the next version, and changes no run in flight",
        "immutable_versions::a_run_in_flight_is_not_changed",
        "immutable_versions::every_version_stays_readable",
    ),
    _of(
        "a start takes the highest enabled version",
        "immutable_versions::a_version_that_is_published_disabled",
    ),
    _of("workflows are listed with their newest version", "definition_rules::an_enabled_first"),
    _of("secrets are not shown", "order_pipeline::the_secret_of_a_step"),
    _of("keys have a form, no colon, and are unique", "definition_rules::keys_have_a_form"),
    _of(
        "1 to 200 steps, a target of 8 KiB",
        "definition_rules::sizes_are_bounded",
        "definition_rules::the_largest_definition",
    ),
    _of("a fan-out and its join are neighbours", "definition_rules::a_fanout_and_its_join"),
    _of("children nest once and have side effects", "definition_rules::children_nest_one_level"),
    _of("a workflow does not call itself", "subworkflow_depth::a_workflow_may_not_call_itself"),
    _of("every kind has rules for its target", "definition_rules::every_kind_has_its_own_rules"),
    _of(
        "compensations only where something can be undone, by actions only",
        "definition_rules::compensations_stand_only",
    ),
    _of(
        "all violations are told, and nothing is stored",
        "validate_only::a_bad_one_gets_every_violation",
        "validate_only::a_good_definition",
    ),
    _of(
        "a resource may be missing until its step runs",
        "unknown_resource::a_missing_resource",
        "unknown_resource::a_resource_that_comes_after",
    ),
    _of("payloads are static", "payload::every_step_sends"),
)
FANOUT: Final = (
    _of(
        "children run at once, at most eight",
        "fanout::eight_children_are_in_flight",
        "fanout::a_reader_sees_which_children",
    ),
    _of("the join holds until all are finished", "fanout::the_join_collects"),
    _of("a wide fan-out drains", "wide_fanout::two_hundred_children"),
    _of(
        "a child has a budget and a backoff of its own",
        "fanout_retry::a_child_backs_off",
        "fanout_retry::children_back_off_each",
    ),
    _of(
        "the join's output is an object by key",
        "fanout::the_join_collects",
        "fanout::what_the_join_collected",
        "wide_fanout::outputs_that_are_too_large",
    ),
    _of(
        "a failed child fails the join and the run: no partial success",
        "fanout_failure::siblings_in_flight_are_recorded",
        "fanout_failure::the_steps_behind",
        "fanout_failure::a_child_without_its_resource",
    ),
)
STARTS: Final = (
    _of(
        "input is any JSON value, {} at first; a key has 200 characters",
        "start_body::both_fields_are_optional",
        "start_body::the_input_is_any_json_value",
        "start_body::a_key_has_at_most",
    ),
    _of(
        "one key of a workflow, one run",
        "idempotent_start::a_key_used_again",
        "idempotent_start::many_starts_at_once",
        "idempotent_start::a_key_belongs_to_its_workflow",
    ),
    _of("without a key every start is a run", "idempotent_start::without_a_key"),
    _of(
        "a run's output is that of the last step that made one, to 256 KiB",
        "list_and_detail::the_detail_shows",
        "large_output::an_output_of_the_limit",
        "large_output::an_output_one_byte_past",
    ),
)
WAITS: Final = (
    _of(
        "a sleep lasts at least as long as it says",
        "sleep::a_run_sleeps_as_long",
        "sleep::a_late_tick_ends",
    ),
    _of(
        "a wait parks until its signal; the payload is its output, and the run's",
        "signal_parked::a_parked_run_resumes",
        "signal_names::a_signal_goes_to_one_run",
    ),
    _of(
        "an early signal is kept until its step comes",
        "signal_early::a_signal_sent_before",
        "signal_early::a_signal_sent_during",
    ),
    _of(
        "a signal is consumed once, by one wait",
        "signal_names::a_signal_is_taken_by_one_wait_only",
        "signal_names::signals_of_one_name",
        "signal_key::a_repeated_key_delivers_nothing_more",
    ),
    _of("a run may wait for several names", "signal_names::each_wait_takes"),
    _of(
        "a parked run is woken at once, and misses nothing in the midst of an advance",
        "signal_parked::a_parked_run_resumes",
        "signal_parked::a_signal_that_comes_while",
    ),
    _of(
        "a wait is bounded from its first park, seven days at first",
        "signal_expired::other_signals_do_not_prolong",
        "signal_expired::a_wait_lasts_seven_days",
        "signal_expired::a_signal_that_came_in_time",
    ),
    _of("an expired wait is not tried again", "signal_expired::a_wait_that_expires"),
    _of(
        "a signal's name has a form, its payload 32 KiB",
        "signal_parked::a_malformed_name",
        "signal_parked::a_payload_has_at_most",
    ),
    _of(
        "a run that has ended takes no signal",
        "signal_finished::a_run_that_has_ended",
        "signal_finished::a_cancelled_run",
    ),
    _of("a run keeps a thousand signals", "signal_finished::a_run_keeps_a_thousand"),
)
CHILDREN: Final = (
    _of(
        "a child is an ordinary run, listed, shown and cancelled on its own",
        "subworkflow::the_output_of_the_child",
        "cascade::a_child_can_be_cancelled_on_its_own",
    ),
    _of(
        "it runs the highest enabled version of its start, with the payload as input",
        "subworkflow_target::the_version_is_resolved",
        "subworkflow_target::every_new_child",
        "subworkflow::the_output_of_the_child",
    ),
    _of(
        "a target without a version: missing at once, disabled by attempts",
        "subworkflow_target::a_target_that_is_not_there",
        "subworkflow_target::a_disabled_target",
    ),
    _of("the parent parks and shows the child's id", "subworkflow::the_parent_is_parked"),
    _of("the child's output becomes the parent's", "subworkflow::the_output_of_the_child"),
    _of(
        "a failed child costs an attempt and is followed by a new one",
        "subworkflow_failed::a_failed_child_is_followed",
        "subworkflow_failed::a_spent_budget",
    ),
    _of("a cancelled child is not tried again", "subworkflow_cancelled::a_cancelled_child"),
    _of(
        "a timed-out child is cancelled before another begins",
        "subworkflow_timeout::the_abandoned_child",
        "subworkflow_timeout::the_second_child",
    ),
    _of(
        "depths 0 to 5 exist; beyond, nobody tries again",
        "subworkflow_depth::a_chain_of_six",
        "subworkflow_depth::a_run_at_the_limit",
    ),
    _of("an indirect cycle ends at the depth limit", "subworkflow_depth::a_cycle_ends"),
    _of("cancelling a parent spares its child", "cascade::a_running_child_goes_on"),
    _of("a cascade does not", "cascade::a_cascade_cancels", "cascade::a_cascade_spares"),
)
FAILURE: Final = (
    _of("2, 4, 8 … seconds, at most an hour", "retry_with_backoff::the_pause_doubles"),
    _of(
        "spent attempts fail the run, with the step's error",
        "dead_letter::a_run_fails_when",
    ),
    _of("a failed run stays as it is", "dead_letter::a_failed_run_stays"),
    _of(
        "what repeating cannot help is not repeated",
        "unknown_resource::a_missing_resource",
        "signal_expired::a_wait_that_expires",
        "subworkflow_cancelled::a_cancelled_child",
        "large_output::an_output_one_byte_past",
    ),
)
ROLLBACK: Final = (
    _of(
        "backwards, from the step before the one that failed; only what succeeded",
        "compensation::the_walk_goes_backwards",
        "compensation::a_wait_that_expires",
    ),
    _of("a step without a compensation is skipped", "compensation::the_walk_goes_backwards"),
    _of(
        "a fan-out is undone through its children, together",
        "compensate_fanout::the_children_of_a_joined",
        "compensate_fanout::the_siblings_of_a_failed_child",
    ),
    _of(
        "a late success is undone too, and nothing else",
        "compensate_fanout::a_sibling_that_succeeds_late",
        "compensate_fanout::children_that_never_ended_well",
    ),
    _of(
        "a sub-workflow's compensation leaves the child alone",
        "compensation::a_subworkflow_undoes",
    ),
    _of(
        "a compensation is a step, compensate:<key>, with attempts of its own",
        "compensation::a_compensation_is_a_step",
    ),
    _of(
        "it may run twice, under one id",
        "compensation::every_attempt_of_a_compensation",
    ),
    _of("a rollback survives a restart", "restart::a_rollback_goes_on"),
    _of(
        "a failing compensation stops the walk and is named",
        "failing_compensation::the_walk_stops",
        "failing_compensation::a_child_that_could_not_be_undone",
    ),
    _of(
        "a compensated run is a failed run",
        "compensation::a_compensated_run",
        "compensation::a_run_with_nothing_to_undo",
        "compensation::the_output_of_a_compensation",
    ),
    _of(
        "a structural failure undoes nothing",
        "structural_failure::the_step_ceiling",
        "structural_failure::a_rollback_that_meets",
    ),
)
READING: Final = (
    _of(
        "runs are listed newest first, in pages, by status and time",
        "list_and_detail::runs_are_listed_newest_first",
        "list_and_detail::the_list_can_be_filtered",
        "list_and_detail::the_list_can_be_cut_by_time",
    ),
    _of(
        "a run shows every step, children with their parent, compensations marked",
        "list_and_detail::two_hundred_steps",
        "fanout::the_join_collects",
        "compensation::the_walk_goes_backwards",
    ),
    _of(
        "an error of the database is told in its words",
        "order_pipeline::an_error_of_the_database",
    ),
    _of("a reader may wait for the end", "wait_for_the_end::it_answers_when_the_run_ends"),
)
STOPPING: Final = (
    _of(
        "a live run can be cancelled, in every state",
        "cancel::a_pending_run",
        "cancel::a_run_that_backs_off",
        "cancel::a_sleeping_run",
        "signal_parked::a_waiting_run_can_be_cancelled",
    ),
    _of(
        "a run that has ended cannot",
        "cancel::a_run_that_has_ended",
        "cancel::a_cancelled_run_cannot",
    ),
    _of(
        "a step in flight is recorded, and nothing after it begins",
        "cancel::a_run_whose_step_is_executing",
        "cancel::a_run_whose_step_fails_while",
    ),
    _of(
        "cancelling does not roll back",
        "cancelled_rollback::a_cancelled_run_is_not_rolled_back",
    ),
    _of(
        "a rollback that is cancelled is incomplete",
        "cancelled_rollback::a_compensation_that_backs_off",
        "cancelled_rollback::a_compensation_in_flight",
    ),
    _of(
        "a disabled name starts nothing, in no version, until it is enabled",
        "disable::a_disabled_workflow_starts_nothing",
        "disable::publishing_again",
    ),
    _of(
        "what is in flight goes on",
        "disable::a_run_in_flight",
        "subworkflow_target::a_child_in_flight",
    ),
    _of("a workflow cannot be deleted", "definition_rules::a_workflow_cannot_be_deleted"),
)

RULES: Final = (
    *DURABLE,
    *ACCESS,
    *DEFINITIONS,
    *FANOUT,
    *STARTS,
    *WAITS,
    *CHILDREN,
    *FAILURE,
    *ROLLBACK,
    *READING,
    *STOPPING,
)
