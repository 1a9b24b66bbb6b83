//! The differences between profiles, as data. Code depends on a field of the rules, never on a profile.

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
    pub(crate) unknown_key_severity: Severity,
    /// Prefixes of keys that are accepted anywhere without a warning.
    pub(crate) private_keys: &'static [&'static str],
    /// The severity of an unsupported YAML tag.
    pub(crate) unknown_tag_severity: Severity,
    /// The allowed keys of a map of names.
    pub(crate) key_rule: KeyRule,
    /// The scalars that count as a number or a boolean (HD-025 to HD-031).
    pub(crate) scalar_rule: ScalarRule,
    /// The maximum number of tools of an agent, of all types; `None` for the general limit.
    pub(crate) max_tools: Option<usize>,
    /// The accepted tool types other than `mcp`.
    pub(crate) other_types: OtherTypes,
    /// Keys of the serde structs that this profile does not have.
    pub(crate) unsupported_keys: &'static [&'static str],
    /// Further required keys of an item.
    pub(crate) required_keys: &'static [&'static str],
    /// Keys of an item that are missed with a warning.
    pub(crate) recommended_keys: &'static [&'static str],
    /// The allowed names of an item.
    pub(crate) name_rule: NameRule,
    /// The allowed commands; `None` for any.
    pub(crate) allowed_commands: Option<&'static [&'static str]>,
    /// The allowed URLs.
    pub(crate) url_policy: UrlPolicy,
    /// How fields of another transport are treated (HD-011, HD-037).
    pub(crate) foreign_fields: ForeignRule,
    /// How `${VAR}` is treated.
    pub(crate) reference_rule: ReferenceRule,
    /// Folders of a workspace that contain the configuration file. Relative paths start at their parent.
    pub(crate) config_folders: &'static [&'static str],
    /// The effect of one error.
    pub(crate) error_scope: ErrorScope,
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

/// The accepted tool types other than `mcp`.
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
    unknown_key_severity: Severity::Warning,
    private_keys: &[],
    unknown_tag_severity: Severity::Error,
    key_rule: KeyRule::Text,
    scalar_rule: ScalarRule::Exact,
    max_tools: None,
    other_types: OtherTypes::Any,
    unsupported_keys: &[],
    required_keys: &[],
    recommended_keys: &[],
    name_rule: NameRule::Any,
    allowed_commands: None,
    url_policy: UrlPolicy::Any,
    foreign_fields: ForeignRule::Warn,
    reference_rule: ReferenceRule::Literal,
    config_folders: &[],
    error_scope: ErrorScope::File,
    wording: Wording::Json,
};

static HOLODECK: ProfileRules = ProfileRules {
    profile: Profile::HoloDeck,
    unknown_key_severity: Severity::Error,
    unsupported_keys: &["registry_name", "is_retrieval", "defer_loading"],
    required_keys: &["server"],
    recommended_keys: &["description"],
    allowed_commands: Some(&["npx", "uvx", "docker"]),
    url_policy: UrlPolicy::Guarded,
    foreign_fields: ForeignRule::Exclusive,
    reference_rule: ReferenceRule::ExpandWithFolder,
    wording: Wording::Plain,
    ..BASE
};

static HOLODECK_07: ProfileRules = ProfileRules {
    profile: Profile::HoloDeck07,
    unknown_key_severity: Severity::Error,
    scalar_rule: ScalarRule::Lax,
    max_tools: Some(50),
    other_types: OtherTypes::Known,
    unsupported_keys: &["server", "envFile"],
    required_keys: &["description"],
    name_rule: NameRule::Word,
    allowed_commands: Some(&["npx", "node", "uvx", "docker"]),
    url_policy: UrlPolicy::Guarded,
    foreign_fields: ForeignRule::Accept,
    reference_rule: ReferenceRule::Expand,
    wording: Wording::Plain,
    ..BASE
};

static DOMINDS: ProfileRules = ProfileRules {
    profile: Profile::Dominds,
    unknown_tag_severity: Severity::Warning,
    key_rule: KeyRule::AnyScalar,
    config_folders: &[".minds"],
    error_scope: ErrorScope::Server,
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
    reference_rule: ReferenceRule::Editor,
    config_folders: &[
        ".vscode",
        ".cursor",
        ".gemini",
        ".qwen",
        ".codex",
        ".amp",
        ".continue",
        ".devcontainer",
        ".kiro/settings",
        ".kilo",
        ".roo",
        ".zed",
        ".windsurf",
        ".claude",
        ".amazonq",
    ],
    error_scope: ErrorScope::Server,
    ..BASE
};

/// Configurations that have nothing to do with MCP.
const GENERAL: ProfileRules =
    ProfileRules { unknown_key_severity: Severity::Error, wording: Wording::Plain, ..BASE };
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
