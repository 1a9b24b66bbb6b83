//! Tuples of three or more in the parameters of product code: what belongs together has a name.

use std::collections::BTreeSet;

use super::lists::{FILE, contains};
use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::RustFile;

/// Checks all files. The crates in `known` may have such parameters, and must have one.
pub(super) fn check(files: &[RustFile], known: &[String]) -> Vec<Violation> {
    let mut res = Vec::new();
    let mut found = BTreeSet::new();
    for file in files {
        let name = crate_of(&file.path).unwrap_or_default();
        for &at in file.tuple_parameters.iter().filter(|&&at| !file.is_test(at)) {
            found.insert(name.to_owned());
            if !contains(known, name) {
                let message = "a parameter has a tuple of three or more: give it a struct";
                res.push(Violation::new(&file.path, file.line(at), message));
            }
        }
    }
    let clean = known.iter().filter(|name| !found.contains(*name));
    res.extend(clean.map(|name| {
        Violation::new(FILE, 0, format!("`{name}` has no such tuple: remove it from `known_tuples`"))
    }));
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[track_caller]
    fn check_parameter(parameter: &str, known: &[&str], expected: &[&str]) {
        let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        let text = format!("fn f({parameter}) {{}}");
        let found = check(&Tree::of(&[("crates/a/src/lib.rs", &text)]).rust_files, &known);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{parameter}");
    }

    #[test]
    fn a_tuple_as_a_parameter_is_found() {
        let violation = "crates/a/src/lib.rs:1: a parameter has a tuple of three or more: give it a struct";
        check_parameter("a: (u8, u8, u8)", &[], &[violation]);
        check_parameter("a: &[(u8, &str, Option<u8>)]", &[], &[violation]);
        check_parameter("a: (u8, u8)", &[], &[]);
        check_parameter("a: impl Fn(u8, u8, u8)", &[], &[]);
    }

    #[test]
    fn a_known_tuple_passes_until_it_is_gone() {
        check_parameter("a: (u8, u8, u8)", &["a"], &[]);
        let gone = "xtask/layers.toml: `a` has no such tuple: remove it from `known_tuples`";
        check_parameter("a: u8", &["a"], &[gone]);
    }
}
