//! Leases as tables: event, actions, resulting leases.

use crate::supervisor::machine::tests::fixture::Run;

/// Rows of an event, its actions, and the leases after it; `-` if unchanged.
#[track_caller]
fn check(rows: &[[&str; 3]]) {
    let mut run = Run::supervised();
    for [step, actions, leased] in rows {
        let got = run.step(step);
        let now = run.leased().unwrap_or_else(|| "-".to_owned());
        assert_eq!([got.as_str(), now.as_str()], [*actions, *leased], "{step}");
    }
}

#[test]
fn dm_080_listing_instance_of_leased_server_is_closed() {
    let mut run = Run::supervised();
    assert_eq!(run.step("want a=1.1-own"), "start a=1");
    assert_eq!(run.step("ready 1 t,u"), "shut 1");
    assert_eq!(run.seen(), "a:ready~1 | a__t a__u");
    // Without an instance there is no probe.
    assert_eq!(run.machine.next_wake(), None);
}

#[test]
fn dm_074_dm_075_each_dialog_gets_and_keeps_its_own() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        // The first calls of a dialog share one start, even if the first one stopped waiting.
        ["lease d a 1", "", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["ready 2", "follow 2, 1 gets 2, 2 gets 2", "d/a=2 | d/a"],
        ["lease d a 1", "4 gets 2", "-"],
        ["ready 3", "follow 3, 3 gets 3", "d/a=2 e/a=3 | d/a e/a"],
    ]);
}

#[test]
fn failed_start_is_reported_to_waiters_and_retried_by_later_call() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["lease d a 1", "", "-"],
        ["fail 2", "1 is refused, 2 is refused", "-"],
        // During the backoff nothing is started for any dialog.
        ["lease d a 1", "3 is refused", "-"],
        ["lease e a 1", "4 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "open a=3", "-"],
        ["ready 2", "shut 2", "-"],
        // One start at a time tests the server; its call waits.
        ["lease e a 1", "6 is refused", "-"],
        ["lease d a 1", "", "-"],
        ["ready 3", "follow 3, 5 gets 3, 7 gets 3", "d/a=3 | d/a"],
        ["lease e a 1", "open a=4", "-"],
    ]);
}

#[test]
fn hd_084_backoff_grows_for_all_dialogs_and_ends_with_restart() {
    let mut run = Run::supervised();
    for step in ["want a=1.1-own", "ready 1", "lease d a 1", "lease e a 1", "lease f a 1"] {
        run.step(step);
    }
    // At most two are leased here; both fail for one reason, which is one failure.
    assert_eq!((run.step("fail 2").as_str(), run.step("fail 3").as_str()), ("1 is refused", "2 is refused"));
    assert_eq!(run.seen(), "a:ready~1 | a__t");
    // Backoffs up to 2, 4 and 8 s, then 100 s, each at least half of that.
    let mut start = 4;
    for (too_early, enough) in [(0, 2), (1, 3), (3, 5), (49, 51)] {
        run.step(&format!("wait {too_early}"));
        assert!(run.step("lease d a 1").ends_with("is refused"), "{too_early}");
        run.step(&format!("wait {enough}"));
        assert_eq!(run.step("lease d a 1"), format!("open a={start}"));
        assert!(run.step(&format!("fail {start}")).ends_with("is refused"));
        start += 1;
    }
    run.step("restart a");
    run.step(&format!("ready {start}"));
    assert_eq!(run.step(&format!("lease d a {start}")), format!("open a={}", start + 1));
}

#[test]
fn dm_124_failed_lease_is_a_problem_until_one_succeeds() {
    let mut run = Run::supervised();
    let problems = |run: &mut Run| -> Vec<String> {
        let routing_table = run.machine.routing_table(std::time::UNIX_EPOCH);
        routing_table.snapshot.problems.iter().map(|it| it.problem.message.clone()).collect()
    };
    for step in ["want a=1.1-own", "ready 1", "lease d a 1", "fail 2"] {
        run.step(step);
    }
    let want = "an instance for a dialog could not be started: MCPConnectionError: no start";
    assert_eq!(problems(&mut run), [want]);
    for step in ["wait 2", "lease d a 1", "ready 3"] {
        run.step(step);
    }
    assert!(run.machine.is_changed());
    assert!(problems(&mut run).is_empty());
    // A quick crash counts like a failed start; one after a long run does not.
    run.step("die 3");
    assert_eq!(problems(&mut run), [want.replace("no start", "lost")]);
    for step in ["wait 4", "lease d a 1", "ready 4", "wait 11", "die 4"] {
        run.step(step);
    }
    assert!(problems(&mut run).is_empty());
    assert_eq!(run.step("lease d a 1"), "open a=5");
    run.step("fail 5");
    // It ends with its server or a changed entry.
    run.step("want a=2.1-own");
    run.step("ready 6");
    assert!(problems(&mut run).is_empty());
}

#[test]
fn dm_077_lease_is_released() {
    check(&[
        ["want a=1.1-own b=1.1", "start a=1, start b=2", "-"],
        ["ready 1", "shut 1", "-"],
        ["ready 2", "follow 2", "-"],
        ["lease d a 1", "open a=3", "-"],
        ["ready 3", "follow 3, 1 gets 3", "d/a=3 | d/a"],
        ["release e a", "2 held nothing", "d/a=3 | d/a"],
        ["release d b", "3 held nothing", "d/a=3 | d/a"],
        ["release d a", "release 3 for 4", "|"],
        ["release d a", "5 held nothing", "|"],
        // The next call gets another instance and a new reminder.
        ["lease d a 1", "open a=4", "-"],
        ["ready 4", "follow 4, 6 gets 4", "d/a=4 | d/a"],
        // A released instance that ends changes nothing.
        ["die 3", "", "-"],
    ]);
}

#[test]
fn dm_077_lease_is_released_while_starting() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["release d a", "abort 2, 1 is refused, 3 has released", "|"],
        ["ready 2", "shut 2", "-"],
        ["ready 3", "follow 3, 2 gets 3", "e/a=3 | e/a"],
    ]);
}

#[test]
fn leases_end_with_their_dialog() {
    check(&[
        ["want a=1.1-own b=1.1-own", "start a=1, start b=2", "-"],
        ["ready 1", "shut 1", "-"],
        ["ready 2", "shut 2", "-"],
        ["lease d a 1", "open a=3", "-"],
        ["ready 3", "follow 3, 1 gets 3", "d/a=3 | d/a"],
        ["lease d b 2", "open b=4", "-"],
        ["over e", "", "d/a=3 | d/a"],
        ["over d", "shut 3, abort 4, 2 is refused", "|"],
        ["ready 4", "shut 4", "-"],
    ]);
}

#[test]
fn late_end_does_not_affect_later_dialog() {
    check(&[
        ["want a=1.1-own b=1.1-own", "start a=1, start b=2", "-"],
        ["ready 1", "shut 1", "-"],
        ["ready 2", "shut 2", "-"],
        ["lease d a 1 0", "open a=3", "-"],
        ["ready 3", "follow 3, 1 gets 3", "d/a=3 | d/a"],
        // The end of the dialog is handled late: a new dialog with the same id is served first.
        ["lease d b 2 1", "open b=4", "-"],
        ["over d 0", "shut 3", "|"],
        ["ready 4", "follow 4, 2 gets 4", "d/b=4 | d/b"],
        // Nor what it waits for together with the earlier one.
        ["lease d a 1 1", "open a=5", "-"],
        ["lease d a 1 2", "", "-"],
        ["over d 1", "shut 4", "|"],
        ["ready 5", "follow 5, 3 gets 5, 4 gets 5", "d/a=5 | d/a"],
        ["over d 2", "shut 5", "|"],
    ]);
}

#[test]
fn leases_are_limited() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["lease f a 1", "3 is refused", "-"],
        ["over d", "abort 2, 1 is refused", "|"],
        ["lease f a 1", "open a=4", "-"],
    ]);
}

#[test]
fn idle_lease_ends() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        ["wait 19", "", "-"],
        ["wait 1", "look 2", "-"],
        ["seen 2 5", "", "-"],
        ["wait 14", "probe 2", "-"],
        ["wait 1", "look 2", "-"],
        ["seen 2 busy", "", "-"],
        ["alive 2", "", "-"],
        ["wait 20", "look 2", "-"],
        ["seen 2 20", "retire 2", "|"],
        ["seen 2 20", "", "-"],
    ]);
}

#[test]
fn lost_lease_is_replaced_by_next_call() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        // The reminder remains and is not added twice.
        ["wait 10", "", "-"],
        ["die 2", "retire 2", "| d/a"],
        ["lease d a 1", "open a=3", "-"],
        ["ready 3", "follow 3, 2 gets 3", "d/a=3 | d/a"],
        // A quick crash requires a backoff.
        ["wait 9", "", "-"],
        ["die 3", "retire 3", "| d/a"],
        ["lease d a 1", "3 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "open a=4", "-"],
    ]);
}

#[test]
fn crash_of_one_dialog_does_not_block_others() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        ["die 2", "retire 2", "| d/a"],
        ["lease d a 1", "2 is refused", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["ready 3", "follow 3, 3 gets 3", "e/a=3 | d/a e/a"],
        // The backoff of a dialog grows independently of others.
        ["lease d a 1", "4 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "open a=4", "-"],
        ["ready 4", "follow 4, 5 gets 4", "d/a=4 e/a=3 | d/a e/a"],
        ["die 4", "retire 4", "e/a=3 | d/a e/a"],
        ["wait 2", "", "-"],
        ["lease d a 1", "6 is refused", "-"],
        // Forgotten with the dialog.
        ["over d", "", "e/a=3 | e/a"],
        ["lease d a 1", "open a=5", "-"],
    ]);
}

#[test]
fn dm_101_changed_server_ends_its_leases() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        ["want a=2.1-own", "start a=3", "-"],
        // The old instance serves until the new one is ready; a start is then aborted.
        ["lease d a 1", "2 gets 2", "-"],
        ["lease e a 1", "open a=4", "-"],
        ["ready 3", "shut 3, replace 2, abort 4, 3 looks again", "| d/a"],
        ["lease d a 1", "4 looks again", "-"],
        ["lease d a 3", "open a=5", "-"],
        ["ready 4", "shut 4", "-"],
        ["ready 5", "follow 5, 5 gets 5", "d/a=5 | d/a"],
        // Changed names and limits end no lease.
        ["want a=2.2-own", "", "-"],
        ["want", "retire 5", "| d/a"],
        ["lease d a 3", "6 looks again", "-"],
    ]);
}

#[test]
fn dm_078_sharing_may_change() {
    let mut run = Run::supervised();
    for (step, actions, seen) in [
        ("want a=1.1", "start a=1", "a:starting |"),
        ("ready 1", "follow 1", "a:ready=1 | a__t"),
        ("want a=1.1-own", "start a=2", "a:starting=1 | a__t"),
        ("ready 2", "shut 2, replace 1", "a:ready~2 | a__t"),
        ("lease d a 2", "open a=3", "a:ready~2 | a__t"),
        ("ready 3", "follow 3, 1 gets 3", "a:ready~2 | a__t"),
        ("want a=1.1", "start a=4", "a:starting~2 | a__t"),
        ("ready 4", "follow 4, replace 3", "a:ready=4 | a__t"),
        ("lease d a 4", "2 looks again", "a:ready=4 | a__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn server_that_sends_requests_is_leased_from_then_on() {
    let mut run = Run::supervised();
    let leased = "a server_leased";
    for (step, actions, seen, problem) in [
        ("want a=1.1-auto", "start a=1", "a:starting |", ""),
        ("ready 1", "follow 1", "a:ready=1 | a__t", ""),
        // The shared instance finishes its calls, which may wait for the response.
        ("asks 1", "hand over 1", "a:ready~1 | a__t", leased),
        ("asks 1", "", "a:ready~1 | a__t", leased),
        ("lease d a 1", "open a=2", "a:ready~1 | a__t", leased),
        ("ready 2", "follow 2, 1 gets 2", "a:ready~1 | a__t", leased),
        ("want a=1.2-auto", "", "a:ready~1 | a__t-2", leased),
        ("restart a", "start a=3", "a:starting~1 | a__t-2", leased),
        ("ready 3", "shut 3, replace 2", "a:ready~3 | a__t-2", leased),
        // A key of the configuration decides, and another program is shared again.
        ("want a=1.2", "start a=4", "a:starting~3 | a__t-2", leased),
        ("ready 4", "follow 4", "a:ready=4 | a__t-2", ""),
        ("want a=2.2-auto", "start a=5", "a:starting=4 | a__t-2", ""),
        ("ready 5", "follow 5, replace 4", "a:ready=5 | a__t-2", ""),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
        let routing_table = run.machine.routing_table(std::time::UNIX_EPOCH);
        let problems =
            routing_table.snapshot.problems.iter().map(|it| it.problem.id.rsplit('/').next().unwrap());
        let problems: Vec<String> = problems.map(|it| format!("a {it}")).collect();
        assert_eq!(problems.join(", "), problem, "{step}");
    }
}

#[test]
fn requests_of_a_shared_server_change_nothing() {
    check(&[
        ["want a=1.1", "start a=1", "-"],
        ["ready 1", "follow 1", "-"],
        ["asks 1", "follow 1", "-"],
        ["lease d a 1", "1 looks again", "-"],
    ]);
}

#[test]
fn hd_115_lists_of_leased_instance_apply_to_server() {
    let mut run = Run::supervised();
    for (step, actions, seen) in [
        ("want a=1.1-own", "start a=1", "a:starting |"),
        ("ready 1 t", "shut 1", "a:ready~1 | a__t"),
        ("lease d a 1", "open a=2", "a:ready~1 | a__t"),
        ("ready 2 t", "follow 2, 1 gets 2", "a:ready~1 | a__t"),
        ("lists 2 t,u", "follow 2", "a:ready~1 | a__t a__u"),
        ("die 2", "retire 2", "a:ready~1 | a__t a__u"),
        ("lists 2 v", "", "a:ready~1 | a__t a__u"),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn server_is_disabled_and_enabled() {
    let mut run = Run::supervised();
    for (step, actions, seen) in [
        ("want a=1.1 b=1.1-own", "start a=1, start b=2", "a:starting b:starting |"),
        ("ready 1", "follow 1", "a:ready=1 b:starting | a__t"),
        ("ready 2", "shut 2", "a:ready=1 b:ready~2 | a__t b__t"),
        ("lease d b 2", "open b=3", "a:ready=1 b:ready~2 | a__t b__t"),
        ("disable b", "abort 3, 1 looks again", "a:ready=1 b:disabled | a__t"),
        ("disable a", "retire 1", "a:disabled b:disabled |"),
        // The same entry does not enable it; a changed one does.
        ("want a=1.1 b=1.1-own", "", "a:disabled b:disabled |"),
        ("wait 1000", "", "a:disabled b:disabled |"),
        ("want a=1.2 b=1.1-own", "start a=4", "a:starting b:disabled |"),
        ("ready 4", "follow 4", "a:ready=4 b:disabled | a__t-2"),
        ("restart b", "start b=5", "a:ready=4 b:starting | a__t-2"),
        ("ready 5", "shut 5", "a:ready=4 b:ready~5 | a__t-2 b__t"),
        // The old instance runs until its successor is ready.
        ("restart a", "start a=6", "a:starting=4 b:ready~5 | a__t-2 b__t"),
        ("restart a", "abort 6, start a=7", "a:starting=4 b:ready~5 | a__t-2 b__t"),
        ("ready 7", "follow 7, replace 4", "a:ready=7 b:ready~5 | a__t-2 b__t"),
        ("restart c", "", "a:ready=7 b:ready~5 | a__t-2 b__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn closed_host_leases_nothing() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        ["close", "shut 2, abort 3, 2 is refused", "|"],
        ["ready 3", "shut 3", "-"],
        ["lease d a 1", "3 is refused", "-"],
        ["restart a", "", "-"],
        ["disable a", "", "-"],
    ]);
}

#[test]
fn lease_events_are_published() {
    let mut run = Run::supervised();
    for (step, want) in [
        ("want a=1.1-own", "a starting 0"),
        ("ready 1", "a ready"),
        ("lease d a 1", ""),
        ("ready 2", "a leased to d"),
        ("release d a", "a released by d Requested"),
        ("lease d a 1", ""),
        ("fail 3", "a not leased to d"),
        ("wait 2", ""),
        ("lease d a 1", ""),
        ("ready 4", "a leased to d"),
        ("die 4", "a lost, a released by d ConnectionLost"),
        ("disable a", "a disabled"),
    ] {
        run.step(step);
        assert_eq!(run.event_texts(), want, "{step}");
    }
}

#[test]
fn unsupervised_host_probes_nothing_after_suspend() {
    let mut run = Run::new();
    for step in ["want a=1.1-own", "ready 1", "lease d a 1", "ready 2"] {
        run.step(step);
    }
    let wake = run.machine.next_wake();
    assert_eq!(run.step("woke"), "");
    assert_eq!(run.machine.next_wake(), wake);
}

#[test]
fn instance_of_a_user_affects_no_other_user() {
    let mut run = Run::supervised();
    for (step, actions, seen) in [
        // Its sharing is `shared`, which would give all users the token of one.
        ("want a=1.1-user", "start a=1", "a:starting |"),
        ("ready 1", "shut 1", "a:ready~1 | a__t"),
        ("lease d a 1", "open a=2", "a:ready~1 | a__t"),
        // The authorization server may refuse one user only.
        ("fail 2", "1 is refused", "a:ready~1 | a__t"),
        ("lease e a 1", "open a=3", "a:ready~1 | a__t"),
        ("ready 3", "follow 3, 2 gets 3", "a:ready~1 | a__t"),
        ("lease d a 1", "open a=4", "a:ready~1 | a__t"),
        // What this user sees is not in the catalog of all.
        ("lists 3 t,u", "follow 3", "a:ready~1 | a__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
    }
    assert_eq!(run.machine.routing_table(std::time::UNIX_EPOCH).snapshot.problems, []);
}
