//! The `_meta` of a caller, as it is forwarded to servers.

use mcp_host_model::{LogLevel, RawJson};

use crate::rpc::object_members::{MemberName, ObjectMembers, push_member};

/// `_meta` members that describe the connection of a caller. They are not forwarded to servers.
pub const CONNECTION_META_KEYS: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

/// The `_meta` of a caller that is forwarded to servers: without the members that describe the caller's connection. Its
/// log level is used in the modern era.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForwardedMeta {
    /// The members as JSON text, without the braces.
    members: String,
    log_level: Option<LogLevel>,
    /// Whether `members` has a trace context.
    has_trace: bool,
}

/// A `_meta` without members.
pub(crate) static NO_META: ForwardedMeta =
    ForwardedMeta { members: String::new(), log_level: None, has_trace: false };

impl ForwardedMeta {
    /// Reads a `_meta`. Fails if it is not an object.
    pub fn read(meta: &RawJson) -> Result<ForwardedMeta, serde_json::Error> {
        let ObjectMembers(members) = meta.read()?;
        let mut res = ForwardedMeta::default();
        for (MemberName(name), value) in members {
            res.add(&name, &RawJson::copy_of(value));
        }
        Ok(res)
    }

    /// Adds a member, unless it describes the caller's connection.
    pub fn add(&mut self, name: &str, value: &RawJson) {
        if name == "io.modelcontextprotocol/logLevel" {
            self.log_level = value.to_text().and_then(|level| level.parse().ok());
        } else if !CONNECTION_META_KEYS.contains(&name) {
            self.push(name, value.as_str());
        }
    }

    /// Adds a member. `value` is JSON text.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.has_trace |= name == "traceparent";
        push_member(&mut self.members, name, value);
    }

    /// Returns the members without the log level, as JSON text without braces. It may be empty.
    pub fn members(&self) -> &str {
        &self.members
    }

    /// Returns the log level that the caller requests.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Whether there is a trace, which takes precedence over that of the call.
    pub(crate) fn has_trace(&self) -> bool {
        self.has_trace
    }
}
