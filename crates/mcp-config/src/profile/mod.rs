//! Profiles: a dialect and a version of its rules.

pub(crate) mod foreign_keys;
pub(crate) mod policy;

use mcp_host_model::Dialect;

/// A dialect together with the rules for reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// HoloDeck's configuration contract.
    HoloDeck,
    /// The rules of HoloDeck 0.7.
    HoloDeck07,
    /// Dominds' `.minds/mcp.yaml`.
    Dominds,
    /// The servers of an ACP session, protocol version 1.
    AcpV1,
    /// The servers of an ACP session, the draft of protocol version 2.
    AcpV2,
    /// The `mcp.json` and settings of editors and agents, read leniently.
    McpJson,
}

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Profile] = &[
        Profile::HoloDeck,
        Profile::HoloDeck07,
        Profile::Dominds,
        Profile::AcpV1,
        Profile::AcpV2,
        Profile::McpJson,
    ];

    /// The dialect of the profile.
    pub fn dialect(self) -> Dialect {
        match self {
            Profile::HoloDeck | Profile::HoloDeck07 => Dialect::HoloDeck,
            Profile::Dominds => Dialect::Dominds,
            Profile::AcpV1 | Profile::AcpV2 => Dialect::Acp,
            Profile::McpJson => Dialect::McpJson,
        }
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::HoloDeck => "holodeck",
            Profile::HoloDeck07 => "holodeck-0.7",
            Profile::Dominds => "dominds",
            Profile::AcpV1 => "acp-v1",
            Profile::AcpV2 => "acp-v2",
            Profile::McpJson => "mcp-json",
        }
    }

    /// The profile with this name.
    pub fn parse(name: &str) -> Option<Profile> {
        Profile::ALL.iter().copied().find(|it| it.as_str() == name)
    }

    /// The default profile of a dialect.
    pub fn default_for(dialect: Dialect) -> Profile {
        match dialect {
            Dialect::HoloDeck => Profile::HoloDeck,
            Dialect::Dominds => Profile::Dominds,
            Dialect::Acp => Profile::AcpV1,
            Dialect::McpJson => Profile::McpJson,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_by_its_name() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.as_str()), Some(*profile));
        }
        assert_eq!(Profile::parse("HoloDeck"), None);
        assert_eq!(Profile::default_for(Dialect::Acp), Profile::AcpV1);
    }
}
