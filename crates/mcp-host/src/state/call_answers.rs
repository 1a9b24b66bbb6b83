//! The answers that a user gave about calls for always.
//!
//! An answer belongs to the server's fingerprint, the definition of the tool and the user of the call, so that it does
//! not count for a changed server or tool.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ServerId, Tool};
use mcp_host_registry::JsonDigest;
use serde::{Deserialize, Serialize};

use crate::fs::private_json;
use crate::state::approved_servers::file_of;
use crate::state::start_identity::start_identity;

/// The version of the file's format.
const VERSION: u32 = 1;

/// The maximum number of answers. The oldest ones are removed.
const MAX_ANSWERS: usize = 10_000;

/// The file with the answers about calls. Its methods read and write it, and block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAnswers {
    path: PathBuf,
}

/// What an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallSubject {
    /// The hash of the server's fingerprint, the tool's definition and the user.
    pub fingerprint: String,
    /// The configuration file of the server; empty for a tool of the host.
    pub file: String,
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
    pub tool: String,
    /// The user of the call, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<String>,
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredAnswer {
    /// What it is about.
    #[serde(flatten)]
    pub subject: CallSubject,
    /// Whether such calls are allowed.
    pub allowed: bool,
    /// The time of the answer, in seconds since the Unix epoch.
    pub answered_at: u64,
}

/// What is known about a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownAnswer {
    /// The user allowed or refused it for always.
    Answered(bool),
    /// An answer is about another definition of the tool or of its server.
    Changed,
    /// There is no answer.
    Unknown,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    answers: Vec<StoredAnswer>,
}

impl Default for Stored {
    fn default() -> Stored {
        Stored { version: VERSION, answers: Vec::new() }
    }
}

impl CallSubject {
    /// Computes the subject of a call. `configured` is `None` for a tool of the host. Reads scripts of the project.
    pub(crate) fn of(
        server: &ServerId,
        configured: Option<&ResolvedServer>,
        tool: &Tool,
        user: Option<&str>,
    ) -> CallSubject {
        let mut hasher = blake3::Hasher::new();
        let own = configured.map(|it| start_identity(it).fingerprint).unwrap_or_default();
        let definition = JsonDigest::of(&tool.raw).to_string();
        for field in [server.as_str(), &own, &definition, user.unwrap_or_default()] {
            // The length separates the fields.
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        }
        CallSubject {
            fingerprint: hasher.finalize().to_hex().to_string(),
            file: configured.map(file_of).unwrap_or_default(),
            server: server.to_string(),
            tool: tool.name.to_string(),
            user: user.map(str::to_owned),
        }
    }

    /// Whether both are about tools with the same names.
    fn has_names_of(&self, other: &CallSubject) -> bool {
        let CallSubject { fingerprint: _, file, server, tool, user } = self;
        (file, server, tool, user) == (&other.file, &other.server, &other.tool, &other.user)
    }
}

impl CallAnswers {
    /// Names the file, which may be missing. Its folder must be private to the user.
    pub fn new(path: impl Into<PathBuf>) -> CallAnswers {
        CallAnswers { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all answers, oldest first. A missing file has none; an invalid one is an error.
    pub fn list(&self) -> io::Result<Vec<StoredAnswer>> {
        let Stored { version, answers } = private_json::read(&self.path)?;
        if version == VERSION { Ok(answers) } else { Err(private_json::unknown_version(&self.path, version)) }
    }

    /// Removes the answers that `is_forgotten` selects. Returns their number.
    pub fn forget(&self, is_forgotten: impl Fn(&StoredAnswer) -> bool) -> io::Result<usize> {
        let mut answers = self.list()?;
        let before = answers.len();
        answers.retain(|it| !is_forgotten(it));
        let removed = before - answers.len();
        if removed > 0 {
            self.write(answers)?;
        }
        Ok(removed)
    }

    /// Returns what is known about a subject.
    pub(crate) fn find(&self, subject: &CallSubject) -> io::Result<KnownAnswer> {
        let answers = self.list()?;
        if let Some(found) = answers.iter().find(|it| it.subject.fingerprint == subject.fingerprint) {
            return Ok(KnownAnswer::Answered(found.allowed));
        }
        let is_changed = answers.iter().any(|it| it.subject.has_names_of(subject));
        Ok(if is_changed { KnownAnswer::Changed } else { KnownAnswer::Unknown })
    }

    /// Stores an answer. It replaces the one about an earlier definition.
    pub(crate) fn store(&self, subject: CallSubject, allowed: bool, now: SystemTime) -> io::Result<()> {
        let answered_at = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let mut answers = self.list()?;
        answers.retain(|it| !it.subject.has_names_of(&subject));
        let excess = (answers.len() + 1).saturating_sub(MAX_ANSWERS);
        answers.drain(..excess);
        answers.push(StoredAnswer { subject, allowed, answered_at });
        self.write(answers)
    }

    fn write(&self, answers: Vec<StoredAnswer>) -> io::Result<()> {
        private_json::write(&self.path, &Stored { version: VERSION, answers })
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::{RawJson, read_tools};

    use super::*;

    fn tool(description: &str) -> Tool {
        let page =
            format!(r#"{{"tools": [{{"name": "t", "description": "{description}", "inputSchema": {{}}}}]}}"#);
        read_tools(&RawJson::parse(page.into()).unwrap()).unwrap().items.remove(0)
    }

    fn subject(tool: &Tool, user: Option<&str>) -> CallSubject {
        CallSubject::of(&ServerId::parse("a").unwrap(), None, tool, user)
    }

    #[test]
    fn cp_010_answer_counts_for_the_same_definition_and_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let answers = CallAnswers::new(folder.path().join("state/call-answers.json"));
        let (first, changed) = (tool("one"), tool("two"));
        assert_eq!(answers.find(&subject(&first, None)).unwrap(), KnownAnswer::Unknown);
        answers.store(subject(&first, None), true, SystemTime::now()).unwrap();
        assert_eq!(answers.find(&subject(&first, None)).unwrap(), KnownAnswer::Answered(true));
        assert_eq!(answers.find(&subject(&first, Some("bob"))).unwrap(), KnownAnswer::Unknown);
        assert_eq!(answers.find(&subject(&changed, None)).unwrap(), KnownAnswer::Changed);
        answers.store(subject(&changed, None), false, SystemTime::now()).unwrap();
        assert_eq!(answers.find(&subject(&first, None)).unwrap(), KnownAnswer::Changed);
        assert_eq!(answers.list().unwrap().len(), 1);
        assert_eq!(answers.forget(|it| it.subject.tool == "t").unwrap(), 1);
        assert_eq!(answers.find(&subject(&changed, None)).unwrap(), KnownAnswer::Unknown);
    }

    #[test]
    fn cp_010_broken_file_answers_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let answers = CallAnswers::new(folder.path().join("call-answers.json"));
        for text in ["{", r#"{"version": 2, "answers": []}"#] {
            std::fs::write(answers.path(), text).unwrap();
            assert!(answers.find(&subject(&tool("one"), None)).is_err(), "{text}");
        }
    }
}
