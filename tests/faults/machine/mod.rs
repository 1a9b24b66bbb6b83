//! Faults of the machine. Each test is a process of its own, which a shell gives its limits.

mod clock;
mod descriptors;
mod disk;
mod program;

use mcp_tests::faults::machine;

/// Is this what the table says of this fault at this place?
#[track_caller]
fn check(fault: &str, place: &str, got: &str) {
    let row = machine().into_iter().find(|it| it.fault == fault && it.place == place);
    let want = row.unwrap_or_else(|| panic!("no row for {place} when {fault}")).want;
    assert_eq!(got, want, "{place} when {fault}");
    eprintln!("1 rows: {place} when {fault}");
}
