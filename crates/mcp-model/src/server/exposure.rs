//! Exposure rules: which tools, prompts and resources of a server are exposed, and under which names. mcp-registry
//! applies them.

/// The exposure rules of a server, for each of its lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Exposure {
    /// The rules for tools.
    pub tools: ExposureRules,
    /// The rules for prompts.
    pub prompts: ExposureRules,
    /// The rules for resources and resource templates.
    pub resources: ExposureRules,
}

impl Exposure {
    /// Creates rules with the same naming for all lists, without filters and transforms.
    pub fn all(naming: NamePolicy) -> Exposure {
        let rules = ExposureRules::new(naming);
        Exposure { tools: rules.clone(), prompts: rules.clone(), resources: rules }
    }
}

/// The exposure rules for one list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ExposureRules {
    /// The filter.
    pub filter: ExposureFilter,
    /// The changes of the names, in order (DM-042).
    pub transforms: Vec<NameTransform>,
    /// The policy for invalid names.
    pub naming: NamePolicy,
    /// The length limit; ignored under [`NamePolicy::Pass`].
    pub limit: NameLimit,
}

impl ExposureRules {
    /// Creates rules without a filter and transforms, with the default length limit.
    pub fn new(naming: NamePolicy) -> ExposureRules {
        ExposureRules { filter: Default::default(), transforms: Vec::new(), naming, limit: NameLimit::Common }
    }
}

/// A whitelist and a blacklist of patterns for original names (DM-036 to DM-041). In a pattern, `*` matches any
/// characters.
///
/// Without a blacklist, a non-empty whitelist hides all names that it does not match. With a blacklist, the names that
/// it matches are hidden, except those that the whitelist matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "two lists by DM-036 to DM-041; another rule is another field of `ExposureRules`"
)]
pub struct ExposureFilter {
    /// Patterns of exposed names.
    pub whitelist: Vec<String>,
    /// Patterns of hidden names.
    pub blacklist: Vec<String>,
}

/// One change of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the registry decides on every value")]
pub enum NameTransform {
    /// Removes the prefix `remove` if present, then adds the prefix `add` (DM-043, DM-044).
    Prefix {
        /// The prefix to remove; empty for the plain `prefix: "x"`.
        remove: String,
        /// The prefix to add.
        add: String,
    },
    /// Appends a suffix (DM-045).
    Suffix(String),
}

/// The policy for names that model providers would not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the registry decides on every value")]
pub enum NamePolicy {
    /// Names must match `^[a-zA-Z0-9_-]{1,64}$` before and after the transforms, with the [`NameLimit`] instead of
    /// 64. Others are hidden (DM-047, DM-048).
    Reject,
    /// Every character outside `class` becomes `-`. A name longer than its [`NameLimit`] is cut and ends with a hash
    ///
    Normalise {
        /// The characters that are kept.
        class: NameClass,
    },
    /// As `Normalise`, applied to both parts of `<server>__<name>` (HD-114).
    Qualify {
        /// The characters that are kept.
        class: NameClass,
    },
    /// Every run of characters outside `[A-Za-z0-9_-]` becomes one `_`, and none is kept at either end; an empty
    /// result becomes `resource`. A name longer than its [`NameLimit`] is cut and ends with a hash (DMX-10).
    Slug,
    /// Names are unchanged.
    Pass,
}

/// The characters that a name may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the registry decides on every value")]
pub enum NameClass {
    /// `[A-Za-z0-9_-]`, which every provider accepts.
    Strict,
    /// `[A-Za-z0-9_.-]`, as in Semantic Kernel.
    WithDot,
}

/// The length limit of names, by provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum NameLimit {
    /// 64 bytes: OpenAI, and most others.
    #[default]
    Common,
    /// 63 bytes: the strictest limit in Gemini's references.
    Gemini,
    /// 128 bytes: Anthropic.
    Anthropic,
}

impl NameLimit {
    /// Returns the limit in bytes.
    pub fn bytes(self) -> usize {
        match self {
            NameLimit::Common => 64,
            NameLimit::Gemini => 63,
            NameLimit::Anthropic => 128,
        }
    }
}
