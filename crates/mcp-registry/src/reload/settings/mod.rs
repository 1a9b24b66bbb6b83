//! The settings of a server, for change detection.
//!
//! A change of [`RuntimeSettings`] requires a new connection, a change of [`ExposureSettings`] only a new catalog.
//! Comments, layout, and the order of environment variables and headers affect neither.

use std::collections::BTreeMap;

use mcp_host_model::{CallRules, Discovery, Endpoint, Exposure, Limits, Secret, Sharing};

/// The settings that a running server depends on. A change requires a restart.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeSettings {
    /// Normalised, so that different ways to write the same settings are equal.
    endpoint: Endpoint,
    config: Option<Secret>,
    discovery: Discovery,
}

/// The settings that affect only the exposure and use of a running server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExposureSettings {
    /// The exposure rules.
    pub exposure: Exposure,
    /// The limits.
    pub limits: Limits,
    /// How callers share instances.
    pub sharing: Sharing,
    /// The rules for calls; none unless set.
    pub calls: CallRules,
}

impl ExposureSettings {
    /// The settings of a server.
    pub fn new(exposure: Exposure, limits: Limits, sharing: Sharing) -> ExposureSettings {
        ExposureSettings { exposure, limits, sharing, calls: CallRules::default() }
    }
}

impl RuntimeSettings {
    /// The settings of a server with this endpoint, and the configuration that it receives.
    pub fn new(mut endpoint: Endpoint, config: Option<Secret>, discovery: Discovery) -> RuntimeSettings {
        match &mut endpoint {
            Endpoint::Stdio(stdio) => {
                // Of variables with one name the last counts, as in the child.
                let env: BTreeMap<_, _> = stdio.env.drain(..).collect();
                stdio.env.extend(env);
            }
            Endpoint::Sse(url) | Endpoint::WebSocket(url) | Endpoint::Http(url) => {
                // Header names are case-insensitive; the order of headers with one name counts.
                url.headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
                url.headers.sort_by(|left, right| left.0.cmp(&right.0));
            }
        }
        RuntimeSettings { endpoint, config, discovery }
    }
}

#[cfg(test)]
mod tests;
