//! The files that the gates judge, read once.
//!
//! They are what git tracks or would track: a gate must find a trespass before the commit, and must not look into
//! `target`. What a gate decides is a function of these texts alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::failure::Failure;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the workspace").to_owned()
}

/// One text file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: String,
}

/// Every text file of the tree, by path. A file that is no UTF-8 is left out: no rule speaks of it.
pub(crate) fn sources() -> Result<Vec<Source>, Failure> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|error| Failure::words(format!("could not run git: {error}")))?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr);
        return Err(Failure::words(format!("git could not list the files: {}", said.trim())));
    }

    let mut res = Vec::new();
    for path in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|it| !it.is_empty()) {
        let file = root.join(path);
        // Deleted and still in the index, or a link to a folder.
        if !file.is_file() {
            continue;
        }
        let bytes =
            fs::read(&file).map_err(|error| Failure::words(format!("could not read {path}: {error}")))?;
        if let Ok(text) = String::from_utf8(bytes) {
            res.push(Source { path: path.to_owned(), text });
        }
    }
    res.sort_by(|a, b| a.path.cmp(&b.path));
    res.dedup_by(|a, b| a.path == b.path);
    Ok(res)
}

/// Files whose names end so, ignored by git or not, outside `target`.
pub(crate) fn named(ending: &str) -> Result<Vec<String>, Failure> {
    let root = root();
    let mut res = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let failed =
            |error: io::Error| Failure::words(format!("could not list {}: {error}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().map_err(failed)?.is_dir() {
                if !["target", ".git", "node_modules"].contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if name.ends_with(ending) {
                let path = entry.path();
                let inside = path.strip_prefix(&root).expect("the walk starts at the root");
                res.push(inside.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    res.sort();
    Ok(res)
}

/// A planted tree, for the tests of the gates.
#[cfg(test)]
pub(crate) fn planted(files: &[(&str, &str)]) -> Vec<Source> {
    let mut res: Vec<Source> =
        files.iter().map(|&(path, text)| Source { path: path.into(), text: text.into() }).collect();
    res.sort_by(|a, b| a.path.cmp(&b.path));
    res
}
