//! Filter rules and name patterns: whether a tool, prompt or resource of a server is exposed, and which rule decides
//! about a call.

pub(crate) mod call_rules;
pub(crate) mod filter_match;
pub(crate) mod pattern;
pub(crate) mod rules;
