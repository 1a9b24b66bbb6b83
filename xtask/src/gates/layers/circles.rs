//! Circles of files: files of one crate that import each other.
//!
//! A file imports another if it names an item that the other defines. So a re-export is followed to the definition, and
//! a module that declares children or only re-exports their items imports none of them. Test code is exempt.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::{Import, PathUse, RustFile};

/// How many re-exports of one name are followed.
const MAX_REEXPORTS: usize = 10;

/// The keywords before the name of a definition.
const DEFINITIONS: [&str; 8] = ["const", "enum", "fn", "mod", "static", "struct", "trait", "type"];

/// Checks the product files of each crate.
pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<&RustFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.contains("/src/")) {
        if let Some(name) = crate_of(&file.path) {
            crates.entry(name).or_default().push(file);
        }
    }
    crates.into_values().flat_map(|files| Modules::new(files).find_circles()).collect()
}

/// The files of one crate by the path of their module; the crate root has none.
struct Modules<'a> {
    files: BTreeMap<Vec<String>, &'a RustFile>,
}

/// What each file imports: the imported files, with the names.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>;

impl<'a> Modules<'a> {
    fn new(files: Vec<&'a RustFile>) -> Self {
        let module = |file: &'a RustFile| {
            let (_, inside) = file.path.split_once("/src/").expect("the file is in src");
            let mut path: Vec<String> =
                inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            path.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
            (path, file)
        };
        // In reverse order: of a library and a program, `lib.rs` is the root of the modules.
        Self { files: files.into_iter().rev().map(module).collect() }
    }

    /// One violation for each circle.
    fn find_circles(&self) -> Vec<Violation> {
        let imports = self.collect_imports();
        let reachable = |from: &'a str| {
            let mut res = BTreeSet::new();
            let mut pending = vec![from];
            while let Some(file) = pending.pop() {
                pending.extend(imports[file].keys().copied().filter(|&next| res.insert(next)));
            }
            res
        };
        let reachable: BTreeMap<&str, BTreeSet<&str>> =
            imports.keys().map(|&file| (file, reachable(file))).collect();
        let mut res = Vec::new();
        let mut reported = BTreeSet::new();
        for (file, reached) in &reachable {
            let circle: BTreeSet<&str> =
                reached.iter().copied().filter(|other| reachable[other].contains(file)).collect();
            if circle.len() > 1 && reported.insert(circle.clone()) {
                let message = format!(
                    "{} files import each other:{}",
                    circle.len(),
                    describe_circle(&circle, &imports)
                );
                res.push(Violation::new(file, 0, message));
            }
        }
        res
    }

    /// Finds for each file the files that it imports. A name that a file only re-exports is not imported.
    fn collect_imports(&self) -> Imports<'a> {
        let mut res = Imports::new();
        for (module, file) in &self.files {
            let imported = res.entry(&file.path).or_default();
            for path in file.paths.iter().filter(|path| !file.is_test(path.at)) {
                let is_only_reexported = |import: &Import| import.is_reexport && !is_used(file, &import.name);
                if path.import.as_ref().is_some_and(is_only_reexported) {
                    continue;
                }
                let definition =
                    self.absolute_path(module, file, path).and_then(|path| self.find_definition(&path, 0));
                if let Some((target, name)) = definition
                    && target.path != file.path
                {
                    imported.entry(&target.path).or_default().insert(name);
                }
            }
        }
        res
    }

    /// A path from the crate root, or nothing for a path into another crate.
    fn absolute_path(&self, module: &[String], file: &RustFile, path: &PathUse) -> Option<Vec<String>> {
        let mut res = match path.root.as_str() {
            "crate" => Vec::new(),
            "super" => {
                module[..(module.len() + path.inline_modules).saturating_sub(path.repetitions)].to_vec()
            }
            "self" => module.to_vec(),
            name => {
                let child = [module, &[name.to_owned()]].concat();
                if self.files.contains_key(&child) {
                    child
                } else {
                    let imports = |other: &&PathUse| {
                        path.import.is_none()
                            && other.root != path.root
                            && imported_name(file, other) == Some(name)
                    };
                    self.absolute_path(module, file, file.paths.iter().find(imports)?)?
                }
            }
        };
        res.extend(path.segments.iter().cloned());
        Some(res)
    }

    /// The file that defines the item at this path from the crate root, and the item's name. A module is no item.
    fn find_definition(&self, path: &[String], depth: usize) -> Option<(&'a RustFile, String)> {
        let length = (0..=path.len()).rev().find(|&length| self.files.contains_key(&path[..length]))?;
        let (module, item) = path.split_at(length);
        let (name, inner) = item.split_first()?;
        let file = self.files[module];
        if depth == MAX_REEXPORTS || name == "*" || defines(file, name) {
            return Some((file, name.clone()));
        }
        if let Some(import) = file.paths.iter().find(|path| imported_name(file, path) == Some(name)) {
            let target = [self.absolute_path(module, file, import)?, inner.to_vec()].concat();
            return self.find_definition(&target, depth + 1);
        }
        let everything = file.paths.iter().filter(|path| imported_name(file, path) == Some("*"));
        let found = everything.filter_map(|path| {
            let mut target = self.absolute_path(module, file, path)?;
            target.pop();
            self.find_definition(&[target, item.to_vec()].concat(), depth + 1)
        });
        let mut found = found.filter(|(file, name)| defines(file, name));
        found.next().or_else(|| Some((file, name.clone())))
    }
}

/// The name that a `use` item of the product code adds to the module of the file.
fn imported_name<'p>(file: &RustFile, path: &'p PathUse) -> Option<&'p str> {
    let import = path.import.as_ref()?;
    (path.inline_modules == 0 && !file.is_test(path.at)).then_some(&import.name)
}

/// Whether the product code of the file has this name outside `use` items.
fn is_used(file: &RustFile, name: &str) -> bool {
    let imports: Vec<&Import> = file.paths.iter().filter_map(|path| path.import.as_ref()).collect();
    let is_import = |at: usize| imports.iter().any(|import| import.item.contains(&at));
    file.find(name).into_iter().any(|at| !is_import(at) && !file.is_test(at))
}

/// Whether the file has a definition of this name.
fn defines(file: &RustFile, name: &str) -> bool {
    let keyword = |at: usize| file.code[..at].trim_end().rsplit(|c: char| !c.is_alphabetic()).next();
    let is_definition = |at: usize| keyword(at).is_some_and(|word| DEFINITIONS.contains(&word));
    file.find(name).into_iter().any(|at| is_definition(at) && !file.is_test(at))
}

/// Lists the imports inside a circle, one in each line.
fn describe_circle(circle: &BTreeSet<&str>, imports: &Imports<'_>) -> String {
    let mut res = String::new();
    for file in circle {
        for (target, names) in imports[file].iter().filter(|(target, _)| circle.contains(*target)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            write!(res, "\n    {file} -> {target}: {}", names.join(", ")).expect("a string can grow");
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    /// Checks the files of a crate `a`, whose paths are relative to its `src`, and returns the messages.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = check(&Tree::of(&files).rust_files);
        found.into_iter().map(|violation| violation.to_string().replace("crates/a/src/", "")).collect()
    }

    /// Checks a crate with the modules `b`, `c` and `c::d`.
    #[track_caller]
    fn check_files(b: &str, c: &str, d: &str, expected: &[&str]) {
        let files =
            [("lib.rs", "mod b; mod c;"), ("b.rs", b), ("c/mod.rs", &format!("mod d; {c}")), ("c/d.rs", d)];
        assert_eq!(circles(&files), expected);
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let circle = "b.rs: 2 files import each other:\n    b.rs -> c/d.rs: D\n    c/d.rs -> b.rs: B";
        for b in [
            "use crate::c::d::D; struct B;",
            "use crate::c::{d::{self, D}}; struct B;",
            "use super::c::d; struct B(d::D);",
            "struct B; fn f() { g!(crate::c::d::D::new()) }",
            "mod inner { use super::super::c::d::D; } struct B;",
        ] {
            check_files(b, "", "use crate::b::B; struct D;", &[circle]);
            check_files(b, "", "use crate::b; struct D(b::B);", &[circle]);
            check_files(b, "", "struct D;", &[]);
            check_files(b, "", "struct D; #[cfg(test)] mod tests { use crate::b::B; }", &[]);
        }
    }

    #[test]
    fn a_parent_and_its_child_are_a_circle_if_both_use_the_other() {
        let circle =
            "c/d.rs: 2 files import each other:\n    c/d.rs -> c/mod.rs: C\n    c/mod.rs -> c/d.rs: f";
        check_files("", "struct C; fn g() { d::f() }", "use super::C; fn f() {}", &[circle]);
        check_files("", "use d::f; struct C;", "fn f(c: super::C) {}", &[circle]);
        check_files("", "struct C; pub use d::f;", "use super::C; fn f() {}", &[]);
        check_files("", "struct C; pub use d::f; fn g() { f() }", "use super::C; fn f() {}", &[circle]);
    }

    #[test]
    fn a_reexport_is_followed_to_the_definition() {
        let circle = "b.rs: 2 files import each other:\n    b.rs -> c/d.rs: D\n    c/d.rs -> b.rs: B";
        for c in ["pub use d::D;", "pub(crate) use self::d::{D};", "pub use d::*;"] {
            check_files("use crate::c::D; struct B;", c, "use crate::b::B; struct D;", &[circle]);
        }
        check_files(
            "use crate::c::C; struct B;",
            "pub use d::*; struct C;",
            "use crate::b::B; struct D;",
            &[],
        );
        check_files("use crate::c::D; struct B;", "pub use other::D;", "use crate::b::B;", &[]);
    }
}
