//! Tests of the totals, of package selection and of the installation stamp.

use std::process::{Command, Stdio};

use super::install::is_installed;
use super::output_holders::OutputHolders;
use super::selects_packages;
use super::totals::Totals;

#[track_caller]
fn check_totals(output: &str, expected: &str) {
    let mut totals = Totals::default();
    output.lines().for_each(|it| totals.add_line(it));
    assert_eq!(totals.to_string(), expected);
}

#[test]
fn totals_are_summed() {
    check_totals("", "0 passed, 0 failed, 0 skipped");
    check_totals(
        "running 3 tests\ntest a ... ok\n\
         test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s\n\
         test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
        "13 passed, 2 failed, 1 skipped",
    );
    check_totals(
        "the test result: ok. 3 passed; 0 failed\n5 passed\ntest result: odd",
        "0 passed, 0 failed, 0 skipped",
    );
}

#[test]
fn a_chosen_package_replaces_the_workspace() {
    for (arguments, expected) in [
        (vec![], false),
        (vec!["-p", "mcp-host-model"], true),
        (vec!["-pmcp-model"], true),
        (vec!["--package=mcp-host-model"], true),
        (vec!["name", "--", "-p"], false),
    ] {
        assert_eq!(selects_packages(&arguments), expected, "{arguments:?}");
    }
}

#[test]
fn only_the_same_stamp_counts_as_installed() {
    let folder = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    assert!(!is_installed(&folder, "a"), "nothing is installed yet");
    std::fs::write(folder.join("installed.stamp"), "a").unwrap();
    assert!(is_installed(&folder, "a"));
    assert!(!is_installed(&folder, "b"), "the lock has changed");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn processes_that_hold_the_output_are_ended_and_named() {
    let mut child = Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn().unwrap();
    // The arguments of a process appear a moment after its start.
    while std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap().is_empty() {
        std::thread::yield_now();
    }
    let holders = OutputHolders::of_process(child.id());
    assert_eq!(holders.end_all(), format!(": {} sleep 1000", child.id()));
    assert!(!child.wait().unwrap().success());
    assert_eq!(holders.end_all(), "", "none is left");
}
