//! The owner of a name in a catalog: the host or a server.

use mcp_host_model::ServerId;

/// The owner of a tool, prompt or toolset name (DM-055, DM-097). Displayed as ``server `files` `` or `the host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[non_exhaustive]
pub enum NameOwner<'a> {
    /// The host itself. No server can take its names.
    #[strum(to_string = "the host")]
    Host,
    /// A server.
    #[strum(to_string = "server `{0}`")]
    Server(&'a ServerId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_is_displayed_as_in_messages() {
        let server = ServerId::parse("files").unwrap();
        assert_eq!(NameOwner::Server(&server).to_string(), "server `files`");
        assert_eq!(NameOwner::Host.to_string(), "the host");
    }
}
