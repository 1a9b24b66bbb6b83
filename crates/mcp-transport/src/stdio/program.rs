//! The program of a child process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use mcp_host_model::Sandbox;

/// The environment variable with the token by which a later host recognizes the processes of a server
/// ([`ReceiptDirectory`](crate::ReceiptDirectory)). A process that outlives the host must not have it.
pub const TOKEN_VARIABLE: &str = "MCP_HOST_INSTANCE";

/// A program with its arguments and environment. The command is a path, or a name that is searched in `PATH` of `env`.
/// Contains secrets, so it does not implement `Debug`.
pub(crate) struct ChildCommand {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    /// The complete environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The working directory; `None` means ours.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) sandbox: Option<Sandbox>,
}
