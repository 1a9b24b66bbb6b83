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
        let rules = Rules { filter: Filter::default(), transforms: Vec::new(), naming };
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
    /// Names must match `^[a-zA-Z0-9_-]{1,64}$` before and after transforms; others are left out (DM-047, DM-048).
    Reject,
    /// The exposed name is `<server>__<name>`, with every character outside `class` replaced by `-` in both parts,
    /// and a hash at its end where it would be longer than 64 bytes (HD-114).
    Qualify {
        /// The characters that stay.
        class: NameClass,
    },
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
