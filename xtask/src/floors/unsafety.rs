//! `unsafe` stands in one file, and every crate says so to the compiler.
//!
//! The file is known by its own words, `#![expect(unsafe_code, …)]` at its head; it may be one, and only where
//! processes are started. Tests are no exception.

use super::lists::UNSAFE;
use crate::failure::Trespass;
use crate::rust::RustFile;

const MARKER: &str = "#![expect(unsafe_code";
const FORBID: &str = "#![forbid(unsafe_code)]";

/// Every Rust file of the tree.
pub(super) fn check(files: &[RustFile]) -> Vec<Trespass> {
    let mut res = Vec::new();
    let is_marked = |file: &RustFile| without_spaces(&file.code).contains(MARKER);
    for (index, file) in files.iter().filter(|it| is_marked(it)).enumerate() {
        if !file.path.starts_with(UNSAFE) || index > 0 {
            let what = format!("only one file of {UNSAFE} may expect `unsafe`");
            res.push(Trespass::new(&file.path, 0, what));
        }
    }
    for file in files {
        if is_root(&file.path)
            && !file.path.starts_with("crates/mcp-transport/src/")
            && !file.code.contains(FORBID)
        {
            res.push(Trespass::new(&file.path, 0, format!("`{FORBID}` is missing")));
        }
        if is_marked(file) {
            continue;
        }
        for at in file.find("unsafe") {
            let what = "`unsafe` stands in the one file that starts processes, and nowhere else";
            res.push(Trespass::new(&file.path, file.line(at), what));
        }
        let excuses = file.find("unsafe_code").into_iter().filter(|&at| {
            let before = file.code[..at].trim_end_matches([' ', '\n', '(']);
            ["allow", "expect", "warn"].iter().any(|it| before.ends_with(it))
        });
        for at in excuses {
            res.push(Trespass::new(&file.path, file.line(at), "`unsafe_code` may not be excused here"));
        }
    }
    res
}

fn without_spaces(code: &str) -> String {
    code.split_whitespace().collect()
}

/// Is it the root of a library or of a program?
fn is_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}
