//! What a command says when it does not end well.
//!
//! A trespass is a fact about one place of the tree, found by a pure function; everything else that can go wrong
//! (a command that fails, a file that cannot be read) is one sentence.

use std::fmt;

/// One broken house rule, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trespass {
    /// The file, relative to the root, with forward slashes.
    pub path: String,
    /// The line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Trespass {
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Trespass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// House rules are broken, here.
    Trespasses(Vec<Trespass>),
    /// Anything else, in a sentence.
    Words(String),
    /// A command has already said what is wrong; this is its exit code.
    Exit(u8),
}

impl Failure {
    pub(crate) fn words(words: impl Into<String>) -> Self {
        Self::Words(words.into())
    }

    /// No trespass is a success.
    pub(crate) fn of(mut trespasses: Vec<Trespass>) -> Result<(), Self> {
        trespasses.sort();
        trespasses.dedup();
        if trespasses.is_empty() { Ok(()) } else { Err(Self::Trespasses(trespasses)) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Exit(code) => write!(f, "it ended with exit code {code}"),
            Self::Trespasses(all) => {
                for trespass in all {
                    writeln!(f, "{trespass}")?;
                }
                write!(f, "{} found", all.len())
            }
        }
    }
}
