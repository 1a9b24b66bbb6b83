//! Tuples of three or more in the parameters of product code: what belongs together has a name.

use crate::error::Violation;
use crate::tree::rust::RustFile;

/// Checks all files.
pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let mut res = Vec::new();
    for file in files {
        for &at in file.tuple_parameters.iter().filter(|&&at| !file.is_test(at)) {
            let message = "a parameter has a tuple of three or more: give it a struct";
            res.push(Violation::new(&file.path, file.line(at), message));
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[track_caller]
    fn check_parameter(parameter: &str, expected: &[&str]) {
        let text = format!("fn f({parameter}) {{}}");
        let found = check(&Tree::of(&[("crates/a/src/lib.rs", &text)]).rust_files);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{parameter}");
    }

    #[test]
    fn a_tuple_as_a_parameter_is_found() {
        let violation = "crates/a/src/lib.rs:1: a parameter has a tuple of three or more: give it a struct";
        check_parameter("a: (u8, u8, u8)", &[violation]);
        check_parameter("a: &[(u8, &str, Option<u8>)]", &[violation]);
        check_parameter("a: (u8, u8)", &[]);
        check_parameter("a: impl Fn(u8, u8, u8)", &[]);
    }
}
