//! The state machine as tables: event, actions, resulting state.

pub(crate) mod fixture;
mod interleavings;

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::supervisor::machine::tests::fixture::MachineDriver;

/// Rows of an event, its actions, and the state after it.
#[track_caller]
fn check(rows: &[[&str; 3]]) {
    let mut run = MachineDriver::new();
    for [step, actions, seen] in rows {
        assert_eq!([run.step(step).as_str(), run.status().as_str()], [*actions, *seen], "{step}");
    }
}

#[test]
fn dm_102_each_server_is_published_when_ready() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["started 2", "watch 2", "a:starting b:ready=2 | b__t"],
        ["started 1 t,u", "watch 1", "a:ready=1 b:ready=2 | a__t a__u b__t"],
    ]);
}

#[test]
fn hd_sc6_dm_120_failed_server_does_not_hide_others() {
    check(&[
        ["configure a=1.1 b=1.1 c!", "start a=1, start b=2", "a:starting b:starting c:failed! |"],
        ["fail 1", "", "a:failed! b:starting c:failed! |"],
        ["started 2", "watch 2", "a:failed! b:ready=2 c:failed! | b__t"],
        ["disconnect 2", "retire 2", "a:failed! b:failed! c:failed! |"],
    ]);
}

#[test]
fn dm_110_unchanged_server_keeps_its_session() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["started 1", "watch 1", "a:ready=1 b:starting | a__t"],
        // Both a running and a starting server.
        ["configure b=1.1 a=1.1", "", "b:starting a:ready=1 | a__t"],
        ["started 2", "watch 2", "b:ready=2 a:ready=1 | b__t a__t"],
        ["configure a=1.1", "retire 2", "a:ready=1 | a__t"],
        ["configure", "retire 1", "|"],
    ]);
}

#[test]
fn dm_110_reload_copies_nothing_of_unchanged_servers() {
    let mut run = MachineDriver::new();
    for step in ["configure a=1.1 b=1.1 c=1.1", "started 1 t", "started 2 t", "started 3 t"] {
        run.step(step);
    }
    let before = run.machine.next_routing_table(UNIX_EPOCH);
    run.step("configure a=1.1 b=1.1 d=1.1");
    let after = run.machine.next_routing_table(UNIX_EPOCH);
    assert_eq!(after.routes.len(), 2);
    for (id, route) in &after.routes {
        assert!(Arc::ptr_eq(&route.listing, &before.routes[id].listing), "{id}");
    }
    for (before, after) in before.snapshot.catalog.slices().iter().zip(after.snapshot.catalog.slices()) {
        assert!(Arc::ptr_eq(before, after), "{}", after.server());
    }
}

#[test]
fn dm_110_changed_names_restart_nothing() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["configure a=1.2", "", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t-2"],
        ["configure a=1.3", "", "a:ready=1 | a__t-3"],
    ]);
}

#[test]
fn dm_101_changed_server_is_replaced_when_successor_is_ready() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["configure a=2.2", "start a=2", "a:starting=1 | a__t"],
        ["started 2 u", "watch 2, replace 1", "a:ready=2 | a__u-2"],
        // A retired instance that ends changes nothing.
        ["disconnect 1", "", "a:ready=2 | a__u-2"],
    ]);
}

#[test]
fn dm_097_late_lists_of_replaced_instance_take_no_name() {
    check(&[
        ["configure a=1.1-bare b=1.1-bare", "start a=1, start b=2", "a:starting b:starting |"],
        ["started 1 t", "watch 1", "a:ready=1 b:starting | t"],
        ["started 2 u", "watch 2", "a:ready=1 b:ready=2 | t u"],
        ["configure a=2.1-bare b=1.1-bare", "start a=3", "a:starting=1 b:ready=2 | t u"],
        ["started 3 v", "watch 3, replace 1", "a:ready=3 b:ready=2 | v u"],
        // Neither the name of the other server nor the own old one.
        ["lists 1 t,u", "", "a:ready=3 b:ready=2 | v u"],
        // The free name may belong to the other server.
        ["lists 2 u,t", "watch 2", "a:ready=3 b:ready=2 | v u t"],
        ["lists 1 t", "", "a:ready=3 b:ready=2 | v u t"],
        ["disconnect 1", "", "a:ready=3 b:ready=2 | v u t"],
    ]);
}

#[test]
fn dm_105_failed_change_keeps_old_names() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["configure a=2.2", "start a=2", "a:starting=1 | a__t"],
        ["fail 2", "", "a:ready=1! | a__t"],
        // Applying again starts again; reverting needs no start.
        ["configure a=2.2", "start a=3", "a:starting=1 | a__t"],
        ["configure a=1.1", "abort 3", "a:ready=1 | a__t"],
        ["configure a!", "", "a:ready=1! | a__t"],
        ["configure a=1.3", "", "a:ready=1 | a__t-3"],
        ["configure a!", "", "a:ready=1! | a__t-3"],
        ["disconnect 1", "retire 1", "a:failed! |"],
        ["configure a!", "", "a:failed! |"],
        ["configure a=1.1", "start a=4", "a:starting |"],
    ]);
}

#[test]
fn dm_105_old_instance_may_end_before_new_one_is_ready() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["configure a=2.1", "start a=2", "a:starting=1 | a__t"],
        ["disconnect 1", "retire 1", "a:starting |"],
        ["started 2", "watch 2", "a:ready=2 | a__t"],
    ]);
}

#[test]
fn dm_101_outdated_start_is_closed_and_not_published() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["configure a=2.1", "abort 1, start a=2", "a:starting |"],
        ["started 1", "close 1", "a:starting |"],
        ["fail 1", "", "a:starting |"],
        ["configure", "abort 2", "|"],
        ["started 2", "close 2", "|"],
        ["lists 2 x", "", "|"],
    ]);
}

#[test]
fn failed_server_is_started_again_when_applied_again() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["fail 1", "", "a:failed! b:starting |"],
        ["configure a=1.1 b=1.1", "start a=3", "a:starting b:starting |"],
    ]);
}

#[test]
fn hd_115_hd_083_new_lists_replace_old_ones() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["lists 1 u,v", "watch 1", "a:ready=1 | a__u a__v"],
        ["lists 1 u,!late", "watch 1", "a:ready=1 | a__u"],
    ]);
}

#[test]
fn hd_136_first_server_keeps_a_duplicate_name() {
    check(&[
        ["configure a=1.1 a=2.1 b=1.1", "start a=1, start b=2", "a:starting a:failed! b:starting |"],
        ["started 1", "watch 1", "a:ready=1 a:failed=1! b:starting | a__t"],
        ["configure a=1.1 a!", "abort 2", "a:ready=1 a:failed=1! | a__t"],
    ]);
}

#[test]
fn dm_033_server_with_toolset_name_of_host_is_hidden() {
    check(&[
        ["configure own=1.1 a=1.1", "start own=1, start a=2", "own:starting a:starting |"],
        ["started 1", "watch 1", "own:ready=1 a:starting |"],
        ["started 2", "watch 2", "own:ready=1 a:ready=2 | a__t"],
    ]);
}

#[test]
fn closed_host_starts_nothing() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["started 1", "watch 1", "a:ready=1 b:starting | a__t"],
        ["close", "close 1, abort 2", "a:stopped b:stopped |"],
        ["started 2", "close 2", "a:stopped b:stopped |"],
        ["configure c=1.1", "", "a:stopped b:stopped |"],
        ["close", "", "a:stopped b:stopped |"],
    ]);
}

/// Runs the steps with a publication after each; returns the last problems.
#[track_caller]
fn problems(steps: &[&str], want: &[&str]) {
    let mut run = MachineDriver::new();
    let mut got = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        run.step(step);
        let routing_table = run.machine.next_routing_table(UNIX_EPOCH + Duration::from_secs(at as u64 + 1));
        got = routing_table.snapshot.problems.iter().map(problem).collect();
    }
    assert_eq!(got, want);
}

fn problem(it: &mcp_host_registry::ActiveProblem) -> String {
    let since = it.since.duration_since(UNIX_EPOCH).unwrap().as_secs();
    format!("{since} {} {}: {}", it.problem.severity, it.problem.id, it.problem.message)
}

#[test]
fn dm_122_dm_124_problems_are_current_and_keep_their_start() {
    problems(&["configure a=1.1", "started 1"], &[]);
    problems(
        &["configure a=1.1 b!", "fail 1"],
        &[
            "2 error mcp/server/a/server_error: MCPConnectionError: no start",
            "1 error mcp/server/b/server_error: ConfigError: bad entry",
        ],
    );
    problems(
        &["configure a=1.1", "started 1", "configure a=2.1", "fail 2"],
        &[
            "4 warning mcp/server/a/server_error: MCPConnectionError: no start; it keeps running with its previous \
            configuration",
        ],
    );
    problems(
        &["configure a=1.1", "started 1", "lists 1 t,!late", "lists 1 t,!late"],
        &["3 warning mcp/server/a/server_error: its tools could not be listed: MCPTimeoutError: !late"],
    );
    // A problem ends with its cause and returns with it.
    problems(&["configure a=1.1", "fail 1", "configure a=1.1"], &[]);
    problems(&["configure a!", "configure"], &[]);
    problems(
        &["configure a=1.1", "fail 1", "configure a=1.1", "fail 2"],
        &["4 error mcp/server/a/server_error: MCPConnectionError: no start"],
    );
    problems(&["configure \u{7}!"], &["1 error mcp/server//server_error: ConfigError: bad entry"]);
}

#[test]
fn unusable_schema_is_a_problem_until_tools_change() {
    let unchecked = "3 warning mcp/server/a/tool_unvalidated/t: arguments of tool `t` of server `a` are passed on \
                     unchecked: its schema is odd";
    problems(
        &[
            "configure a=1.1",
            "started 1",
            "unchecked a t",
            "unchecked a t",
            "unchecked a gone",
            "unchecked b t",
        ],
        &[unchecked],
    );
    problems(&["configure a=1.1", "started 1", "unchecked a t", "lists 1 t"], &[unchecked]);
    problems(&["configure a=1.1", "started 1", "unchecked a t", "lists 1 t,u"], &[]);
}

#[test]
fn invalid_result_is_a_problem_until_a_valid_one() {
    let broken = "3 warning mcp/server/a/tool_result_invalid/t: tool `t` of server `a` does not keep its output \
                  schema: its schema is odd";
    problems(&["configure a=1.1", "started 1", "invalid a t", "invalid a t", "invalid a gone"], &[broken]);
    problems(&["configure a=1.1", "started 1", "invalid a t", "valid a t", "valid a t"], &[]);
    problems(&["configure a=1.1", "started 1", "invalid a t", "lists 1 t,u"], &[]);
}

#[test]
fn dm_066_dm_124_stopped_dialog_is_a_problem_until_resumed_or_ended() {
    let stopped = "2 error llm/p/provider_rejected/d: provider `p` refused a request of dialog `d`: why";
    problems(&["configure a=1.1", "stop d why", "stop d why", "resume e"], &[stopped]);
    problems(&["configure a=1.1", "stop d why", "resume d"], &[]);
    problems(&["configure a=1.1", "stop d why", "end d"], &[]);
    // The end of an earlier dialog with the same id.
    problems(&["configure a=1.1", "stop d why 1", "end d 0"], &[stopped]);
}

#[test]
fn hd_133_failed_spill_is_a_problem_until_one_succeeds() {
    let full =
        "2 warning mcp/spill_failed: large results are cut, because they cannot be written to files: full";
    problems(&["configure a=1.1", "spilled full", "spilled full"], &[full]);
    problems(&["configure a=1.1", "spilled full", "spilled"], &[]);
}

#[test]
fn late_events_create_no_generation() {
    let mut run = MachineDriver::new();
    run.step("configure a=1.1");
    run.step("configure a=2.1");
    run.status();
    for step in ["started 1", "fail 1", "lists 1 x", "disconnect 1", "unchecked a t"] {
        run.step(step);
        assert!(!run.machine.is_changed(), "{step}");
    }
}

#[test]
fn hd_115_unchanged_lists_create_no_generation() {
    let mut run = MachineDriver::new();
    for (step, want) in [
        ("configure a=1.1", true),
        ("started 1 t", true),
        ("lists 1 t", false),
        ("lists 1 t,u", true),
        ("lists 1 t,u", false),
        ("lists 1 t,u,!late", true),
        ("lists 1 t,u,!late", false),
        ("lists 1 t,u,!later", true),
        ("lists 1 t,u", true),
    ] {
        let actions = run.step(step);
        assert_eq!(run.machine.is_changed(), want, "{step}");
        // The instance is still watched.
        assert!(!step.starts_with("lists") || actions == "watch 1", "{step}");
        run.status();
    }
}
