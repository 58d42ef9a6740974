"""The rules of declared workflows and of their runs, each with the stories that show it.

How runs are started by time, queues and rows, and where logs go, are products of their own.
"""

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """A rule in a few words, and tests as `folder/file::test`, without `test_`.

    A test is named by how it begins, if no other of its file begins so.
    """

    text: str
    tests: tuple[str, ...]


def _of(text: str, *tests: str) -> Rule:
    return Rule(text, tests)


DURABLE: Final = (
    _of("a run goes on at its step after a restart", "steps/restart::a_run_goes_on_at_the_step"),
    _of(
        "every step has attempts and a backoff of its own; between them the run is only a time",
        "steps/retry_with_backoff::a_step_that_fails_twice_succeeds",
    ),
    _of(
        "waiting costs nothing, for thirty days",
        "steps/sleep::thirty_days_pass",
        "subworkflow/child::the_parent_is_parked",
    ),
    _of(
        "an effect may come twice, under one id",
        "steps/retry_with_backoff::every_attempt_carries_the_same_id",
        "steps/timeout::a_receiver_that_does_not_answer",
    ),
    _of(
        "the kinds with a side effect do their work", "steps/order_pipeline::an_order_runs_through"
    ),
    _of("an attempt is bounded in time", "steps/timeout::a_receiver_that_does_not_answer"),
    _of("webhooks reach no private network", "steps/refused_address::a_private_address_is_refused"),
)
ACCESS: Final = (
    _of("every request needs a token", "starts/body::a_stranger_is_refused"),
    _of(
        "a run of another workflow is not found",
        "reading/list_and_detail::a_run_is_shown_to_its_own",
        "signals/finished::a_run_that_is_not_there",
    ),
)
DEFINITIONS: Final = (
    _of("a name has a form", "definitions/rules::the_name_has_a_form"),
    _of(
        "a version is enabled unless its body says otherwise",
        "definitions/rules::an_enabled_first_version",
    ),
    _of(
        "a PUT makes the next version, and changes no run in flight",
        "definitions/versions::a_run_in_flight_is_not_changed",
        "definitions/versions::every_version_stays_readable",
    ),
    _of(
        "a start takes the highest enabled version",
        "definitions/versions::a_version_that_is_published_disabled",
    ),
    _of("workflows are listed with their newest version", "definitions/rules::an_enabled_first"),
    _of("secrets are not shown", "steps/order_pipeline::the_secret_of_a_step"),
    _of("keys have a form, no colon, and are unique", "definitions/rules::keys_have_a_form"),
    _of(
        "1 to 200 steps, a target of 8 KiB",
        "definitions/rules::sizes_are_bounded",
        "definitions/rules::the_largest_definition",
    ),
    _of("a fan-out and its join are neighbours", "definitions/rules::a_fanout_and_its_join"),
    _of("children nest once and have side effects", "definitions/rules::children_nest_one_level"),
    _of("a workflow does not call itself", "subworkflow/depth::a_workflow_may_not_call_itself"),
    _of("every kind has rules for its target", "definitions/rules::every_kind_has_its_own_rules"),
    _of(
        "compensations only where something can be compensated, by actions only",
        "definitions/rules::compensations_stand_only",
    ),
    _of(
        "all violations are reported, and nothing is stored",
        "definitions/validate_only::a_bad_one_gets_every_violation",
        "definitions/validate_only::a_good_definition",
    ),
    _of(
        "a resource may be missing until its step runs",
        "steps/unknown_resource::a_missing_resource",
        "steps/unknown_resource::a_resource_that_comes_after",
    ),
    _of("payloads are static", "steps/payload::every_step_sends"),
)
FANOUT: Final = (
    _of(
        "children run at once, at most eight",
        "fanout/join::eight_children_are_in_flight",
        "fanout/join::a_reader_sees_which_children",
    ),
    _of("the join holds until all are finished", "fanout/join::the_join_collects"),
    _of("a wide fan-out drains", "fanout/wide::two_hundred_children"),
    _of(
        "a child has a budget and a backoff of its own",
        "fanout/retry::a_child_backs_off",
        "fanout/retry::children_back_off_each",
    ),
    _of(
        "the join's output is an object by key",
        "fanout/join::the_join_collects",
        "fanout/join::what_the_join_collected",
        "fanout/wide::outputs_that_are_too_large",
    ),
    _of(
        "a failed child fails the join and the run: no partial success",
        "fanout/failure::siblings_in_flight_are_recorded",
        "fanout/failure::the_steps_behind",
        "fanout/failure::a_child_without_its_resource",
    ),
)
STARTS: Final = (
    _of(
        "input is any JSON value, {} at first; a key has 200 characters",
        "starts/body::both_fields_are_optional",
        "starts/body::the_input_is_any_json_value",
        "starts/body::a_key_has_at_most",
    ),
    _of(
        "one key of a workflow, one run",
        "starts/idempotency::a_key_used_again",
        "starts/idempotency::many_starts_at_once",
        "starts/idempotency::a_key_belongs_to_its_workflow",
    ),
    _of("without a key every start is a run", "starts/idempotency::without_a_key"),
    _of(
        "a run's output is that of the last step that made one, to 256 KiB",
        "reading/list_and_detail::the_detail_shows",
        "steps/large_output::an_output_of_the_limit",
        "steps/large_output::an_output_one_byte_past",
    ),
)
WAITS: Final = (
    _of(
        "a sleep lasts at least as long as it says",
        "steps/sleep::a_run_sleeps_as_long",
        "steps/sleep::a_late_tick_ends",
    ),
    _of(
        "a wait parks until its signal; the payload is its output, and the run's",
        "signals/parked::a_parked_run_resumes",
        "signals/names::a_signal_goes_to_one_run",
    ),
    _of(
        "an early signal is kept until its step comes",
        "signals/early::a_signal_sent_before",
        "signals/early::a_signal_sent_during",
        "signals/early::many_early_signals",
    ),
    _of(
        "a signal is consumed once, by one wait",
        "signals/names::a_signal_is_taken_by_one_wait_only",
        "signals/names::signals_of_one_name",
        "signals/key::a_repeated_key_delivers_nothing_more",
    ),
    _of("a run may wait for several names", "signals/names::each_wait_takes"),
    _of(
        "a parked run is woken at once, and misses nothing in the midst of an advance",
        "signals/parked::a_parked_run_resumes",
        "signals/parked::a_signal_that_comes_while",
    ),
    _of(
        "a wait is bounded from its first park, seven days at first",
        "signals/expired::other_signals_do_not_prolong",
        "signals/expired::a_wait_lasts_seven_days",
        "signals/expired::a_signal_that_came_in_time",
    ),
    _of("an expired wait is not tried again", "signals/expired::a_wait_that_expires"),
    _of(
        "a signal's name has a form, its payload 32 KiB",
        "signals/parked::a_malformed_name",
        "signals/parked::a_payload_has_at_most",
    ),
    _of(
        "a run that has ended takes no signal",
        "signals/finished::a_run_that_has_ended",
        "signals/finished::a_cancelled_run",
    ),
    _of("a run keeps a thousand signals", "signals/finished::a_run_keeps_a_thousand"),
)
CHILDREN: Final = (
    _of(
        "a child is an ordinary run, listed, shown and cancelled on its own",
        "subworkflow/child::the_output_of_the_child",
        "cancel/cascade::a_child_can_be_cancelled_on_its_own",
    ),
    _of(
        "it runs the highest enabled version of its start, with the payload as input",
        "subworkflow/target::the_version_is_resolved",
        "subworkflow/target::every_new_child",
        "subworkflow/child::the_output_of_the_child",
    ),
    _of(
        "a target without a version: missing at once, disabled by attempts",
        "subworkflow/target::a_target_that_is_not_there",
        "subworkflow/target::a_disabled_target",
    ),
    _of("the parent parks and shows the child's id", "subworkflow/child::the_parent_is_parked"),
    _of("the child's output becomes the parent's", "subworkflow/child::the_output_of_the_child"),
    _of(
        "a failed child costs an attempt and is followed by a new one",
        "subworkflow/failed::a_failed_child_is_followed",
        "subworkflow/failed::a_spent_budget",
    ),
    _of("a cancelled child is not tried again", "subworkflow/cancelled::a_cancelled_child"),
    _of(
        "a timed-out child is cancelled before another begins",
        "subworkflow/timeout::the_abandoned_child",
        "subworkflow/timeout::the_second_child",
    ),
    _of(
        "depths 0 to 5 exist; beyond, nobody tries again",
        "subworkflow/depth::a_chain_of_six",
        "subworkflow/depth::a_run_at_the_limit",
    ),
    _of("an indirect cycle ends at the depth limit", "subworkflow/depth::a_cycle_ends"),
    _of("cancelling a parent spares its child", "cancel/cascade::a_running_child_goes_on"),
    _of(
        "a cascade does not",
        "cancel/cascade::a_cascade_cancels",
        "cancel/cascade::a_cascade_spares",
    ),
)
FAILURE: Final = (
    _of("2, 4, 8 … seconds, at most an hour", "steps/retry_with_backoff::the_pause_doubles"),
    _of(
        "spent attempts fail the run, with the step's error",
        "steps/spent_attempts::a_run_fails_when",
    ),
    _of("a failed run stays as it is", "steps/spent_attempts::a_failed_run_stays"),
    _of(
        "what repeating cannot help is not repeated",
        "steps/unknown_resource::a_missing_resource",
        "signals/expired::a_wait_that_expires",
        "subworkflow/cancelled::a_cancelled_child",
        "steps/large_output::an_output_one_byte_past",
    ),
)
COMPENSATION: Final = (
    _of(
        "backwards, from the step before the one that failed; only what succeeded",
        "compensation/order::the_walk_goes_backwards",
        "compensation/order::a_wait_that_expires",
    ),
    _of("a step without a compensation is skipped", "compensation/order::the_walk_goes_backwards"),
    _of(
        "a fan-out is compensated through its children, together",
        "compensation/fanout::the_children_of_a_joined",
        "compensation/fanout::the_siblings_of_a_failed_child",
    ),
    _of(
        "a late success is compensated too, and nothing else",
        "compensation/fanout::a_sibling_that_succeeds_late",
        "compensation/fanout::children_that_never_ended_well",
    ),
    _of(
        "a sub-workflow's compensation leaves the child alone",
        "compensation/order::a_subworkflow_compensates",
    ),
    _of(
        "a compensation is a step, compensate:<key>, with attempts of its own",
        "compensation/order::a_compensation_is_a_step",
    ),
    _of(
        "it may run twice, under one id",
        "compensation/order::every_attempt_of_a_compensation",
    ),
    _of("compensating survives a restart", "steps/restart::compensating_goes_on"),
    _of(
        "a failing compensation stops the walk and is named",
        "compensation/failing::the_walk_stops",
        "compensation/failing::a_child_that_could_not_be_compensated",
    ),
    _of(
        "a compensated run is a failed run",
        "compensation/order::a_compensated_run",
        "compensation/order::a_run_with_nothing_to_compensate",
        "compensation/order::the_output_of_a_compensation",
    ),
    _of(
        "a structural failure compensates nothing",
        "compensation/structural_failure::the_step_ceiling",
        "compensation/structural_failure::compensating_that_meets",
    ),
)
READING: Final = (
    _of(
        "runs are listed newest first, in pages, by status and time",
        "reading/list_and_detail::runs_are_listed_newest_first",
        "reading/list_and_detail::the_list_can_be_filtered",
        "reading/list_and_detail::the_list_can_be_cut_by_time",
    ),
    _of(
        "a run shows every step, children with their parent, compensations marked",
        "reading/list_and_detail::two_hundred_steps",
        "fanout/join::the_join_collects",
        "compensation/order::the_walk_goes_backwards",
    ),
    _of(
        "an error of the database is reported in its words",
        "steps/order_pipeline::an_error_of_the_database",
    ),
    _of("a reader may wait for the end", "reading/wait_for_the_end::it_answers_when_the_run_ends"),
)
STOPPING: Final = (
    _of(
        "a live run can be cancelled, in every state",
        "cancel/live_states::a_pending_run",
        "cancel/live_states::a_run_that_backs_off",
        "cancel/live_states::a_sleeping_run",
        "signals/parked::a_waiting_run_can_be_cancelled",
    ),
    _of(
        "a run that has ended cannot",
        "cancel/live_states::a_run_that_has_ended",
        "cancel/live_states::a_cancelled_run_cannot",
    ),
    _of(
        "a step in flight is recorded, and nothing after it begins",
        "cancel/live_states::a_run_whose_step_is_executing",
        "cancel/live_states::a_run_whose_step_fails_while",
    ),
    _of(
        "cancelling does not compensate",
        "cancel/during_compensation::a_cancelled_run_is_not_compensated",
    ),
    _of(
        "compensating that is cancelled is incomplete",
        "cancel/during_compensation::a_compensation_that_backs_off",
        "cancel/during_compensation::a_compensation_in_flight",
    ),
    _of(
        "a disabled name starts nothing, in no version, until it is enabled",
        "definitions/disable::a_disabled_workflow_starts_nothing",
        "definitions/disable::publishing_again",
    ),
    _of(
        "what is in flight goes on",
        "definitions/disable::a_run_in_flight",
        "subworkflow/target::a_child_in_flight",
    ),
    _of("a workflow cannot be deleted", "definitions/rules::a_workflow_cannot_be_deleted"),
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
    *COMPENSATION,
    *READING,
    *STOPPING,
)
