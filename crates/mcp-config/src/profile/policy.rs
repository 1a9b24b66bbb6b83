//! What differs between the profiles, as data. Code asks a policy, never a profile.

use mcp_model::{Dialect, Severity};

use crate::profile::Profile;
use crate::syntax::Syntax;
use crate::syntax::template::VariableRule;

/// The rules of one profile.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Its profile.
    pub(crate) profile: Profile,
    /// How a file is written down.
    pub(crate) syntax: Syntax,
    /// How bad an unknown key is (HD-038, X-15).
    pub(crate) unknown_key: Severity,
    /// How the keys begin that anybody may put anywhere, and that nobody complains about.
    pub(crate) private_keys: &'static [&'static str],
    /// How bad a YAML tag without meaning is.
    pub(crate) unknown_tag: Severity,
    /// Which keys a map of names may have.
    pub(crate) keys: KeyRule,
    /// Which scalars are a number or a truth value (HD-025 to HD-031).
    pub(crate) scalars: ScalarRule,
    /// The most tools of one agent, of all types together; `None` where only our own bound holds.
    pub(crate) max_tools: Option<usize>,
    /// Which types of tools there are besides ours.
    pub(crate) other_types: OtherTypes,
    /// Keys that our structs know and this profile does not.
    pub(crate) unsupported_keys: &'static [&'static str],
    /// Keys of an item whose absence is an error, besides those that are never optional.
    pub(crate) required: &'static [&'static str],
    /// Keys of an item whose absence is a warning.
    pub(crate) recommended: &'static [&'static str],
    /// What an item may be called.
    pub(crate) names: NameRule,
    /// The commands that may be run; `None` for any.
    pub(crate) commands: Option<&'static [&'static str]>,
    /// Which URLs may be connected to.
    pub(crate) urls: UrlPolicy,
    /// What fields of another transport are (HD-011, HD-037).
    pub(crate) foreign_fields: ForeignRule,
    /// What `${VAR}` is.
    pub(crate) variables: VariableRule,
    /// The folders of a workspace that a configuration stands in; relative paths begin beside them.
    pub(crate) folders: &'static [&'static str],
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

/// Which URLs may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlPolicy {
    /// https, and http to this machine; websockets anywhere.
    Guarded,
    /// Whatever the transport can speak.
    Any,
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
    /// In our words, with examples in JSON.
    Json,
    /// In the words of Dominds' own reader, which its users know.
    Dominds,
}

static HOLODECK: Policy = Policy {
    profile: Profile::HoloDeck,
    syntax: Syntax::Yaml,
    unknown_key: Severity::Error,
    private_keys: &[],
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Exact,
    max_tools: None,
    other_types: OtherTypes::Any,
    unsupported_keys: &["registry_name", "is_retrieval", "defer_loading"],
    required: &["server"],
    recommended: &["description"],
    names: NameRule::Any,
    commands: Some(&["npx", "uvx", "docker"]),
    urls: UrlPolicy::Guarded,
    foreign_fields: ForeignRule::Exclusive,
    variables: VariableRule::ExpandWithFolder,
    folders: &[],
    scope: Scope::File,
    wording: Wording::Plain,
};

static HOLODECK_07: Policy = Policy {
    profile: Profile::HoloDeck07,
    syntax: Syntax::Yaml,
    unknown_key: Severity::Error,
    private_keys: &[],
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Lax,
    max_tools: Some(50),
    other_types: OtherTypes::Known,
    unsupported_keys: &["server", "envFile"],
    required: &["description"],
    recommended: &[],
    names: NameRule::Word,
    commands: Some(&["npx", "node", "uvx", "docker"]),
    urls: UrlPolicy::Guarded,
    foreign_fields: ForeignRule::Accept,
    variables: VariableRule::Expand,
    folders: &[],
    scope: Scope::File,
    wording: Wording::Plain,
};

static DOMINDS: Policy = Policy {
    profile: Profile::Dominds,
    syntax: Syntax::Yaml,
    unknown_key: Severity::Warning,
    private_keys: &[],
    unknown_tag: Severity::Warning,
    keys: KeyRule::AnyScalar,
    scalars: ScalarRule::Exact,
    max_tools: None,
    other_types: OtherTypes::Any,
    unsupported_keys: &[],
    required: &[],
    recommended: &[],
    names: NameRule::Any,
    commands: None,
    urls: UrlPolicy::Any,
    foreign_fields: ForeignRule::Warn,
    variables: VariableRule::Literal,
    folders: &[".minds"],
    scope: Scope::Server,
    wording: Wording::Dominds,
};

static ACP_V1: Policy = Policy {
    profile: Profile::AcpV1,
    syntax: Syntax::Json,
    unknown_key: Severity::Warning,
    private_keys: &["_"],
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Exact,
    max_tools: None,
    other_types: OtherTypes::Known,
    unsupported_keys: &[],
    required: &[],
    recommended: &[],
    names: NameRule::Any,
    commands: None,
    urls: UrlPolicy::Any,
    foreign_fields: ForeignRule::Warn,
    variables: VariableRule::Literal,
    folders: &[],
    scope: Scope::File,
    wording: Wording::Json,
};

static ACP_V2: Policy = Policy {
    profile: Profile::AcpV2,
    syntax: Syntax::Json,
    unknown_key: Severity::Warning,
    private_keys: &["_"],
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Exact,
    max_tools: None,
    other_types: OtherTypes::Any,
    unsupported_keys: &[],
    required: &[],
    recommended: &[],
    names: NameRule::Any,
    commands: None,
    urls: UrlPolicy::Any,
    foreign_fields: ForeignRule::Warn,
    variables: VariableRule::Literal,
    folders: &[],
    scope: Scope::File,
    wording: Wording::Json,
};

static MCP_JSON: Policy = Policy {
    profile: Profile::McpJson,
    syntax: Syntax::JsonWithComments,
    unknown_key: Severity::Warning,
    private_keys: &["_", "x-", "$", "//"],
    unknown_tag: Severity::Error,
    keys: KeyRule::Text,
    scalars: ScalarRule::Exact,
    max_tools: None,
    other_types: OtherTypes::Any,
    unsupported_keys: &[],
    required: &[],
    recommended: &[],
    names: NameRule::Any,
    commands: None,
    urls: UrlPolicy::Any,
    foreign_fields: ForeignRule::Warn,
    variables: VariableRule::Editor,
    folders: &[
        ".vscode",
        ".cursor",
        ".gemini",
        ".kiro/settings",
        ".roo",
        ".zed",
        ".windsurf",
        ".claude",
        ".amazonq",
    ],
    scope: Scope::Server,
    wording: Wording::Json,
};

impl Policy {
    /// The rules of `profile`.
    pub(crate) fn for_profile(profile: Profile) -> &'static Policy {
        match profile {
            Profile::HoloDeck => &HOLODECK,
            Profile::HoloDeck07 => &HOLODECK_07,
            Profile::Dominds => &DOMINDS,
            Profile::AcpV1 => &ACP_V1,
            Profile::AcpV2 => &ACP_V2,
            Profile::McpJson => &MCP_JSON,
        }
    }

    /// The dialect it is for.
    pub(crate) fn dialect(&self) -> Dialect {
        self.profile.dialect()
    }
}
