//! JSON-RPC and MCP error numbers stand in one file for each family.
//!
//! A number in a string counts: hand-written JSON is where such numbers hide. Tests may write them, for there they
//! are the other judge.

use super::crate_of;
use super::lists::NUMBERS;
use crate::failure::Trespass;
use crate::rust::{RustFile, is_identifier};

/// Every Rust file of the crates.
pub(super) fn check(files: &[RustFile]) -> Vec<Trespass> {
    let mut res = Vec::new();
    for file in files {
        if crate_of(&file.path).is_none() || NUMBERS.contains(&file.path.as_str()) {
            continue;
        }
        for (at, number) in numbers(&file.spoken) {
            if !file.is_test(at) {
                let what = format!("{number} has a name in mcp-model's or mcp-acp's code.rs: use it");
                res.push(Trespass::new(&file.path, file.line(at), what));
            }
        }
    }
    res
}

/// The numbers from -32000 to -32999, with or without an underscore.
fn numbers(text: &str) -> Vec<(usize, String)> {
    let mut res = Vec::new();
    for (at, _) in text.match_indices("-32") {
        let written: String = text[at..].chars().take_while(|&it| it == '-' || is_identifier(it)).collect();
        let digits = written.replace('_', "");
        let digits = digits.trim_end_matches("i64").trim_end_matches("i32");
        let joined = text[..at].chars().next_back().is_some_and(is_identifier);
        if !joined && digits.len() == "-32000".len() && digits[1..].bytes().all(|it| it.is_ascii_digit()) {
            res.push((at, digits.to_owned()));
        }
    }
    res
}
