//! Protocol versions, session methods and transports.
//!
//! An unknown name is never taken for a known one.

use std::fmt;

use mcp_host_config::Profile;
use mcp_host_model::{RawJson, TransportKind};
use serde::{Deserialize, Serialize, Serializer};

/// A protocol version, as negotiated in `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an agent answers by version; a wildcard would answer by the wrong one"
)]
pub enum AcpVersion {
    /// `protocolVersion: 1`.
    V1,
    /// The draft, `protocolVersion: 2`.
    V2,
}

impl AcpVersion {
    /// All versions.
    pub const ALL: &[AcpVersion] = &[AcpVersion::V1, AcpVersion::V2];

    /// Returns the version with this number.
    pub fn from_number(number: u64) -> Option<AcpVersion> {
        AcpVersion::ALL.iter().copied().find(|version| u64::from(version.number()) == number)
    }

    /// Returns the `protocolVersion` in a response to `initialize`, or in its result. The number may be that of a
    /// version that this crate does not know.
    pub fn negotiated_number(initialize: &RawJson) -> Option<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeResult {
            protocol_version: Option<u64>,
        }
        #[derive(Deserialize)]
        struct InitializeResponse {
            result: Option<InitializeResult>,
        }
        let response = initialize.read::<InitializeResponse>().ok().and_then(|response| response.result);
        response.or_else(|| initialize.read().ok())?.protocol_version
    }

    /// Returns the number.
    pub fn number(self) -> u8 {
        match self {
            AcpVersion::V1 => 1,
            AcpVersion::V2 => 2,
        }
    }

    /// Returns the configuration profile for entries of this version.
    pub(crate) fn profile(self) -> Profile {
        match self {
            AcpVersion::V1 => Profile::AcpV1,
            AcpVersion::V2 => Profile::AcpV2,
        }
    }
}

/// A method that sets up a session and carries servers (ACPX-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionMethod {
    /// `session/new`.
    New,
    /// `session/load`; not in version 2.
    Load,
    /// `session/resume`.
    Resume,
    /// `session/fork`.
    Fork,
}

impl SessionMethod {
    /// All methods.
    pub const ALL: &[SessionMethod] =
        &[SessionMethod::New, SessionMethod::Load, SessionMethod::Resume, SessionMethod::Fork];

    /// Returns the method with this name.
    pub fn parse(name: &str) -> Option<SessionMethod> {
        SessionMethod::ALL.iter().copied().find(|method| method.as_str() == name)
    }

    /// Returns the protocol name.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionMethod::New => "session/new",
            SessionMethod::Load => "session/load",
            SessionMethod::Resume => "session/resume",
            SessionMethod::Fork => "session/fork",
        }
    }

    /// Returns whether the version has the method.
    pub fn exists_in(self, version: AcpVersion) -> bool {
        match (self, version) {
            (SessionMethod::Load, AcpVersion::V2) => false,
            (SessionMethod::New | SessionMethod::Resume | SessionMethod::Fork, _)
            | (SessionMethod::Load, AcpVersion::V1) => true,
        }
    }

    /// Returns the capability that declares the method; `None` if every agent supports it, or none (ACPX-16).
    pub fn capability(self, version: AcpVersion) -> Option<&'static str> {
        match (self, version) {
            (SessionMethod::Load, AcpVersion::V1) => Some("loadSession"),
            (SessionMethod::Resume, AcpVersion::V1) => Some("sessionCapabilities.resume"),
            (SessionMethod::Fork, AcpVersion::V1) => Some("sessionCapabilities.fork"),
            (SessionMethod::Fork, AcpVersion::V2) => Some("session.fork"),
            (SessionMethod::New, _) | (SessionMethod::Load | SessionMethod::Resume, AcpVersion::V2) => None,
        }
    }

    /// Returns the relation of its servers to the session.
    pub fn server_set_effect(self) -> ServerSetEffect {
        match self {
            SessionMethod::New | SessionMethod::Fork => ServerSetEffect::Initial,
            SessionMethod::Load | SessionMethod::Resume => ServerSetEffect::Replacement,
        }
    }
}

/// The relation of a request's servers to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerSetEffect {
    /// The session starts with them.
    Initial,
    /// They replace all servers of earlier requests, which are closed even if the new list is empty.
    Replacement,
}

/// The transport of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcpTransport {
    /// A child process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events; not in version 2.
    Sse,
    /// Through the ACP connection itself (ACPX-12).
    Acp,
    /// Any other `type`.
    Other(String),
}

impl AcpTransport {
    /// The transport of this `type`.
    pub(crate) fn from_type(name: &str) -> AcpTransport {
        match name {
            "stdio" => AcpTransport::Stdio,
            "http" => AcpTransport::Http,
            "sse" => AcpTransport::Sse,
            "acp" => AcpTransport::Acp,
            other => AcpTransport::Other(other.to_owned()),
        }
    }

    /// Returns whether the protocol has no such transport.
    pub(crate) fn is_other(&self) -> bool {
        matches!(self, AcpTransport::Other(_))
    }

    /// The value of `type`.
    pub fn as_str(&self) -> &str {
        match self {
            AcpTransport::Stdio => "stdio",
            AcpTransport::Http => "http",
            AcpTransport::Sse => "sse",
            AcpTransport::Acp => "acp",
            AcpTransport::Other(name) => name,
        }
    }
}

impl From<TransportKind> for AcpTransport {
    fn from(kind: TransportKind) -> AcpTransport {
        match kind {
            TransportKind::Stdio => AcpTransport::Stdio,
            TransportKind::Http => AcpTransport::Http,
            TransportKind::Sse => AcpTransport::Sse,
            TransportKind::WebSocket | _ => AcpTransport::Other(kind.as_str().to_owned()),
        }
    }
}

impl fmt::Display for AcpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for AcpTransport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &method in SessionMethod::ALL {
            assert_eq!(SessionMethod::parse(method.as_str()), Some(method));
        }
        assert_eq!(SessionMethod::parse("session/New"), None);
        for &version in AcpVersion::ALL {
            assert_eq!(AcpVersion::from_number(version.number().into()), Some(version));
        }
        assert_eq!(AcpVersion::from_number(3), None);
        for (initialize, want) in [
            (r#"{"id":0,"result":{"protocolVersion":2}}"#, Some(2)),
            (r#"{"protocolVersion":1}"#, Some(1)),
            (r#"{"result":{}}"#, None),
            (r#"{"protocolVersion":"1"}"#, None),
            (r#"{"http":true}"#, None),
        ] {
            let initialize = RawJson::parse(initialize.into()).unwrap();
            assert_eq!(AcpVersion::negotiated_number(&initialize), want);
        }
        for name in ["stdio", "http", "sse", "acp", "_own", "HTTP"] {
            assert_eq!(AcpTransport::from_type(name).as_str(), name);
        }
        assert_eq!(AcpTransport::from_type("HTTP"), AcpTransport::Other("HTTP".to_owned()));
    }
}
