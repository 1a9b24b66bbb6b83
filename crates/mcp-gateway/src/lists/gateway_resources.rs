//! What the gateway tells of itself as resources: what is wrong, and how the servers stand.

use mcp_host::HostSnapshot;
use mcp_model::RawJson;
use serde_json::json;

use crate::protocol::response;

/// A resource of the gateway's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnResource {
    /// `mcp-host://problems`: what a user should know.
    Problems,
    /// `mcp-host://servers`: each server, its state, and why it is not ready.
    Servers,
}

impl OwnResource {
    /// Both of them.
    pub const ALL: [OwnResource; 2] = [OwnResource::Problems, OwnResource::Servers];

    /// Its URI.
    pub fn uri(self) -> &'static str {
        match self {
            OwnResource::Problems => "mcp-host://problems",
            OwnResource::Servers => "mcp-host://servers",
        }
    }

    /// How it stands in a list of resources.
    pub(crate) fn definition(self) -> String {
        let (name, description) = match self {
            OwnResource::Problems => ("problems", "What is wrong with the configuration and the servers now"),
            OwnResource::Servers => {
                ("servers", "The servers behind this gateway and how each of them stands")
            }
        };
        format!(
            r#"{{"uri":"{}","name":"{name}","description":{},"mimeType":"application/json"}}"#,
            self.uri(),
            response::text(description)
        )
    }

    /// The result of reading it now.
    pub(crate) fn read(self, published: &HostSnapshot) -> RawJson {
        let text = match self {
            OwnResource::Problems => json!({
                "generation": published.generation,
                "problems": published.problems,
            }),
            OwnResource::Servers => json!({
                "generation": published.generation,
                "servers": published.servers,
            }),
        };
        let contents = json!([{
            "uri": self.uri(),
            "mimeType": "application/json",
            "text": text.to_string(),
        }]);
        RawJson::from_value(&json!({ "contents": contents })).expect("its keys are strings")
    }
}
