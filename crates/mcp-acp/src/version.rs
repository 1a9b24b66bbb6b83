//! The words of the protocol that this crate goes by: versions, methods and transports.
//!
//! An unknown word is never taken for a known one.

use std::fmt;

use mcp_config::Profile;
use mcp_model::TransportKind;
use serde::{Serialize, Serializer};

/// A version of the protocol, as both sides agreed on it in `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// `protocolVersion: 1`.
    V1,
    /// The draft, `protocolVersion: 2`.
    V2,
}

impl Version {
    /// Every version.
    pub const ALL: [Version; 2] = [Version::V1, Version::V2];

    /// The version of this number.
    pub fn from_number(number: u64) -> Option<Version> {
        Version::ALL.into_iter().find(|it| u64::from(it.number()) == number)
    }

    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }

    /// The rules its entries are read by.
    pub(crate) fn profile(self) -> Profile {
        match self {
            Version::V1 => Profile::AcpV1,
            Version::V2 => Profile::AcpV2,
        }
    }
}

/// A method that sets a session up, and carries servers (ACPX-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `session/new`.
    New,
    /// `session/load`; gone in version 2.
    Load,
    /// `session/resume`.
    Resume,
    /// `session/fork`.
    Fork,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 4] = [Method::New, Method::Load, Method::Resume, Method::Fork];

    /// The method of this name.
    pub fn parse(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::New => "session/new",
            Method::Load => "session/load",
            Method::Resume => "session/resume",
            Method::Fork => "session/fork",
        }
    }

    /// Does the version have it?
    pub fn is_in(self, version: Version) -> bool {
        match (self, version) {
            (Method::Load, Version::V2) => false,
            (Method::New | Method::Resume | Method::Fork, _) | (Method::Load, Version::V1) => true,
        }
    }

    /// The capability that an agent declares which has the method; `None` where every agent has it, or none (ACPX-16).
    pub fn capability(self, version: Version) -> Option<&'static str> {
        match (self, version) {
            (Method::Load, Version::V1) => Some("loadSession"),
            (Method::Resume, Version::V1) => Some("sessionCapabilities.resume"),
            (Method::Fork, Version::V1) => Some("sessionCapabilities.fork"),
            (Method::Fork, Version::V2) => Some("session.fork"),
            (Method::New, _) | (Method::Load | Method::Resume, Version::V2) => None,
        }
    }

    /// What its servers are to the session.
    pub fn effect(self) -> SetEffect {
        match self {
            Method::New | Method::Fork => SetEffect::Begins,
            Method::Load | Method::Resume => SetEffect::Replaces,
        }
    }
}

/// What the servers of a request are to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetEffect {
    /// The session begins with them.
    Begins,
    /// They are all there is from now on: whatever an earlier request brought is closed, were the list empty.
    Replaces,
}

/// How an entry says its server is to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events; gone in version 2.
    Sse,
    /// Through the ACP connection itself (ACPX-12).
    Acp,
    /// Any other word.
    Other(String),
}

impl Transport {
    /// The transport that a `type` says.
    pub(crate) fn of(word: &str) -> Transport {
        match word {
            "stdio" => Transport::Stdio,
            "http" => Transport::Http,
            "sse" => Transport::Sse,
            "acp" => Transport::Acp,
            other => Transport::Other(other.to_owned()),
        }
    }

    /// The word in `type`.
    pub fn as_str(&self) -> &str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Acp => "acp",
            Transport::Other(word) => word,
        }
    }
}

impl From<TransportKind> for Transport {
    fn from(kind: TransportKind) -> Transport {
        match kind {
            TransportKind::Stdio => Transport::Stdio,
            TransportKind::Http => Transport::Http,
            TransportKind::Sse => Transport::Sse,
            TransportKind::WebSocket => Transport::Other(kind.as_str().to_owned()),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.as_str()), Some(method));
        }
        assert_eq!(Method::parse("session/New"), None);
        for version in Version::ALL {
            assert_eq!(Version::from_number(version.number().into()), Some(version));
        }
        assert_eq!(Version::from_number(3), None);
        for word in ["stdio", "http", "sse", "acp", "_own", "HTTP"] {
            assert_eq!(Transport::of(word).as_str(), word);
        }
        assert_eq!(Transport::of("HTTP"), Transport::Other("HTTP".to_owned()));
    }
}
