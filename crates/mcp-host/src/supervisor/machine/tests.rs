//! The life of servers as rows: what happens, what is done about it, and what is seen then.

use std::time::{Duration, UNIX_EPOCH};

use crate::fixture::Run;

/// Rows of a step, what is done about it, and what is seen after it.
#[track_caller]
fn check(rows: &[[&str; 3]]) {
    let mut run = Run::new();
    for [step, actions, seen] in rows {
        assert_eq!([run.step(step).as_str(), run.seen().as_str()], [*actions, *seen], "{step}");
    }
}

#[test]
fn dm_102_each_server_is_published_as_it_becomes_ready() {
    check(&[
        ["want a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["ready 2", "follow 2", "a:starting b:ready=2 | b__t"],
        ["ready 1 t,u", "follow 1", "a:ready=1 b:ready=2 | a__t a__u b__t"],
    ]);
}

#[test]
fn hd_sc6_dm_120_one_bad_server_never_hides_the_others() {
    check(&[
        ["want a=1.1 b=1.1 c!", "start a=1, start b=2", "a:starting b:starting c:failed! |"],
        ["fail 1", "", "a:failed! b:starting c:failed! |"],
        ["ready 2", "follow 2", "a:failed! b:ready=2 c:failed! | b__t"],
        ["die 2", "retire 2", "a:failed! b:failed! c:failed! |"],
    ]);
}

#[test]
fn dm_110_an_unchanged_server_keeps_its_session() {
    check(&[
        ["want a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["ready 1", "follow 1", "a:ready=1 b:starting | a__t"],
        // Both a running server and one that is being started.
        ["want b=1.1 a=1.1", "", "b:starting a:ready=1 | a__t"],
        ["ready 2", "follow 2", "b:ready=2 a:ready=1 | b__t a__t"],
        ["want a=1.1", "retire 2", "a:ready=1 | a__t"],
        ["want", "retire 1", "|"],
    ]);
}

#[test]
fn dm_110_a_change_of_names_restarts_nothing() {
    check(&[
        ["want a=1.1", "start a=1", "a:starting |"],
        ["want a=1.2", "", "a:starting |"],
        ["ready 1", "follow 1", "a:ready=1 | a__t-2"],
        ["want a=1.3", "", "a:ready=1 | a__t-3"],
    ]);
}

#[test]
fn dm_101_a_changed_server_is_replaced_when_its_successor_is_ready() {
    check(&[
        ["want a=1.1", "start a=1", "a:starting |"],
        ["ready 1", "follow 1", "a:ready=1 | a__t"],
        ["want a=2.2", "start a=2", "a:starting=1 | a__t"],
        ["ready 2 u", "follow 2, retire 1", "a:ready=2 | a__u-2"],
        // The end of what was retired is no news.
        ["die 1", "", "a:ready=2 | a__u-2"],
    ]);
}

#[test]
fn dm_105_what_cannot_be_changed_goes_on_with_its_old_names() {
    check(&[
        ["want a=1.1", "start a=1", "a:starting |"],
        ["ready 1", "follow 1", "a:ready=1 | a__t"],
        ["want a=2.2", "start a=2", "a:starting=1 | a__t"],
        ["fail 2", "", "a:ready=1! | a__t"],
        // Wanting it once more tries once more; taking it back needs no start.
        ["want a=2.2", "start a=3", "a:starting=1 | a__t"],
        ["want a=1.1", "abort 3", "a:ready=1 | a__t"],
        ["want a!", "", "a:ready=1! | a__t"],
        ["want a=1.3", "", "a:ready=1 | a__t-3"],
        ["want a!", "", "a:ready=1! | a__t-3"],
        ["die 1", "retire 1", "a:failed! |"],
        ["want a!", "", "a:failed! |"],
        ["want a=1.1", "start a=4", "a:starting |"],
    ]);
}

#[test]
fn dm_105_the_old_instance_may_die_before_the_new_one_is_ready() {
    check(&[
        ["want a=1.1", "start a=1", "a:starting |"],
        ["ready 1", "follow 1", "a:ready=1 | a__t"],
        ["want a=2.1", "start a=2", "a:starting=1 | a__t"],
        ["die 1", "retire 1", "a:starting |"],
        ["ready 2", "follow 2", "a:ready=2 | a__t"],
    ]);
}

#[test]
fn dm_101_a_start_whose_spec_has_changed_is_closed_and_not_published() {
    check(&[
        ["want a=1.1", "start a=1", "a:starting |"],
        ["want a=2.1", "abort 1, start a=2", "a:starting |"],
        ["ready 1", "shut 1", "a:starting |"],
        ["fail 1", "", "a:starting |"],
        ["want", "abort 2", "|"],
        ["ready 2", "shut 2", "|"],
        ["lists 2 x", "", "|"],
    ]);
}

#[test]
fn a_server_that_failed_is_tried_again_when_it_is_wanted_again() {
    check(&[
        ["want a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["fail 1", "", "a:failed! b:starting |"],
        ["want a=1.1 b=1.1", "start a=3", "a:starting b:starting |"],
    ]);
}

#[test]
fn hd_115_hd_083_new_lists_take_the_place_of_old_ones() {
    check(&[
        ["want a=1.1", "start a=1", "a:starting |"],
        ["ready 1", "follow 1", "a:ready=1 | a__t"],
        ["lists 1 u,v", "follow 1", "a:ready=1 | a__u a__v"],
        ["lists 1 u,!late", "follow 1", "a:ready=1 | a__u"],
    ]);
}

#[test]
fn hd_136_one_name_is_one_server_and_the_first_has_it() {
    check(&[
        ["want a=1.1 a=2.1 b=1.1", "start a=1, start b=2", "a:starting a:failed! b:starting |"],
        ["ready 1", "follow 1", "a:ready=1 a:failed=1! b:starting | a__t"],
        ["want a=1.1 a!", "abort 2", "a:ready=1 a:failed=1! | a__t"],
    ]);
}

#[test]
fn dm_033_a_toolset_of_the_hosts_own_name_is_not_shown() {
    check(&[
        ["want own=1.1 a=1.1", "start own=1, start a=2", "own:starting a:starting |"],
        ["ready 1", "follow 1", "own:ready=1 a:starting |"],
        ["ready 2", "follow 2", "own:ready=1 a:ready=2 | a__t"],
    ]);
}

#[test]
fn a_closed_host_starts_nothing_more() {
    check(&[
        ["want a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["ready 1", "follow 1", "a:ready=1 b:starting | a__t"],
        ["close", "shut 1, abort 2", "a:stopped b:stopped |"],
        ["ready 2", "shut 2", "a:stopped b:stopped |"],
        ["want c=1.1", "", "a:stopped b:stopped |"],
        ["close", "", "a:stopped b:stopped |"],
    ]);
}

/// Does the steps, publishing after each, and tells the problems of the last publication.
#[track_caller]
fn problems(steps: &[&str], want: &[&str]) {
    let mut run = Run::new();
    let mut got = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        run.step(step);
        let snapshot = run.machine.snapshot(UNIX_EPOCH + Duration::from_secs(at as u64 + 1));
        got = snapshot.published.problems.iter().map(problem).collect();
    }
    assert_eq!(got, want);
}

fn problem(it: &crate::ActiveProblem) -> String {
    let since = it.since.duration_since(UNIX_EPOCH).unwrap().as_secs();
    format!("{since} {} {}: {}", it.problem.severity, it.problem.id, it.problem.message)
}

#[test]
fn dm_122_dm_124_problems_are_those_of_now_and_know_since_when() {
    problems(&["want a=1.1", "ready 1"], &[]);
    problems(
        &["want a=1.1 b!", "fail 1"],
        &[
            "2 error mcp/server/a/server_error: MCPConnectionError: no start",
            "1 error mcp/server/b/server_error: ConfigError: bad entry",
        ],
    );
    problems(
        &["want a=1.1", "ready 1", "want a=2.1", "fail 2"],
        &[
            "4 warning mcp/server/a/server_error: MCPConnectionError: no start; it goes on as it was configured before",
        ],
    );
    problems(
        &["want a=1.1", "ready 1", "lists 1 t,!late", "lists 1 t,!late"],
        &["3 warning mcp/server/a/server_error: its tools could not be listed: MCPTimeoutError: !late"],
    );
    // Gone with its cause, and a new one when the cause comes back.
    problems(&["want a=1.1", "fail 1", "want a=1.1"], &[]);
    problems(&["want a!", "want"], &[]);
    problems(
        &["want a=1.1", "fail 1", "want a=1.1", "fail 2"],
        &["4 error mcp/server/a/server_error: MCPConnectionError: no start"],
    );
    problems(&["want \u{7}!"], &["1 error mcp/server//server_error: ConfigError: bad entry"]);
}

#[test]
fn a_schema_that_cannot_be_used_is_a_problem_until_the_tools_change() {
    let unchecked = "3 warning mcp/server/a/tool_unvalidated/t: arguments of tool `t` of server `a` are passed on \
                     unchecked: its schema is odd";
    problems(&["want a=1.1", "ready 1", "odd a t", "odd a t", "odd a gone", "odd b t"], &[unchecked]);
    problems(&["want a=1.1", "ready 1", "odd a t", "lists 1 t"], &[unchecked]);
    problems(&["want a=1.1", "ready 1", "odd a t", "lists 1 t,u"], &[]);
}

#[test]
fn a_result_that_breaks_its_promise_is_a_problem_until_one_keeps_it() {
    let broken = "3 warning mcp/server/a/tool_result_invalid/t: tool `t` of server `a` does not keep its output \
                  schema: its schema is odd";
    problems(&["want a=1.1", "ready 1", "broken a t", "broken a t", "broken a gone"], &[broken]);
    problems(&["want a=1.1", "ready 1", "broken a t", "whole a t", "whole a t"], &[]);
    problems(&["want a=1.1", "ready 1", "broken a t", "lists 1 t,u"], &[]);
}

#[test]
fn dm_066_dm_124_a_stopped_dialog_is_a_problem_until_it_goes_on_or_is_over() {
    let stopped = "2 error llm/p/provider_rejected/d: provider `p` refused a request of dialog `d`: why";
    problems(&["want a=1.1", "stop d why", "stop d why", "resume e"], &[stopped]);
    problems(&["want a=1.1", "stop d why", "resume d"], &[]);
    problems(&["want a=1.1", "stop d why", "over d"], &[]);
    // The end of an earlier dialog of that name.
    problems(&["want a=1.1", "stop d why 1", "over d 0"], &[stopped]);
}

#[test]
fn hd_133_that_results_cannot_be_written_is_a_problem_until_one_is() {
    let full = "2 warning mcp/spill_failed: large results are cut, for they cannot be written to files: full";
    problems(&["want a=1.1", "spilled full", "spilled full"], &[full]);
    problems(&["want a=1.1", "spilled full", "spilled"], &[]);
}

#[test]
fn late_news_makes_no_new_generation() {
    let mut run = Run::new();
    run.step("want a=1.1");
    run.step("want a=2.1");
    run.seen();
    for step in ["ready 1", "fail 1", "lists 1 x", "die 1", "odd a t"] {
        run.step(step);
        assert!(!run.machine.is_changed(), "{step}");
    }
}

#[test]
fn hd_115_lists_that_are_the_same_make_no_new_generation() {
    let mut run = Run::new();
    for (step, want) in [
        ("want a=1.1", true),
        ("ready 1 t", true),
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
        // It is listened to all the same.
        assert!(!step.starts_with("lists") || actions == "follow 1", "{step}");
        run.seen();
    }
}
