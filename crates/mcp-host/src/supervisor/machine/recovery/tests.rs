//! Failures and restarts as tables: event, actions, resulting state.

use crate::supervisor::machine::tests::fixture::MachineDriver;

#[track_caller]
fn check(rows: &[[&str; 3]]) {
    let mut run = MachineDriver::supervised();
    for [step, actions, seen] in rows {
        assert_eq!([run.step(step).as_str(), run.status().as_str()], [*actions, *seen], "{step}");
    }
}

#[test]
fn hd_084_dm_105_lost_server_is_restarted() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["started 1", "watch 1", "a:ready=1 b:starting | a__t"],
        ["started 2", "watch 2", "a:ready=1 b:ready=2 | a__t b__t"],
        ["disconnect 1", "retire 1", "a:restarting! b:ready=2 | b__t"],
        ["wait 0", "", "a:restarting! b:ready=2 | b__t"],
        ["due", "start a=3", "a:restarting! b:ready=2 | b__t"],
        ["wait 1", "", "a:restarting! b:ready=2 | b__t"],
        ["started 3", "watch 3", "a:ready=3 b:ready=2 | a__t b__t"],
    ]);
}

/// RPT-064
#[test]
fn rpt_064_server_that_ends_between_calls_is_started_again_at_once() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        // Calls wait for the successor, so the server remains ready.
        ["exit 1", "start a=2", "a:ready=1 | a__t"],
        ["suspend", "", "a:ready=1 | a__t"],
        ["wait 100", "", "a:ready=1 | a__t"],
        ["started 2", "watch 2, replace 1", "a:ready=2 | a__t"],
        ["exit 2", "start a=3", "a:ready=2 | a__t"],
        ["started 3", "watch 3, replace 2", "a:ready=3 | a__t"],
        ["exit 3", "start a=4", "a:ready=3 | a__t"],
        ["started 4", "watch 4, replace 3", "a:ready=4 | a__t"],
        ["exit 4", "start a=5", "a:ready=4 | a__t"],
        ["started 5", "watch 5, replace 4", "a:ready=5 | a__t"],
        // A failed start is a failure like any other.
        ["exit 5", "start a=6", "a:ready=5 | a__t"],
        ["fail 6", "retire 5", "a:restarting! |"],
        ["due", "start a=7", "a:restarting! |"],
        ["started 7", "watch 7", "a:ready=7 | a__t"],
    ]);
}

/// RPT-064
#[test]
fn rpt_064_changes_reach_a_server_that_ended_between_calls() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["exit 1", "start a=2", "a:ready=1 | a__t"],
        ["configure a=1.2", "", "a:ready=1 | a__t"],
        ["configure a!", "", "a:ready=1! | a__t"],
        ["started 2", "watch 2, replace 1", "a:ready=2! | a__t"],
        ["configure a=1.2", "", "a:ready=2 | a__t-2"],
        ["exit 2", "start a=3", "a:ready=2 | a__t-2"],
        ["configure a=2.2", "abort 3, start a=4", "a:ready=2 | a__t-2"],
        ["disable a", "abort 4, retire 2", "a:disabled |"],
        ["restart a", "start a=5", "a:starting |"],
        ["started 5", "watch 5", "a:ready=5 | a__t-2"],
        // Its successor is being started already.
        ["configure a=3.2", "start a=6", "a:starting=5 | a__t-2"],
        ["exit 5", "", "a:ready=5 | a__t-2"],
        ["disconnect 5", "", "a:ready=5 | a__t-2"],
        ["close", "abort 6, close 5", "a:stopped |"],
    ]);
}

#[test]
fn server_that_never_started_is_retried_then_suspended() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["fail 1", "", "a:restarting! |"],
        ["due", "start a=2", "a:restarting! |"],
        ["fail 2", "", "a:restarting! |"],
        ["due", "start a=3", "a:restarting! |"],
        ["fail 3", "", "a:restarting! |"],
        ["due", "start a=4", "a:restarting! |"],
        ["fail 4", "", "a:failed! |"],
        ["wait 49", "", "a:failed! |"],
        ["due", "start a=5", "a:restarting! |"],
        ["fail 5", "", "a:failed! |"],
        // Applying it again resets the failures.
        ["configure a=1.1", "start a=6", "a:starting |"],
        ["fail 6", "", "a:restarting! |"],
        ["configure", "", "|"],
        ["wait 1000", "", "|"],
    ]);
}

#[test]
fn only_sustained_uptime_resets_failures() {
    let crash = |run: &mut MachineDriver, start: u32, ran: u32| {
        run.step(&format!("started {start}"));
        run.step(&format!("wait {ran}"));
        run.step(&format!("disconnect {start}"));
        run.status()
    };
    for (ran, want) in [(9, "a:failed! |"), (10, "a:restarting! |")] {
        let mut run = MachineDriver::supervised();
        run.step("configure a=1.1");
        for start in 1..4 {
            assert_eq!(crash(&mut run, start, ran), "a:restarting! |");
            run.step("due");
        }
        assert_eq!(crash(&mut run, 4, ran), want, "after {ran} s each");
    }
}

#[test]
fn dm_105_failed_change_is_retried_while_old_instance_runs() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["configure a=2.2", "start a=2", "a:starting=1 | a__t"],
        ["fail 2", "", "a:ready=1! | a__t"],
        ["due", "start a=3", "a:ready=1! | a__t"],
        // The instance is lost meanwhile: the running attempt is enough.
        ["disconnect 1", "retire 1", "a:restarting! |"],
        ["started 3", "watch 3", "a:ready=3 | a__t-2"],
        // Reverting a change ends the attempts.
        ["configure a=1.2", "start a=4", "a:starting=3 | a__t-2"],
        ["fail 4", "", "a:ready=3! | a__t-2"],
        ["configure a=2.2", "", "a:ready=3 | a__t-2"],
        ["wait 29", "", "a:ready=3 | a__t-2"],
    ]);
}

#[test]
fn dm_105_last_valid_server_is_restarted_while_entry_is_invalid() {
    check(&[
        ["configure a=1.2", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t-2"],
        ["configure a!", "", "a:ready=1! | a__t-2"],
        ["disconnect 1", "retire 1", "a:restarting! |"],
        ["due", "start a=2", "a:restarting! |"],
        ["started 2", "watch 2", "a:ready=2! | a__t-2"],
        ["configure a=1.3", "", "a:ready=2 | a__t-3"],
    ]);
}

#[test]
fn entry_invalid_from_the_beginning_is_not_started() {
    check(&[["configure a!", "", "a:failed! |"], ["wait 1000", "", "a:failed! |"]]);
}

#[test]
fn running_servers_are_probed_regularly_and_after_suspend() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["started 1", "watch 1", "a:ready=1 b:starting | a__t"],
        ["wait 29", "", "a:ready=1 b:starting | a__t"],
        ["wait 1", "probe 1", "a:ready=1 b:starting | a__t"],
        // One probe at a time, except after a suspend.
        ["wait 100", "", "a:ready=1 b:starting | a__t"],
        ["probed 1", "", "a:ready=1 b:starting | a__t"],
        ["started 2", "watch 2", "a:ready=1 b:ready=2 | a__t b__t"],
        ["suspend", "probe 1, probe 2", "a:ready=1 b:ready=2 | a__t b__t"],
        ["probed 1", "", "a:ready=1 b:ready=2 | a__t b__t"],
        ["disconnect 2", "retire 2", "a:ready=1 b:restarting! | a__t"],
        ["probed 2", "", "a:ready=1 b:restarting! | a__t"],
    ]);
}

#[test]
fn closed_host_restarts_nothing() {
    check(&[
        ["configure a=1.1 b=1.1", "start a=1, start b=2", "a:starting b:starting |"],
        ["fail 1", "", "a:restarting! b:starting |"],
        ["started 2", "watch 2", "a:restarting! b:ready=2 | b__t"],
        ["close", "close 2", "a:stopped b:stopped |"],
        ["wait 1000", "", "a:stopped b:stopped |"],
        ["suspend", "", "a:stopped b:stopped |"],
    ]);
    let mut run = MachineDriver::supervised();
    for step in ["configure a=1.1", "fail 1", "close"] {
        run.step(step);
    }
    assert_eq!(run.machine.next_wake(), None);
}

#[test]
fn repeated_failure_creates_no_generation() {
    let mut run = MachineDriver::supervised();
    for step in ["configure a=1.1", "fail 1"] {
        run.step(step);
    }
    run.status();
    for (step, want) in [("due", false), ("fail 2", false), ("due", false), ("fail 3", false)] {
        run.step(step);
        assert_eq!(run.machine.is_changed(), want, "{step}");
    }
    run.step("due");
    run.step("fail 4");
    assert!(run.machine.is_changed(), "it is left alone now");
    let failure =
        run.machine.next_routing_table(std::time::UNIX_EPOCH).snapshot.servers[0].error.clone().unwrap();
    assert_eq!(
        failure.message,
        "no start; it failed 4 times in a row; restarts are suspended for up to 100 s"
    );
}

#[test]
fn restart_events_are_published() {
    let mut run = MachineDriver::supervised();
    for (step, want) in [
        ("configure a=1.1", "a starting 0"),
        ("fail 1", "a not started, a again 1"),
        ("due", "a starting 1"),
        ("started 2", "a ready"),
        ("lists 2 u", "a listed"),
        ("lists 2 u", ""),
        ("disconnect 2", "a lost, a again 2"),
        ("due", "a starting 2"),
        ("started 3", "a ready"),
        ("configure a=2.1", "a starting 0"),
        ("started 4", "a ready, a retired"),
        ("configure a=2.2", ""),
        ("configure", "a retired"),
    ] {
        run.step(step);
        assert_eq!(run.event_texts(), want, "{step}");
    }
}

#[test]
fn dm_110_changed_limits_reach_running_instance() {
    check(&[
        ["configure a=1.1", "start a=1", "a:starting |"],
        ["started 1", "watch 1", "a:ready=1 | a__t"],
        ["configure a=1.1-brief", "limit 1", "a:ready=1 | a__t"],
        ["configure a=1.1-brief", "", "a:ready=1 | a__t"],
    ]);
}
