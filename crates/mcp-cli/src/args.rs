//! The command line as it is typed: words to types, once.
//!
//! Nothing is decided here but whether two flags contradict each other.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use mcp_acp::AcpVersion;
use mcp_config::Profile;
use mcp_model::{Dialect, RawJson};

use crate::commands::{check, convert, edit, explain, import, lock, login, record, replay, serve, shell};
use crate::examples;
use crate::output::console::Chatter;

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

FILE may be a folder: then it is the .minds/mcp.yaml inside, or else the agent.yaml, the
.mcp.json, or the mcp.json of .vscode, .cursor, .kiro/settings or .roo. Where it may be left out,
it is the nearest of these, in this folder or one above it. A FILE of `-` is standard input.

Exit codes:
  0  done; warnings do not change it
  1  the configuration, or the call, is wrong
  2  the command line is wrong
  3  a server could not be reached";

/// MCP servers from the configuration you already have.
///
/// Reads a HoloDeck agent.yaml, a Dominds .minds/mcp.yaml, the mcp.json of an editor or the servers of an ACP session,
/// says what is wrong with it, starts its servers, shows their tools and calls them.
#[derive(Debug, Parser)]
#[command(name = "mcp-host", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What goes with every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The dialect of the files; seen from their names and contents unless given
    #[arg(long, global = true, value_enum, value_name = "DIALECT")]
    dialect: Option<DialectName>,
    /// The rules the files are read by; the dialect's current ones unless given
    #[arg(long, global = true, value_enum, value_name = "PROFILE")]
    profile: Option<ProfileName>,
    /// A file of NAME=value lines, read besides the environment
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Words for people, or one JSON document; `check` also knows sarif and github
    #[arg(long, global = true, value_enum, default_value_t = FormatName::Text)]
    pub(crate) format: FormatName,
    /// Start no server without the mcp.lock that lies beside the configuration
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// What becomes of tools that are not as the mcp.lock beside the configuration has them
    #[arg(long, global = true, value_enum, value_name = "POLICY", default_value_t = LockPolicyName::Withhold)]
    pub(crate) lock_policy: LockPolicyName,
    /// Tell on standard error what is going on
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// When to use colours; the variable NO_COLOR switches them off too
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is wrong with configuration files; nothing is started
    #[command(after_help = examples::CHECK)]
    Check(check::Words),
    /// Write the servers of a configuration in another dialect
    #[command(after_help = examples::CONVERT)]
    Convert(convert::Words),
    /// Add a server to a configuration; comments and everything else stay
    #[command(after_help = examples::ADD)]
    Add(edit::AddWords),
    /// Show the servers that other programs on this machine are configured with, and take them over
    #[command(after_help = examples::IMPORT)]
    Import(import::Words),
    /// Take a server out of a configuration
    #[command(after_help = examples::REMOVE)]
    Remove(edit::Words),
    /// Switch a server on that is switched off
    #[command(after_help = examples::ENABLE)]
    Enable(edit::Words),
    /// Switch a server off; it stays in the configuration
    #[command(after_help = examples::DISABLE)]
    Disable(edit::Words),
    /// Start the servers and list their tools
    #[command(after_help = examples::TOOLS)]
    Tools {
        #[command(flatten)]
        servers: Servers,
        /// Show only this tool, with the arguments it takes
        #[arg(long, value_name = "TOOL")]
        schema: Option<String>,
        /// Show the tools under their servers
        #[arg(long, conflicts_with = "schema")]
        tree: bool,
    },
    /// Start the servers and list their prompts
    #[command(after_help = examples::PROMPTS)]
    Prompts(Servers),
    /// Start the servers and list their resources, and the templates of resources
    #[command(after_help = examples::RESOURCES)]
    Resources(Servers),
    /// Examine each server step by step, and say what is wrong with the first step that fails
    #[command(after_help = examples::DOCTOR)]
    Doctor(Servers),
    /// Log in to a server that wants it, in a browser; what starts servers then uses the login
    #[command(after_help = examples::LOGIN)]
    Login(login::Words),
    /// Write down what the servers offer, so that what changes later is withheld; or show what has changed
    #[command(after_help = examples::LOCK)]
    Lock(lock::Words),
    /// Forget the logins to a server
    #[command(after_help = examples::LOGOUT)]
    Logout(login::Which),
    /// Say what a server's rules and a lock do to names, rule by rule; nothing is started unless that is asked for
    #[command(after_help = examples::EXPLAIN)]
    Explain(explain::Words),
    /// Call one tool and print what it answers
    #[command(after_help = examples::CALL)]
    Call {
        /// The configuration, or the folder it is in
        file: PathBuf,
        /// The tool, by the name that `tools` shows, or by its server's name for it where only one has that
        tool: String,
        /// Its arguments: a JSON object, @FILE or `-` for one in a file or on standard input, or name=value for each;
        /// the tool's schema says what a value is, and name:=JSON says it without asking
        #[arg(value_name = "ARGS")]
        arguments: Vec<String>,
        /// Write images, audio and other binary blocks of the answer to files in this folder, under new names
        #[arg(long, value_name = "FOLDER")]
        save: Option<PathBuf>,
    },
    /// Start the servers, follow the file, and show what becomes of them, until Ctrl-C
    #[command(after_help = examples::WATCH)]
    Watch {
        /// The configuration, or the folder it is in; a file need not be there yet. The nearest above this folder unless
        /// given
        file: Option<PathBuf>,
        /// Tell it line by line on a terminal too
        #[arg(long)]
        plain: bool,
    },
    /// Start the servers, and call them from a prompt; or, where standard input is no terminal, line by line from that
    #[command(after_help = examples::SHELL)]
    Shell(shell::Words),
    /// Write a session with real servers to a file, without their secrets, for `replay`
    #[command(after_help = examples::RECORD)]
    Record(record::Words),
    /// Be a server that plays what `record` has written, on standard input and output
    #[command(after_help = examples::REPLAY)]
    Replay(replay::Words),
    /// Start the servers, and be one MCP server with all that they offer, on standard input and output or over HTTP
    #[command(after_help = examples::SERVE)]
    Serve(serve::Words),
    /// Print the JSON Schema of a configuration file
    #[command(after_help = examples::SCHEMA)]
    Schema {
        /// Which dialect
        #[arg(value_enum, value_name = "DIALECT")]
        name: SchemaName,
    },
    /// Read an ACP session request on standard input, and print an agent's answer; nothing is started
    #[command(after_help = examples::ACP_CHECK)]
    AcpCheck {
        /// What the agent has declared for MCP: {"http": true} in version 1, {"stdio": {}} in version 2
        #[arg(long, value_name = "JSON", value_parser = capabilities)]
        capabilities: RawJson,
        /// The version of the protocol
        #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = protocol)]
        protocol: AcpVersion,
    },
    /// Print what completes the words of this command in a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = examples::MAN)]
    Man,
    /// Be the bundled demo server, on standard input and output
    #[command(after_help = examples::DEMO_SERVER)]
    DemoServer {
        /// Serve over HTTP at this loopback address instead, such as 127.0.0.1:8808; port 0 takes any free one. The
        /// path is /mcp, /sse for clients that know only server-sent events, and /ws for WebSocket
        #[arg(long, value_name = "ADDR", value_parser = address)]
        http: Option<SocketAddr>,
    },
}

/// Which servers are started.
#[derive(Debug, Args)]
pub(crate) struct Servers {
    /// The configuration, or the folder it is in; the nearest above this folder unless given
    pub(crate) file: Option<PathBuf>,
    /// Start and list only this server
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
}

/// A number of ACP's versions.
fn protocol(word: &str) -> Result<AcpVersion, String> {
    let version = word.parse().ok().and_then(AcpVersion::from_number);
    version.ok_or_else(|| "there are versions 1 and 2".to_owned())
}

/// A text that is a JSON object. It is not repeated.
fn capabilities(word: &str) -> Result<RawJson, String> {
    let json = RawJson::parse(word.to_owned().into()).map_err(|it| format!("this is no JSON: {it}"))?;
    if json.as_str().starts_with('{') { Ok(json) } else { Err("this is no JSON object".to_owned()) }
}

/// How the result is written, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Words.
    Text,
    /// One JSON document.
    Json,
    /// One SARIF 2.1.0 document; for check.
    Sarif,
    /// Annotations of GitHub Actions; for check.
    Github,
}

impl FormatName {
    /// The format, where every command knows it.
    pub(crate) fn common(self) -> Option<Format> {
        match self {
            FormatName::Text => Some(Format::Text),
            FormatName::Json => Some(Format::Json),
            FormatName::Sarif | FormatName::Github => None,
        }
    }
}

/// How the result of most commands is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Words.
    Text,
    /// One JSON document.
    Json,
}

/// What becomes of what was not approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LockPolicyName {
    /// It is not shown, and cannot be called
    Withhold,
    /// It is shown, with a warning
    Warn,
    /// The file is not looked at
    Off,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The dialects that have a name here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectName {
    /// HoloDeck's agent.yaml
    Holodeck,
    /// Dominds' .minds/mcp.yaml
    Dominds,
    /// The servers of an ACP session: a request, its params, or the list
    Acp,
    /// The mcp.json, or settings, of an editor or agent
    McpJson,
}

impl DialectName {
    fn dialect(self) -> Dialect {
        match self {
            DialectName::Holodeck => Dialect::HoloDeck,
            DialectName::Dominds => Dialect::Dominds,
            DialectName::Acp => Dialect::Acp,
            DialectName::McpJson => Dialect::McpJson,
        }
    }
}

/// The schemas that have a name here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// HoloDeck's agent.yaml
    Holodeck,
    /// Dominds' .minds/mcp.yaml
    Dominds,
    /// The servers of an ACP session, protocol version 1
    AcpV1,
    /// The servers of an ACP session, draft of protocol version 2
    AcpV2,
    /// The mcp.json of an editor or agent
    McpJson,
}

impl SchemaName {
    fn profile(self) -> Profile {
        match self {
            SchemaName::Holodeck => Profile::HoloDeck,
            SchemaName::Dominds => Profile::Dominds,
            SchemaName::AcpV1 => Profile::AcpV1,
            SchemaName::AcpV2 => Profile::AcpV2,
            SchemaName::McpJson => Profile::McpJson,
        }
    }
}

/// The profiles that have a name here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// HoloDeck's configuration contract
    Holodeck,
    /// What HoloDeck 0.7 accepts
    #[value(name = "holodeck-0.7")]
    Holodeck07,
    /// Dominds
    Dominds,
    /// ACP, protocol version 1
    #[value(alias = "acp")]
    AcpV1,
    /// ACP, draft of protocol version 2
    AcpV2,
    /// Editors and agents
    McpJson,
}

impl ProfileName {
    /// The profile.
    pub(crate) fn profile(self) -> Profile {
        match self {
            ProfileName::Holodeck => Profile::HoloDeck,
            ProfileName::Holodeck07 => Profile::HoloDeck07,
            ProfileName::Dominds => Profile::Dominds,
            ProfileName::AcpV1 => Profile::AcpV1,
            ProfileName::AcpV2 => Profile::AcpV2,
            ProfileName::McpJson => Profile::McpJson,
        }
    }
}

/// How files are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reader {
    /// The dialect, where one was asked for.
    pub(crate) dialect: Option<Dialect>,
    /// The profile, where one was asked for; of that dialect.
    pub(crate) profile: Option<Profile>,
}

impl Global {
    /// How much is said besides the result.
    pub(crate) fn chatter(&self) -> Chatter {
        if self.quiet { Chatter::Quiet } else { Chatter::Usual }
    }

    /// How files are to be read. Fails with a sentence when the two flags contradict each other.
    pub(crate) fn reader(&self) -> Result<Reader, String> {
        let res = Reader {
            dialect: self.dialect.map(DialectName::dialect),
            profile: self.profile.map(ProfileName::profile),
        };
        match (res.dialect, res.profile) {
            (Some(dialect), Some(profile)) => agree(dialect, profile).map(|_| res),
            (Some(_), None) | (None, Some(_)) | (None, None) => Ok(res),
        }
    }

    /// The profile whose schema is meant by `name` and `--profile`.
    pub(crate) fn schema(&self, name: SchemaName) -> Result<Profile, String> {
        let named = name.profile();
        let Some(asked) = self.profile.map(ProfileName::profile) else { return Ok(named) };
        match (name, asked == named) {
            (SchemaName::AcpV1 | SchemaName::AcpV2, false) => {
                Err(format!("the profile {} is not {}", asked.as_str(), named.as_str()))
            }
            (_, _) => agree(named.dialect(), asked),
        }
    }
}

fn agree(dialect: Dialect, profile: Profile) -> Result<Profile, String> {
    if profile.dialect() == dialect {
        return Ok(profile);
    }
    let (profile, belongs) = (profile.as_str(), profile.dialect().as_str());
    Err(format!("the profile {profile} belongs to the dialect {belongs}, not to {}", dialect.as_str()))
}

/// An address to listen at.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8807".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        Arguments::command().debug_assert();
    }

    #[track_caller]
    fn check(line: &str, want: &str) {
        let words = std::iter::once("mcp-host").chain(line.split_whitespace());
        let got = match Arguments::try_parse_from(words) {
            Ok(Arguments { global, command: Command::Schema { name } }) => {
                global.schema(name).map_or_else(|it| it, |it| it.as_str().to_owned())
            }
            Ok(Arguments { global, command: _ }) => global.reader().map_or_else(
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
    fn wrong_words_are_usage_errors() {
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
