//! Arguments that every command accepts: dialect, profile, output format, lock policy, verbosity.

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::{Args, ValueEnum};
use mcp_host_config::Profile;
use mcp_host_model::Dialect;
use mcp_host_runtime::SecretCommand;
use url::Url;

use crate::args::choice::{Choices, DIALECTS, PROFILES, choice_parser};
use crate::args::limit::parse_limit;
use crate::output::console::Verbosity;
use crate::output::otlp::OtlpOptions;

const COLOUR_CHOICES: Choices<ColorChoice> = &[
    ("auto", "On a terminal", ColorChoice::Auto),
    ("always", "Always", ColorChoice::Always),
    ("never", "Never", ColorChoice::Never),
];

/// Arguments that every command accepts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct GlobalArgs {
    /// Dialect of the files [default: detected from file name and content]
    #[arg(long, global = true, value_parser = choice_parser(DIALECTS), value_name = "DIALECT")]
    dialect: Option<Dialect>,
    /// Version of the dialect's rules [default: the current one]
    #[arg(long, global = true, value_parser = choice_parser(PROFILES), value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Read variables from this file of NAME=value lines, in addition to the environment
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Read secrets that are not stored from this program: a JSON array of the program and its arguments, such as
    /// '["pass", "show", "mcp/{name}"]'. No shell is used
    #[arg(long, global = true, value_name = "JSON", env = "MCP_HOST_SECRET_COMMAND", hide_env_values = true,
        value_parser = SecretCommand::parse)]
    pub(crate) secret_command: Option<SecretCommand>,
    /// Read files of at most this many servers [default: 1000]
    #[arg(long, global = true, value_name = "NUMBER", value_parser = parse_limit)]
    pub(crate) max_servers: Option<usize>,
    /// Output format: text or one JSON document; `check` also writes sarif and github, `schema --compare` sarif
    #[arg(long, global = true, value_enum, default_value_t = RequestedFormat::Text)]
    pub(crate) format: RequestedFormat,
    /// Start no server unless there is an mcp.lock beside the configuration
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// What to do with tools that differ from the mcp.lock beside the configuration
    #[arg(long, global = true, value_enum, value_name = "POLICY", default_value_t = LockPolicyArg::Withhold)]
    pub(crate) lock_policy: LockPolicyArg,
    /// Start the servers of a configuration found in a project, even if they are not approved
    #[arg(long, global = true)]
    pub(crate) trust_project: bool,
    /// Export traces and metrics to an OpenTelemetry collector over HTTP. Without a URL, to that of the variable
    /// OTEL_EXPORTER_OTLP_ENDPOINT, else to http://localhost:4318
    #[arg(long, global = true, value_name = "URL", num_args = 0..=1, require_equals = true,
        value_parser = parse_collector, default_missing_value = "")]
    otlp: Option<CollectorUrl>,
    /// Export the arguments and results of calls too. They may be secret
    #[arg(long, global = true, requires = "otlp")]
    otlp_contents: bool,
    /// Log progress and server messages to standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Print only errors to standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// When to use colours; the variable NO_COLOR disables them too
    #[arg(
        long = "color",
        global = true,
        value_parser = choice_parser(COLOUR_CHOICES),
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub(crate) colour: ColorChoice,
}

/// An output format of the command line. Few commands support those that [`Format`] does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequestedFormat {
    /// Text for people
    Text,
    /// One JSON document
    Json,
    /// One SARIF 2.1.0 document; for check and schema --compare
    Sarif,
    /// Annotations of GitHub Actions; for check
    Github,
}

/// An output format that every command supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
}

/// What happens to an item that differs from the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LockPolicyArg {
    /// Hide it; it cannot be called
    Withhold,
    /// Show it, with a warning
    Warn,
    /// Do not read the lock file
    Off,
}

/// The requested dialect and profile. Invariant: the profile belongs to the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DialectOptions {
    /// The dialect, if one was requested.
    pub(crate) dialect: Option<Dialect>,
    /// The profile, if one was requested.
    pub(crate) profile: Option<Profile>,
}

/// The base URL of a collector; `None`: that of the variables of OpenTelemetry.
#[derive(Debug, Clone)]
struct CollectorUrl(Option<Url>);

fn parse_collector(text: &str) -> Result<CollectorUrl, String> {
    if text.is_empty() {
        return Ok(CollectorUrl(None));
    }
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(CollectorUrl(Some(url))),
        Ok(_) => Err("the URL must begin with http:// or https://".to_owned()),
        Err(error) => Err(format!("it is not a URL: {error}")),
    }
}

impl GlobalArgs {
    /// What is exported to OpenTelemetry; `None` without an export.
    pub(crate) fn otlp_options(&self) -> Option<OtlpOptions> {
        let CollectorUrl(url) = self.otlp.clone()?;
        Some(OtlpOptions { url, contents: self.otlp_contents })
    }

    /// How much is printed besides the result.
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }

    /// Whether a dialect was requested.
    pub(crate) fn has_dialect(&self) -> bool {
        self.dialect.is_some() || self.profile.is_some()
    }

    /// The requested dialect and profile. Fails with a message if they contradict each other.
    pub(crate) fn dialect_options(&self) -> Result<DialectOptions, String> {
        let GlobalArgs { dialect, profile, .. } = *self;
        if let (Some(dialect), Some(profile)) = (dialect, profile) {
            check_profile(dialect, profile)?;
        }
        Ok(DialectOptions { dialect, profile })
    }

    /// The profile that `schema NAME --profile` selects. `named` is the one that NAME selects. The versions of ACP have
    /// names of their own, so there `--profile` must agree.
    pub(crate) fn schema_profile(&self, named: Profile) -> Result<Profile, String> {
        let Some(requested) = self.profile else { return Ok(named) };
        if named.dialect() == Dialect::Acp && requested != named {
            return Err(format!("the profile {} is not {}", requested.as_str(), named.as_str()));
        }
        check_profile(named.dialect(), requested)
    }
}

fn check_profile(dialect: Dialect, profile: Profile) -> Result<Profile, String> {
    if profile.dialect() == dialect {
        return Ok(profile);
    }
    let (profile, owner) = (profile.as_str(), profile.dialect().as_str());
    Err(format!("the profile {profile} belongs to the dialect {owner}, not to {}", dialect.as_str()))
}
