//! A provider's rules as data. Keywords outside the lists are dropped: they are bounds or annotations that do not
//! change the shape.

/// The rules of a provider.
pub(super) struct ProviderProfile {
    /// The format of tool names.
    pub(super) names: NameFormat,
    /// Keywords that are kept for every type.
    pub(super) keep: &'static [&'static str],
    /// Keywords that are kept for one type only.
    pub(super) keep_of: &'static [(&'static str, &'static [&'static str])],
    /// Keywords that are allowed beside `anyOf`.
    pub(super) beside_any_of: &'static [&'static str],
    /// Formats that are kept for each type; others are dropped.
    pub(super) formats: &'static [(&'static str, &'static [&'static str])],
    /// The maximum depth of a schema; the root is 0.
    pub(super) depth: usize,
    /// The maximum number of properties of a tool.
    pub(super) properties: usize,
    /// The maximum number of values in all enumerations of a tool.
    pub(super) enum_values: usize,
    /// The maximum number of characters in property names and in enumerated and constant texts.
    pub(super) characters: usize,
    /// The limit for a long enumeration: if it has more values than the first number, its values together have at
    /// most the second number of characters.
    pub(super) long_enum: Option<(usize, usize)>,
    /// The schema dialect.
    pub(super) dialect: SchemaDialect,
}

/// A way of writing schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaDialect {
    /// JSON Schema in which objects are closed and all properties are required.
    Closed,
    /// OpenAPI: `nullable` for a union with `null`, enumerations of strings only.
    OpenApi,
}

/// The format of tool names.
pub(super) struct NameFormat {
    /// The maximum length in bytes.
    pub(super) max_bytes: usize,
    /// The allowed first characters.
    pub(super) start: FirstCharacter,
}

/// The allowed first characters.
pub(super) enum FirstCharacter {
    /// Any of `[A-Za-z0-9_-]`.
    Any,
    /// A letter or `_`.
    LetterOrUnderscore,
}

impl ProviderProfile {
    /// Returns whether `keyword` is kept for these types.
    pub(super) fn keeps_keyword(&self, keyword: &str, types: &[&str]) -> bool {
        let of_type = |it: &(&str, &[&str])| types.contains(&it.0) && it.1.contains(&keyword);
        self.keep.contains(&keyword) || self.keep_of.iter().any(of_type)
    }

    /// Returns whether `format` is kept for these types.
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
        Err(format!(
            "the provider does not accept its name, or it is longer than {} characters",
            self.max_bytes
        ))
    }
}

/// Keywords that constrain the shape of arguments, but have no form in the profiles. Dropping one would let a model
/// send what the tool rejects.
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

/// Keywords that constrain the shape and have a form in the profiles.
pub(super) const SUPPORTED_KEYWORDS: &[&str] =
    &["type", "enum", "const", "properties", "required", "items", "anyOf"];
