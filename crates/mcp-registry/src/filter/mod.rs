//! Filter rules and name patterns: what a server's rules do to one name.

pub(crate) mod filter_match;
pub(crate) mod pattern;
pub(crate) mod rules;
