//! Arguments of the commands that start servers and use them.

use std::path::PathBuf;

use clap::Args;
use mcp_host_runtime::Provider;
use url::Url;

use crate::args::call_rules::CallRuleArgs;
use crate::args::choice::{Choices, choice_parser};
use crate::args::target::{TargetArgs, is_url};

/// The APIs that `tools --for` supports.
const PROVIDERS: Choices<Provider> = &[
    ("openai", "OpenAI's Chat Completions, with `strict` functions", Provider::OpenAiStrict),
    ("anthropic", "Anthropic's Messages", Provider::Anthropic),
    ("gemini", "Gemini's `generateContent`", Provider::Gemini),
];

/// A configuration, and optionally one of its servers; or a server of the command line.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Configuration file or folder, or the URL of a server [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Start and list only this server
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Start each server many times, and propose the smallest `sandbox` in which it starts and lists its tools (Linux)
    #[arg(long)]
    pub(crate) learn: bool,
}

/// Arguments of `resources`.
#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Print the resource with this URI, which need not be listed
    #[arg(long, value_name = "URI")]
    pub(crate) read: Option<String>,
    /// Write the resource to this file instead: its text or its bytes, such as the HTML of an app (`ui://…`)
    #[arg(long, value_name = "OUT", requires = "read")]
    pub(crate) save: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "save")]
    pub(crate) overwrite: bool,
}

/// Arguments of `skills`.
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Print the skill whose `SKILL.md` has this URI; its size and hash are checked
    #[arg(long, value_name = "URI")]
    pub(crate) read: Option<String>,
    /// Print this file of the skill instead
    #[arg(long, value_name = "URI", requires = "read")]
    pub(crate) resource: Option<String>,
}

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Configuration file or folder, or the URL of a server [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Start and list only this server
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// List only tools whose names match: `*` matches any characters, a pattern without `*` matches a part of a name
    #[arg(value_name = "PATTERN", conflicts_with = "schema")]
    pub(crate) patterns: Vec<String>,
    /// Show only this tool, with its arguments
    #[arg(long, value_name = "TOOL")]
    pub(crate) schema: Option<String>,
    /// Group the tools by server
    #[arg(long, conflicts_with = "schema")]
    pub(crate) tree: bool,
    /// Adapt the tools to a model provider's API; with --format json, print the `tools` array of a request
    #[arg(long = "for", value_parser = choice_parser(PROVIDERS), value_name = "PROVIDER",
        conflicts_with_all = ["schema", "tree"])]
    pub(crate) provider: Option<Provider>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

impl ToolsArgs {
    /// Takes FILE as a pattern if it is no URL, and a program is named, or it contains a `*` and no such file exists.
    /// Reads the disk.
    pub(crate) fn resolve_patterns(mut self) -> ToolsArgs {
        let has_program = self.target.has_program();
        let is_pattern = |path: &mut PathBuf| {
            let word = path.to_string_lossy();
            !is_url(&word) && (has_program || (word.contains('*') && !path.exists()))
        };
        if let Some(file) = self.file.take_if(is_pattern) {
            self.patterns.insert(0, file.to_string_lossy().into_owned());
        }
        self
    }
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Configuration file or folder [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Server with the rules to apply; optional if there is only one, or with --start
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Name that the server gives a tool; may be given several times, to show name collisions
    #[arg(long, value_name = "NAME", required_unless_present_any = ["prompt", "resource", "start", "call"])]
    pub(crate) tool: Vec<String>,
    /// Name that the server gives a tool: which rule decides whether it may be called; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tool", "prompt", "resource"])]
    pub(crate) call: Vec<String>,
    /// The user of the call, for rules with `users=`
    #[arg(long, value_name = "USER", requires = "call")]
    pub(crate) user: Option<String>,
    /// Name that the server gives a prompt
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Vec<String>,
    /// Name that the server gives a resource
    #[arg(long, value_name = "NAME")]
    pub(crate) resource: Vec<String>,
    /// Start the server, or all servers, and compare what they offer with the lock file; without names,
    /// explain everything
    #[arg(long)]
    pub(crate) start: bool,
    #[command(flatten)]
    pub(crate) rules: CallRuleArgs,
}

/// Arguments of `lock`.
#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// Configuration file or folder [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Approve what this server offers now, or one of its tools, prompts or resources; may be given several times
    #[arg(long, value_name = "SERVER[/TOOL]")]
    pub(crate) update: Vec<String>,
    /// Approve everything that all servers offer now
    #[arg(long, conflicts_with = "update")]
    pub(crate) all: bool,
    /// Write nothing, and fail if anything differs from what was approved
    #[arg(long, conflicts_with_all = ["update", "all"])]
    pub(crate) check: bool,
    /// Approve items with hard findings too: texts that try to influence the model
    #[arg(long, conflicts_with = "check")]
    pub(crate) accept_findings: bool,
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Configuration file or folder [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// List all approved servers, of all files
    #[arg(long, conflicts_with_all = ["file", "revoke"])]
    pub(crate) list: bool,
    /// Withdraw the approvals of the servers of the file
    #[arg(long)]
    pub(crate) revoke: bool,
}

/// Arguments of `login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) target: LoginTarget,
    /// Id of a client that is registered with the server's authorization server
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// Environment variable that holds the secret of that client
    #[arg(long, value_name = "VARIABLE", requires = "client_id", requires = "issuer")]
    pub(crate) client_secret_env: Option<String>,
    /// Address of the only authorization server that may be used. Without it, the server chooses
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,
    /// Request this scope, too (repeatable). A login that lacks it is replaced
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// Address at which the login ends, as it is registered for the client: `http://localhost:3118/callback`
    /// [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "URL", verbatim_doc_comment)]
    pub(crate) redirect_uri: Option<Url>,
    /// Print the address of the login page and open no browser (the default without a screen). After a login on another
    /// machine, paste the address at which its browser ended, even if the browser shows an error
    #[arg(long)]
    pub(crate) no_browser: bool,
}

/// The server to log in to or out of.
#[derive(Debug, Args)]
pub(crate) struct LoginTarget {
    /// Name of the server
    pub(crate) server: String,
    /// Configuration file or folder [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
}

/// Arguments of `call`.
#[derive(Debug, Args)]
#[command(override_usage = "mcp-host call [OPTIONS] [FILE|URL] <TOOL> [ARGS]...\n       \
                      mcp-host call [OPTIONS] <TOOL> [ARGS]... -- <COMMAND>...")]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) config: ConfigWord,
    /// Tool to call: the name that `tools` shows, or the server's own name if only one server has it
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) tool: String,
    /// Arguments: a JSON object, @FILE, `-` for standard input, or name=value pairs. The tool's schema determines the
    /// type of each value; name:=JSON passes JSON as it is
    #[arg(value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
    /// Start only this server. Without it, only those that can have the tool by its name are started, and the others if
    /// they do not have it
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Wait at most this many seconds for the start of a server, and as many for the result [default: the limits of the
    /// configuration]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    /// Save images, audio and other binary content of the result in this folder; existing files are not overwritten
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    /// Print at most this many bytes of a result, such as 64K or 2M [default on a terminal: 256K; with --format json,
    /// --save or a pipe: everything]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_result: Option<usize>,
    /// Write the parts of a result that are not printed to a new folder in this one; the result names the files
    #[arg(long, value_name = "FOLDER")]
    pub(crate) spill: Option<PathBuf>,
    /// Print the task that the server makes of the call, instead of waiting for its result; for servers with a URL
    #[arg(long, conflicts_with = "save")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) rules: CallRuleArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

impl CallArgs {
    /// Takes FILE as the tool if it is no configuration. The error is a message for the user.
    pub(crate) fn resolve_file(mut self, is_config: IsConfig) -> Result<CallArgs, String> {
        let is_config = if self.target.has_program() { no_word } else { is_config };
        self.config.shift_words(&mut self.tool, &mut self.arguments, is_config);
        if self.tool.is_empty() {
            Err("which tool? `mcp-host tools` lists them".to_owned())
        } else {
            Ok(self)
        }
    }
}

/// A configuration that may be left out before the name of a tool or a prompt.
#[derive(Debug, Args)]
pub(crate) struct ConfigWord {
    /// Configuration file or folder, or the URL of a server [default: the nearest configuration]
    pub(crate) file: PathBuf,
}

impl ConfigWord {
    /// Moves each word to the next place if the first one is no configuration. The nearest one is used then.
    fn shift_words(&mut self, name: &mut String, arguments: &mut Vec<String>, is_config: IsConfig) {
        if self.file.to_str().is_none_or(is_config) {
            return;
        }
        let first = std::mem::take(&mut self.file).to_string_lossy().into_owned();
        let second = std::mem::replace(name, first);
        if !second.is_empty() {
            arguments.insert(0, second);
        }
    }
}

/// Arguments of `prompt`.
#[derive(Debug, Args)]
#[command(override_usage = "mcp-host prompt [OPTIONS] [FILE|URL] <PROMPT> [ARGS]...\n       \
                      mcp-host prompt [OPTIONS] <PROMPT> [ARGS]... -- <COMMAND>...")]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    pub(crate) config: ConfigWord,
    /// Prompt to get: the name that `prompts` shows, or the server's own name if only one server has it
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prompt: String,
    /// Arguments: a JSON object of strings, @FILE, `-` for standard input, or name=value pairs
    #[arg(value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
    /// Start only this server
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

impl PromptArgs {
    /// Takes FILE as the prompt if it is no configuration. The error is a message for the user.
    pub(crate) fn resolve_file(mut self, is_config: IsConfig) -> Result<PromptArgs, String> {
        let is_config = if self.target.has_program() { no_word } else { is_config };
        self.config.shift_words(&mut self.prompt, &mut self.arguments, is_config);
        if self.prompt.is_empty() {
            Err("which prompt? `mcp-host prompts` lists them".to_owned())
        } else {
            Ok(self)
        }
    }
}

/// Returns whether a word names a configuration.
type IsConfig = fn(&str) -> bool;

/// No word names a configuration.
fn no_word(_: &str) -> bool {
    false
}

/// Parses a number of bytes, such as `4096`, `64K` or `2M`.
fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let factor: Option<usize> = match unit {
        "" | "B" => Some(1),
        "K" | "k" | "KiB" => Some(1 << 10),
        "M" | "m" | "MiB" => Some(1 << 20),
        "G" | "g" | "GiB" => Some(1 << 30),
        _ => None,
    };
    let size =
        digits.parse::<usize>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    size.filter(|it| *it > 0).ok_or_else(|| "write a number of bytes, such as 4096, 64K or 2M".to_owned())
}

/// Arguments of `tasks`.
#[derive(Debug, Args)]
#[command(override_usage = "mcp-host tasks [OPTIONS] [FILE|URL] <ID>")]
pub(crate) struct TasksArgs {
    #[command(flatten)]
    pub(crate) config: ConfigWord,
    /// Id of the task, as `call --detach` prints it
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) id: String,
    /// Server of the task, if there are several
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Wait for the result, for up to an hour
    #[arg(long)]
    pub(crate) wait: bool,
    /// Cancel the task
    #[arg(long, conflicts_with = "wait")]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

impl TasksArgs {
    /// Takes FILE as the id if it is no configuration. The error is a message for the user.
    pub(crate) fn resolve_file(mut self, is_config: IsConfig) -> Result<TasksArgs, String> {
        let named = self.config.file.display().to_string();
        let mut rest = Vec::new();
        self.config.shift_words(&mut self.id, &mut rest, is_config);
        if !rest.is_empty() {
            Err(format!("{named} is no configuration file, and no folder with one"))
        } else if self.id.is_empty() {
            Err("which task? `mcp-host call --detach` prints its id".to_owned())
        } else {
            Ok(self)
        }
    }
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Configuration file or folder; the file may be missing [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Print line by line, on a terminal too
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Arguments of `shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Configuration file or folder [default: the nearest configuration]
    pub(crate) file: Option<PathBuf>,
    /// Record the session to this file, without secrets, for `replay`
    #[arg(long, value_name = "OUT")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rules: CallRuleArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let check = |text: &str, want: Option<usize>| assert_eq!(parse_size(text).ok(), want, "{text}");
        check("4096", Some(4096));
        check("64K", Some(65_536));
        check("2MiB", Some(2 << 20));
        check("0", None);
        check("M", None);
        check("-1", None);
        check("99999999999G", None);
    }

    /// RPT-213
    #[test]
    fn words_are_shifted_if_the_first_names_no_configuration() {
        let check = |words: [&str; 3], want: [&str; 3]| {
            let mut config = ConfigWord { file: words[0].into() };
            let (mut name, mut arguments) = (words[1].to_owned(), Vec::new());
            arguments.extend((!words[2].is_empty()).then(|| words[2].to_owned()));
            config.shift_words(&mut name, &mut arguments, |word| word.contains('.'));
            assert_eq!([&*config.file.to_string_lossy(), &*name, &*arguments.join(" ")], want);
        };
        check([".", "echo", "text=a"], [".", "echo", "text=a"]);
        check(["echo", "text=a", "n=1"], ["", "echo", "text=a n=1"]);
        check(["echo", "", ""], ["", "echo", ""]);
        check(["a.json", "", ""], ["a.json", "", ""]);
    }
}
