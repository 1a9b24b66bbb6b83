//! Protocol revisions and their eras.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A family of protocol revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "every decision on the era is made for each")]
pub enum Era {
    /// With sessions, which begin with `initialize` (2024-11-05 to 2025-11-25).
    Legacy,
    /// Stateless: each request carries version and capabilities (2026-07-28).
    Modern,
}

impl Era {
    /// Returns `legacy` or `modern`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A supported revision of MCP, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// 2024-11-05, the first with HTTP and SSE.
    V2024_11_05,
    /// 2025-03-26, Streamable HTTP.
    V2025_03_26,
    /// 2025-06-18, structured results, the version header.
    V2025_06_18,
    /// 2025-11-25, the last with `initialize`.
    V2025_11_25,
    /// 2026-07-28, stateless.
    V2026_07_28,
}

impl ProtocolVersion {
    /// All revisions, oldest first.
    pub const ALL: &[ProtocolVersion] = &[
        ProtocolVersion::V2024_11_05,
        ProtocolVersion::V2025_03_26,
        ProtocolVersion::V2025_06_18,
        ProtocolVersion::V2025_11_25,
        ProtocolVersion::V2026_07_28,
    ];
    /// The newest revision.
    pub const LATEST: ProtocolVersion = ProtocolVersion::V2026_07_28;
    /// The newest revision that has `initialize`.
    pub const LATEST_LEGACY: ProtocolVersion = ProtocolVersion::V2025_11_25;

    /// Returns the date, as in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            ProtocolVersion::V2024_11_05 => "2024-11-05",
            ProtocolVersion::V2025_03_26 => "2025-03-26",
            ProtocolVersion::V2025_06_18 => "2025-06-18",
            ProtocolVersion::V2025_11_25 => "2025-11-25",
            ProtocolVersion::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era of the revision.
    pub fn era(self) -> Era {
        match self {
            ProtocolVersion::V2024_11_05
            | ProtocolVersion::V2025_03_26
            | ProtocolVersion::V2025_06_18
            | ProtocolVersion::V2025_11_25 => Era::Legacy,
            ProtocolVersion::V2026_07_28 => Era::Modern,
        }
    }
}

/// The error for an unsupported revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version")]
#[non_exhaustive]
pub struct UnknownProtocolVersion;

impl FromStr for ProtocolVersion {
    type Err = UnknownProtocolVersion;

    fn from_str(text: &str) -> Result<ProtocolVersion, UnknownProtocolVersion> {
        ProtocolVersion::ALL.iter().copied().find(|it| it.as_str() == text).ok_or(UnknownProtocolVersion)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_parsed_and_ordered() {
        for version in ProtocolVersion::ALL {
            assert_eq!(version.as_str().parse(), Ok(*version));
        }
        assert!(ProtocolVersion::ALL.is_sorted());
        assert_eq!("1999-01-01".parse::<ProtocolVersion>(), Err(UnknownProtocolVersion));
        assert_eq!(ProtocolVersion::LATEST_LEGACY.era(), Era::Legacy);
        assert_eq!(ProtocolVersion::LATEST.era(), Era::Modern);
    }
}
