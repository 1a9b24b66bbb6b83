//! The tree is tidy, and each check finds a planted trespass.

use super::places::{self, forbidden_here};
use super::{check, run};
use crate::tree::planted;

#[test]
fn the_tree_is_tidy() {
    if let Err(failure) = run() {
        panic!("{failure}");
    }
}

#[track_caller]
fn check_tree(files: &[(&str, &str)], expected: &[&str]) {
    let found: Vec<String> = check(&planted(files)).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_file_without_its_why_is_found() {
    check_tree(&[("a/src/lib.rs", "//! Why.\n")], &[]);
    let what = "a/src/lib.rs:1: a file opens with `//!` and says why it is there";
    check_tree(&[("a/src/lib.rs", "\n//! Late.\n")], &[what]);
    check_tree(&[("a/src/lib.rs", "")], &[what]);
}

#[test]
fn a_file_past_the_wall_is_found() {
    let text = |lines: usize| format!("//! Why.\n{}", "\n".repeat(lines - 1));
    check_tree(&[("a/src/lib.rs", &text(500))], &[]);
    check_tree(
        &[("a/src/lib.rs", &text(501))],
        &["a/src/lib.rs: 501 lines: the wall is 500, split by subject"],
    );
}

#[test]
fn unfinished_code_is_found() {
    for (word, code) in [
        ("todo!(", "fn f() { todo!() }"),
        ("unimplemented!(", "fn f() { unimplemented!(\"later\") }"),
        ("#[ignore", "#[test] #[ignore = \"slow\"] fn f() {}"),
    ] {
        let what = format!("a/src/lib.rs:2: `{word}`: finish it, or take it out");
        check_tree(&[("a/src/lib.rs", &format!("//! Why.\n{code}"))], &[&what]);
        check_tree(&[("a/src/lib.rs", &format!("//! Why.\n// {code}"))], &[]);
    }
}

#[test]
fn a_forgotten_file_is_found() {
    let what = |path: &str| format!("{path}: no `mod` names it: it is never compiled");
    for forgotten in [
        "a/src/tests.rs",
        "a/src/b/tests.rs",
        "a/tests/it/rows.rs",
        "a/src/c/mod.rs",
        "a/src/d.rs",
        "a/src/tests/e.rs",
    ] {
        let tree = [
            ("a/src/lib.rs", "//! Why.\nmod b; mod inline { } // mod d;"),
            ("a/src/b.rs", "//! Why.\n"),
            ("a/tests/it/main.rs", "//! Why.\nmod row;"),
            ("a/tests/it/row.rs", "//! Why.\n"),
            (forgotten, "//! Why.\n"),
        ];
        check_tree(&tree, &[&what(forgotten)]);
    }
}

#[test]
fn what_cargo_or_a_mod_finds_is_not_forgotten() {
    let why = "//! Why.\n";
    check_tree(
        &[
            ("a/src/lib.rs", "//! Why.\nmod b; pub(crate) mod c;\n#[cfg(test)]\nmod tests;"),
            ("a/src/b.rs", "//! Why.\nmod tests;"),
            ("a/src/b/tests.rs", why),
            ("a/src/c/mod.rs", "//! Why.\nmod d;"),
            ("a/src/c/d.rs", why),
            ("a/src/tests.rs", why),
            ("a/src/bin/tool.rs", why),
            ("a/tests/it/main.rs", "//! Why.\nmod row;"),
            ("a/tests/it/row.rs", why),
            ("a/tests/other.rs", "//! Why.\nmod beside;"),
            ("a/tests/beside/mod.rs", why),
            ("a/benches/speed.rs", why),
            ("a/examples/first.rs", why),
            ("a/build.rs", why),
        ],
        &[],
    );
}

#[track_caller]
fn check_place(text: &str, expected: usize) {
    let found = places::check(&planted(&[("docs/x.md", text)]), &forbidden_here());
    assert_eq!(found.len(), expected, "{text}: {found:?}");
}

#[test]
fn places_of_one_machine_are_found() {
    check_place("fine\n/srv/project, /usr/bin/npx and /tmp/x are examples", 0);
    check_place(concat!("see /ro", "ot/.cargo/bin"), 1);
    check_place(concat!("at https://registry.npm", "js.org/x"), 1);
    check_place(concat!("\"resolved\": \"https://index.crates", ".io/a\""), 1);
    check_place(&format!("in {}/target", env!("CARGO_MANIFEST_DIR").trim_end_matches("/xtask")), 1);
}
