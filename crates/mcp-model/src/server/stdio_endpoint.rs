//! A server that the host starts as a child process.

use crate::server::secret::Secret;
use crate::server::spec::EnvInherit;

/// A child process to start.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioEndpoint {
    /// The program: a name looked up on `PATH`, or a path.
    pub command: String,
    /// The arguments.
    pub args: Vec<Secret>,
    /// Environment variables on top of the inherited ones. Of duplicates the last counts.
    pub env: Vec<(String, Secret)>,
    /// The inherited part of the host's environment.
    pub inherit: EnvInherit,
    /// The working directory; the host's if `None`.
    pub cwd: Option<std::path::PathBuf>,
    /// WHATWG label of the encoding of the standard streams.
    pub encoding: String,
}

impl StdioEndpoint {
    /// Creates an endpoint without arguments, with the safe environment, the host's working directory, and UTF-8.
    pub fn new(command: impl Into<String>) -> StdioEndpoint {
        StdioEndpoint {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit: EnvInherit::Safe,
            cwd: None,
            encoding: "utf-8".to_owned(),
        }
    }
}
