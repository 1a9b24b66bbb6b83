//! Code for one system is confined to listed files, so that everything else is the same on all systems.
//!
//! Tests may use it anywhere.

use super::lists::Lists;
use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::RustFile;

/// The predicates of `cfg` that tell systems apart.
const PREDICATES: [&str; 5] = ["unix", "windows", "target_os", "target_family", "target_env"];

/// Paths of items that exist on one system only.
const SYSTEM_PATHS: [&str; 8] = [
    "nix::",
    "libc::",
    "windows::Win32",
    "process_wrap::",
    "std::os::",
    "signal::unix",
    "signal::windows",
    "net::Unix",
];

/// Checks the product code of each crate.
pub(super) fn check(files: &[RustFile], lists: &Lists) -> Vec<Violation> {
    let is_listed =
        |file: &RustFile| lists.system_code.iter().any(|prefix| file.path.starts_with(prefix.as_str()));
    let mut res = Vec::new();
    let is_product = |file: &&RustFile| crate_of(&file.path).is_some() && file.path.contains("/src/");
    for file in files.iter().filter(is_product).filter(|file| !is_listed(file)) {
        let conditions = ["cfg", "cfg_attr"].iter().flat_map(|word| file.find(word));
        let conditions = conditions.filter(|&at| names_a_system(&file.code[at..]));
        let paths = SYSTEM_PATHS.iter().flat_map(|path| file.find(path));
        for at in conditions.chain(paths).filter(|&at| !file.is_test(at)) {
            let message = "code for one system is allowed only in the files of `system_code`";
            res.push(Violation::new(&file.path, file.line(at), message));
        }
    }
    res
}

/// Whether the parentheses after the start of this text contain a predicate for systems.
fn names_a_system(text: &str) -> bool {
    let mut depth = 0;
    let end = text.find(|character| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        character == ')' && depth == 0
    });
    let is_word_end = |character: char| !character.is_alphanumeric() && character != '_';
    text[..end.unwrap_or(0)].split(is_word_end).any(|word| PREDICATES.contains(&word))
}
