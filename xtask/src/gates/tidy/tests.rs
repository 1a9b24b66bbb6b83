//! Tests of the tidy gate: the tree passes, and each check finds a violation.

use super::machine_paths::{self, list_forbidden_texts};
use super::{check, run};
use crate::tree::Tree;

#[test]
fn the_tree_has_no_violation() {
    if let Err(error) = run() {
        panic!("{error}");
    }
}

#[track_caller]
fn check_tree(files: &[(&str, &str)], expected: &[&str]) {
    let found: Vec<String> = check(&Tree::of(files)).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_file_without_a_subject_is_found() {
    check_tree(&[("a/src/lib.rs", "//! Subject.\n")], &[]);
    let what = "a/src/lib.rs:1: the file does not begin with a `//!` that names its subject";
    check_tree(&[("a/src/lib.rs", "\n//! Late.\n")], &[what]);
    check_tree(&[("a/src/lib.rs", "")], &[what]);
}

#[test]
fn a_long_file_is_found() {
    let text = |lines: usize| format!("//! Subject.\n{}", "\n".repeat(lines - 1));
    check_tree(&[("a/src/lib.rs", &text(500))], &[]);
    check_tree(
        &[("a/src/lib.rs", &text(501))],
        &["a/src/lib.rs: 501 lines, more than 500: split it by subject"],
    );
}

#[test]
fn unfinished_code_is_found() {
    for (mark, code) in [
        ("todo!(", "fn f() { todo!() }"),
        ("unimplemented!(", "fn f() { unimplemented!(\"later\") }"),
        ("#[ignore", "#[test] #[ignore = \"slow\"] fn f() {}"),
    ] {
        let what = format!("a/src/lib.rs:2: `{mark}`: unfinished code");
        check_tree(&[("a/src/lib.rs", &format!("//! Subject.\n{code}"))], &[&what]);
        check_tree(&[("a/src/lib.rs", &format!("//! Subject.\n// {code}"))], &[]);
    }
}

#[test]
fn a_public_field_with_a_condition_is_found() {
    let what = "a/src/lib.rs:3: a public field has a `#[cfg]`: make it private, with a setter";
    let file = |field: &str| format!("//! Subject.\npub struct S {{\n    {field}\n}}\n");
    check_tree(&[("a/src/lib.rs", &file("#[cfg(feature = \"x\")] pub a: u8,"))], &[what]);
    check_tree(&[("a/src/lib.rs", &file("#[cfg(feature = \"x\")] pub(crate) a: u8,"))], &[]);
    check_tree(&[("a/src/lib.rs", &file("pub a: u8,"))], &[]);
    let open =
        file("#[cfg(feature = \"x\")] pub a: u8,").replace("pub struct", "#[non_exhaustive] pub struct");
    check_tree(&[("a/src/lib.rs", &open)], &[]);
}

#[test]
fn an_undeclared_file_is_found() {
    let what = |path: &str| format!("{path}: no `mod` declares it, so it is never compiled");
    for undeclared in [
        "a/src/tests.rs",
        "a/src/b/tests.rs",
        "a/tests/it/rows.rs",
        "a/src/c/mod.rs",
        "a/src/d.rs",
        "a/src/tests/e.rs",
    ] {
        let tree = [
            ("a/src/lib.rs", "//! Subject.\nmod b; mod inline { } /* mod d; */"),
            ("a/src/b.rs", "//! Subject.\n"),
            ("a/tests/it/main.rs", "//! Subject.\nmod row;"),
            ("a/tests/it/row.rs", "//! Subject.\n"),
            (undeclared, "//! Subject.\n"),
        ];
        check_tree(&tree, &[&what(undeclared)]);
    }
}

#[test]
fn cargo_targets_and_declared_files_pass() {
    let subject = "//! Subject.\n";
    check_tree(
        &[
            ("a/src/lib.rs", "//! Subject.\nmod b; pub(crate) mod c;\n#[cfg(test)]\nmod tests;"),
            ("a/src/b.rs", "//! Subject.\nmod tests;"),
            ("a/src/b/tests.rs", subject),
            ("a/src/c/mod.rs", "//! Subject.\nmod d;"),
            ("a/src/c/d.rs", subject),
            ("a/src/tests.rs", subject),
            ("a/src/bin/tool.rs", subject),
            ("a/tests/it/main.rs", "//! Subject.\nmod row;"),
            ("a/tests/it/row.rs", subject),
            ("a/tests/other.rs", "//! Subject.\nmod beside;"),
            ("a/tests/beside/mod.rs", subject),
            ("a/benches/speed.rs", subject),
            ("a/examples/first.rs", subject),
            ("a/build.rs", subject),
        ],
        &[],
    );
}

#[track_caller]
fn check_machine_paths(text: &str, expected: usize) {
    let found = machine_paths::check(&Tree::of(&[("docs/x.md", text)]).sources, &list_forbidden_texts());
    assert_eq!(found.len(), expected, "{text}: {found:?}");
}

#[test]
fn paths_of_one_machine_are_found() {
    check_machine_paths("fine\n/srv/project, /usr/bin/npx and /tmp/x are examples", 0);
    check_machine_paths(concat!("see /ro", "ot/.cargo/bin"), 1);
    check_machine_paths(concat!("at https://registry.npm", "js.org/x"), 1);
    check_machine_paths(concat!("\"resolved\": \"https://index.crates", ".io/a\""), 1);
    check_machine_paths(&format!("in {}/target", env!("CARGO_MANIFEST_DIR").trim_end_matches("/xtask")), 1);
}
