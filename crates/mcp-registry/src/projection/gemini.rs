//! Gemini's function declarations, as its API reference lists the fields of `Schema`, a part of OpenAPI 3.0.
//!
//! A name has at most 63 characters and begins with a letter or `_`. There is no `$ref` (it is written out), no `oneOf`
//! or `allOf`; a union of one type with `null` is `nullable`; enumerations hold texts that are not empty, and a `const` text is one of
//! them; an object without properties cannot be said, and a tool without arguments has no `parameters` at all. A list says
//! what it holds, and what is required is declared. The
//! reference gives no limits, so ours are those of any schema that is read.

use super::profile::{Dialect, Names, Profile, SHAPING, Start};

pub(super) const PROFILE: Profile = Profile {
    names: Names { longest: 63, start: Start::LetterOrUnderscore },
    keep: &[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "const",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "minimum",
        "maximum",
    ],
    refuse: SHAPING,
    formats: &["float", "double", "int32", "int64", "enum", "date-time"],
    depth: 32,
    properties: 5_000,
    enum_values: 5_000,
    characters: 256 << 10,
    dialect: Dialect::OpenApi,
};
