//! Filter rules and name patterns: whether a tool, prompt or resource of a server is exposed.

pub(crate) mod filter_match;
pub(crate) mod pattern;
pub(crate) mod rules;
