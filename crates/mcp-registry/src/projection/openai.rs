//! OpenAI's strict functions, as its guide to structured outputs lists what a schema may hold.
//!
//! The root is an object and no `anyOf`; every property is required; objects are closed (`additionalProperties: false`
//! is written where nothing else is said); at most 10 levels, 5,000 properties, 1,000 enumerated values,
//! 120,000 characters of names and values. A list says what it holds. `$ref` is
//! written out, so a recursive schema, which OpenAI would take, is left out here. A tool with an optional property is
//! left out as well: a host shows it without `strict`.

use super::profile::{Dialect, Names, Profile, SHAPING, Start};

pub(super) const STRICT: Profile = Profile {
    names: Names { longest: 64, start: Start::Any },
    keep: &[
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "enum",
        "const",
        "description",
        "title",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ],
    refuse: SHAPING,
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    depth: 10,
    properties: 5_000,
    enum_values: 1_000,
    characters: 120_000,
    dialect: Dialect::Closed,
};
