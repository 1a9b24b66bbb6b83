//! How a connection ended, and what was seen of the peer while it lived.

use std::fmt;

use crate::error::cause::{self, Cause};

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disconnect {
    /// Why.
    pub reason: DisconnectReason,
    /// What was seen.
    pub evidence: Evidence,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// We closed it.
    Stopped,
    /// The peer closed it, or its process ended.
    PeerClosed,
    /// It never began.
    NotStarted(StartError),
    /// The peer did not read what we sent for this long.
    Stalled(std::time::Duration),
    /// Reading or writing failed.
    Broken(String),
}

/// Why a wire could not even begin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program.
    CommandNotFound,
    /// The working directory does not exist.
    NoDirectory(String),
    /// The system refused for this reason.
    System(String),
    /// What was configured cannot be used: an encoding label, a header.
    Invalid(String),
    /// The peer could not be reached, or would not have us.
    Refused(RequestError),
}

/// What was seen of a peer: enough to tell its user what happened, bounded, and without the secrets we gave it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Its process id.
    pub pid: Option<u32>,
    /// How its process ended, in words: `exit status 1`, `signal 9 (SIGKILL)`.
    pub exit: Option<String>,
    /// How it closed a connection that both sides close, in words: `with code 1011 (an internal error): "…"`.
    pub close: Option<String>,
    /// The last lines of its standard error, oldest first.
    pub stderr: Vec<String>,
    /// Bytes that were no protocol.
    pub noise_bytes: u64,
    /// The first of those bytes, as text.
    pub noise_sample: Option<String>,
}

impl Disconnect {
    /// An end with nothing seen.
    pub fn new(reason: DisconnectReason) -> Disconnect {
        Disconnect { reason, evidence: Evidence::default() }
    }

    /// What it ended of, where that is known by more than its end. What we end ourselves dies of nothing else.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match &self.reason {
            DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_) => {
                cause::of(&self.evidence)
            }
            DisconnectReason::Stopped | DisconnectReason::NotStarted(_) => None,
        }
    }
}

impl fmt::Display for Disconnect {
    /// The cause, where the evidence gives it away, then how it ended, then what was seen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cause) = self.cause() {
            write!(f, "{}: ", cause.words)?;
        }
        match &self.reason {
            DisconnectReason::Stopped => f.write_str("it was stopped")?,
            DisconnectReason::PeerClosed => match (&self.evidence.exit, &self.evidence.close) {
                (Some(exit), _) => write!(f, "its process ended with {exit}")?,
                (None, Some(close)) => write!(f, "it closed the connection {close}")?,
                (None, None) => f.write_str("it closed the connection")?,
            },
            DisconnectReason::NotStarted(failure) => write!(f, "{failure}")?,
            DisconnectReason::Stalled(after) => {
                write!(f, "it did not read what was sent to it for {} s", after.as_secs_f64())?
            }
            DisconnectReason::Broken(message) => f.write_str(message)?,
        }
        write!(f, "{}", self.evidence)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::CommandNotFound => f.write_str("the command was not found"),
            StartError::NoDirectory(path) => write!(f, "its working directory {path} does not exist"),
            StartError::System(message) | StartError::Invalid(message) => f.write_str(message),
            StartError::Refused(fault) => write!(f, "{fault}"),
        }
    }
}

impl fmt::Display for Evidence {
    /// What follows the reason: `; its standard error ended with: …`. Empty when nothing was seen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.stderr.is_empty() {
            write!(f, "; its standard error ended with: {}", self.stderr.join(" | "))?;
        }
        if self.noise_bytes > 0 {
            // Only a process has a standard output.
            let place = if self.pid.is_some() { "of its standard output" } else { "that it sent" };
            write!(f, "; {} bytes {place} were no protocol", self.noise_bytes)?;
            if let Some(sample) = &self.noise_sample {
                write!(f, " (they begin with {sample:?})")?;
            }
        }
        Ok(())
    }
}

/// What went wrong with one request on a wire that gives each request an answer of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What happened, in words, without secrets.
    pub message: String,
    /// The JSON-RPC error of the answer's body, where it had one.
    pub error: Option<mcp_model::RpcError>,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(error) = &self.error {
            write!(f, ": {error}")?;
        }
        Ok(())
    }
}
