//! Dialects: how each kind of file is recognised, read and lowered into servers.

pub(crate) mod checks;
pub(crate) mod detect;
pub(crate) mod dominds;
pub(crate) mod editor;
pub(crate) mod lowering;
pub(crate) mod policy;
pub(crate) mod profile;
