//! `shell`.

pub(crate) mod words;
