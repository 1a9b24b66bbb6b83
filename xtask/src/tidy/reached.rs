//! Every Rust file is named by a `mod`: one that is not compiles never, and its tests never fail.

use std::collections::BTreeSet;

use crate::failure::Trespass;
use crate::rust::{RustFile, find_word, is_identifier, module_folder};

/// Every Rust file of the tree.
pub(super) fn check(files: &[RustFile]) -> Vec<Trespass> {
    let named: BTreeSet<String> = files.iter().flat_map(named_by).collect();
    let forgotten = files.iter().filter(|it| !is_entry(&it.path)).filter(|it| {
        let stem = it.path.trim_end_matches(".rs");
        !named.contains(stem.strip_suffix("/mod").unwrap_or(stem))
    });
    forgotten.map(|it| Trespass::new(&it.path, 0, "no `mod` names it: it is never compiled")).collect()
}

/// The files, without their ending, that the `mod name;` of this file are about.
fn named_by(file: &RustFile) -> Vec<String> {
    let mut res = Vec::new();
    for at in find_word(&file.code, "mod") {
        let rest = file.code[at + "mod".len()..].trim_start();
        let name: String = rest.chars().take_while(|&it| is_identifier(it)).collect();
        if rest[name.len()..].trim_start().starts_with(';') {
            // A root of a test binary, such as `tests/it.rs`, keeps its modules beside it.
            let beside = file.path.rsplit_once('/').map_or("", |it| it.0);
            let folder = if is_entry(&file.path) { beside } else { module_folder(&file.path) };
            res.push(format!("{folder}/{name}"));
        }
    }
    res
}

/// Does Cargo find the file by itself?
fn is_entry(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    if let Some(src) = parts.iter().position(|it| *it == "src") {
        return matches!(parts[src + 1..], ["lib.rs" | "main.rs"] | ["bin", _] | ["bin", _, "main.rs"]);
    }
    let [.., folder, _] = parts.as_slice() else { return true };
    let target = |it: &str| ["tests", "benches", "examples", "fuzz_targets"].contains(&it);
    match parts.as_slice() {
        [.., "build.rs"] => true,
        [.., above, _, "main.rs"] if target(above) => true,
        _ => target(folder),
    }
}
