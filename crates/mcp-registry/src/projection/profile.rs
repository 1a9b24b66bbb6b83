//! A provider's rules as data. What a list does not name is dropped: it bounds or describes, and shapes nothing.

/// What a provider takes.
pub(super) struct ProviderProfile {
    /// Names of tools.
    pub(super) names: NameFormat,
    /// Keywords that are said of every type.
    pub(super) keep: &'static [&'static str],
    /// Keywords that are said of one type only.
    pub(super) keep_of: &'static [(&'static str, &'static [&'static str])],
    /// Keywords that may stand beside `anyOf`.
    pub(super) beside_any_of: &'static [&'static str],
    /// Formats that are said of each type; others are dropped.
    pub(super) formats: &'static [(&'static str, &'static [&'static str])],
    /// The deepest schema; the root is 0, and each step inside is one more.
    pub(super) depth: usize,
    /// The most properties of one tool.
    pub(super) properties: usize,
    /// The most values in all of one tool's enumerations.
    pub(super) enum_values: usize,
    /// The most characters in its properties' names and its enumerated and constant texts.
    pub(super) characters: usize,
    /// An enumeration with more values than the first has at most as many characters as the second.
    pub(super) long_enum: Option<(usize, usize)>,
    /// How it differs in kind.
    pub(super) dialect: SchemaDialect,
}

/// Which way of writing a schema down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaDialect {
    /// JSON Schema whose objects are closed and whose properties are all required.
    Closed,
    /// OpenAPI's: `nullable` for a union with `null`, enumerations of texts only.
    OpenApi,
}

/// What a tool may be called.
pub(super) struct NameFormat {
    /// The longest, in bytes.
    pub(super) max_bytes: usize,
    /// What it begins with.
    pub(super) start: FirstCharacter,
}

/// What a name begins with.
pub(super) enum FirstCharacter {
    /// Any of `[A-Za-z0-9_-]`.
    Any,
    /// A letter or `_`.
    LetterOrUnderscore,
}

impl ProviderProfile {
    /// Is `keyword` said of a schema of these types?
    pub(super) fn keeps_keyword(&self, keyword: &str, types: &[&str]) -> bool {
        let of_type = |it: &(&str, &[&str])| types.contains(&it.0) && it.1.contains(&keyword);
        self.keep.contains(&keyword) || self.keep_of.iter().any(of_type)
    }

    /// Is `format` said of a schema of these types?
    pub(super) fn keeps_format(&self, format: &str, types: &[&str]) -> bool {
        self.formats.iter().any(|(of, formats)| types.contains(of) && formats.contains(&format))
    }
}

impl NameFormat {
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        let kept = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let begins = match self.start {
            FirstCharacter::Any => true,
            FirstCharacter::LetterOrUnderscore => {
                name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            }
        };
        if begins && (1..=self.max_bytes).contains(&name.len()) && name.chars().all(kept) {
            return Ok(());
        }
        Err(format!("its name is not one of 1 to {} characters that the provider takes", self.max_bytes))
    }
}

/// Keywords that shape what arguments may be, and that the profiles cannot say: dropping one would let a model send what
/// the tool refuses.
pub(super) const UNSUPPORTED_KEYWORDS: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "prefixItems",
    "$dynamicRef",
    "$recursiveRef",
];

/// Keywords that shape them, and that the profiles can say.
pub(super) const SUPPORTED_KEYWORDS: &[&str] =
    &["type", "enum", "const", "properties", "required", "items", "anyOf"];
