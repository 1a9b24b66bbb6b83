//! The gate: decides which messages pass from a client to an agent, and reads the agent's response to `initialize`.
//!
//! A session request passes if mcp-acp finds no error. To ensure that the agent reads what was checked, ambiguous
//! lines never pass: text that is not a JSON object, a raw `\r` before the end of the line, duplicate keys of the
//! message, and keys that differ from a known one only in case. The same applies to the parameters of a session
//! request and to its servers. Other ambiguities between JSON readers are not detected.

use std::path::Path;

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, FolderStatus, Leniency, Policy, SessionMethod, SessionRequest,
    Tolerance, code, response_id, validate,
};
use mcp_host_model::{RawJson, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

mod keys;

/// A client's message that does not pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The response to the client, a complete line; `None` if none may be sent.
    pub(crate) response: Option<String>,
    /// The reason, without secrets.
    pub(crate) error: RpcError,
}

/// The state of the connection.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// The tolerated deviations from the protocol.
    policy: Policy,
    /// The id of the pending `initialize`.
    initializing: Option<Value>,
    negotiated: Option<NegotiatedVersion>,
}

#[derive(Debug)]
enum NegotiatedVersion {
    Supported(AcpVersion, Capabilities),
    Unsupported,
}

/// The inspected members of a message. A duplicate is an error.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow, rename = "params")]
    _params: Option<&'a RawValue>,
}

impl Gate {
    /// Creates a gate that tolerates what known clients do: commands that are not absolute paths, and missing lists.
    /// The request passes unchanged, so the agent has to tolerate it as well.
    pub(crate) fn lenient() -> Gate {
        let mut leniency = Leniency::default();
        leniency.relative_commands = Tolerance::Warn;
        leniency.missing_lists = Tolerance::Warn;
        let mut policy = Policy::default();
        policy.leniency = leniency;
        policy.missing_servers = Tolerance::Warn;
        Gate { policy, ..Gate::default() }
    }

    /// Checks a line of the client. An accepted line is forwarded unchanged.
    pub(crate) fn admit(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let invalid = |message: &str| Refusal::unreadable(RpcError::new(code::INVALID_REQUEST, message));
        if contains_carriage_return(line) {
            return Err(invalid("this line contains a carriage return"));
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let json = RawJson::parse(line.to_vec().into()).map_err(|_| {
            Refusal::unreadable(RpcError::new(code::PARSE_ERROR, "this line is not valid JSON"))
        })?;
        let not_acp = || invalid("this is not an ACP message");
        if !json.is_object() {
            return Err(not_acp());
        }
        if let Some(key) = keys::differing_in_case(json.as_str(), keys::MESSAGE).map_err(|_| not_acp())? {
            return Err(invalid(&format!("a key of this message differs from `{key}` only in its case")));
        }
        let message = json.read::<Message<'_>>().map_err(|_| not_acp())?;
        // Without a method it is a response to the agent.
        let Some(method) = message.method else { return Ok(()) };
        let method: String = serde_json::from_str(method.get()).map_err(|_| not_acp())?;
        if method == "initialize" {
            self.initializing = message.id.and_then(as_value);
        }
        if SessionMethod::parse(&method).is_none() {
            return Ok(());
        }
        self.check(&json).map_err(|error| match message.id {
            Some(_) => Refusal::request(&response_id(&json), error),
            None => Refusal { response: None, error },
        })
    }

    fn check(&self, request: &RawJson) -> Result<(), RpcError> {
        let (version, capabilities) = match &self.negotiated {
            Some(NegotiatedVersion::Supported(version, capabilities)) => (*version, capabilities),
            Some(NegotiatedVersion::Unsupported) => {
                let message = "acp-proxy does not support the negotiated protocol version";
                return Err(RpcError::new(code::INVALID_REQUEST, message));
            }
            None => {
                let message = "there is no session before the response to `initialize`";
                return Err(RpcError::new(code::INVALID_REQUEST, message));
            }
        };
        let mut agent = AgentProfile::new(version, capabilities);
        agent.policy = self.policy;
        agent.check_folder = &folder_status;
        let request = SessionRequest::read(request).map_err(|error| RpcError::from(&error))?;
        validate(&request, &agent).map_err(|error| RpcError::from(&error))?;
        let message = match keys::differing_in_case(request.params.as_str(), keys::SESSION_PARAMS) {
            Ok(None) => return Ok(()),
            Ok(Some(key)) => {
                format!(
                    "a key of these parameters, or of a server in them, differs from `{key}` only in its case"
                )
            }
            Err(_) => "the keys of these parameters cannot be read".to_owned(),
        };
        Err(RpcError::new(code::INVALID_PARAMS, message))
    }

    /// Reads a line of the agent. It always passes.
    pub(crate) fn observe(&mut self, line: &[u8]) {
        let Some(id) = &self.initializing else { return };
        let Ok(json) = RawJson::parse(line.to_vec().into()) else { return };
        let Ok(message) = json.read::<Message<'_>>() else { return };
        if message.method.is_some() || message.id.and_then(as_value).as_ref() != Some(id) {
            return;
        }
        self.initializing = None;
        let Some(result) = message.result else { return };
        let number = AcpVersion::negotiated_number(&json);
        self.negotiated = Some(match number.and_then(AcpVersion::from_number) {
            Some(version) => {
                NegotiatedVersion::Supported(version, Capabilities::read(version, &RawJson::copy_of(result)))
            }
            None => NegotiatedVersion::Unsupported,
        });
    }
}

impl Refusal {
    /// Refuses a request.
    fn request(id: &RawJson, error: RpcError) -> Refusal {
        #[derive(Serialize)]
        struct Response<'a> {
            jsonrpc: &'static str,
            id: &'a RawJson,
            error: &'a RpcError,
        }
        let response = Response { jsonrpc: "2.0", id, error: &error };
        let mut line = serde_json::to_string(&response).expect("an id and an error are JSON");
        line.push('\n');
        Refusal { response: Some(line), error }
    }

    /// Refuses a message that cannot be read, which may be a request.
    fn unreadable(error: RpcError) -> Refusal {
        Refusal::request(&RawJson::parse("null".into()).expect("null is JSON"), error)
    }

    /// Refuses a message of more than `limit` bytes.
    pub(crate) fn too_long(limit: usize) -> Refusal {
        let message = format!("a message may have at most {limit} bytes");
        Refusal::unreadable(RpcError::new(code::INVALID_REQUEST, message))
    }
}

/// Finds a `\r`, which some readers treat as a line end, between JSON tokens.
fn contains_carriage_return(line: &[u8]) -> bool {
    line.strip_suffix(b"\r\n").unwrap_or(line).contains(&b'\r')
}

fn as_value(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}

/// The agent runs on this machine, so its folders can be checked here.
fn folder_status(path: &str) -> FolderStatus {
    match Path::new(path).metadata() {
        Ok(metadata) if metadata.is_dir() => FolderStatus::Usable,
        Ok(_) => FolderStatus::NotAFolder,
        Err(_) => FolderStatus::Missing,
    }
}

#[cfg(test)]
mod tests;
