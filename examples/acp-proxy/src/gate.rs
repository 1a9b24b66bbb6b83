//! What passes from a client to an agent, and what is learnt from the agent's answer to `initialize`.
//!
//! A request that sets a session up passes when mcp-acp has found nothing against it. So that what is judged is what is
//! done, some lines do not pass whatever they ask for: what is no JSON or no object, a raw `\r` before the line's end,
//! a key of the message that stands twice, and one that is a known one but for its case. The same holds of keys in the
//! parameters of a set-up and in its servers. A reader that takes a line otherwise in any other way is not guarded.

use std::path::Path;

use mcp_acp::{
    AcpVersion, AgentProfile, Capabilities, FolderStatus, SessionMethod, SessionRequest, code, response_id,
    validate,
};
use mcp_model::{RawJson, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

mod keys;

/// A message of the client's that does not go to the agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The answer to the client, a whole line; `None` where nothing may be answered.
    pub(crate) answer: Option<String>,
    /// Why, without secrets.
    pub(crate) error: RpcError,
}

/// What is known about the connection.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// The id of the `initialize` that is not answered yet.
    initializing: Option<Value>,
    agreed: Option<Agreed>,
}

#[derive(Debug)]
enum Agreed {
    Known(AcpVersion, Capabilities),
    /// A version that nobody here knows the rules of.
    Unknown,
}

/// A message, as far as it has to be understood. One of these keys that stands twice is an error.
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
    /// Judges a line of the client's. What passes goes to the agent as it is.
    pub(crate) fn admit(&mut self, line: &[u8]) -> Result<(), Refused> {
        let invalid = |why: &str| Refused::unread(RpcError::new(code::INVALID_REQUEST, why));
        if holds_carriage_return(line) {
            return Err(invalid("a carriage return stands within this line"));
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let json = RawJson::parse(line.to_vec().into()).map_err(|_| {
            Refused::unread(RpcError::new(code::PARSE_ERROR, "this line holds no JSON value"))
        })?;
        let nothing = || invalid("this is no message of ACP");
        if !json.is_object() {
            return Err(nothing());
        }
        if let Some(key) = keys::near(json.as_str(), keys::MESSAGE).map_err(|_| nothing())? {
            return Err(invalid(&format!("a key of this message is `{key}` but for its case")));
        }
        let message = json.read::<Message<'_>>().map_err(|_| nothing())?;
        // Without a method it is an answer to the agent.
        let Some(method) = message.method else { return Ok(()) };
        let method: String = serde_json::from_str(method.get()).map_err(|_| nothing())?;
        if method == "initialize" {
            self.initializing = message.id.and_then(as_value);
        }
        if SessionMethod::parse(&method).is_none() {
            return Ok(());
        }
        self.judge(&json).map_err(|error| match message.id {
            Some(_) => Refused::request(&response_id(&json), error),
            None => Refused { answer: None, error },
        })
    }

    fn judge(&self, request: &RawJson) -> Result<(), RpcError> {
        let (version, capabilities) = match &self.agreed {
            Some(Agreed::Known(version, capabilities)) => (*version, capabilities),
            Some(Agreed::Unknown) => {
                let why = "acp-proxy does not know the rules of the protocol version that was agreed on";
                return Err(RpcError::new(code::INVALID_REQUEST, why));
            }
            None => {
                let why = "there is no session before `initialize` is answered";
                return Err(RpcError::new(code::INVALID_REQUEST, why));
            }
        };
        let agent = AgentProfile { check_folder: &folder, ..AgentProfile::new(version, capabilities) };
        let set_up = SessionRequest::read(request).map_err(|refusal| RpcError::from(&refusal))?;
        validate(&set_up, &agent).map_err(|refusal| RpcError::from(&refusal))?;
        let why = match keys::near(set_up.params.as_str(), keys::SET_UP) {
            Ok(None) => return Ok(()),
            Ok(Some(key)) => {
                format!("a key of these parameters, or of a server in them, is `{key}` but for its case")
            }
            Err(_) => "the keys of these parameters cannot be read".to_owned(),
        };
        Err(RpcError::new(code::INVALID_PARAMS, why))
    }

    /// Learns from a line of the agent's. It passes, whatever it is.
    pub(crate) fn learn(&mut self, line: &[u8]) {
        let Some(id) = &self.initializing else { return };
        let Ok(json) = RawJson::parse(line.to_vec().into()) else { return };
        let Ok(message) = json.read::<Message<'_>>() else { return };
        if message.method.is_some() || message.id.and_then(as_value).as_ref() != Some(id) {
            return;
        }
        self.initializing = None;
        let Some(result) = message.result else { return };
        let number = as_value(result).and_then(|it| it["protocolVersion"].as_u64());
        self.agreed = Some(match number.and_then(AcpVersion::from_number) {
            Some(version) => Agreed::Known(version, Capabilities::read(version, &RawJson::copy_of(result))),
            None => Agreed::Unknown,
        });
    }
}

impl Refused {
    /// A request.
    fn request(id: &RawJson, error: RpcError) -> Refused {
        #[derive(Serialize)]
        struct Response<'a> {
            jsonrpc: &'static str,
            id: &'a RawJson,
            error: &'a RpcError,
        }
        let response = Response { jsonrpc: "2.0", id, error: &error };
        let mut answer = serde_json::to_string(&response).expect("an id and an error are JSON");
        answer.push('\n');
        Refused { answer: Some(answer), error }
    }

    /// A message that cannot be read, and may well be a request.
    fn unread(error: RpcError) -> Refused {
        Refused::request(&RawJson::parse("null".into()).expect("null is JSON"), error)
    }

    /// A message that is longer than `limit` bytes.
    pub(crate) fn too_long(limit: usize) -> Refused {
        let why = format!("a message is longer than {limit} bytes");
        Refused::unread(RpcError::new(code::INVALID_REQUEST, why))
    }
}

/// Where some reader would see more lines than one: JSON may hold `\r` between any two of its words.
fn holds_carriage_return(line: &[u8]) -> bool {
    line.strip_suffix(b"\r\n").unwrap_or(line).contains(&b'\r')
}

fn as_value(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}

/// The agent runs on this machine: its folders are here.
fn folder(path: &str) -> FolderStatus {
    match Path::new(path).metadata() {
        Ok(it) if it.is_dir() => FolderStatus::Usable,
        Ok(_) => FolderStatus::NotAFolder,
        Err(_) => FolderStatus::Missing,
    }
}

#[cfg(test)]
mod tests;
