//! How a connection ended.

use std::fmt;

use crate::error::evidence::{Evidence, ProcessExit};
use crate::error::request_error::RequestError;
use crate::error::sandbox_error::SandboxError;
use crate::error::stderr_sign::{self, StderrSign};
use crate::error::windows::WindowsRefusal;

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disconnect {
    /// The reason.
    pub reason: DisconnectReason,
    /// The evidence.
    pub evidence: Evidence,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This side closed the connection.
    Stopped,
    /// The server closed the connection, or its process exited.
    PeerClosed,
    /// The connection was never established.
    NotStarted(StartError),
    /// The server did not read for this long.
    Stalled(std::time::Duration),
    /// Reading or writing failed.
    Broken(String),
}

/// Why a transport could not start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The program does not exist.
    CommandNotFound,
    /// The program is a script whose first line names an interpreter that does not exist.
    NoInterpreter {
        /// The path of the script.
        script: String,
        /// The interpreter: its path, or its name if it is searched on the `PATH`.
        interpreter: String,
    },
    /// The command is this directory.
    IsDirectory(String),
    /// This file is not executable.
    NotExecutable(String),
    /// The working directory does not exist.
    NoDirectory(String),
    /// Its sandbox could not be applied.
    Sandbox(SandboxError),
    /// Windows refused to start it.
    Windows(WindowsRefusal),
    /// Another error of the operating system.
    System(String),
    /// A value of the configuration is invalid, such as an encoding or a header.
    Invalid(String),
    /// The server could not be reached, or refused the connection.
    Refused(RequestError),
}

impl Disconnect {
    /// A disconnect without evidence.
    pub fn new(reason: DisconnectReason) -> Disconnect {
        Disconnect { reason, evidence: Evidence::default() }
    }

    /// Whether the process of the server exited with status 0.
    pub fn is_clean_exit(&self) -> bool {
        self.reason == DisconnectReason::PeerClosed && self.evidence.exit == Some(ProcessExit::Status(0))
    }

    /// The sign of a known failure in the evidence, if any. A connection that this side closed has none.
    pub(crate) fn sign(&self) -> Option<StderrSign> {
        if self.is_unexpected() { stderr_sign::find_sign(&self.evidence) } else { None }
    }

    /// Whether a running connection ended without a request by this side.
    fn is_unexpected(&self) -> bool {
        match &self.reason {
            DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_) => true,
            DisconnectReason::Stopped | DisconnectReason::NotStarted(_) => false,
        }
    }
}

impl std::error::Error for Disconnect {}

impl fmt::Display for Disconnect {
    /// The known failure and the exception, then the reason, then the evidence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(summary) = self.is_unexpected().then(|| self.evidence.summary()).flatten() {
            write!(f, "{summary}: ")?;
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
                write!(f, "it did not read its input for {} s", after.as_secs_f64())?
            }
            DisconnectReason::Broken(message) => f.write_str(message)?,
        }
        write!(f, "{}", self.evidence)
    }
}

impl std::error::Error for StartError {}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::CommandNotFound => f.write_str("the command was not found"),
            StartError::NoInterpreter { script, interpreter } => {
                let name = interpreter.trim_end();
                let place = if name.contains('/') { "does not exist" } else { "is not on its PATH" };
                if name == interpreter {
                    write!(f, "the interpreter {name} of the script {script} {place}")
                } else {
                    write!(f, "the first line of the script {script} ends with a carriage return")
                }
            }
            StartError::IsDirectory(path) => write!(f, "{path} is a directory, not a program"),
            StartError::NotExecutable(path) => write!(f, "{path} is not executable"),
            StartError::NoDirectory(path) => write!(f, "its working directory {path} does not exist"),
            StartError::Sandbox(error) => write!(f, "{error}"),
            StartError::Windows(refusal) => write!(f, "{refusal}"),
            StartError::System(message) | StartError::Invalid(message) => f.write_str(message),
            StartError::Refused(error) => write!(f, "{error}"),
        }
    }
}
