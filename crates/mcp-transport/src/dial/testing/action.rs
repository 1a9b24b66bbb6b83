//! The actions of a scripted server.

use std::sync::Arc;

use serde_json::{Value, json};

/// One action of a scripted server in response to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a server performs each, so that a row does not fail for another reason"
)]
pub enum ServerAction {
    /// Sends this text as a message. If each request has a response of its own, in that of the current request.
    Send(String),
    /// Sends this text as the response to the request with this id.
    Respond(Value, String),
    /// Responds to the current request later. Only of interest if each request has a response of its own.
    KeepOpen,
    /// Sends the first half of the bytes of this message. A server that cannot send halves ignores it.
    SendFirstHalf(String),
    /// Sends the other half. Ignored by a server that cannot send halves, or that has a response of its own for each
    /// request.
    SendSecondHalf(String),
    /// Ends the connection without a message. If each request has a response of its own, that of the current message.
    Disconnect,
}

impl ServerAction {
    /// Sends this result of a request.
    pub fn result(request: &Value, result: &Value) -> ServerAction {
        ServerAction::Send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
    }

    /// Sends this error as the response to a request.
    pub fn error(request: &Value, code: i64, message: &str) -> ServerAction {
        let error = json!({"code": code, "message": message});
        ServerAction::Send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string())
    }
}

/// The actions of a server for each message that it receives.
pub type Script = Arc<dyn Fn(&Value) -> Vec<ServerAction> + Send + Sync>;
