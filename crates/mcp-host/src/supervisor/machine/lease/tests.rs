//! Leases as rows: what happens, what is done about it, and what is leased then.

use crate::fixture::Run;

/// Rows of a step, what is done about it, and what is leased after it; `-` where that is as before.
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
fn dm_080_who_lists_a_leased_server_is_closed_and_the_list_stays() {
    let mut run = Run::supervised();
    assert_eq!(run.step("want a=1.1-own"), "start a=1");
    assert_eq!(run.step("ready 1 t,u"), "shut 1");
    assert_eq!(run.seen(), "a:ready~1 | a__t a__u");
    // Nobody is asked whether he lives, for nobody is there.
    assert_eq!(run.machine.next_wake(), None);
}

#[test]
fn dm_074_dm_075_each_dialog_gets_its_own_and_keeps_it() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        // The first calls of a dialog share one start, whether or not who asked first still waits.
        ["lease d a 1", "", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["ready 2", "follow 2, 1 gets 2, 2 gets 2", "d/a=2 | d/a"],
        ["lease d a 1", "4 gets 2", "-"],
        ["ready 3", "follow 3, 3 gets 3", "d/a=2 e/a=3 | d/a e/a"],
    ]);
}

#[test]
fn a_start_that_fails_is_told_to_all_who_wait_and_tried_anew_by_a_call_after_a_pause() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["lease d a 1", "", "-"],
        ["fail 2", "1 is refused, 2 is refused", "-"],
        // Nothing is started meanwhile, for whomever.
        ["lease d a 1", "3 is refused", "-"],
        ["lease e a 1", "4 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "open a=3", "-"],
        ["ready 2", "shut 2", "-"],
        // One at a time tries whether it is well again; who has asked for it waits.
        ["lease e a 1", "6 is refused", "-"],
        ["lease d a 1", "", "-"],
        ["ready 3", "follow 3, 5 gets 3, 7 gets 3", "d/a=3 | d/a"],
        ["lease e a 1", "open a=4", "-"],
    ]);
}

#[test]
fn hd_084_pauses_grow_for_all_dialogs_together_and_end_with_a_restart() {
    let mut run = Run::supervised();
    for step in ["want a=1.1-own", "ready 1", "lease d a 1", "lease e a 1", "lease f a 1"] {
        run.step(step);
    }
    // More than two are not leased at once here, and both fail for one reason: that is one setback.
    assert_eq!((run.step("fail 2").as_str(), run.step("fail 3").as_str()), ("1 is refused", "2 is refused"));
    assert_eq!(run.seen(), "a:ready~1 | a__t");
    // Pauses of up to 2, 4 and 8 s, then of 100 s, each half of that at the least.
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
fn dm_124_that_a_dialog_could_not_have_an_instance_is_a_problem_until_one_can() {
    let mut run = Run::supervised();
    let problems = |run: &mut Run| -> Vec<String> {
        let snapshot = run.machine.snapshot(std::time::UNIX_EPOCH);
        snapshot.published.problems.iter().map(|it| it.problem.message.clone()).collect()
    };
    for step in ["want a=1.1-own", "ready 1", "lease d a 1", "fail 2"] {
        run.step(step);
    }
    let want = "an instance of a dialog's own could not be had: MCPConnectionError: no start";
    assert_eq!(problems(&mut run), [want]);
    for step in ["wait 2", "lease d a 1", "ready 3"] {
        run.step(step);
    }
    assert!(run.machine.is_changed());
    assert!(problems(&mut run).is_empty());
    // One that falls over soon is as good as one that does not come up; one that had lasted is not.
    run.step("die 3");
    assert_eq!(problems(&mut run), [want.replace("no start", "lost")]);
    for step in ["wait 4", "lease d a 1", "ready 4", "wait 11", "die 4"] {
        run.step(step);
    }
    assert!(problems(&mut run).is_empty());
    assert_eq!(run.step("lease d a 1"), "open a=5");
    run.step("fail 5");
    // Nor does it outlive its server, or another entry.
    run.step("want a=2.1-own");
    run.step("ready 6");
    assert!(problems(&mut run).is_empty());
}

#[test]
fn dm_077_a_lease_is_given_back() {
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
        // The next call gets another one, and is reminded again.
        ["lease d a 1", "open a=4", "-"],
        ["ready 4", "follow 4, 6 gets 4", "d/a=4 | d/a"],
        // The end of what was given back is no news.
        ["die 3", "", "-"],
    ]);
}

#[test]
fn dm_077_a_lease_is_given_back_while_it_is_being_started() {
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
fn what_a_dialog_has_goes_with_it() {
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
fn an_end_that_comes_late_ends_nothing_of_a_later_dialog() {
    check(&[
        ["want a=1.1-own b=1.1-own", "start a=1, start b=2", "-"],
        ["ready 1", "shut 1", "-"],
        ["ready 2", "shut 2", "-"],
        ["lease d a 1 0", "open a=3", "-"],
        ["ready 3", "follow 3, 1 gets 3", "d/a=3 | d/a"],
        // The dialog has ended, and its end found no room: a new one of that name is heard first.
        ["lease d b 2 1", "open b=4", "-"],
        ["over d 0", "shut 3", "|"],
        ["ready 4", "follow 4, 2 gets 4", "d/b=4 | d/b"],
        // Nor is what it began to wait for beside the former one's.
        ["lease d a 1 1", "open a=5", "-"],
        ["lease d a 1 2", "", "-"],
        ["over d 1", "shut 4", "|"],
        ["ready 5", "follow 5, 3 gets 5, 4 gets 5", "d/a=5 | d/a"],
        ["over d 2", "shut 5", "|"],
    ]);
}

#[test]
fn no_more_are_leased_than_the_policy_says() {
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
fn a_lease_that_lies_unused_ends() {
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
fn a_leased_server_that_dies_comes_back_with_a_call() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        // Who was reminded stays reminded, and is not reminded twice.
        ["wait 10", "", "-"],
        ["die 2", "retire 2", "| d/a"],
        ["lease d a 1", "open a=3", "-"],
        ["ready 3", "follow 3, 2 gets 3", "d/a=3 | d/a"],
        // One that falls over soon only after a pause.
        ["wait 9", "", "-"],
        ["die 3", "retire 3", "| d/a"],
        ["lease d a 1", "3 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "open a=4", "-"],
    ]);
}

#[test]
fn who_brings_his_own_instance_down_keeps_nobody_else_from_one() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        ["die 2", "retire 2", "| d/a"],
        ["lease d a 1", "2 is refused", "-"],
        ["lease e a 1", "open a=3", "-"],
        ["ready 3", "follow 3, 3 gets 3", "e/a=3 | d/a e/a"],
        // His own pauses grow, whatever the others do.
        ["lease d a 1", "4 is refused", "-"],
        ["wait 2", "", "-"],
        ["lease d a 1", "open a=4", "-"],
        ["ready 4", "follow 4, 5 gets 4", "d/a=4 e/a=3 | d/a e/a"],
        ["die 4", "retire 4", "e/a=3 | d/a e/a"],
        ["wait 2", "", "-"],
        ["lease d a 1", "6 is refused", "-"],
        // With the dialog that is forgotten.
        ["over d", "", "e/a=3 | e/a"],
        ["lease d a 1", "open a=5", "-"],
    ]);
}

#[test]
fn dm_101_a_changed_server_takes_its_leases_with_it() {
    check(&[
        ["want a=1.1-own", "start a=1", "-"],
        ["ready 1", "shut 1", "-"],
        ["lease d a 1", "open a=2", "-"],
        ["ready 2", "follow 2, 1 gets 2", "d/a=2 | d/a"],
        ["want a=2.1-own", "start a=3", "-"],
        // Until the new one is ready, the old one serves; one that is being started then is given up.
        ["lease d a 1", "2 gets 2", "-"],
        ["lease e a 1", "open a=4", "-"],
        ["ready 3", "shut 3, retire 2, abort 4, 3 looks again", "| d/a"],
        ["lease d a 1", "4 looks again", "-"],
        ["lease d a 3", "open a=5", "-"],
        ["ready 4", "shut 4", "-"],
        ["ready 5", "follow 5, 5 gets 5", "d/a=5 | d/a"],
        // Names and limits take nothing away.
        ["want a=2.2-own", "", "-"],
        ["want", "retire 5", "| d/a"],
        ["lease d a 3", "6 looks again", "-"],
    ]);
}

#[test]
fn dm_078_who_shares_and_who_does_not_may_change() {
    let mut run = Run::supervised();
    for (step, actions, seen) in [
        ("want a=1.1", "start a=1", "a:starting |"),
        ("ready 1", "follow 1", "a:ready=1 | a__t"),
        ("want a=1.1-own", "start a=2", "a:starting=1 | a__t"),
        ("ready 2", "shut 2, retire 1", "a:ready~2 | a__t"),
        ("lease d a 2", "open a=3", "a:ready~2 | a__t"),
        ("ready 3", "follow 3, 1 gets 3", "a:ready~2 | a__t"),
        ("want a=1.1", "start a=4", "a:starting~2 | a__t"),
        ("ready 4", "follow 4, retire 3", "a:ready=4 | a__t"),
        ("lease d a 4", "2 looks again", "a:ready=4 | a__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn hd_115_what_a_leased_instance_lists_is_its_servers_one_entry() {
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
fn a_server_is_switched_off_and_on_again() {
    let mut run = Run::supervised();
    for (step, actions, seen) in [
        ("want a=1.1 b=1.1-own", "start a=1, start b=2", "a:starting b:starting |"),
        ("ready 1", "follow 1", "a:ready=1 b:starting | a__t"),
        ("ready 2", "shut 2", "a:ready=1 b:ready~2 | a__t b__t"),
        ("lease d b 2", "open b=3", "a:ready=1 b:ready~2 | a__t b__t"),
        ("disable b", "abort 3, 1 looks again", "a:ready=1 b:disabled | a__t"),
        ("disable a", "retire 1", "a:disabled b:disabled |"),
        // The same again does not switch it on; another entry does.
        ("want a=1.1 b=1.1-own", "", "a:disabled b:disabled |"),
        ("wait 1000", "", "a:disabled b:disabled |"),
        ("want a=1.2 b=1.1-own", "start a=4", "a:starting b:disabled |"),
        ("ready 4", "follow 4", "a:ready=4 b:disabled | a__t-2"),
        ("restart b", "start b=5", "a:ready=4 b:starting | a__t-2"),
        ("ready 5", "shut 5", "a:ready=4 b:ready~5 | a__t-2 b__t"),
        // What runs goes on until its successor is ready.
        ("restart a", "start a=6", "a:starting=4 b:ready~5 | a__t-2 b__t"),
        ("restart a", "abort 6, start a=7", "a:starting=4 b:ready~5 | a__t-2 b__t"),
        ("ready 7", "follow 7, retire 4", "a:ready=7 b:ready~5 | a__t-2 b__t"),
        ("restart c", "", "a:ready=7 b:ready~5 | a__t-2 b__t"),
    ] {
        assert_eq!((run.step(step).as_str(), run.seen().as_str()), (actions, seen), "{step}");
    }
}

#[test]
fn a_closed_host_leases_nothing() {
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
fn everything_about_leases_is_told() {
    let mut run = Run::supervised();
    for (step, want) in [
        ("want a=1.1-own", "a starting 0"),
        ("ready 1", "a ready"),
        ("lease d a 1", ""),
        ("ready 2", "a leased to d"),
        ("release d a", "a released by d Asked"),
        ("lease d a 1", ""),
        ("fail 3", "a not leased to d"),
        ("wait 2", ""),
        ("lease d a 1", ""),
        ("ready 4", "a leased to d"),
        ("die 4", "a lost, a released by d Lost"),
        ("disable a", "a disabled"),
    ] {
        run.step(step);
        assert_eq!(run.told(), want, "{step}");
    }
}

#[test]
fn a_host_that_does_not_supervise_asks_nobody_after_a_sleep() {
    let mut run = Run::new();
    for step in ["want a=1.1-own", "ready 1", "lease d a 1", "ready 2"] {
        run.step(step);
    }
    let wake = run.machine.next_wake();
    assert_eq!(run.step("woke"), "");
    assert_eq!(run.machine.next_wake(), wake);
}
