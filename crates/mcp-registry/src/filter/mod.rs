//! Filter rules and name patterns: what a server's rules do to one name.

pub(crate) mod decide;
pub(crate) mod pattern;
pub(crate) mod rule;
