//! Which parts of a Rust file are compiled for tests only.
//!
//! It works on masked code, so a brace in a string closes nothing.

use std::ops::Range;

/// Is the whole file test code, by its place?
pub(super) fn is_test_path(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    name == "tests.rs" || folders.iter().any(|it| ["tests", "benches", "examples"].contains(it))
}

/// The items of `code` that stand under `#[cfg(test)]`.
pub(super) fn regions(code: &str) -> Vec<Range<usize>> {
    if code.match_indices("#![cfg(").any(|(at, _)| is_test_condition(&code[at + "#![".len()..])) {
        return std::iter::once(0..code.len()).collect();
    }
    let mut res: Vec<Range<usize>> = Vec::new();
    for (at, _) in code.match_indices("#[cfg(") {
        if is_test_condition(&code[at + "#[".len()..]) && !res.iter().any(|it| it.contains(&at)) {
            res.push(at..item_end(code, after_attributes(code, at)));
        }
    }
    res
}

/// The files, without their ending, that a `#[cfg(test)] mod name;` of this file is about.
pub(super) fn test_modules(path: &str, code: &str) -> Vec<String> {
    let mut res = Vec::new();
    for region in regions(code) {
        let item = code[after_attributes(code, region.start)..region.end].trim();
        let Some(declared) = item.strip_suffix(';') else { continue };
        let mut words = declared.split_whitespace().rev();
        if let (Some(name), Some("mod")) = (words.next(), words.next()) {
            res.push(format!("{}/{name}", module_folder(path)));
        }
    }
    res
}

/// The folder in which the modules of this file stand.
pub(crate) fn module_folder(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        _ => path.trim_end_matches(".rs"),
    }
}

/// `cfg(test)` or `cfg(all(test, …))`: never true outside tests.
fn is_test_condition(attribute: &str) -> bool {
    let condition = attribute.split(']').next().unwrap_or_default();
    condition.starts_with("cfg(test)") || condition.starts_with("cfg(all(test")
}

/// Past the attributes that begin at `at`.
fn after_attributes(code: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if !code[at..].starts_with("#[") {
            return at;
        }
        at = closing(code, at + 1, (b'[', b']'));
    }
}

/// Past the item that begins at `at`: its block, or its semicolon.
fn item_end(code: &str, at: usize) -> usize {
    match code[at..].find(['{', ';']) {
        Some(found) if code.as_bytes()[at + found] == b'{' => closing(code, at + found, (b'{', b'}')),
        Some(found) => at + found + 1,
        None => code.len(),
    }
}

/// Past the bracket that closes the one at `at`.
fn closing(code: &str, at: usize, (open, close): (u8, u8)) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.as_bytes()[at..].iter().enumerate() {
        if *byte == open {
            depth += 1;
        } else if *byte == close {
            depth -= 1;
            if depth == 0 {
                return at + offset + 1;
            }
        }
    }
    code.len()
}
