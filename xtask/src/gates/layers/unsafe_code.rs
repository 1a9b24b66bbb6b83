//! `unsafe` is confined to one file for each system, and every other crate forbids it.
//!
//! A file says `#![expect(unsafe_code, …)]`. Tests are no exception.

use crate::error::Violation;
use crate::tree::rust::RustFile;

/// The files with `unsafe`.
const UNSAFE_FILES: [&str; 2] = [
    "crates/mcp-transport/src/stdio/system/unix/linux_launcher.rs",
    "crates/mcp-transport/src/stdio/system/windows/console.rs",
];

/// The attribute of a file with `unsafe`, without spaces.
const MARKER: &str = "#![expect(unsafe_code";

/// The attribute of every other crate.
const FORBID: &str = "#![forbid(unsafe_code)]";

/// Checks every Rust file of the tree.
pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let mut res = Vec::new();
    let is_marked = |file: &RustFile| file.code.split_whitespace().collect::<String>().contains(MARKER);
    for file in files.iter().filter(|file| is_marked(file) && !UNSAFE_FILES.contains(&&*file.path)) {
        let message = format!("only {} may expect `unsafe`", UNSAFE_FILES.join(" and "));
        res.push(Violation::new(&file.path, 0, message));
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
            let message = "`unsafe` is allowed only in the files that control child processes";
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
