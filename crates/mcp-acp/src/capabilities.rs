//! The capabilities of an agent: the value that is advertised in `initialize` is the value that is enforced.
//!
//! A capability that is not declared in the form of its version is not declared.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_host_model::RawJson;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::version::{AcpTransport, AcpVersion};

/// The transports over which an agent supports MCP servers.
///
/// ```
/// use mcp_host_acp::{Capabilities, AcpVersion};
///
/// let mut capabilities = Capabilities::STDIO;
/// capabilities.http = true;
/// assert_eq!(capabilities.to_json(AcpVersion::V1).as_str(), r#"{"http":true,"sse":false}"#);
/// assert_eq!(capabilities.to_json(AcpVersion::V2).as_str(), r#"{"stdio":{},"http":{}}"#);
/// assert_eq!(capabilities.advertise_and_read(AcpVersion::V2), capabilities);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Child processes. Version 1 has no such capability: every agent supports them, whatever the value (ACP-001).
    pub stdio: bool,
    /// `mcpCapabilities.http` (ACP-002); `session.mcp.http` in version 2.
    pub http: bool,
    /// `mcpCapabilities.sse` (ACP-003). Version 2 has no such transport, whatever the value.
    pub sse: bool,
    /// Servers over the ACP connection itself; not yet stable (ACPX-12).
    pub acp: bool,
    /// Extensions, names that begin with `_`. Only in version 2 (ACPX-11).
    pub custom: Vec<String>,
}

impl Capabilities {
    /// Child processes only: the minimum of version 1.
    pub const STDIO: Capabilities =
        Capabilities { stdio: true, http: false, sse: false, acp: false, custom: Vec::new() };

    /// Reads capabilities from the response to `initialize`, its result, the agent's capabilities in it, or the object
    /// for MCP alone.
    ///
    /// In version 1 everything but `true` means not supported; in version 2 everything but an object. This includes
    /// missing keys and values of the wrong type.
    pub fn read(version: AcpVersion, declared: &RawJson) -> Capabilities {
        let path: &[&str] = match version {
            AcpVersion::V1 => &["result", "agentCapabilities", "mcpCapabilities"],
            AcpVersion::V2 => &["result", "capabilities", "session", "mcp"],
        };
        let outer = members(declared);
        let start = path.iter().position(|key| outer.contains_key(*key)).unwrap_or(path.len());
        let mut found = declared.clone();
        for key in &path[start..] {
            // An agent that leaves an inner object out declares nothing.
            let inner = members(&found).get(*key).map(|inner| RawJson::copy_of(inner));
            found = inner.unwrap_or_else(RawJson::empty_object);
        }
        let members = members(&found);
        let has = |key: &str| {
            members.get(key).is_some_and(|value| match version {
                AcpVersion::V1 => value.get() == "true",
                AcpVersion::V2 => value.get().starts_with('{'),
            })
        };
        match version {
            AcpVersion::V1 => {
                Capabilities { http: has("http"), sse: has("sse"), acp: has("acp"), ..Capabilities::STDIO }
            }
            AcpVersion::V2 => Capabilities {
                stdio: has("stdio"),
                http: has("http"),
                sse: false,
                acp: has("acp"),
                custom: members
                    .keys()
                    .filter(|name| is_custom(name) && has(name))
                    .map(|name| name.clone().into_owned())
                    .collect(),
            },
        }
    }

    /// Returns the advertisement: `agentCapabilities.mcpCapabilities` in version 1, `capabilities.session.mcp` in
    /// version 2. Unstable capabilities are included only if declared.
    pub fn to_json(&self, version: AcpVersion) -> RawJson {
        let Capabilities { stdio, http, sse, acp, custom } = self;
        let members: Vec<String> = match version {
            AcpVersion::V1 => {
                let acp = acp.then(|| r#""acp":true"#.to_owned());
                [format!(r#""http":{http}"#), format!(r#""sse":{sse}"#)].into_iter().chain(acp).collect()
            }
            AcpVersion::V2 => {
                let known = [("stdio", *stdio), ("http", *http), ("acp", *acp)].into_iter();
                let declared = known.filter_map(|(name, is_declared)| is_declared.then_some(name));
                let custom = custom.iter().map(String::as_str).filter(|name| is_custom(name));
                declared.chain(custom).map(|name| format!("{}:{{}}", Value::from(name))).collect()
            }
        };
        RawJson::parse(format!("{{{}}}", members.join(",")).into()).expect("members make an object")
    }

    /// Advertises the capabilities, and reads the advertisement as a client does. The result allows the same
    /// transports.
    pub fn advertise_and_read(&self, version: AcpVersion) -> Capabilities {
        Capabilities::read(version, &self.to_json(version))
    }

    /// Returns whether a session of this version may request a server over this transport.
    pub fn allows(&self, version: AcpVersion, transport: &AcpTransport) -> bool {
        match (version, transport) {
            (AcpVersion::V1, AcpTransport::Stdio) => true,
            (AcpVersion::V2, AcpTransport::Stdio) => self.stdio,
            (_, AcpTransport::Http) => self.http,
            (AcpVersion::V1, AcpTransport::Sse) => self.sse,
            (AcpVersion::V2, AcpTransport::Sse) | (AcpVersion::V1, AcpTransport::Other(_)) => false,
            (_, AcpTransport::Acp) => self.acp,
            (AcpVersion::V2, AcpTransport::Other(name)) => is_custom(name) && self.custom.contains(name),
        }
    }

    /// Returns the allowed transports, stdio first.
    pub fn supported(&self, version: AcpVersion) -> Vec<AcpTransport> {
        let known = [AcpTransport::Stdio, AcpTransport::Http, AcpTransport::Sse, AcpTransport::Acp];
        let custom = self.custom.iter().cloned().map(AcpTransport::Other);
        known.into_iter().chain(custom).filter(|transport| self.allows(version, transport)).collect()
    }
}

/// Returns whether this is the name of an extension.
fn is_custom(name: &str) -> bool {
    name.starts_with('_') && name != "_meta"
}

/// The members of an object; none for other values.
fn members(object: &RawJson) -> BTreeMap<Cow<'_, str>, &RawValue> {
    object.read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.as_bytes().to_vec().into()).unwrap()
    }

    #[track_caller]
    fn check(version: AcpVersion, declared: &str, want: &str) {
        let supported = Capabilities::read(version, &raw(declared)).supported(version);
        let names: Vec<_> = supported.iter().map(AcpTransport::as_str).collect();
        assert_eq!(names.join(" "), want, "{declared}");
    }

    #[test]
    fn acp_001_acp_002_acp_003_in_version_1_only_true_declares() {
        let check = |declared, want| check(AcpVersion::V1, declared, want);
        check("{}", "stdio");
        check(r#"{"http":true}"#, "stdio http");
        check(r#"{"sse":true,"http":false}"#, "stdio sse");
        check(r#"{"http":true,"sse":true,"acp":true,"_meta":{"sse":false}}"#, "stdio http sse acp");
        check(r#"{"http":"true","sse":1}"#, "stdio");
        check(r#"{"http":null,"sse":{"http":true}}"#, "stdio");
        check(r#"{"HTTP":true, "_own": true, "stdio": false}"#, "stdio");
        check(r#"{"mcpCapabilities": {"http": true}}"#, "stdio http");
        check(
            r#"{"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"sse": true}}}"#,
            "stdio sse",
        );
        check(r#"{"mcpCapabilities": true, "http": true}"#, "stdio");
        check(
            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}"#,
            "stdio http",
        );
        check(r#"{"result":{"protocolVersion":1},"http":true}"#, "stdio");
        check(r#"{"agentCapabilities":{"http":true}}"#, "stdio");
        for no_object in ["null", "true", "[true]", "\"http\"", "1"] {
            check(no_object, "stdio");
        }
    }

    #[test]
    fn acp_001_acpx_11_in_version_2_only_an_object_declares() {
        let check = |declared, want| check(AcpVersion::V2, declared, want);
        check("{}", "");
        check(r#"{"stdio":{}}"#, "stdio");
        check(r#"{"stdio":{"_meta":{}},"http":{},"acp":{},"sse":{}}"#, "stdio http acp");
        check(r#"{"stdio":true,"http":null,"acp":[]}"#, "");
        check(r#"{"http":{},"_pigeon":{},"pigeon":{},"_meta":{},"_no":false}"#, "http _pigeon");
        check(r#"{"session":{"mcp":{"stdio":{}}}}"#, "stdio");
        check(r#"{"capabilities":{"session":{"mcp":{"http":{}}}}}"#, "http");
        check(r#"{"id":0,"result":{"capabilities":{"session":{"mcp":{"http":{}}}}}}"#, "http");
        check(r#"{"capabilities":{"session":{}},"http":{}}"#, "");
        check("null", "");
    }

    #[test]
    fn acp_015_advertised_capabilities_are_enforced() {
        for number in 0_u8..32 {
            let bit = |at: u8| number & (1 << at) != 0;
            let custom = if bit(4) { vec!["_pigeon".to_owned()] } else { Vec::new() };
            let capabilities = Capabilities { stdio: bit(0), http: bit(1), sse: bit(2), acp: bit(3), custom };
            for &version in AcpVersion::ALL {
                let read = capabilities.advertise_and_read(version);
                assert_eq!(read.supported(version), capabilities.supported(version), "{capabilities:?}");
            }
        }
    }
}
