//! What differs between the profiles, as data. Code asks a policy, never a profile.

use mcp_model::{Dialect, Severity};

use crate::Profile;

/// The rules of one profile.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Its profile.
    pub(crate) profile: Profile,
    /// How bad an unknown key is (HD-038, X-15).
    pub(crate) unknown_key: Severity,
    /// How bad a YAML tag without meaning is.
    pub(crate) unknown_tag: Severity,
    /// Which keys a map of names may have.
    pub(crate) keys: KeyRule,
    /// Which scalars are a number or a truth value (HD-025 to HD-031).
    pub(crate) scalars: ScalarRule,
    /// The most tools of one agent, of all types together; `None` where only our own bound holds.
    pub(crate) most_tools: Option<usize>,
    /// Which types of tools there are besides ours.
    pub(crate) other_types: OtherTypes,
    /// Keys that our structs know and this profile does not.
    pub(crate) withheld: &'static [&'static str],
    /// Keys of an item whose absence is an error, besides those that are never optional.
    pub(crate) required: &'static [&'static str],
    /// Keys of an item whose absence is a warning.
    pub(crate) wished: &'static [&'static str],
    /// What an item may be called.
    pub(crate) names: NameRule,
    /// The commands that may be run; `None` for any.
    pub(crate) commands: Option<&'static [&'static str]>,
    /// What fields of another transport are (HD-011, HD-037).
    pub(crate) foreign: ForeignRule,
    /// What `${VAR}` is.
    pub(crate) variables: VariableRule,
    /// What one error costs.
    pub(crate) scope: Scope,
    /// How a wrong value is worded.
    pub(crate) wording: Wording,
}

/// Which keys a map of names (`env`, `headers`, `servers`) may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// Text only.
    Text,
    /// Any scalar, taken as it is written.
    AnyScalar,
}

/// Which scalars are a number or a truth value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarRule {
    /// Those that are one in YAML.
    Exact,
    /// Also texts that say one, and truth values as numbers, as pydantic takes them.
    Lax,
}

/// Which types of tools there are besides ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherTypes {
    /// Those that we know; any other is an error.
    Known,
    /// Any: a newer version may have more.
    Any,
}

/// What an item may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Whatever a `ServerId` may be.
    Any,
    /// `^[0-9A-Za-z_]+$`.
    Word,
}

/// What a field of another transport is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignRule {
    /// `url` beside stdio and `command` beside a URL are errors, others warnings.
    Exclusive,
    /// All are warnings, and their values are not looked at.
    Warn,
    /// Nothing at all.
    Accept,
}

/// What `${VAR}` in a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableRule {
    /// Text.
    Literal,
    /// The variable's value.
    Expand,
    /// The variable's value; `workspaceFolder` is the folder of the file.
    ExpandWithFolder,
}

/// What one error costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The file.
    File,
    /// Its server; the file where no server is to blame.
    Server,
}

/// How a wrong value is worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// In our words.
    Plain,
    /// In the words of Dominds' own reader, which its users know.
    Dominds,
}

static HOLODECK: Policy = Policy {
    profile: Profile::HoloDeck,
    unknown_key: Severity::Error,
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Exact,
    most_tools: None,
    other_types: OtherTypes::Any,
    withheld: &["registry_name", "is_retrieval", "defer_loading"],
    required: &["server"],
    wished: &["description"],
    names: NameRule::Any,
    commands: Some(&["npx", "uvx", "docker"]),
    foreign: ForeignRule::Exclusive,
    variables: VariableRule::ExpandWithFolder,
    scope: Scope::File,
    wording: Wording::Plain,
};

static HOLODECK_07: Policy = Policy {
    profile: Profile::HoloDeck07,
    unknown_key: Severity::Error,
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Lax,
    most_tools: Some(50),
    other_types: OtherTypes::Known,
    withheld: &["server", "envFile"],
    required: &["description"],
    wished: &[],
    names: NameRule::Word,
    commands: Some(&["npx", "node", "uvx", "docker"]),
    foreign: ForeignRule::Accept,
    variables: VariableRule::Expand,
    scope: Scope::File,
    wording: Wording::Plain,
};

static DOMINDS: Policy = Policy {
    profile: Profile::Dominds,
    unknown_key: Severity::Warning,
    unknown_tag: Severity::Warning,
    keys: KeyRule::AnyScalar,
    scalars: ScalarRule::Exact,
    most_tools: None,
    other_types: OtherTypes::Any,
    withheld: &[],
    required: &[],
    wished: &[],
    names: NameRule::Any,
    commands: None,
    foreign: ForeignRule::Warn,
    variables: VariableRule::Literal,
    scope: Scope::Server,
    wording: Wording::Dominds,
};

impl Policy {
    /// The rules of `profile`.
    pub(crate) fn of(profile: Profile) -> &'static Policy {
        match profile {
            Profile::HoloDeck => &HOLODECK,
            Profile::HoloDeck07 => &HOLODECK_07,
            Profile::Dominds => &DOMINDS,
        }
    }

    /// The dialect it is for.
    pub(crate) fn dialect(&self) -> Dialect {
        self.profile.dialect()
    }
}
