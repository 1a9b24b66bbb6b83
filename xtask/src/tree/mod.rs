//! The text files of the workspace, which are the input of the gates.
//!
//! These are the files that git tracks or would track, so a gate finds a violation before the commit and ignores
//! `target`.

pub(crate) mod rust;
mod source;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{fs, io};

use serde::de::DeserializeOwned;

use crate::error::{Error, Violation};
use rust::RustFile;
pub(crate) use source::Source;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().expect("xtask is a folder of the workspace").to_owned()
}

/// The package name of a crate, by its folder in `crates/`.
///
/// Other projects own names such as `mcp-host` and `mcp-oauth` on crates.io.
pub(crate) fn package_name(folder: &str) -> String {
    match folder.strip_prefix("mcp-") {
        Some("host") => "mcp-host-runtime".to_owned(),
        // It is not published.
        None | Some("testkit") => folder.to_owned(),
        Some(rest) => format!("mcp-host-{rest}"),
    }
}

/// The folder of a package of this workspace; the name itself of any other package.
pub(crate) fn folder_name(package: &str) -> String {
    match package.strip_prefix("mcp-host-") {
        Some("runtime") => "mcp-host".to_owned(),
        Some(rest) => format!("mcp-{rest}"),
        None => package.to_owned(),
    }
}

/// The name of the crate whose folder contains `path`.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return Some("xtask");
    }
    path.strip_prefix("crates/")?.split('/').next()
}

/// Reads a TOML file of the workspace.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &str) -> Result<T, Error> {
    let text = fs::read_to_string(root().join(path))
        .map_err(|error| Error::message(format!("could not read {path}: {error}")))?;
    toml::from_str(&text).map_err(|error| Error::message(format!("{path}: {error}")))
}

/// The input of the gates.
#[derive(Debug)]
pub(crate) struct Tree {
    /// All files that are UTF-8, sorted by path.
    pub sources: Vec<Source>,
    pub rust_files: Vec<RustFile>,
    /// One violation for each Rust file that does not parse.
    pub unparsable: Vec<Violation>,
}

impl Tree {
    /// Reads the tree on disk, once for all gates of this process.
    pub(crate) fn read() -> Result<&'static Tree, Error> {
        static TREE: OnceLock<Result<Tree, String>> = OnceLock::new();
        let tree = TREE.get_or_init(|| Ok(Tree::new(read_sources().map_err(|error| error.to_string())?)));
        tree.as_ref().map_err(Error::message)
    }

    fn new(sources: Vec<Source>) -> Tree {
        let (rust_files, unparsable) = RustFile::read_all(&sources);
        Tree { sources, rust_files, unparsable }
    }

    /// A tree in memory.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let mut sources: Vec<Source> =
            files.iter().map(|&(path, text)| Source { path: path.into(), text: text.into() }).collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        Tree::new(sources)
    }
}

/// The files that git tracks or would track, as far as they are UTF-8.
fn read_sources() -> Result<Vec<Source>, Error> {
    let root = root();
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|error| Error::message(format!("could not run git: {error}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::message(format!("git could not list the files: {}", stderr.trim())));
    }

    let mut res = Vec::new();
    for path in String::from_utf8_lossy(&output.stdout).split('\0').filter(|path| !path.is_empty()) {
        let file = root.join(path);
        // A deleted file that is still in the index, or a link to a folder.
        if !file.is_file() {
            continue;
        }
        let bytes =
            fs::read(&file).map_err(|error| Error::message(format!("could not read {path}: {error}")))?;
        if let Ok(text) = String::from_utf8(bytes) {
            res.push(Source { path: path.to_owned(), text });
        }
    }
    res.sort_by(|a, b| a.path.cmp(&b.path));
    res.dedup_by(|a, b| a.path == b.path);
    Ok(res)
}

/// The files outside `target` with this suffix, including those that git ignores.
pub(crate) fn files_with_suffix(suffix: &str) -> Result<Vec<String>, Error> {
    let root = root();
    let mut res = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let failed =
            |error: io::Error| Error::message(format!("could not list {}: {error}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().map_err(failed)?.is_dir() {
                if !["target", ".git", "node_modules"].contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if name.ends_with(suffix) {
                let path = entry.path();
                let inside = path.strip_prefix(&root).expect("the walk starts at the root");
                res.push(inside.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    res.sort();
    Ok(res)
}
