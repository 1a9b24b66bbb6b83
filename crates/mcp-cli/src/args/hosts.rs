//! Arguments of the commands about running hosts: `stop`, `logs` and `restart`.

use clap::Args;

/// Arguments of `stop`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The host: its process id as `mcp-host ps` shows it, or its configuration file [default: the only host]
    #[arg(value_name = "FILE|ID")]
    pub(crate) host: Option<String>,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The server
    pub(crate) server: String,
    /// Print new lines as they are written, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// In this host only: its process id, or its configuration file [default: every host that has the server]
    #[arg(long, value_name = "FILE|ID")]
    pub(crate) host: Option<String>,
}

/// Arguments of `restart`.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The server
    pub(crate) server: String,
    /// Restart it in this host only: its process id, or its configuration file [default: every host that has it]
    #[arg(long, value_name = "FILE|ID")]
    pub(crate) host: Option<String>,
}
