//! JSON-RPC and MCP error numbers are written in one file for each family.
//!
//! Numbers in string literals count, because hand-written JSON contains them. Tests may write numbers: they check the
//! constants.

use super::lists::contains;
use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::{RustFile, is_identifier};

/// Checks every Rust file of the crates except those that are `allowed` to contain numbers.
pub(super) fn check(files: &[RustFile], allowed: &[String]) -> Vec<Violation> {
    let mut res = Vec::new();
    for file in files {
        if crate_of(&file.path).is_none() || contains(allowed, &file.path) {
            continue;
        }
        for (at, number) in find_error_numbers(&file.code_and_literals) {
            if !file.is_test(at) {
                let message = format!("{number} has a name in code.rs of mcp-model or mcp-acp: use it");
                res.push(Violation::new(&file.path, file.line(at), message));
            }
        }
    }
    res
}

/// The numbers from -32000 to -32999, with or without an underscore, and their offsets.
fn find_error_numbers(text: &str) -> Vec<(usize, String)> {
    let mut res = Vec::new();
    for (at, _) in text.match_indices("-32") {
        let is_part = |&character: &char| character == '-' || is_identifier(character);
        let written: String = text[at..].chars().take_while(is_part).collect();
        let digits = written.replace('_', "");
        let digits = digits.trim_end_matches("i64").trim_end_matches("i32");
        let continues = text[..at].chars().next_back().is_some_and(is_identifier);
        if !continues
            && digits.len() == "-32xxx".len()
            && digits[1..].bytes().all(|byte| byte.is_ascii_digit())
        {
            res.push((at, digits.to_owned()));
        }
    }
    res
}
