//! Snapshots of a configuration and all files that it depends on. Reading them blocks.
//!
//! Contents are compared by hash. Modification times would miss quick saves and report identical copies, and the texts
//! may contain secrets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::load::{FileError, LoadError, LoadRequest, LoadedConfig};
use crate::config::load::{load_with, read_regular_file};

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// The file does not exist.
    Absent,
    /// The file has only white space.
    Empty,
    /// The hash of a text.
    Text(blake3::Hash),
    /// The file could not be read, for this reason.
    Unreadable(String),
}

impl FileContent {
    /// Returns whether it has no content.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            FileContent::Absent | FileContent::Empty => true,
            FileContent::Text(_) | FileContent::Unreadable(_) => false,
        }
    }
}

/// The files that were read, by absolute path.
pub(crate) type SourceContents = BTreeMap<PathBuf, FileContent>;

/// A configuration as it was read at one time.
#[derive(Debug)]
pub(crate) struct FileSnapshot {
    /// The files that were read, including the configuration.
    pub(crate) sources: SourceContents,
    /// The loaded configuration.
    pub(crate) outcome: Result<LoadedConfig, LoadError>,
}

/// Reads a configuration and the files that it refers to. `None` if they are as they were `seen`. Each file is read
/// once.
pub(crate) fn read_if_changed(request: &LoadRequest, seen: Option<&SourceContents>) -> Option<FileSnapshot> {
    let mut compared = BTreeMap::new();
    let is_same = |(path, content): (&PathBuf, &FileContent)| {
        let found = read(path);
        let is_same = found.0 == *content;
        compared.insert(path.clone(), found);
        is_same
    };
    if seen.is_some_and(|seen| seen.iter().all(is_same)) {
        return None;
    }
    let (compared, sources) = (RefCell::new(compared), RefCell::new(SourceContents::new()));
    let outcome = load_with(request, &|path| {
        let absolute = absolute(path);
        let found = compared.borrow_mut().remove(&absolute);
        let (content, text) = found.unwrap_or_else(|| read(path));
        sources.borrow_mut().insert(absolute, content);
        text
    });
    Some(FileSnapshot { sources: sources.into_inner(), outcome })
}

/// Returns whether these files are unchanged.
pub(crate) fn is_unchanged(sources: &SourceContents) -> bool {
    sources.iter().all(|(path, content)| read(path).0 == *content)
}

/// Makes a path absolute; links and `..` remain.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads a file: the content for comparisons, and the text.
fn read(path: &Path) -> (FileContent, Result<String, FileError>) {
    let text = read_regular_file(path);
    let content = match &text {
        Ok(text) if text.trim().is_empty() => FileContent::Empty,
        Ok(text) => FileContent::Text(blake3::hash(text.as_bytes())),
        Err(error) if error.is_absent() => FileContent::Absent,
        Err(error) => FileContent::Unreadable(error.to_string()),
    };
    (content, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLODECK: &str = "\
name: a
tools:
  - {name: s, description: d, type: mcp, server: x, command: npx, envFile: s.env}
  - {name: t, description: d, type: mcp, server: x, command: npx, envFile: sub/../s.env}
";

    /// Expects the files, with their content, that a reading of `agent.yaml` depends on.
    #[track_caller]
    fn check(files: &[(&str, &str)], want: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let request = LoadRequest::new(folder.path().join("agent.yaml"));
        let look = read_if_changed(&request, None).unwrap();
        let words = look.sources.iter().map(|(path, content)| {
            let content = match content {
                FileContent::Absent => "absent",
                FileContent::Empty => "empty",
                FileContent::Text(_) => "text",
                FileContent::Unreadable(_) => "unreadable",
            };
            format!("{}:{content}", path.strip_prefix(folder.path()).unwrap().display())
        });
        assert_eq!(words.collect::<Vec<_>>().join(" "), want);
        assert!(is_unchanged(&look.sources) && read_if_changed(&request, Some(&look.sources)).is_none());
    }

    #[test]
    fn snapshot_has_all_files_of_the_configuration() {
        check(&[], "agent.yaml:absent");
        check(&[("agent.yaml", " \n")], "agent.yaml:empty");
        let three = "agent.yaml:text s.env:absent sub/../s.env:absent";
        check(&[("agent.yaml", HOLODECK)], three);
        let found = "agent.yaml:text s.env:text sub/../s.env:absent";
        check(&[("agent.yaml", HOLODECK), ("s.env", "A=1")], found);
    }

    #[test]
    fn content_decides_not_modification_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, written) = (folder.path().join("agent.yaml"), folder.path().join("new"));
        std::fs::write(&path, HOLODECK).unwrap();
        let request = LoadRequest::new(&path);
        let seen = read_if_changed(&request, None).unwrap().sources;
        std::fs::write(&written, HOLODECK).unwrap();
        std::fs::rename(&written, &path).unwrap();
        assert!(is_unchanged(&seen));
        // The same length, within the resolution of the clock.
        std::fs::write(&path, HOLODECK.replace("name: t", "name: u")).unwrap();
        assert!(!is_unchanged(&seen));
        let changed = read_if_changed(&request, Some(&seen)).unwrap();
        assert!(changed.outcome.is_ok_and(|it| it.text.contains("name: u")));
    }

    #[cfg(unix)]
    #[test]
    fn special_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.yaml");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let look = read_if_changed(&LoadRequest::new(&path), None).unwrap();
        assert!(
            matches!(&look.sources[&path], FileContent::Unreadable(why) if why.contains("not a regular file"))
        );
        assert!(look.outcome.is_err());
    }
}
