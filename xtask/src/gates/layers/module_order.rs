//! Order of the top modules of each crate: a module imports only itself and modules before it.
//!
//! Crate roots, binaries in `src/bin` and test code are exempt.

use std::collections::BTreeSet;

use super::lists::{LISTS_FILE, Lists};
use crate::error::Violation;
use crate::tree::rust::{PathUse, RustFile};

/// The most files and folders in `src/`, crate root included, `tests` not.
const MAX_ENTRIES: usize = 13;

/// Checks the product code of each crate against its entry.
pub(super) fn check(files: &[RustFile], lists: &Lists) -> Vec<Violation> {
    let mut res = Vec::new();
    let roots = files.iter().filter_map(|file| {
        let root =
            ["lib.rs", "main.rs"].iter().find_map(|name| file.path.strip_suffix(&format!("/src/{name}")))?;
        (root == "xtask" || root.starts_with("crates/")).then_some((root, file))
    });
    for (folder, root) in roots {
        let name = folder.trim_start_matches("crates/");
        let source = format!("{folder}/src/");
        let files: Vec<&RustFile> = files.iter().filter(|file| file.path.starts_with(&source)).collect();
        let entries = files.iter().filter_map(|file| file.path.strip_prefix(&source)?.split('/').next());
        let entries: BTreeSet<&str> =
            entries.filter(|entry| !["tests.rs", "tests"].contains(entry)).collect();
        if entries.len() > MAX_ENTRIES {
            let message = format!("{} files and folders, more than {MAX_ENTRIES}", entries.len());
            res.push(Violation::new(&source, 0, message));
        }
        match lists.crate_rules(name) {
            Some(rules) => {
                res.extend(check_list(root, &source, &rules.modules));
                for file in files.iter().filter(|file| file.path != root.path) {
                    res.extend(check_file(file, &source, &rules.modules));
                }
            }
            None => res.push(Violation::new(&root.path, 0, format!("`{name}` has no entry in {LISTS_FILE}"))),
        }
    }
    res
}

/// Checks that the list has exactly the modules that the root declares, without those for tests.
fn check_list(root: &RustFile, source: &str, modules: &[String]) -> Vec<Violation> {
    let declared: BTreeSet<&str> =
        root.product_modules().filter_map(|module| module.strip_prefix(source)).collect();
    let listed: BTreeSet<&str> = modules.iter().map(String::as_str).collect();
    let missing = declared.difference(&listed).map(|module| format!("`{module}` is missing in {LISTS_FILE}"));
    let superfluous =
        listed.difference(&declared).map(|module| format!("`{module}` of {LISTS_FILE} does not exist"));
    missing.chain(superfluous).map(|message| Violation::new(&root.path, 0, message)).collect()
}

/// Checks that a file imports only its own top module and modules before it.
fn check_file(file: &RustFile, source: &str, modules: &[String]) -> Vec<Violation> {
    let inside = file.path.strip_prefix(source).expect("the file is in this folder");
    let path: Vec<&str> = inside.trim_end_matches(".rs").trim_end_matches("/mod").split('/').collect();
    let Some(own) = modules.iter().position(|module| *module == path[0]) else { return Vec::new() };
    let reaches_root = |import: &&PathUse| match import.root.as_str() {
        "crate" => true,
        "super" => import.repetitions >= path.len() + import.inline_modules,
        _ => false,
    };
    let imports = file.paths.iter().filter(reaches_root).filter(|import| !file.is_test(import.at));
    let message = |name: &str| match modules.iter().position(|module| *module == name) {
        Some(other) if other <= own => None,
        Some(_) => Some(format!("`{}` imports `{name}`, which {LISTS_FILE} lists after it", path[0])),
        None => Some(format!("`{name}` is imported through the crate root: import it from its module")),
    };
    imports
        .filter_map(|import| Some(Violation::new(&file.path, file.line(import.at), message(import.name())?)))
        .collect()
}
