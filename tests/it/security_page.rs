//! Every promise in docs/security.md names a test that exists and runs.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_testkit::program::root;

/// The names of all test functions.
fn tests(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|it| it != "target") {
            tests(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            named(&std::fs::read_to_string(&path).unwrap(), into);
        }
    }
}

/// The functions after `#[test]` or `#[tokio::test…]`, with other attributes in between.
fn named(text: &str, into: &mut BTreeSet<String>) {
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some(function) = function {
            let name = function.split(['(', '<']).next().unwrap_or_default();
            if is_test {
                into.insert(name.to_owned());
            }
        }
        is_test = match line.starts_with("#[") {
            true => is_test || line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
            false => false,
        };
    }
}

/// The last cell of each table row, and the test names in the text.
fn promised(page: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let is_name =
        |word: &&str| word.contains('_') && word.bytes().all(|it| it == b'_' || it.is_ascii_alphanumeric());
    let names = |text: &str| text.split('`').skip(1).step_by(2).filter(is_name).map(str::to_owned).collect();
    let (mut rows, mut rest) = (Vec::new(), Vec::new());
    for line in page.lines() {
        match line.strip_prefix("| ").map(|it| it.trim_end_matches(" |").split(" | ").collect::<Vec<_>>()) {
            Some(cells) if cells[0] != "attack" => {
                rows.push((cells[0].to_owned(), names(cells.last().unwrap())));
            }
            Some(_) => {}
            None => rest.extend(names(line)),
        }
    }
    (rows, rest)
}

#[test]
fn every_threat_names_an_existing_test() {
    let mut there = BTreeSet::new();
    for folder in ["crates", "tests/it", "xtask/src", "examples"] {
        tests(&root().join(folder), &mut there);
    }
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (rows, rest) = promised(&page);
    assert!(rows.len() > 30, "{rows:#?}");
    for (attack, names) in &rows {
        assert!(!names.is_empty(), "nothing shows what stops this: {attack}");
    }
    let named = rows.iter().flat_map(|(_, names)| names).chain(&rest);
    let missing: Vec<&String> = named.filter(|it| !there.contains(*it)).collect();
    assert!(missing.is_empty(), "there are no such tests: {missing:#?}");
}

#[test]
fn test_functions_are_recognized() {
    let mut found = BTreeSet::new();
    named(
        "#[test]\nfn a_b() {}\n#[tokio::test(x)]\n#[cfg(unix)]\nasync fn c_d() {}\nfn e_f() {}\n#[track_caller]\n\
        fn g() {}",
        &mut found,
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a_b", "c_d"]);
}
