//! Plain language: words that comments and docs do not use, and names that types and modules do not have.
//!
//! The lists are in `xtask/language.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{Error, Violation};
use crate::tree::rust::{RustFile, find_word, is_identifier};
use crate::tree::{self, Tree};

/// The file with the lists.
const LISTS_FILE: &str = "xtask/language.toml";

/// The content of `xtask/language.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LanguageRules {
    words: Vec<String>,
    names: Vec<String>,
    /// Files that quote text of others.
    exempt: Vec<String>,
    /// How many violations each area may have; an area without an entry may have none.
    #[serde(default)]
    baseline: BTreeMap<String, usize>,
}

impl LanguageRules {
    /// Reads the file of the lists.
    pub(super) fn read() -> Result<LanguageRules, Error> {
        tree::read_toml(LISTS_FILE)
    }
}

/// The violations in areas with more of them than their baseline.
pub(super) fn check(tree: &Tree, rules: &LanguageRules) -> Vec<Violation> {
    let mut by_area: BTreeMap<String, Vec<Violation>> = BTreeMap::new();
    let Tree { sources, rust_files: files, .. } = tree;
    let mut res = Vec::new();
    let comments = files.iter().map(|file| (&file.path, &file.comments));
    let pages = sources.iter().filter(|source| source.path.ends_with(".md"));
    let pages = pages.map(|source| (&source.path, &source.text));
    let texts = comments.chain(pages).filter(|(path, _)| !rules.exempt.contains(path));
    let found = texts.flat_map(|(path, text)| check_words(path, text, rules));
    for violation in found.chain(files.iter().flat_map(|file| check_names(file, rules))) {
        by_area.entry(area_of(&violation.path)).or_default().push(violation);
    }
    for (area, mut violations) in by_area {
        violations.dedup();
        let allowed = rules.baseline.get(&area).copied().unwrap_or_default();
        if violations.len() > allowed {
            res.append(&mut violations);
        }
    }
    res
}

/// The crate of a file, or the folder at the root.
fn area_of(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some(folder @ ("crates" | "examples")), Some(name)) => format!("{folder}/{name}"),
        (Some(folder), Some(_)) => folder.to_owned(),
        (Some(_) | None, _) => "root".to_owned(),
    }
}

/// The listed words in a text, outside of code.
fn check_words(path: &str, text: &str, rules: &LanguageRules) -> Vec<Violation> {
    let mut res = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // Code between backquotes is left out.
        let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
        for word in &rules.words {
            if !find_word(&line, word).is_empty() {
                res.push(Violation::new(
                    path,
                    index + 1,
                    format!("`{word}` is not plain language, see STYLE.md"),
                ));
            }
        }
    }
    res
}

/// The names of types and modules in one file, and of the file.
fn check_names(file: &RustFile, rules: &LanguageRules) -> Vec<Violation> {
    let is_listed = |name: &str| {
        let name = name.replace('_', "").to_lowercase();
        rules.names.iter().any(|listed| listed.to_lowercase() == name)
    };
    let mut res = Vec::new();
    for keyword in ["struct", "enum", "trait", "type", "mod"] {
        for at in file.find(keyword) {
            let rest = file.code[at + keyword.len()..].trim_start();
            let name: String = rest.chars().take_while(|&character| is_identifier(character)).collect();
            if is_listed(&name) {
                let message = format!("`{name}` does not say what it is, see STYLE.md");
                res.push(Violation::new(&file.path, file.line(at), message));
            }
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tree(baseline: &[(&str, usize)], path: &str, text: &str, expected: &[&str]) {
        let rules = LanguageRules {
            words: vec!["whoever".to_owned()],
            names: vec!["Leash".to_owned()],
            exempt: vec!["docs/rules.md".to_owned()],
            baseline: baseline.iter().map(|&(area, count)| (area.to_owned(), count)).collect(),
        };
        let found: Vec<String> =
            check(&Tree::of(&[(path, text)]), &rules).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn listed_words_are_found_in_comments_and_pages() {
        let path = "crates/a/src/lib.rs";
        let message = format!("{path}:1: `whoever` is not plain language, see STYLE.md");
        check_tree(&[], path, "//! For Whoever reads it.", &[&message]);
        check_tree(&[], path, "fn whoever() { print(\"whoever\") }", &[]);
        check_tree(
            &[],
            "docs/a.md",
            "whoever",
            &["docs/a.md:1: `whoever` is not plain language, see STYLE.md"],
        );
        check_tree(&[], "docs/a.md", "a type `Whoever` and a", &[]);
        check_tree(&[], "docs/rules.md", "whoever", &[]);
    }

    #[test]
    fn listed_names_are_found() {
        let path = "crates/a/src/lib.rs";
        for text in ["struct Leash;", "enum Leash {}", "mod leash {}"] {
            let name = if text.contains('L') { "Leash" } else { "leash" };
            check_tree(
                &[],
                path,
                text,
                &[&format!("{path}:1: `{name}` does not say what it is, see STYLE.md")],
            );
        }
        check_tree(&[], path, "struct LeashLength; enum A { Leash }", &[]);
    }

    #[test]
    fn an_area_has_at_most_its_baseline() {
        let text = "// whoever\n// whoever";
        check_tree(&[("crates/a", 2)], "crates/a/src/lib.rs", text, &[]);
        let found = |line: usize| {
            format!("crates/a/src/lib.rs:{line}: `whoever` is not plain language, see STYLE.md")
        };
        check_tree(&[("crates/a", 1)], "crates/a/src/lib.rs", text, &[&found(1), &found(2)]);
    }
}
