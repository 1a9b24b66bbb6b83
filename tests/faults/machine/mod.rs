//! Faults of the machine. Each test is a process with limits that a shell sets.

mod clock;
mod descriptors;
mod disk;
mod program;

use mcp_tests::faults::machine;

/// Asserts the expected outcome of the table.
#[track_caller]
fn check(fault: &str, place: &str, got: &str) {
    let row = machine().into_iter().find(|it| it.fault == fault && it.place == place);
    let want = row.unwrap_or_else(|| panic!("no row for {place} when {fault}")).want;
    assert_eq!(got, want, "{place} when {fault}");
    eprintln!("1 rows: {place} when {fault}");
}
