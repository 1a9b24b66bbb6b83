//! The differences between profiles, as data. Code depends on a policy field, never on a profile.

use mcp_host_model::{Profile, Severity};

use crate::syntax::Syntax;
use crate::syntax::template::ReferenceRule;

/// The rules of one profile.
#[derive(Debug)]
pub(crate) struct ProfileRules {
    /// Its profile.
    pub(crate) profile: Profile,
    /// The syntax of the file.
    pub(crate) syntax: Syntax,
    /// The severity of an unknown key (HD-038, X-15).
    pub(crate) unknown_key: Severity,
    /// Prefixes of keys that are accepted anywhere without a warning.
    pub(crate) private_keys: &'static [&'static str],
    /// The severity of an unsupported YAML tag.
    pub(crate) unknown_tag: Severity,
    /// The allowed keys of a map of names.
    pub(crate) keys: KeyRule,
    /// The scalars that count as a number or a boolean (HD-025 to HD-031).
    pub(crate) scalars: ScalarRule,
    /// The maximum number of tools of an agent, of all types; `None` for the general limit.
    pub(crate) max_tools: Option<usize>,
    /// The accepted other tool types.
    pub(crate) other_types: OtherTypes,
    /// Keys of the serde structs that this profile does not have.
    pub(crate) unsupported_keys: &'static [&'static str],
    /// Further keys of an item whose absence is an error.
    pub(crate) required: &'static [&'static str],
    /// Keys of an item whose absence is a warning.
    pub(crate) recommended: &'static [&'static str],
    /// The allowed names of an item.
    pub(crate) names: NameRule,
    /// The allowed commands; `None` for any.
    pub(crate) commands: Option<&'static [&'static str]>,
    /// The allowed URLs.
    pub(crate) urls: UrlPolicy,
    /// How fields of another transport are treated (HD-011, HD-037).
    pub(crate) foreign_fields: ForeignRule,
    /// How `${VAR}` is treated.
    pub(crate) variables: ReferenceRule,
    /// Folders of a workspace that contain the configuration file. Relative paths start at their parent.
    pub(crate) folders: &'static [&'static str],
    /// The effect of one error.
    pub(crate) scope: ErrorScope,
    /// The wording of type errors.
    pub(crate) wording: Wording,
}

/// The allowed keys of a map of names (`env`, `headers`, `servers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// Strings only.
    Text,
    /// Any scalar, as written.
    AnyScalar,
}

/// The scalars that count as a number or a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarRule {
    /// YAML numbers and booleans.
    Exact,
    /// Also strings that spell one, and booleans as numbers, as in pydantic's lax mode.
    Lax,
}

/// The accepted other tool types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherTypes {
    /// Known types; any other is an error.
    Known,
    /// Any type, because a newer version may add types.
    Any,
}

/// The allowed names of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Any `ServerId`.
    Any,
    /// `^[0-9A-Za-z_]+$`.
    Word,
}

/// The allowed URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlPolicy {
    /// https, http to this machine, and any WebSocket URL.
    Guarded,
    /// Any URL that the transport supports.
    Any,
}

/// How a field of another transport is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignRule {
    /// `url` with stdio and `command` with a URL transport are errors, others warnings.
    Exclusive,
    /// A warning; the value is ignored.
    Warn,
    /// Accepted silently.
    Accept,
}

/// The effect of one error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorScope {
    /// Rejects the file.
    File,
    /// Rejects its server, or the file if no server contains it.
    Server,
}

/// The wording of type errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Our wording.
    Plain,
    /// Our wording, with examples in JSON.
    Json,
    /// The wording of Dominds' own reader.
    Dominds,
}

/// The most common value of each rule.
const BASE: ProfileRules = ProfileRules {
    profile: Profile::McpJson,
    syntax: Syntax::Yaml,
    unknown_key: Severity::Warning,
    private_keys: &[],
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
    variables: ReferenceRule::Literal,
    folders: &[],
    scope: ErrorScope::File,
    wording: Wording::Json,
};

static HOLODECK: ProfileRules = ProfileRules {
    profile: Profile::HoloDeck,
    unknown_key: Severity::Error,
    unsupported_keys: &["registry_name", "is_retrieval", "defer_loading"],
    required: &["server"],
    recommended: &["description"],
    commands: Some(&["npx", "uvx", "docker"]),
    urls: UrlPolicy::Guarded,
    foreign_fields: ForeignRule::Exclusive,
    variables: ReferenceRule::ExpandWithFolder,
    wording: Wording::Plain,
    ..BASE
};

static HOLODECK_07: ProfileRules = ProfileRules {
    profile: Profile::HoloDeck07,
    unknown_key: Severity::Error,
    scalars: ScalarRule::Lax,
    max_tools: Some(50),
    other_types: OtherTypes::Known,
    unsupported_keys: &["server", "envFile"],
    required: &["description"],
    names: NameRule::Word,
    commands: Some(&["npx", "node", "uvx", "docker"]),
    urls: UrlPolicy::Guarded,
    foreign_fields: ForeignRule::Accept,
    variables: ReferenceRule::Expand,
    wording: Wording::Plain,
    ..BASE
};

static DOMINDS: ProfileRules = ProfileRules {
    profile: Profile::Dominds,
    unknown_tag: Severity::Warning,
    keys: KeyRule::AnyScalar,
    folders: &[".minds"],
    scope: ErrorScope::Server,
    wording: Wording::Dominds,
    ..BASE
};

static ACP_V1: ProfileRules = ProfileRules {
    profile: Profile::AcpV1,
    syntax: Syntax::Json,
    private_keys: &["_"],
    other_types: OtherTypes::Known,
    ..BASE
};

static ACP_V2: ProfileRules =
    ProfileRules { profile: Profile::AcpV2, syntax: Syntax::Json, private_keys: &["_"], ..BASE };

static MCP_JSON: ProfileRules = ProfileRules {
    profile: Profile::McpJson,
    syntax: Syntax::JsonWithComments,
    private_keys: &["_", "x-", "$", "//"],
    variables: ReferenceRule::Editor,
    folders: &[
        ".vscode",
        ".cursor",
        ".gemini",
        ".kiro/settings",
        ".kilo",
        ".roo",
        ".zed",
        ".windsurf",
        ".claude",
        ".amazonq",
    ],
    scope: ErrorScope::Server,
    ..BASE
};

/// Configurations that have nothing to do with MCP.
const GENERAL: ProfileRules = ProfileRules { unknown_key: Severity::Error, wording: Wording::Plain, ..BASE };
pub(crate) static GENERAL_YAML: ProfileRules = GENERAL;
pub(crate) static GENERAL_JSON: ProfileRules =
    ProfileRules { syntax: Syntax::JsonWithComments, wording: Wording::Json, ..GENERAL };
pub(crate) static GENERAL_TOML: ProfileRules = ProfileRules { syntax: Syntax::Toml, ..GENERAL };

impl ProfileRules {
    /// The rules of `profile`.
    pub(crate) fn for_profile(profile: Profile) -> &'static ProfileRules {
        match profile {
            Profile::HoloDeck => &HOLODECK,
            Profile::HoloDeck07 => &HOLODECK_07,
            Profile::Dominds => &DOMINDS,
            Profile::AcpV1 => &ACP_V1,
            Profile::AcpV2 => &ACP_V2,
            Profile::McpJson => &MCP_JSON,
        }
    }

    /// The syntax of a file. Editors and agents also write YAML and TOML.
    pub(crate) fn syntax_of(&self, name: &str, text: &str) -> Syntax {
        match self.syntax {
            Syntax::JsonWithComments => Syntax::of_editor_file(name, text),
            Syntax::Yaml | Syntax::Json | Syntax::Toml => self.syntax,
        }
    }
}
