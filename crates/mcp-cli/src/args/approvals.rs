//! Arguments of `approvals`.

use clap::{Args, Subcommand};

/// Arguments of `approvals`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalsArgs {
    /// Print new calls as they arrive, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(subcommand)]
    pub(crate) command: Option<ApprovalsCommand>,
}

/// What to do with approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Allow a call that waits
    Allow(AnswerArgs),
    /// Refuse a call that waits
    Deny(AnswerArgs),
    /// List the answers that are remembered for always
    Remembered,
    /// Forget the answers about a tool, or about all tools of a server
    Forget {
        /// The server, or one of its tools
        #[arg(value_name = "SERVER[/TOOL]")]
        subject: String,
    },
}

/// Arguments of an answer.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Id of the call, as `mcp-host approvals` shows it
    pub(crate) id: String,
    /// Answer all calls of this tool by the same user in the same dialog alike, until the host ends
    #[arg(long)]
    pub(crate) session: bool,
    /// Answer all calls of this tool by the same user alike, until the tool or its server changes
    #[arg(long, conflicts_with = "session")]
    pub(crate) always: bool,
}
