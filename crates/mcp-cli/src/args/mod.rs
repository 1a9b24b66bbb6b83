//! Command-line arguments: the clap declarations, grouped by subject.
//!
//! The only decision made here is whether two flags contradict each other.

mod choice;
mod examples;
mod files;
mod global;
mod servers;
mod serving;

use std::net::SocketAddr;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use mcp_config::Profile;

pub(crate) use files::{AddArgs, CheckArgs, ConvertArgs, EditArgs, ImportArgs};
pub(crate) use global::{DialectOptions, Format, FormatName, GlobalArgs, LockPolicyName};
pub(crate) use servers::{
    CallArgs, ExplainArgs, LockArgs, LoginArgs, LoginTarget, ServerArgs, ShellArgs, ToolsArgs, WatchArgs,
};
pub(crate) use serving::{AcpCheckArgs, DemoServerArgs, RecordArgs, ReplayArgs, ServeArgs};

const EXAMPLES: &str = "\
Examples:
  mcp-host check agent.yaml
  mcp-host convert . --to mcp-json
  mcp-host tools .
  mcp-host tools .minds/mcp.yaml --server demo --format json
  mcp-host tools . --schema add
  mcp-host explain . --server demo --tool echo
  mcp-host call . add '{\"a\": 2, \"b\": 3}'
  mcp-host call . add a=2 b=3
  mcp-host doctor .
  mcp-host schema mcp-json

FILE is a configuration file or a folder. In a folder, the first of these files is used:
.minds/mcp.yaml, agent.yaml, .mcp.json, .vscode/mcp.json, .cursor/mcp.json,
.kiro/settings/mcp.json, .roo/mcp.json, mcp.json. Commands with an optional FILE search this
folder and its parents for the nearest one. `-` is standard input.

Exit codes:
  0  success, with or without warnings
  1  an error in the configuration or in the call
  2  an error in the command line
  3  a server could not be reached";

/// Runs MCP servers from the configuration files that you already have.
///
/// Reads a HoloDeck agent.yaml, a Dominds .minds/mcp.yaml, the mcp.json of an editor, or the servers of an ACP session.
/// Checks the file, starts the servers, lists their tools, and calls them.
#[derive(Debug, Parser)]
#[command(name = "mcp-host", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check configuration files and report every mistake; no server is started
    #[command(after_help = examples::CHECK)]
    Check(CheckArgs),
    /// Convert a configuration to another dialect
    #[command(after_help = examples::CONVERT)]
    Convert(ConvertArgs),
    /// Add a server to a configuration; comments and formatting are kept
    #[command(after_help = examples::ADD)]
    Add(AddArgs),
    /// List the servers that other programs on this machine are configured with, and import them
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Remove a server from a configuration
    #[command(after_help = examples::REMOVE)]
    Remove(EditArgs),
    /// Enable a server that is disabled
    #[command(after_help = examples::ENABLE)]
    Enable(EditArgs),
    /// Disable a server; its entry stays in the configuration
    #[command(after_help = examples::DISABLE)]
    Disable(EditArgs),
    /// Start the servers and list their tools
    #[command(after_help = examples::TOOLS)]
    Tools(ToolsArgs),
    /// Start the servers and list their prompts
    #[command(after_help = examples::PROMPTS)]
    Prompts(ServerArgs),
    /// Start the servers and list their resources and resource templates
    #[command(after_help = examples::RESOURCES)]
    Resources(ServerArgs),
    /// Test each server step by step, and explain the first step that fails
    #[command(after_help = examples::DOCTOR)]
    Doctor(ServerArgs),
    /// Log in to a server in a browser; other commands use the stored login
    #[command(after_help = examples::LOGIN)]
    Login(LoginArgs),
    /// Approve what the servers offer in a lock file, or show what has changed since
    #[command(after_help = examples::LOCK)]
    Lock(LockArgs),
    /// Delete the stored logins to a server
    #[command(after_help = examples::LOGOUT)]
    Logout(LoginTarget),
    /// Explain, rule by rule, under which name a tool is shown or why it is hidden
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Call one tool and print its result
    #[command(after_help = examples::CALL)]
    Call(CallArgs),
    /// Run the servers, reload the configuration when it changes, and show every change until Ctrl-C
    #[command(after_help = examples::WATCH)]
    Watch(WatchArgs),
    /// Start the servers and open a prompt; without a terminal, read commands from standard input
    #[command(after_help = examples::SHELL)]
    Shell(ShellArgs),
    /// Record a session with real servers to a file, without secrets, for `replay`
    #[command(after_help = examples::RECORD)]
    Record(RecordArgs),
    /// Serve a session that `record` has written
    #[command(after_help = examples::REPLAY)]
    Replay(ReplayArgs),
    /// Serve all configured servers as one MCP server, over standard input and output or HTTP
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Print the JSON Schema of a dialect
    #[command(after_help = examples::SCHEMA)]
    Schema {
        /// The dialect
        #[arg(value_parser = choice::choice(choice::SCHEMAS), value_name = "DIALECT")]
        name: Profile,
    },
    /// Validate an ACP session request from standard input and print the agent's response; no server is started
    #[command(after_help = examples::ACP_CHECK)]
    AcpCheck(AcpCheckArgs),
    /// Print the completion script for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = examples::MAN)]
    Man,
    /// Run the bundled demo server, over standard input and output or HTTP
    #[command(after_help = examples::DEMO_SERVER)]
    DemoServer(DemoServerArgs),
}

/// Parses an address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8807".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use mcp_model::Dialect;

    use super::*;

    #[test]
    fn clap_declaration_is_valid() {
        Arguments::command().debug_assert();
    }

    #[track_caller]
    fn check(line: &str, want: &str) {
        let words = std::iter::once("mcp-host").chain(line.split_whitespace());
        let got = match Arguments::try_parse_from(words) {
            Ok(Arguments { global, command: Command::Schema { name } }) => {
                global.schema_profile(name).map_or_else(|it| it, |it| it.as_str().to_owned())
            }
            Ok(Arguments { global, command: _ }) => global.dialect_options().map_or_else(
                |it| it,
                |it| format!("{:?} {:?}", it.dialect.map(Dialect::as_str), it.profile.map(Profile::as_str)),
            ),
            Err(error) => format!("{:?}", error.kind()),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn dialect_and_profile_must_agree() {
        check("check x", "None None");
        check("check x --dialect dominds", r#"Some("dominds") None"#);
        check("--profile holodeck-0.7 check x", r#"None Some("holodeck-0.7")"#);
        check(
            "check x --dialect holodeck --profile holodeck-0.7",
            r#"Some("holodeck") Some("holodeck-0.7")"#,
        );
        check(
            "check x --dialect dominds --profile holodeck",
            "the profile holodeck belongs to the dialect holodeck, not to dominds",
        );
        check("schema holodeck", "holodeck");
        check("schema holodeck --profile holodeck-0.7", "holodeck-0.7");
        check(
            "schema holodeck --profile dominds",
            "the profile dominds belongs to the dialect dominds, not to holodeck",
        );
        check("check x --dialect acp --profile acp-v2", r#"Some("acp") Some("acp-v2")"#);
        check("check x --dialect mcp-json", r#"Some("mcp-json") None"#);
        check("schema acp-v2", "acp-v2");
        check("schema mcp-json --profile mcp-json", "mcp-json");
        check("schema acp-v1 --profile acp-v2", "the profile acp-v2 is not acp-v1");
    }

    #[test]
    fn invalid_arguments_are_usage_errors() {
        check("", "DisplayHelpOnMissingArgumentOrSubcommand");
        check("chekc x", "InvalidSubcommand");
        check("call", "MissingRequiredArgument");
        check("check x --dialect toml", "InvalidValue");
        check("check x --format yaml", "InvalidValue");
        check("schema toml", "InvalidValue");
        check("acp-check", "MissingRequiredArgument");
        check("acp-check --capabilities {", "ValueValidation");
        check("acp-check --capabilities {} --protocol 3", "ValueValidation");
        check("acp-check --capabilities {} --protocol 2", "None None");
        check("demo-server --http nowhere", "ValueValidation");
        check("call x echo -1 two", "UnknownArgument");
        check("call x echo -", "None None");
    }
}
