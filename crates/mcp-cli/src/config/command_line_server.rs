//! The server that the command line describes, in place of a configuration file.

use mcp_host_model::Secret;

/// The name of its configuration in messages.
pub(super) const COMMAND_LINE: &str = "the command line";

/// A server of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLineServer {
    /// A configuration with only this server.
    pub(crate) text: Secret,
    /// The words of a suggested command that name its URL and options, each after a blank. The values of options, which
    /// may be secrets, are left out.
    pub(crate) words: String,
    /// The last words of a suggested command, which name its program, each after a blank.
    pub(crate) program: String,
}
