//! The example program.

use std::process::Command;

#[test]
fn the_example_prints_breaks_with_their_documents() {
    // Cargo builds examples with the tests and puts them beside the folder of the test programs.
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/compare");
    let output =
        Command::new(&program).output().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    let first: Vec<&str> = text.lines().filter(|it| !it.starts_with(' ')).collect();
    assert_eq!(
        first,
        [
            "break: name: `maxLength` changes from 64 to 32 (narrowed; #/properties/name/maxLength)",
            "break: retries: the key is no longer read (narrowed; #/properties)",
            "harmless: timeout: the key is added (widened; #/properties/timeout)",
            "for a reader: 2 breaks, 0 unknown, 1 harmless",
        ]
    );
}
