//! Tests of the views of a file, of test code and of paths.

use proc_macro2::TokenStream;

use super::module_files::module_folder;
use super::paths::collect_paths;
use super::{PathUse, RustFile, find_word};
use crate::tree::Tree;

fn read(text: &str) -> RustFile {
    let Tree { mut rust_files, unparsable, .. } = Tree::of(&[("crates/a/src/lib.rs", text)]);
    assert_eq!(unparsable, []);
    rust_files.remove(0)
}

#[track_caller]
fn check_views(text: &str, code: &str, code_and_literals: &str, comments: &str) {
    let file = read(text);
    assert_eq!(
        (&*file.code, &*file.code_and_literals, &*file.comments),
        (code, code_and_literals, comments),
        "{text}"
    );
}

#[test]
fn comments_and_literals_are_blank() {
    check_views("type A // b\n= C;", "type A     \n= C;", "type A     \n= C;", "       // b\n    ");
    check_views(
        "/* b /* c */ */ mod d {}",
        "                mod d {}",
        "                mod d {}",
        "/* b /* c */ */         ",
    );
    check_views(r#"a!("b\"c", d);"#, r#"a!(      , d);"#, r#"a!("b\"c", d);"#, "              ");
    check_views(r##"x!(r#"a"b"#);"##, "x!(        );", r##"x!(r#"a"b"#);"##, "             ");
    check_views("y!('é' 1 b'x' 0b1);", "y!(     1      0b1);", "y!('é' 1 b'x' 0b1);", "                    ");
    check_views(
        "/// Text.\nstruct A;",
        "         \nstruct A;",
        "         \nstruct A;",
        "/// Text.\n         ",
    );
    check_views(
        "fn f<'a>(x: &'a r#type) {}",
        "fn f<'a>(x: &'a r#type) {}",
        "fn f<'a>(x: &'a r#type) {}",
        "                          ",
    );
}

#[test]
fn a_file_that_does_not_parse_is_a_violation() {
    let tree = Tree::of(&[("crates/a/src/lib.rs", "fn a() {}\nfn {")]);
    assert!(tree.rust_files.is_empty());
    let violation = tree.unparsable[0].to_string();
    assert!(violation.starts_with("crates/a/src/lib.rs:2: it does not parse: "), "{violation}");
}

#[track_caller]
fn check_test_code(text: &str, expected: &[&str]) {
    let file = read(text);
    let found: Vec<&str> = file.test_code().map(|(_, text)| text).collect();
    assert_eq!(found, expected);
}

#[test]
fn items_for_tests_are_found() {
    check_test_code(
        "fn a() {} #[cfg(test)] mod t { fn b() {} } fn c() {}",
        &["#[cfg(test)] mod t { fn b() {} }"],
    );
    check_test_code(
        "#[cfg(test)]\n#[path = \"x\"]\nmod t; fn c() {}",
        &["#[cfg(test)]\n#[path = \"x\"]\nmod t;"],
    );
    check_test_code("#[cfg(all(test, unix))] use a::b; fn c() {}", &["#[cfg(all(test, unix))] use a::b;"]);
    check_test_code("#[cfg(any(test, unix))] fn a() {}", &[]);
    check_test_code("struct A { #[cfg(test)] b: u8, c: u8 }", &["#[cfg(test)] b: u8"]);
    check_test_code("impl A { #[cfg(test)] fn b() {} }", &["#[cfg(test)] fn b() {}"]);
    check_test_code("fn a() { #[cfg(test)] let b = 1; }", &["#[cfg(test)] let b = 1;"]);
    check_test_code("#![cfg(test)] fn a() {}", &["#![cfg(test)] fn a() {}"]);
    check_test_code("#[cfg(not(test))] fn a() {}", &[]);
    check_test_code("#[cfg(any(test, unix))] fn a() {}", &[]);
    check_test_code("#[cfg(feature = \"test\")] fn a() {}", &[]);
}

#[test]
fn files_of_a_test_module_are_test_code() {
    let files = Tree::of(&[
        ("crates/a/src/lib.rs", "#[cfg(test)] mod rows; mod real;"),
        ("crates/a/src/rows.rs", "fn a() {}"),
        ("crates/a/src/rows/more.rs", "fn a() {}"),
        ("crates/a/src/real.rs", "fn a() {}"),
        ("crates/a/src/real/tests.rs", "fn a() {}"),
        ("crates/a/tests/it/main.rs", "fn a() {}"),
        ("crates/mcp-testkit/src/lib.rs", "fn a() {}"),
        ("tests/src/lib.rs", "fn a() {}"),
    ]);
    let files = files.rust_files;
    let tests: Vec<&str> =
        files.iter().filter(|file| file.is_test(0)).map(|file| file.path.as_str()).collect();
    assert_eq!(
        tests,
        [
            "crates/a/src/lib.rs",
            "crates/a/src/real/tests.rs",
            "crates/a/src/rows.rs",
            "crates/a/src/rows/more.rs",
            "crates/a/tests/it/main.rs",
            "crates/mcp-testkit/src/lib.rs",
            "tests/src/lib.rs",
        ]
    );
    assert!(!files[0].is_test(30), "the rest of lib.rs is product code");
}

#[test]
fn module_folder_follows_the_file_name() {
    for (path, folder) in [
        ("a/src/lib.rs", "a/src"),
        ("a/src/main.rs", "a/src"),
        ("a/src/b/mod.rs", "a/src/b"),
        ("a/src/b.rs", "a/src/b"),
        ("a/tests/it.rs", "a/tests"),
    ] {
        assert_eq!(module_folder(path), folder, "{path}");
    }
}

#[test]
fn find_matches_whole_identifiers() {
    assert_eq!(find_word("async a_async asynchronous (async)", "async"), [0, 28]);
    assert_eq!(find_word("Instant::now( now(", "::now("), [7]);
    assert_eq!(find_word("unsafe_code unsafe", "unsafe"), [12]);
}

#[track_caller]
fn check_paths(root: &str, text: &str, expected: &[(&str, usize, usize)]) {
    let tokens: TokenStream = text.parse().expect("the row is Rust");
    let found = collect_paths(&tokens).into_iter().filter(|path| path.root == root);
    let found: Vec<_> =
        found.map(|path| (path.segments.join("::"), path.repetitions, path.inline_modules)).collect();
    let expected: Vec<_> =
        expected.iter().map(|&(name, ups, inline)| (name.to_owned(), ups, inline)).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn paths_are_found_in_imports_expressions_and_macros() {
    check_paths("crate", "use crate::a::B;", &[("a::B", 1, 0)]);
    check_paths(
        "crate",
        "use crate::{a::{B, C}, d, E};",
        &[("a::B", 1, 0), ("a::C", 1, 0), ("d", 1, 0), ("E", 1, 0)],
    );
    check_paths("crate", "fn f() { assert!(matches!(x, crate::a::B)) }", &[("a::B", 1, 0)]);
    check_paths("crate", "mod m { use crate::a; }", &[("a", 1, 1)]);
    check_paths("crate", "pub(in crate::a) fn f() {} pub(crate) fn g() {}", &[]);
    check_paths("super", "use super::super::a::B; use super::*;", &[("a::B", 2, 0), ("*", 1, 0)]);
    check_paths("std", "use std::{fmt, fs, io::{env}};", &[("fmt", 1, 0), ("fs", 1, 0), ("io::env", 1, 0)]);
    check_paths("a", "fn f() -> impl B + use<'_> { a::c::d::<E>(self.a) }", &[("c::d", 1, 0)]);
}

#[track_caller]
fn check_imports(text: &str, expected: &[&str]) {
    let tokens: TokenStream = text.parse().expect("the row is Rust");
    let found =
        collect_paths(&tokens).into_iter().filter_map(|PathUse { root, segments, import, .. }| {
            let import = import?;
            let visibility = if import.is_reexport { "pub " } else { "" };
            Some(format!("{visibility}{root}::{} as {}", segments.join("::"), import.name))
        });
    assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn an_import_has_the_name_in_its_module() {
    check_imports("use a::b::C; fn f() { d::e() }", &["a::b::C as C"]);
    check_imports("use a::{self, b::{self as c, D}, *};", &["a::b as c", "a::b::D as D", "a::* as *"]);
    check_imports("pub use a::B; pub(crate) use c::D as E;", &["pub a::B as B", "pub c::D as E"]);
    check_imports("use crate::{a::{self, B as C}};", &["crate::a as a", "crate::a::B as C"]);
}
