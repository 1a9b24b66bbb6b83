//! Command-line arguments: the clap declarations, grouped by subject.
//!
//! The only decision made here is whether two flags contradict each other.

mod approvals;
mod call_rules;
mod choice;
mod files;
mod global;
mod hosts;
mod limit;
mod schema;
mod servers;
mod serving;
mod target;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use approvals::{AnswerArgs, ApprovalsArgs, ApprovalsCommand};
pub(crate) use call_rules::CallRuleArgs;
pub(crate) use files::{
    AddArgs, CheckArgs, ConnectArgs, ConvertArgs, EditArgs, FixLevel, ImportArgs, SandboxChoice, SecretArgs,
    SecretCommandArgs, SetArgs, TransportName, ViewsArgs,
};
pub(crate) use global::{DialectOptions, Format, GlobalArgs, LockPolicyArg, RequestedFormat};
pub(crate) use hosts::{LogsArgs, RestartArgs, StopArgs};
pub(crate) use schema::{SchemaArgs, UnprovenPolicy};
pub(crate) use servers::{
    CallArgs, DoctorArgs, ExplainArgs, LockArgs, LoginArgs, LoginTarget, PromptArgs, ResourcesArgs,
    ServerArgs, ShellArgs, SkillsArgs, TasksArgs, ToolsArgs, TrustArgs, WatchArgs,
};
pub(crate) use serving::{AcpCheckArgs, DemoServerArgs, RecordArgs, ReplayArgs, ServeArgs};
pub(crate) use target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  mcp-host check agent.yaml
  mcp-host convert . --to mcp-json
  mcp-host trust
  mcp-host tools
  mcp-host tools .minds/mcp.yaml --server demo --format json
  mcp-host tools --schema add
  mcp-host explain . --server demo --tool echo
  mcp-host call add '{\"a\": 2, \"b\": 3}'
  mcp-host call add a=2 b=3
  mcp-host doctor
  mcp-host schema mcp-json

FILE is a configuration file or a folder. In a folder, the first of these files is used:
.minds/mcp.yaml, agent.yaml, .mcp.json, .vscode/mcp.json, .cursor/mcp.json,
.kiro/settings/mcp.json, .roo/mcp.json, mcp.json. Commands with an optional FILE search this
folder and its parents for the nearest one. `-` is standard input.
Commands that start servers also accept the URL of a server as FILE, or a program after `--`.

Without FILE, the servers of a project start after `mcp-host trust` has shown them. A command
that names FILE starts them: look at the file of another person first.

Exit codes:
  0  success, with or without warnings
  1  an error in the configuration or in the call
  2  an error in the command line
  3  a server could not be reached";

/// The examples in the help of each command: the name of the command, then its examples. A test runs all of them, in a
/// folder with a `.minds/mcp.yaml` that has the demo server, and a `request.json` with an ACP request. An example must
/// fit into one line of the help.
const COMMAND_EXAMPLES: &str = include_str!("examples.txt");

/// What `--version` prints. `-V` prints the version alone. The program has no optional features: these are the ones of
/// the libraries that its manifest enables.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("MCP_HOST_COMMIT"),
    "\ntarget: ",
    env!("MCP_HOST_TARGET"),
    "\nfeatures: stdio, http, sse, websocket, keyring, oauth, otel, watch"
);

/// Runs MCP servers from the configuration files that you already have.
///
/// Reads a HoloDeck agent.yaml, a Dominds .minds/mcp.yaml, the mcp.json of an editor, or the servers of an ACP session.
/// Checks the file, starts the servers, lists their tools, and calls them.
#[derive(Debug, Parser)]
#[command(name = "mcp-host", version, long_version = LONG_VERSION, after_help = EXAMPLES, max_term_width = 100)]
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
    Check(CheckArgs),
    /// Convert a configuration to another dialect
    Convert(ConvertArgs),
    /// Add a server to a configuration; comments and formatting are kept
    Add(AddArgs),
    /// List the servers that other programs on this machine are configured with, and import them
    Import(ImportArgs),
    /// Make this host the server of other programs on this machine: their servers move to its configuration
    Connect(ConnectArgs),
    /// List the views of a configuration: named selections of its servers, tools, prompts and resources
    Views(ViewsArgs),
    /// Change fields of a server; comments and formatting are kept
    Set(SetArgs),
    /// Remove a server from a configuration
    Remove(EditArgs),
    /// Enable a server that is disabled
    Enable(EditArgs),
    /// Disable a server; its entry stays in the configuration
    Disable(EditArgs),
    /// Start the servers and list their tools
    Tools(ToolsArgs),
    /// Start the servers and list their prompts
    Prompts(ServerArgs),
    /// Start the servers and list their resources and resource templates, or read one resource
    Resources(ResourcesArgs),
    /// Start the servers and list their skills, or print a file of one
    Skills(SkillsArgs),
    /// Test each server step by step, and explain the first step that fails
    Doctor(DoctorArgs),
    /// Log in to a server in a browser; other commands use the stored login
    Login(LoginArgs),
    /// Approve what the servers offer in a lock file, or show what has changed since
    Lock(LockArgs),
    /// Delete the stored logins to a server
    Logout(LoginTarget),
    /// Approve what the servers of a project's configuration start, or list and withdraw such approvals
    Trust(TrustArgs),
    /// Explain, rule by rule, under which name a tool is shown or why it is hidden, and whether it may be called
    Explain(ExplainArgs),
    /// Call one tool and print its result
    Call(CallArgs),
    /// Show the calls that wait for your approval in running hosts, and answer them
    Approvals(ApprovalsArgs),
    /// List the hosts of this user that run, with their servers and clients
    Ps,
    /// Stop a host that runs; running calls may finish
    Stop(StopArgs),
    /// Print the last lines that a server wrote to standard error, in the hosts that run
    Logs(LogsArgs),
    /// Restart a server in the hosts that run
    Restart(RestartArgs),
    /// Get one prompt with its arguments and print its messages
    Prompt(PromptArgs),
    /// Show a task that `call --detach` has started, wait for its result, or cancel it
    Tasks(TasksArgs),
    /// Run the servers, reload the configuration when it changes, and show every change until Ctrl-C
    Watch(WatchArgs),
    /// Start the servers and open a prompt; without a terminal, read commands from standard input
    Shell(ShellArgs),
    /// Record a session with real servers to a file, without secrets, for `replay`
    Record(RecordArgs),
    /// Serve a session that `record` has written
    Replay(ReplayArgs),
    /// Serve all configured servers as one MCP server, over standard input and output or HTTP
    Serve(Box<ServeArgs>),
    /// Print the JSON Schema of a dialect, or compare two versions of any JSON Schema
    Schema(SchemaArgs),
    /// Store, list or remove secrets; configurations refer to them as `${secret:NAME}`
    Secret(SecretArgs),
    /// Validate an ACP session request from standard input and print the agent's response; no server is started
    AcpCheck(AcpCheckArgs),
    /// Print the completion script for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    Man,
    /// Run the bundled demo server, over standard input and output or HTTP
    DemoServer(DemoServerArgs),
}

/// The declaration of the command line, with the examples of each command.
pub(crate) fn command_line() -> clap::Command {
    Arguments::command().mut_subcommands(|command| {
        let heading = format!("{}\n", command.get_name());
        let examples = COMMAND_EXAMPLES.split("\n\n").find_map(|paragraph| paragraph.strip_prefix(&heading));
        match examples {
            Some(examples) => command.after_help(format!("Examples:\n{}", examples.trim_end())),
            None => command,
        }
    })
}

/// Parses the arguments of the process. Exits with a message if they are invalid.
pub(crate) fn parse() -> Arguments {
    Arguments::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit())
}

#[cfg(test)]
mod tests {
    use mcp_host_config::Profile;
    use mcp_host_model::Dialect;

    use super::*;

    #[test]
    fn clap_declaration_is_valid() {
        command_line().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in command_line().get_subcommands() {
            assert!(command.get_after_help().is_some(), "{}", command.get_name());
        }
    }

    #[track_caller]
    fn check(line: &str, want: &str) {
        let words = std::iter::once("mcp-host").chain(line.split_whitespace());
        let got = match Arguments::try_parse_from(words) {
            Ok(Arguments { global, command: Command::Schema(SchemaArgs { name: Some(name), .. }) }) => {
                global.schema_profile(name).map_or_else(|it| it, |it| it.as_str().to_owned())
            }
            Ok(Arguments { command: Command::Schema(args), .. }) => {
                let unproven = args.unproven_policy();
                format!("{:?} {} {:?}", args.compare.unwrap_or_default(), args.user, unproven)
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
    fn comparison_is_for_a_reader_by_default() {
        check("schema --compare a -", r#"["a", "-"] reader Refuse"#);
        check("schema --compare a b --for writer --allow-unproven", r#"["a", "b"] writer Allow"#);
    }

    #[test]
    fn invalid_arguments_are_usage_errors() {
        check("", "DisplayHelpOnMissingArgumentOrSubcommand");
        check("chekc x", "InvalidSubcommand");
        check("call", "MissingRequiredArgument");
        check("check x --dialect toml", "InvalidValue");
        check("check x --format yaml", "InvalidValue");
        check("schema toml", "InvalidValue");
        check("schema", "MissingRequiredArgument");
        check("schema --compare a", "WrongNumberOfValues");
        check("schema acp-v1 --compare a b", "ArgumentConflict");
        check("schema acp-v1 --for reader", "ArgumentConflict");
        check("schema --for reader", "MissingRequiredArgument");
        check("schema --compare a b --for nobody", "InvalidValue");
        check("acp-check", "MissingRequiredArgument");
        check("acp-check --capabilities {", "ValueValidation");
        check("acp-check --capabilities {} --protocol 3", "ValueValidation");
        check("acp-check --capabilities {} --protocol 2", "None None");
        check("demo-server --http nowhere", "ValueValidation");
        check("check x --max-servers 2", "None None");
        check("serve x --http 127.0.0.1:0 --max-requests 1 --max-held-bytes 1", "None None");
        check("serve x --stdio --workers 16", "None None");
        check("serve x --stdio --workers 0", "ValueValidation");
        for option in
            ["--max-servers", "--max-list-items", "--max-connections", "--max-sessions", "--max-streams"]
        {
            check(&format!("serve x --http 127.0.0.1:0 {option} 0"), "ValueValidation");
            check(&format!("serve x --http 127.0.0.1:0 {option} many"), "ValueValidation");
        }
        check("call x echo -1 two", "UnknownArgument");
        check("call x echo -", "None None");
    }
}
