//! The rules of each profile: a dialect and a version of it.

pub(crate) mod rules;
