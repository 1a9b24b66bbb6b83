//! The settings of a server, for change detection.
//!
//! A change of [`RuntimeSettings`] requires a new connection, a change of [`ExposureSettings`] only a new catalog.
//! Comments, layout, and the order of environment variables and headers affect neither. The settings are borrowed: a
//! comparison of equal ones copies nothing.

use std::collections::BTreeMap;

use mcp_host_model::{CallRules, Discovery, Endpoint, Exposure, Limits, Secret, Sharing};

/// The settings that a running server depends on. A change requires a restart.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeSettings<'a> {
    endpoint: &'a Endpoint,
    config: Option<&'a Secret>,
    discovery: Discovery,
}

/// The settings that affect only the exposure and use of a running server.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a new setting does not compile until every caller compares it"
)]
pub struct ExposureSettings<'a> {
    /// The exposure rules.
    pub exposure: &'a Exposure,
    /// The limits.
    pub limits: &'a Limits,
    /// How callers share instances.
    pub sharing: Sharing,
    /// The rules for calls.
    pub calls: &'a CallRules,
}

impl<'a> RuntimeSettings<'a> {
    /// The settings of a server with this endpoint, and the configuration that it receives.
    pub fn new(
        endpoint: &'a Endpoint,
        config: Option<&'a Secret>,
        discovery: Discovery,
    ) -> RuntimeSettings<'a> {
        RuntimeSettings { endpoint, config, discovery }
    }
}

impl PartialEq for RuntimeSettings<'_> {
    /// Different ways to write the same settings are equal. Endpoints are normalised only if they differ.
    fn eq(&self, other: &RuntimeSettings<'_>) -> bool {
        self.config == other.config
            && self.discovery == other.discovery
            && (self.endpoint == other.endpoint || normalize(self.endpoint) == normalize(other.endpoint))
    }
}

/// Returns the endpoint with variables and headers in a fixed order.
fn normalize(endpoint: &Endpoint) -> Endpoint {
    let mut endpoint = endpoint.clone();
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
    endpoint
}

#[cfg(test)]
mod tests;
