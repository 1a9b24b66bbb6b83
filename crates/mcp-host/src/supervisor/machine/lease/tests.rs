//! Leases as tables: event, actions, resulting leases.

use crate::supervisor::machine::tests::fixture::MachineDriver;

/// Rows of an event, its actions, and the leases after it; `-` if unchanged.
#[track_caller]
fn check(rows: &[[&str; 3]]) {
    let mut run = MachineDriver::supervised();
    for [step, actions, leased] in rows {
        let got = run.step(step);
        let now = run.leases().unwrap_or_else(|| "-".to_owned());
        assert_eq!([got.as_str(), now.as_str()], [*actions, *leased], "{step}");
    }
}

#[test]
fn dm_080_listing_instance_of_leased_server_is_closed() {
    let mut run = MachineDriver::supervised();
    assert_eq!(run.step("configure a=1.1-own"), "start a=1");
    assert_eq!(run.step("started 1 t,u"), "close 1");
    assert_eq!(run.status(), "a:ready~1 | a__t a__u");
    // Without an instance there is no probe.
    assert_eq!(run.machine.next_wake(), None);
}

#[test]
fn dm_074_dm_075_each_dialog_gets_and_keeps_its_own() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        // The first calls of a dialog share one start, even if the first one stopped waiting.
        ["lease d a 1", "", "-"],
        ["lease e a 1", "start-leased a=3", "-"],
        ["started 2", "watch 2, 1 gets 2, 2 gets 2", "d/a=2 | d/a"],
        ["lease d a 1", "4 gets 2", "-"],
        ["started 3", "watch 3, 3 gets 3", "d/a=2 e/a=3 | d/a e/a"],
    ]);
}

#[test]
fn failed_start_is_reported_to_waiters_and_retried_by_later_call() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["lease d a 1", "", "-"],
        ["fail 2", "1 is refused, 2 is refused", "-"],
        // During the backoff nothing is started for any dialog.
        ["lease d a 1", "3 is refused", "-"],
        ["lease e a 1", "4 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "start-leased a=3", "-"],
        ["started 2", "close 2", "-"],
        // One start at a time tests the server; its call waits.
        ["lease e a 1", "6 is refused", "-"],
        ["lease d a 1", "", "-"],
        ["started 3", "watch 3, 5 gets 3, 7 gets 3", "d/a=3 | d/a"],
        ["lease e a 1", "start-leased a=4", "-"],
    ]);
}

#[test]
fn hd_084_backoff_grows_for_all_dialogs_and_ends_with_restart() {
    let mut run = MachineDriver::supervised();
    for step in ["configure a=1.1-own", "started 1", "lease d a 1", "lease e a 1", "lease f a 1"] {
        run.step(step);
    }
    // At most two are leased here; both fail for one reason, which is one failure.
    assert_eq!((run.step("fail 2").as_str(), run.step("fail 3").as_str()), ("1 is refused", "2 is refused"));
    assert_eq!(run.status(), "a:ready~1 | a__t");
    // Backoffs up to 2, 4 and 8 s, then 100 s, each at least half of that.
    let mut start = 4;
    for (too_early, enough) in [(0, 2), (1, 3), (3, 5), (49, 51)] {
        run.step(&format!("wait {too_early}"));
        assert!(run.step("lease d a 1").ends_with("is refused"), "{too_early}");
        run.step(&format!("wait {enough}"));
        assert_eq!(run.step("lease d a 1"), format!("start-leased a={start}"));
        assert!(run.step(&format!("fail {start}")).ends_with("is refused"));
        start += 1;
    }
    run.step("restart a");
    run.step(&format!("started {start}"));
    assert_eq!(run.step(&format!("lease d a {start}")), format!("start-leased a={}", start + 1));
}

#[test]
fn dm_124_failed_lease_is_a_problem_until_one_succeeds() {
    let mut run = MachineDriver::supervised();
    let problems = |run: &mut MachineDriver| -> Vec<String> {
        let routing_table = run.machine.next_routing_table(std::time::UNIX_EPOCH);
        routing_table.snapshot.problems.iter().map(|it| it.problem.message.clone()).collect()
    };
    for step in ["configure a=1.1-own", "started 1", "lease d a 1", "fail 2"] {
        run.step(step);
    }
    let want = "an instance for a dialog could not be started: MCPConnectionError: no start";
    assert_eq!(problems(&mut run), [want]);
    for step in ["wait 2", "lease d a 1", "started 3"] {
        run.step(step);
    }
    assert!(run.machine.is_changed());
    assert!(problems(&mut run).is_empty());
    // A quick crash counts like a failed start; one after a long run does not.
    run.step("disconnect 3");
    assert_eq!(problems(&mut run), [want.replace("no start", "lost")]);
    for step in ["wait 4", "lease d a 1", "started 4", "wait 11", "disconnect 4"] {
        run.step(step);
    }
    assert!(problems(&mut run).is_empty());
    assert_eq!(run.step("lease d a 1"), "start-leased a=5");
    run.step("fail 5");
    // It ends with its server or a changed entry.
    run.step("configure a=2.1-own");
    run.step("started 6");
    assert!(problems(&mut run).is_empty());
}

/// RPT-064
#[test]
fn rpt_064_leased_instance_that_ended_between_calls_is_replaced_by_the_next_call() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["started 2", "watch 2, 1 gets 2", "d/a=2 | d/a"],
        ["exit 2", "retire 2", "| d/a"],
        ["lease d a 1", "start-leased a=3", "-"],
        ["started 3", "watch 3, 2 gets 3", "d/a=3 | d/a"],
        ["disconnect 3", "retire 3", "| d/a"],
        ["lease d a 1", "3 is refused", "-"],
    ]);
}

#[test]
fn dm_077_lease_is_released() {
    check(&[
        ["configure a=1.1-own b=1.1", "start a=1, start b=2", "-"],
        ["started 1", "close 1", "-"],
        ["started 2", "watch 2", "-"],
        ["lease d a 1", "start-leased a=3", "-"],
        ["started 3", "watch 3, 1 gets 3", "d/a=3 | d/a"],
        ["release e a", "2 had no lease", "d/a=3 | d/a"],
        ["release d b", "3 had no lease", "d/a=3 | d/a"],
        ["release d a", "release 3 for 4", "|"],
        ["release d a", "5 had no lease", "|"],
        // The next call gets another instance and a new reminder.
        ["lease d a 1", "start-leased a=4", "-"],
        ["started 4", "watch 4, 6 gets 4", "d/a=4 | d/a"],
        // A released instance that ends changes nothing.
        ["disconnect 3", "", "-"],
    ]);
}

#[test]
fn dm_077_lease_is_released_while_starting() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["lease e a 1", "start-leased a=3", "-"],
        ["release d a", "abort 2, 1 is refused, 3 has released", "|"],
        ["started 2", "close 2", "-"],
        ["started 3", "watch 3, 2 gets 3", "e/a=3 | e/a"],
    ]);
}

#[test]
fn leases_end_with_their_dialog() {
    check(&[
        ["configure a=1.1-own b=1.1-own", "start a=1, start b=2", "-"],
        ["started 1", "close 1", "-"],
        ["started 2", "close 2", "-"],
        ["lease d a 1", "start-leased a=3", "-"],
        ["started 3", "watch 3, 1 gets 3", "d/a=3 | d/a"],
        ["lease d b 2", "start-leased b=4", "-"],
        ["end e", "", "d/a=3 | d/a"],
        ["end d", "close 3, abort 4, 2 is refused", "|"],
        ["started 4", "close 4", "-"],
    ]);
}

#[test]
fn late_end_does_not_affect_later_dialog() {
    check(&[
        ["configure a=1.1-own b=1.1-own", "start a=1, start b=2", "-"],
        ["started 1", "close 1", "-"],
        ["started 2", "close 2", "-"],
        ["lease d a 1 0", "start-leased a=3", "-"],
        ["started 3", "watch 3, 1 gets 3", "d/a=3 | d/a"],
        // The end of the dialog is handled late: a new dialog with the same id is served first.
        ["lease d b 2 1", "start-leased b=4", "-"],
        ["end d 0", "close 3", "|"],
        ["started 4", "watch 4, 2 gets 4", "d/b=4 | d/b"],
        // Nor what it waits for together with the earlier one.
        ["lease d a 1 1", "start-leased a=5", "-"],
        ["lease d a 1 2", "", "-"],
        ["end d 1", "close 4", "|"],
        ["started 5", "watch 5, 3 gets 5, 4 gets 5", "d/a=5 | d/a"],
        ["end d 2", "close 5", "|"],
    ]);
}

#[test]
fn leases_are_limited() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["lease e a 1", "start-leased a=3", "-"],
        ["lease f a 1", "3 is refused", "-"],
        ["end d", "abort 2, 1 is refused", "|"],
        ["lease f a 1", "start-leased a=4", "-"],
    ]);
}

#[test]
fn idle_lease_ends() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["started 2", "watch 2, 1 gets 2", "d/a=2 | d/a"],
        ["wait 19", "", "-"],
        ["wait 1", "check-idle 2", "-"],
        ["idle 2 5", "", "-"],
        ["wait 14", "probe 2", "-"],
        ["wait 1", "check-idle 2", "-"],
        ["idle 2 busy", "", "-"],
        ["probed 2", "", "-"],
        ["wait 20", "check-idle 2", "-"],
        ["idle 2 20", "retire 2", "|"],
        ["idle 2 20", "", "-"],
    ]);
}

#[test]
fn lost_lease_is_replaced_by_next_call() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["started 2", "watch 2, 1 gets 2", "d/a=2 | d/a"],
        // The reminder remains and is not added twice.
        ["wait 10", "", "-"],
        ["disconnect 2", "retire 2", "| d/a"],
        ["lease d a 1", "start-leased a=3", "-"],
        ["started 3", "watch 3, 2 gets 3", "d/a=3 | d/a"],
        // A quick crash requires a backoff.
        ["wait 9", "", "-"],
        ["disconnect 3", "retire 3", "| d/a"],
        ["lease d a 1", "3 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "start-leased a=4", "-"],
    ]);
}

#[test]
fn crash_of_one_dialog_does_not_block_others() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["started 2", "watch 2, 1 gets 2", "d/a=2 | d/a"],
        ["disconnect 2", "retire 2", "| d/a"],
        ["lease d a 1", "2 is refused", "-"],
        ["lease e a 1", "start-leased a=3", "-"],
        ["started 3", "watch 3, 3 gets 3", "e/a=3 | d/a e/a"],
        // The backoff of a dialog grows independently of others.
        ["lease d a 1", "4 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "start-leased a=4", "-"],
        ["started 4", "watch 4, 5 gets 4", "d/a=4 e/a=3 | d/a e/a"],
        ["disconnect 4", "retire 4", "e/a=3 | d/a e/a"],
        ["wait 2", "", "-"],
        ["lease d a 1", "6 is refused", "-"],
        // Forgotten with the dialog.
        ["end d", "", "e/a=3 | e/a"],
        ["lease d a 1", "start-leased a=5", "-"],
    ]);
}

#[test]
fn dm_101_changed_server_ends_its_leases() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["started 2", "watch 2, 1 gets 2", "d/a=2 | d/a"],
        ["configure a=2.1-own", "start a=3", "-"],
        // The old instance serves until the new one is ready; a start is then aborted.
        ["lease d a 1", "2 gets 2", "-"],
        ["lease e a 1", "start-leased a=4", "-"],
        ["started 3", "close 3, replace 2, abort 4, 3 is stale", "| d/a"],
        ["lease d a 1", "4 is stale", "-"],
        ["lease d a 3", "start-leased a=5", "-"],
        ["started 4", "close 4", "-"],
        ["started 5", "watch 5, 5 gets 5", "d/a=5 | d/a"],
        // Changed names and limits end no lease.
        ["configure a=2.2-own", "", "-"],
        ["configure", "retire 5", "| d/a"],
        ["lease d a 3", "6 is stale", "-"],
    ]);
}

#[test]
fn dm_078_sharing_may_change() {
    let mut run = MachineDriver::supervised();
    for (step, actions, seen) in [
        ("configure a=1.1", "start a=1", "a:starting |"),
        ("started 1", "watch 1", "a:ready=1 | a__t"),
        ("configure a=1.1-own", "start a=2", "a:starting=1 | a__t"),
        ("started 2", "close 2, replace 1", "a:ready~2 | a__t"),
        ("lease d a 2", "start-leased a=3", "a:ready~2 | a__t"),
        ("started 3", "watch 3, 1 gets 3", "a:ready~2 | a__t"),
        ("configure a=1.1", "start a=4", "a:starting~2 | a__t"),
        ("started 4", "watch 4, replace 3", "a:ready=4 | a__t"),
        ("lease d a 4", "2 is stale", "a:ready=4 | a__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.status().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn server_that_sends_requests_is_leased_from_then_on() {
    let mut run = MachineDriver::supervised();
    let leased = "a server_leased";
    for (step, actions, seen, problem) in [
        ("configure a=1.1-auto", "start a=1", "a:starting |", ""),
        ("started 1", "watch 1", "a:ready=1 | a__t", ""),
        // The shared instance finishes its calls, which may wait for the response.
        ("request 1", "hand-over 1", "a:ready~1 | a__t", leased),
        ("request 1", "", "a:ready~1 | a__t", leased),
        ("lease d a 1", "start-leased a=2", "a:ready~1 | a__t", leased),
        ("started 2", "watch 2, 1 gets 2", "a:ready~1 | a__t", leased),
        ("configure a=1.2-auto", "", "a:ready~1 | a__t-2", leased),
        ("restart a", "start a=3", "a:starting~1 | a__t-2", leased),
        ("started 3", "close 3, replace 2", "a:ready~3 | a__t-2", leased),
        // A key of the configuration decides, and another program is shared again.
        ("configure a=1.2", "start a=4", "a:starting~3 | a__t-2", leased),
        ("started 4", "watch 4", "a:ready=4 | a__t-2", ""),
        ("configure a=2.2-auto", "start a=5", "a:starting=4 | a__t-2", ""),
        ("started 5", "watch 5, replace 4", "a:ready=5 | a__t-2", ""),
    ] {
        assert_eq!((run.step(step).as_str(), run.status().as_str()), (actions, seen), "{step}");
        let routing_table = run.machine.next_routing_table(std::time::UNIX_EPOCH);
        let problems =
            routing_table.snapshot.problems.iter().map(|it| it.problem.id.rsplit('/').next().unwrap());
        let problems: Vec<String> = problems.map(|it| format!("a {it}")).collect();
        assert_eq!(problems.join(", "), problem, "{step}");
    }
}

#[test]
fn requests_of_a_shared_server_change_nothing() {
    check(&[
        ["configure a=1.1", "start a=1", "-"],
        ["started 1", "watch 1", "-"],
        ["request 1", "watch 1", "-"],
        ["lease d a 1", "1 is stale", "-"],
    ]);
}

#[test]
fn hd_115_lists_of_leased_instance_apply_to_server() {
    let mut run = MachineDriver::supervised();
    for (step, actions, seen) in [
        ("configure a=1.1-own", "start a=1", "a:starting |"),
        ("started 1 t", "close 1", "a:ready~1 | a__t"),
        ("lease d a 1", "start-leased a=2", "a:ready~1 | a__t"),
        ("started 2 t", "watch 2, 1 gets 2", "a:ready~1 | a__t"),
        ("lists 2 t,u", "watch 2", "a:ready~1 | a__t a__u"),
        ("disconnect 2", "retire 2", "a:ready~1 | a__t a__u"),
        ("lists 2 v", "", "a:ready~1 | a__t a__u"),
    ] {
        assert_eq!((run.step(step).as_str(), run.status().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn server_is_disabled_and_enabled() {
    let mut run = MachineDriver::supervised();
    for (step, actions, seen) in [
        ("configure a=1.1 b=1.1-own", "start a=1, start b=2", "a:starting b:starting |"),
        ("started 1", "watch 1", "a:ready=1 b:starting | a__t"),
        ("started 2", "close 2", "a:ready=1 b:ready~2 | a__t b__t"),
        ("lease d b 2", "start-leased b=3", "a:ready=1 b:ready~2 | a__t b__t"),
        ("disable b", "abort 3, 1 is stale", "a:ready=1 b:disabled | a__t"),
        ("disable a", "retire 1", "a:disabled b:disabled |"),
        // The same entry does not enable it; a changed one does.
        ("configure a=1.1 b=1.1-own", "", "a:disabled b:disabled |"),
        ("wait 1000", "", "a:disabled b:disabled |"),
        ("configure a=1.2 b=1.1-own", "start a=4", "a:starting b:disabled |"),
        ("started 4", "watch 4", "a:ready=4 b:disabled | a__t-2"),
        ("restart b", "start b=5", "a:ready=4 b:starting | a__t-2"),
        ("started 5", "close 5", "a:ready=4 b:ready~5 | a__t-2 b__t"),
        // The old instance runs until its successor is ready.
        ("restart a", "start a=6", "a:starting=4 b:ready~5 | a__t-2 b__t"),
        ("restart a", "abort 6, start a=7", "a:starting=4 b:ready~5 | a__t-2 b__t"),
        ("started 7", "watch 7, replace 4", "a:ready=7 b:ready~5 | a__t-2 b__t"),
        ("restart c", "", "a:ready=7 b:ready~5 | a__t-2 b__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.status().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn closed_host_leases_nothing() {
    check(&[
        ["configure a=1.1-own", "start a=1", "-"],
        ["started 1", "close 1", "-"],
        ["lease d a 1", "start-leased a=2", "-"],
        ["lease e a 1", "start-leased a=3", "-"],
        ["started 2", "watch 2, 1 gets 2", "d/a=2 | d/a"],
        ["close", "close 2, abort 3, 2 is refused", "|"],
        ["started 3", "close 3", "-"],
        ["lease d a 1", "3 is refused", "-"],
        ["restart a", "", "-"],
        ["disable a", "", "-"],
    ]);
}

#[test]
fn lease_events_are_published() {
    let mut run = MachineDriver::supervised();
    for (step, want) in [
        ("configure a=1.1-own", "a starting 0"),
        ("started 1", "a ready"),
        ("lease d a 1", ""),
        ("started 2", "a leased to d"),
        ("release d a", "a released by d Requested"),
        ("lease d a 1", ""),
        ("fail 3", "a not leased to d"),
        ("wait 2", ""),
        ("lease d a 1", ""),
        ("started 4", "a leased to d"),
        ("disconnect 4", "a lost, a released by d ConnectionLost"),
        ("disable a", "a disabled"),
    ] {
        run.step(step);
        assert_eq!(run.event_texts(), want, "{step}");
    }
}

#[test]
fn unsupervised_host_probes_nothing_after_suspend() {
    let mut run = MachineDriver::new();
    for step in ["configure a=1.1-own", "started 1", "lease d a 1", "started 2"] {
        run.step(step);
    }
    let wake = run.machine.next_wake();
    assert_eq!(run.step("suspend"), "");
    assert_eq!(run.machine.next_wake(), wake);
}

#[test]
fn instance_of_a_user_affects_no_other_user() {
    let mut run = MachineDriver::supervised();
    for (step, actions, seen) in [
        // Its sharing is `shared`, which would give all users the token of one.
        ("configure a=1.1-user", "start a=1", "a:starting |"),
        ("started 1", "close 1", "a:ready~1 | a__t"),
        ("lease d a 1", "start-leased a=2", "a:ready~1 | a__t"),
        // The authorization server may refuse one user only.
        ("fail 2", "1 is refused", "a:ready~1 | a__t"),
        ("lease e a 1", "start-leased a=3", "a:ready~1 | a__t"),
        ("started 3", "watch 3, 2 gets 3", "a:ready~1 | a__t"),
        ("lease d a 1", "start-leased a=4", "a:ready~1 | a__t"),
        // What this user sees is not in the catalog of all.
        ("lists 3 t,u", "watch 3", "a:ready~1 | a__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.status().as_str()), (actions, seen), "{step}");
    }
    assert_eq!(run.machine.next_routing_table(std::time::UNIX_EPOCH).snapshot.problems, []);
}
