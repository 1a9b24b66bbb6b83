//! The views of a file keep its places, and know what is no code.

use super::mask::mask;
use super::test_code::{module_folder, regions};
use super::{RustFile, find_word};
use crate::tree::planted;

#[track_caller]
fn check_mask(text: &str, code: &str, spoken: &str) {
    assert_eq!(mask(text), (code.to_owned(), spoken.to_owned()));
    assert_eq!(text.len(), code.len(), "a mask keeps places");
}

#[test]
fn comments_and_strings_are_blank() {
    check_mask("a // b\nc", "a     \nc", "a     \nc");
    check_mask("a /* b /* c */ */ d", "a                 d", "a                 d");
    check_mask(r#"a("b\"c", d)"#, r#"a(      , d)"#, r#"a("b\"c", d)"#);
    check_mask(r##"x(r#"a"b"#)"##, r##"x(        )"##, r##"x(r#"a"b"#)"##);
    check_mask(r#"b"x" c"y" b'"' z"#, "               z", r#"b"x" c"y" b'"' z"#);
    check_mask("'é' x", "     x", "'é' x");
}

#[test]
fn what_only_looks_like_a_literal_is_code() {
    for text in ["fn f<'a>(x: &'a str)", "r#type + r#fn", "0b1 'static", "a / b * c"] {
        check_mask(text, text, text);
    }
    check_mask(r"['\'', '\\', '/'] // x", "[    ,     ,    ]     ", r"['\'', '\\', '/']     ");
}

#[track_caller]
fn check_region(code: &str, expected: &[&str]) {
    let found: Vec<&str> = regions(code).into_iter().map(|it| &code[it]).collect();
    assert_eq!(found, expected);
}

#[test]
fn test_items_are_found() {
    check_region(
        "fn a() {} #[cfg(test)] mod t { fn b() {} } fn c() {}",
        &["#[cfg(test)] mod t { fn b() {} }"],
    );
    check_region("#[cfg(test)]\n#[path = x]\nmod t; fn c() {}", &["#[cfg(test)]\n#[path = x]\nmod t;"]);
    check_region("#[cfg(all(test, unix))] use a::b; x", &["#[cfg(all(test, unix))] use a::b;"]);
    check_region("#![cfg(test)] fn a() {}", &["#![cfg(test)] fn a() {}"]);
    check_region("#[cfg(not(test))] fn a() {}", &[]);
    check_region("#[cfg(any(test, unix))] fn a() {}", &[]);
    check_region("#[cfg(feature = \"test\")] fn a() {}", &[]);
}

#[test]
fn a_test_module_in_another_file_is_test_code() {
    let files = RustFile::all(&planted(&[
        ("crates/a/src/lib.rs", "#[cfg(test)] mod rows; mod real;"),
        ("crates/a/src/rows.rs", "fn a() {}"),
        ("crates/a/src/rows/more.rs", "fn a() {}"),
        ("crates/a/src/real.rs", "fn a() {}"),
        ("crates/a/src/real/tests.rs", "fn a() {}"),
        ("crates/a/tests/it/main.rs", "fn a() {}"),
        ("tests/src/lib.rs", "fn a() {}"),
    ]));
    let tests: Vec<&str> = files.iter().filter(|it| it.is_test(0)).map(|it| it.path.as_str()).collect();
    assert_eq!(
        tests,
        [
            "crates/a/src/lib.rs",
            "crates/a/src/real/tests.rs",
            "crates/a/src/rows.rs",
            "crates/a/src/rows/more.rs",
            "crates/a/tests/it/main.rs",
            "tests/src/lib.rs",
        ]
    );
    assert!(!files[0].is_test(30), "the rest of lib.rs is no test");
}

#[test]
fn modules_stand_in_the_folder_of_their_file() {
    for (path, folder) in [
        ("a/src/lib.rs", "a/src"),
        ("a/src/main.rs", "a/src"),
        ("a/src/b/mod.rs", "a/src/b"),
        ("a/src/b.rs", "a/src/b"),
    ] {
        assert_eq!(module_folder(path), folder, "{path}");
    }
}

#[test]
fn words_are_whole() {
    assert_eq!(find_word("async a_async asynchronous (async)", "async"), [0, 28]);
    assert_eq!(find_word("Instant::now( now(", "::now("), [7]);
    assert_eq!(find_word("unsafe_code unsafe", "unsafe"), [12]);
}
