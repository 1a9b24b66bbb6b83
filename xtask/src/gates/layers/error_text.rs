//! Product code does not search or compare the text of an error: the cause is a type.
//!
//! A heuristic by names: a method that searches a text, called on `message`, or on the `to_string()` of an
//! error, and a comparison with the latter. A byte string is not the text of an error. Tests may search
//! texts: they check them.

use super::lists::contains;
use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::{RustFile, is_identifier};

/// The methods that search a text.
const SEARCH_METHODS: [&str; 8] = [
    ".contains(",
    ".starts_with(",
    ".ends_with(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".split_once(",
    ".rsplit_once(",
    ".find(",
];

/// Comparisons of two values.
const COMPARISONS: [&str; 2] = [" == ", " != "];

/// Calls between a text and its search that keep the text.
const TEXT_ADAPTERS: [&str; 6] =
    [".as_str()", ".as_deref()", ".as_ref()", ".trim()", ".to_lowercase()", ".to_ascii_lowercase()"];

/// The names of variables and fields with an error. Their text is `to_string()`.
const ERROR_NAMES: [&str; 9] =
    ["cause", "disconnect", "err", "error", "evidence", "exit", "failure", "reason", "refusal"];

/// Checks every Rust file of the crates except those that are `allowed` to search error texts.
pub(super) fn check(files: &[RustFile], allowed: &[String]) -> Vec<Violation> {
    let mut res = Vec::new();
    for file in files {
        if crate_of(&file.path).is_none() || contains(allowed, &file.path) {
            continue;
        }
        for search in SEARCH_METHODS {
            for (at, _) in file.code.match_indices(search) {
                let argument = file.code_and_literals[at + search.len()..].trim_start();
                let is_bytes = argument.starts_with("b\"") || argument.starts_with("b'");
                if !is_bytes && !file.is_test(at) && is_error_text(&file.code[..at]) {
                    let message = "the text of an error is searched: decide by its type";
                    res.push(Violation::new(&file.path, file.line(at), message));
                }
            }
        }
        for comparison in COMPARISONS {
            for (at, _) in file.code.match_indices(comparison) {
                let (before, after) = (&file.code[..at], &file.code[at + comparison.len()..]);
                if !file.is_test(at) && (is_printed_error(before) || is_printed_error(leading_operand(after)))
                {
                    let message = "the text of an error is compared: decide by its type";
                    res.push(Violation::new(&file.path, file.line(at), message));
                }
            }
        }
    }
    res
}

/// Whether the expression at the end of `code` is the `to_string()` or the `message` of an error.
fn is_printed_error(code: &str) -> bool {
    let code = code.trim_end();
    let error = code.strip_suffix(".to_string()").or_else(|| code.strip_suffix(".message"));
    error.is_some_and(|error| ERROR_NAMES.contains(&last_name(error.trim_end())))
}

/// The path, field or call without arguments at the beginning of `code`.
fn leading_operand(code: &str) -> &str {
    let is_part = |character: char| is_identifier(character) || "&*.:()".contains(character);
    let end = code.find(|character: char| !is_part(character)).unwrap_or(code.len());
    let operand = &code[..end];
    operand.rfind("()").map_or(operand.trim_end_matches(')'), |at| &operand[..at + 2])
}

/// Whether the expression at the end of `code` is the text of an error.
fn is_error_text(code: &str) -> bool {
    let mut code = code.trim_end();
    while let Some(rest) = TEXT_ADAPTERS.iter().find_map(|adapter| code.strip_suffix(adapter)) {
        code = rest.trim_end();
    }
    match code.strip_suffix(".to_string()") {
        Some(error) => ERROR_NAMES.contains(&last_name(error.trim_end())),
        None => last_name(code) == "message",
    }
}

/// The identifier at the end of `code`; empty if there is none.
fn last_name(code: &str) -> &str {
    let start = code.trim_end_matches(is_identifier).len();
    &code[start..]
}
