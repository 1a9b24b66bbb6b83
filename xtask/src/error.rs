//! Violations that gates find, and errors of commands.

use std::fmt;

/// A broken rule of the project, with its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// The file, relative to the root, with forward slashes.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    pub message: String,
}

impl Violation {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// The error of a command.
#[derive(Debug)]
pub(crate) enum Error {
    Violations(Vec<Violation>),
    Message(String),
    /// A child process failed with this exit code and has printed why.
    Exit(u8),
}

impl Error {
    pub(crate) fn message(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }

    /// An error if there is a violation.
    pub(crate) fn from_violations(mut violations: Vec<Violation>) -> Result<(), Self> {
        violations.sort();
        violations.dedup();
        if violations.is_empty() { Ok(()) } else { Err(Self::Violations(violations)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => f.write_str(message),
            Self::Exit(code) => write!(f, "the command failed with exit code {code}"),
            Self::Violations(violations) => {
                for violation in violations {
                    writeln!(f, "{violation}")?;
                }
                write!(f, "{} found", violations.len())
            }
        }
    }
}
