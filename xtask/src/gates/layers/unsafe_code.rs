//! `unsafe` is confined to one file, and every other crate forbids it.
//!
//! The file is recognized by `#![expect(unsafe_code, …)]`. Tests are no exception.

use crate::error::Violation;
use crate::tree::rust::RustFile;

/// The folder of the one file with `unsafe`.
const UNSAFE_FOLDER: &str = "crates/mcp-transport/src/stdio/";

/// The attribute of the file with `unsafe`, without spaces.
const MARKER: &str = "#![expect(unsafe_code";

/// The attribute of every other crate.
const FORBID: &str = "#![forbid(unsafe_code)]";

/// Checks every Rust file of the tree.
pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let mut res = Vec::new();
    let is_marked = |file: &RustFile| file.code.split_whitespace().collect::<String>().contains(MARKER);
    for (index, file) in files.iter().filter(|file| is_marked(file)).enumerate() {
        if !file.path.starts_with(UNSAFE_FOLDER) || index > 0 {
            let message = format!("only one file of {UNSAFE_FOLDER} may expect `unsafe`");
            res.push(Violation::new(&file.path, 0, message));
        }
    }
    for file in files {
        if is_crate_root(&file.path)
            && !file.path.starts_with("crates/mcp-transport/src/")
            && !file.code.contains(FORBID)
        {
            res.push(Violation::new(&file.path, 0, format!("`{FORBID}` is missing")));
        }
        if is_marked(file) {
            continue;
        }
        for at in file.find("unsafe") {
            let message = "`unsafe` is allowed only in the file that starts child processes";
            res.push(Violation::new(&file.path, file.line(at), message));
        }
        let lint_attributes = file.find("unsafe_code").into_iter().filter(|&at| {
            let before = file.code[..at].trim_end_matches([' ', '\n', '(']);
            ["allow", "expect", "warn"].iter().any(|level| before.ends_with(level))
        });
        for at in lint_attributes {
            res.push(Violation::new(
                &file.path,
                file.line(at),
                "the lint `unsafe_code` may not be relaxed here",
            ));
        }
    }
    res
}

/// Whether the file is the root of a library or of a program.
fn is_crate_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}
