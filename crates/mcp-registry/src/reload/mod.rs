//! Reload planning: fingerprints of server settings and the plan for a new configuration.

pub(crate) mod plan;
pub(crate) mod settings;
