//! Reload planning: fingerprints of server settings and the plan for a new configuration.

pub(crate) mod fingerprint;
pub(crate) mod plan;
