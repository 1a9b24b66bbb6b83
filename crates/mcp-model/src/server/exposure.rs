//! Which of a server's tools, prompts and resources are shown, and what they are called: the rules as data.
//! mcp-registry applies them.

/// The rules for each of the three lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Exposure {
    /// For tools.
    pub tools: Rules,
    /// For prompts.
    pub prompts: Rules,
    /// For resources and resource templates.
    pub resources: Rules,
}

impl Exposure {
    /// The same naming for all three lists, nothing filtered, nothing transformed.
    pub fn all(naming: NamePolicy) -> Exposure {
        let limit = NameLimit::default();
        let rules = Rules { filter: Filter::default(), transforms: Vec::new(), naming, limit };
        Exposure { tools: rules.clone(), prompts: rules.clone(), resources: rules }
    }
}

/// The rules for one list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rules {
    /// What is left out.
    pub filter: Filter,
    /// How names are changed, in this order (DM-042).
    pub transforms: Vec<Transform>,
    /// What a name must look like.
    pub naming: NamePolicy,
    /// How long it may be; nothing under [`NamePolicy::Pass`].
    pub limit: NameLimit,
}

/// A whitelist and a blacklist of patterns over original names (DM-036 to DM-041).
///
/// `*` matches any run of characters, everything else itself. With an empty blacklist a whitelist that is not empty
/// restricts; with a blacklist the whitelist only brings back what the blacklist took.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// Patterns of names that are shown.
    pub whitelist: Vec<String>,
    /// Patterns of names that are hidden.
    pub blacklist: Vec<String>,
}

/// One change of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    /// Puts `add` in front, after taking `remove` away where the name begins with it (DM-043, DM-044).
    Prefix {
        /// Taken away where present; empty for the plain `prefix: "x"`.
        remove: String,
        /// Always put in front.
        add: String,
    },
    /// Puts a text behind (DM-045).
    Suffix(String),
}

/// What becomes of a name that language models' providers would not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamePolicy {
    /// Names must match `^[a-zA-Z0-9_-]{1,64}$` before and after transforms, with the [`NameLimit`] in the place of 64;
    /// others are left out (DM-047, DM-048).
    Reject,
    /// Every character outside `class` becomes `-`; a name that is longer than its [`NameLimit`] ends with a hash
    ///
    Normalise {
        /// The characters that stay.
        class: NameClass,
    },
    /// As `Normalise`, of `<server>__<name>`, in both parts (HD-114).
    Qualify {
        /// The characters that stay.
        class: NameClass,
    },
    /// Every run of characters outside of `[A-Za-z0-9_-]` becomes one `_`, and none stays at either end; what has nothing
    /// left is called `resource`. A name that is longer than its [`NameLimit`] ends with a hash (DMX-10).
    Slug,
    /// Names stay as they are.
    Pass,
}

/// The characters a name may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameClass {
    /// `[A-Za-z0-9_-]`: what every provider takes.
    Strict,
    /// `[A-Za-z0-9_.-]`: what Semantic Kernel keeps.
    WithDot,
}

/// How long a name may be: as long as the model's provider takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NameLimit {
    /// 64 bytes: OpenAI's, and what nearly everybody takes.
    #[default]
    Common,
    /// 63 bytes: the strictest that Gemini's references name.
    Gemini,
    /// 128 bytes: Anthropic's.
    Anthropic,
}

impl NameLimit {
    /// The limit in bytes.
    pub fn bytes(self) -> usize {
        match self {
            NameLimit::Common => 64,
            NameLimit::Gemini => 63,
            NameLimit::Anthropic => 128,
        }
    }
}
