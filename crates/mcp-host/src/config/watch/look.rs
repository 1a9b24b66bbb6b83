//! One look at a configuration: what it says, and which files that depends on. Blocks; nothing is decided here.
//!
//! What a file held is remembered as a hash of its content. Its time would miss a save within the clock's grain and
//! make news of a copy that changes nothing; its text may be secrets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::load::{FileError, LoadError, LoadRequest, LoadedConfig};
use crate::config::load::{load_through, read_text};

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is no such file.
    Absent,
    /// Nothing but white space.
    Empty,
    /// A text.
    Text(blake3::Hash),
    /// It could not be read, for this reason.
    Unreadable(String),
}

impl Content {
    /// Is there nothing in it?
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Content::Absent | Content::Empty => true,
            Content::Text(_) | Content::Unreadable(_) => false,
        }
    }
}

/// Every file that was read, by its absolute path.
pub(crate) type Sources = BTreeMap<PathBuf, Content>;

/// What was seen.
#[derive(Debug)]
pub(crate) struct Look {
    /// The files that were read, the configuration itself among them.
    pub(crate) sources: Sources,
    /// What they say.
    pub(crate) outcome: Result<LoadedConfig, LoadError>,
}

/// Reads a configuration and whatever it refers to.
pub(crate) fn look(request: &LoadRequest) -> Look {
    let sources = RefCell::new(Sources::new());
    let outcome = load_through(request, &|path| {
        let (content, text) = read(path);
        sources.borrow_mut().insert(absolute(path), content);
        text
    });
    Look { sources: sources.into_inner(), outcome }
}

/// Do these files hold what they held?
pub(crate) fn is_same(sources: &Sources) -> bool {
    sources.iter().all(|(path, content)| read(path).0 == *content)
}

/// The path from the root on, links and `..` left as they are.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn read(path: &Path) -> (Content, Result<String, FileError>) {
    // A pipe would be read for ever, or once only.
    let is_other = path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir());
    let text = match is_other {
        true => Err(FileError::Io(io::Error::other("it is no regular file, and only those can be followed"))),
        false => read_text(path),
    };
    let content = match &text {
        Ok(text) if text.trim().is_empty() => Content::Empty,
        Ok(text) => Content::Text(blake3::hash(text.as_bytes())),
        Err(error) if is_absent(error) => Content::Absent,
        Err(error) => Content::Unreadable(error.to_string()),
    };
    (content, text)
}

/// Is there no such file? A way to it that leads through a file leads nowhere, too.
pub(crate) fn is_absent(error: &FileError) -> bool {
    match error {
        FileError::Io(error) => {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
        FileError::TooLarge | FileError::NotText { .. } => false,
    }
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

    /// The files of a folder, and which of them a look at `agent.yaml` depends on, with what they held.
    #[track_caller]
    fn check(files: &[(&str, &str)], want: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let look = look(&LoadRequest::new(folder.path().join("agent.yaml")));
        let words = look.sources.iter().map(|(path, content)| {
            let content = match content {
                Content::Absent => "absent",
                Content::Empty => "empty",
                Content::Text(_) => "text",
                Content::Unreadable(_) => "unreadable",
            };
            format!("{}:{content}", path.strip_prefix(folder.path()).unwrap().display())
        });
        assert_eq!(words.collect::<Vec<_>>().join(" "), want);
        assert!(is_same(&look.sources));
    }

    #[test]
    fn a_look_knows_what_it_depends_on() {
        check(&[], "agent.yaml:absent");
        check(&[("agent.yaml", " \n")], "agent.yaml:empty");
        let three = "agent.yaml:text s.env:absent sub/../s.env:absent";
        check(&[("agent.yaml", HOLODECK)], three);
        let found = "agent.yaml:text s.env:text sub/../s.env:absent";
        check(&[("agent.yaml", HOLODECK), ("s.env", "A=1")], found);
    }

    #[test]
    fn the_content_counts_and_not_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, written) = (folder.path().join("agent.yaml"), folder.path().join("new"));
        std::fs::write(&path, HOLODECK).unwrap();
        let seen = look(&LoadRequest::new(&path)).sources;
        std::fs::write(&written, HOLODECK).unwrap();
        std::fs::rename(&written, &path).unwrap();
        assert!(is_same(&seen));
        // As long as before, and within the clock's grain.
        std::fs::write(&path, HOLODECK.replace("name: t", "name: u")).unwrap();
        assert!(!is_same(&seen));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.yaml");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let look = look(&LoadRequest::new(&path));
        assert!(matches!(&look.sources[&path], Content::Unreadable(why) if why.contains("no regular file")));
        assert!(look.outcome.is_err());
    }
}
