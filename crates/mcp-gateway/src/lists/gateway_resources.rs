//! Resources about the gateway itself: problems and server states.

use mcp_host_model::RawJson;
use mcp_host_runtime::HostSnapshot;
use serde_json::json;

use crate::protocol::message_writer::json_string;

/// A resource of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatewayResource {
    /// `mcp-host://problems`: the problems of the configuration and the servers.
    Problems,
    /// `mcp-host://servers`: each server with its state and error.
    Servers,
}

impl GatewayResource {
    /// All resources of the gateway.
    pub const ALL: &[GatewayResource] = &[GatewayResource::Problems, GatewayResource::Servers];

    /// Its URI.
    pub fn uri(self) -> &'static str {
        match self {
            GatewayResource::Problems => "mcp-host://problems",
            GatewayResource::Servers => "mcp-host://servers",
        }
    }

    /// Its definition in the list of resources, as JSON text.
    pub(crate) fn definition(self) -> String {
        let (name, description) = match self {
            GatewayResource::Problems => ("problems", "Problems of the configuration and the servers"),
            GatewayResource::Servers => ("servers", "The servers behind this gateway and their states"),
        };
        format!(
            r#"{{"uri":"{}","name":"{name}","description":{},"mimeType":"application/json"}}"#,
            self.uri(),
            json_string(description)
        )
    }

    /// The current result of reading it.
    pub(crate) fn read(self, snapshot: &HostSnapshot) -> RawJson {
        let text = match self {
            GatewayResource::Problems => json!({
                "generation": snapshot.generation,
                "problems": snapshot.problems,
            }),
            GatewayResource::Servers => json!({
                "generation": snapshot.generation,
                "servers": snapshot.servers,
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
