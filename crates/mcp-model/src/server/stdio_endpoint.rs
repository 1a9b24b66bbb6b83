//! A resolved server that the host starts as a child process.

use crate::server::sandbox::Sandbox;
use crate::server::secret::Secret;
use crate::server::spec::EnvInheritance;

/// The command line, environment and folder of a child process.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioEndpoint {
    /// The program: a name looked up on `PATH`, or a path.
    pub command: String,
    /// The arguments.
    pub args: Vec<Secret>,
    /// Environment variables that are added to the inherited ones. The last of several with one name counts.
    pub env: Vec<(String, Secret)>,
    /// The inherited part of the host's environment.
    pub inherit: EnvInheritance,
    /// The working directory; the host's if `None`.
    pub cwd: Option<std::path::PathBuf>,
    /// WHATWG label of the encoding of the standard streams.
    pub encoding: String,
    /// The sandbox of its processes; `None` if they have none. Its paths are absolute.
    pub sandbox: Option<Sandbox>,
}

impl StdioEndpoint {
    /// Creates an endpoint without arguments, with the safe environment, the host's working directory, and UTF-8.
    pub fn new(command: impl Into<String>) -> StdioEndpoint {
        StdioEndpoint {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit: EnvInheritance::Safe,
            cwd: None,
            encoding: "utf-8".to_owned(),
            sandbox: None,
        }
    }
}
