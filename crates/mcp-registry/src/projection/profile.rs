//! A provider's rules as data. Keywords that no list contains are dropped: they are bounds or annotations that do not
//! change the shape of arguments.

/// The rules of a provider.
pub(super) struct ProviderProfile {
    /// The format of tool names.
    pub(super) name_format: NameFormat,
    /// Keywords that are kept for every type.
    pub(super) kept_keywords: &'static [&'static str],
    /// Keywords that are kept for one type only.
    pub(super) kept_keywords_by_type: &'static [(&'static str, &'static [&'static str])],
    /// Keywords that are allowed beside `anyOf`.
    pub(super) allowed_beside_any_of: &'static [&'static str],
    /// Formats that are kept for each type; others are dropped.
    pub(super) formats: &'static [(&'static str, &'static [&'static str])],
    /// The maximum depth of a schema; the root is 0.
    pub(super) max_depth: usize,
    /// The maximum number of properties of a tool.
    pub(super) max_properties: usize,
    /// The maximum number of values in all enumerations of a tool.
    pub(super) max_enum_values: usize,
    /// The maximum number of characters in property names and in enumerated and constant texts.
    pub(super) max_characters: usize,
    /// The limit for a long enumeration: if it has more values than the first number, its values together have at
    /// most the second number of characters.
    pub(super) long_enum: Option<(usize, usize)>,
    /// The schema dialect.
    pub(super) dialect: SchemaDialect,
}

/// The dialect in which a provider reads schemas.
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
        let mut by_type = self.kept_keywords_by_type.iter();
        self.kept_keywords.contains(&keyword)
            || by_type.any(|(name, keywords)| types.contains(name) && keywords.contains(&keyword))
    }

    /// Returns whether `format` is kept for these types.
    pub(super) fn keeps_format(&self, format: &str, types: &[&str]) -> bool {
        self.formats.iter().any(|(of, formats)| types.contains(of) && formats.contains(&format))
    }
}

impl NameFormat {
    /// Checks a tool name. Fails with the reason.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        let is_allowed = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let is_start_allowed = match self.start {
            FirstCharacter::Any => true,
            FirstCharacter::LetterOrUnderscore => {
                name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            }
        };
        if is_start_allowed && (1..=self.max_bytes).contains(&name.len()) && name.chars().all(is_allowed) {
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
