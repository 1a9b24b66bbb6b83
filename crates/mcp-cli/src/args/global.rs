//! Arguments that every command accepts: dialect, profile, output format, lock policy, verbosity.

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::{Args, ValueEnum};
use mcp_config::Profile;
use mcp_model::Dialect;

use crate::args::SchemaName;
use crate::output::console::Verbosity;

/// Arguments that every command accepts.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// Dialect of the files [default: detected from file name and content]
    #[arg(long, global = true, value_enum, value_name = "DIALECT")]
    dialect: Option<DialectName>,
    /// Rules to read the files by [default: the current rules of the dialect]
    #[arg(long, global = true, value_enum, value_name = "PROFILE")]
    profile: Option<ProfileName>,
    /// Read variables from this file of NAME=value lines, in addition to the environment
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Output format: text or one JSON document; `check` also writes sarif and github
    #[arg(long, global = true, value_enum, default_value_t = FormatName::Text)]
    pub(crate) format: FormatName,
    /// Start no server unless there is an mcp.lock beside the configuration
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// What to do with tools that differ from the mcp.lock beside the configuration
    #[arg(long, global = true, value_enum, value_name = "POLICY", default_value_t = LockPolicyName::Withhold)]
    pub(crate) lock_policy: LockPolicyName,
    /// Log progress and server messages to standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Print only errors to standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// When to use colours; the variable NO_COLOR disables them too
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorMode::Auto)]
    color: ColorMode,
}

/// An output format by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Text for people
    Text,
    /// One JSON document
    Json,
    /// One SARIF 2.1.0 document; for check
    Sarif,
    /// Annotations of GitHub Actions; for check
    Github,
}

impl FormatName {
    /// The format, if every command supports it.
    pub(crate) fn common(self) -> Option<Format> {
        match self {
            FormatName::Text => Some(Format::Text),
            FormatName::Json => Some(Format::Json),
            FormatName::Sarif | FormatName::Github => None,
        }
    }
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
pub(crate) enum LockPolicyName {
    /// Hide it; it cannot be called
    Withhold,
    /// Show it, with a warning
    Warn,
    /// Do not read the lock file
    Off,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorMode {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A dialect by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DialectName {
    /// HoloDeck's agent.yaml
    Holodeck,
    /// Dominds' .minds/mcp.yaml
    Dominds,
    /// The servers of an ACP session: a request, its params, or the list
    Acp,
    /// The mcp.json or settings file of an editor or agent
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

/// A profile by its name.
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

/// The requested dialect and profile. Invariant: the profile belongs to the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DialectOptions {
    /// The dialect, if one was requested.
    pub(crate) dialect: Option<Dialect>,
    /// The profile, if one was requested.
    pub(crate) profile: Option<Profile>,
}

impl GlobalArgs {
    /// How much is printed besides the result.
    pub(crate) fn verbosity(&self) -> Verbosity {
        if self.quiet { Verbosity::Quiet } else { Verbosity::Normal }
    }

    /// When colours are used.
    pub(crate) fn color(&self) -> ColorChoice {
        match self.color {
            ColorMode::Auto => ColorChoice::Auto,
            ColorMode::Always => ColorChoice::Always,
            ColorMode::Never => ColorChoice::Never,
        }
    }

    /// The requested dialect and profile. Fails with a message if they contradict each other.
    pub(crate) fn dialect_options(&self) -> Result<DialectOptions, String> {
        let options = DialectOptions {
            dialect: self.dialect.map(DialectName::dialect),
            profile: self.profile.map(ProfileName::profile),
        };
        if let DialectOptions { dialect: Some(dialect), profile: Some(profile) } = options {
            check_profile(dialect, profile)?;
        }
        Ok(options)
    }

    /// The profile that `schema NAME --profile` selects.
    pub(crate) fn schema_profile(&self, name: SchemaName) -> Result<Profile, String> {
        let named = name.profile();
        let Some(requested) = self.profile.map(ProfileName::profile) else { return Ok(named) };
        if matches!(name, SchemaName::AcpV1 | SchemaName::AcpV2) && requested != named {
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
