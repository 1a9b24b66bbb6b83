//! Paths of one machine and hosts of package registries, which no file of the tree may contain.
//!
//! A clone must build in any folder and behind a registry mirror. The lists are written in halves, because this file is
//! checked too.

use crate::error::Violation;
use crate::tree::{self, Source};

/// The hosts of package registries.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("registry.npm", "js"),
    concat!("registry.yarn", "pkg"),
    concat!("files.python", "hosted"),
    concat!("deb.deb", "ian.org"),
    concat!("pypi", ".org/simple"),
];

/// The beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/work/", "main"),
    concat!("/work/", "shared"),
    concat!("/work/", "steering"),
    concat!("/work/", "."),
];

/// A text that no file may contain, with the reason.
#[derive(Debug)]
pub(super) struct ForbiddenText {
    pub text: String,
    pub reason: &'static str,
}

/// The fixed lists, plus the clone and the home folder of this machine.
pub(super) fn list_forbidden_texts() -> Vec<ForbiddenText> {
    let mut paths: Vec<String> = MACHINE_PATHS.iter().map(ToString::to_string).collect();
    let home = std::env::var("HOME").unwrap_or_default();
    for folder in [tree::root().to_string_lossy().into_owned(), home] {
        let depth = folder.split('/').filter(|part| !part.is_empty()).count();
        // A clone at the top of the disk would forbid an everyday word.
        if depth > 1 {
            paths.push(format!("{}/", folder.trim_end_matches('/')));
        }
    }
    let hosts = REGISTRY_HOSTS
        .iter()
        .map(|host| ForbiddenText { text: host.to_string(), reason: "the host of a registry" });
    hosts
        .chain(paths.into_iter().map(|text| ForbiddenText { text, reason: "a path of one machine" }))
        .collect()
}

/// Checks every text file of the tree.
pub(super) fn check(sources: &[Source], forbidden: &[ForbiddenText]) -> Vec<Violation> {
    let mut res = Vec::new();
    for source in sources {
        for (index, line) in source.text.lines().enumerate() {
            if let Some(ForbiddenText { text, reason }) = forbidden.iter().find(|it| line.contains(&it.text))
            {
                res.push(Violation::new(&source.path, index + 1, format!("`{text}` is {reason}")));
            }
        }
    }
    res
}
