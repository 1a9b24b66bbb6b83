//! No tracked file names a place that exists on one machine only, or the host of a package registry.
//!
//! A clone must build behind a mirror and in any folder. The words are put together here from halves, or this file
//! would be the first trespass.

use crate::failure::Trespass;
use crate::tree::{self, Source};

const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("registry.npm", "js"),
    concat!("registry.yarn", "pkg"),
    concat!("files.python", "hosted"),
    concat!("deb.deb", "ian.org"),
    concat!("pypi", ".org/simple"),
];

const MACHINE_PATHS: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/work/", "main"),
    concat!("/work/", "shared"),
    concat!("/work/", "steering"),
    concat!("/work/", "."),
];

/// What no file may say, with the reason.
#[derive(Debug)]
pub(super) struct Forbidden {
    pub words: String,
    pub why: &'static str,
}

/// The words for everyone, and those of the machine that this runs on: its clone and its home folder.
pub(super) fn forbidden_here() -> Vec<Forbidden> {
    let mut paths: Vec<String> = MACHINE_PATHS.iter().map(ToString::to_string).collect();
    let home = std::env::var("HOME").unwrap_or_default();
    for place in [tree::root().to_string_lossy().into_owned(), home] {
        let depth = place.split('/').filter(|it| !it.is_empty()).count();
        // A clone at the top of the disk would forbid an everyday word.
        if depth > 1 {
            paths.push(format!("{}/", place.trim_end_matches('/')));
        }
    }
    let hosts =
        REGISTRY_HOSTS.iter().map(|it| Forbidden { words: it.to_string(), why: "the host of a registry" });
    hosts.chain(paths.into_iter().map(|words| Forbidden { words, why: "a path of one machine" })).collect()
}

/// Every file of the tree, whatever it holds.
pub(super) fn check(sources: &[Source], forbidden: &[Forbidden]) -> Vec<Trespass> {
    let mut res = Vec::new();
    for source in sources {
        for (index, line) in source.text.lines().enumerate() {
            if let Some(found) = forbidden.iter().find(|it| line.contains(&it.words)) {
                let what = format!("`{}` is {}", found.words, found.why);
                res.push(Trespass::new(&source.path, index + 1, what));
            }
        }
    }
    res
}
