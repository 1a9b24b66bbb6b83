//! The ACP message `mcp/message`, and its conversion from and to MCP messages. Pure.

use agent_client_protocol::{Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, UntypedMessage};
use bytes::Bytes;
use mcp_host_transport::{RequestError, RequestId, StreamError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const METHOD: &str = "mcp/message";

/// One MCP message inside ACP. `Debug` prints only its method, because parameters may be secret.
#[derive(Clone, derive_more::Debug, Serialize, Deserialize)]
#[debug("Message({method:?}, ***)")]
#[serde(rename_all = "camelCase")]
pub(super) struct OverAcpMessage {
    pub(super) server_id: String,
    /// The id that the agent chose for this request. Notifications of the client repeat it.
    pub(super) request_id: String,
    pub(super) method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Map<String, Value>>,
}

impl JsonRpcMessage for OverAcpMessage {
    fn matches_method(method: &str) -> bool {
        method == METHOD
    }

    fn method(&self) -> &str {
        METHOD
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        UntypedMessage::new(METHOD, self)
    }

    fn parse_message(method: &str, params: &Value) -> Result<OverAcpMessage, Error> {
        if method != METHOD {
            return Err(Error::method_not_found());
        }
        // The error is not repeated: it may contain secrets.
        OverAcpMessage::deserialize(params).map_err(|_| Error::invalid_params())
    }
}

impl JsonRpcRequest for OverAcpMessage {
    type Response = Value;
}

impl JsonRpcNotification for OverAcpMessage {}

impl OverAcpMessage {
    /// Converts the message to the frame of an MCP notification.
    pub(super) fn to_notification_frame(&self) -> Bytes {
        let mut frame = json!({ "jsonrpc": "2.0", "method": self.method });
        if let Some(params) = &self.params {
            frame["params"] = Value::Object(params.clone());
        }
        frame.to_string().into()
    }
}

/// Parses the parameters in the frame of a request of this agent. Fails if they are not an object, which is a bug.
pub(super) fn parse_params(frame: &[u8]) -> Result<Option<Map<String, Value>>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Frame {
        params: Option<Map<String, Value>>,
    }
    Ok(serde_json::from_slice::<Frame>(frame)?.params)
}

/// Converts the client's response to the frame of an MCP response.
pub(super) fn response_frame(id: RequestId, response: Value, max_bytes: usize) -> Result<Bytes, StreamError> {
    let Value::Object(mut response) = response else {
        return Err(lost_error("the client's response is not an object"));
    };
    let frame = match (response.remove("result"), response.remove("error")) {
        (Some(result), _) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        (None, Some(error @ Value::Object(_))) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        (None, _) => return Err(lost_error("the client's response has neither a result nor an error")),
    };
    let frame = frame.to_string();
    if frame.len() > max_bytes {
        let message = format!("the response has {} bytes; the maximum is {max_bytes}", frame.len());
        return Err(lost_error(&message));
    }
    Ok(frame.into())
}

/// Converts an ACP error: to `Refused` if the request did not run, to `Lost` if it may have run.
pub(super) fn stream_error(error: &Error) -> StreamError {
    let number = i64::from(i32::from(error.code));
    let what = match number {
        mcp_host_acp::code::OVER_ACP_LIMIT => "the request exceeds a limit of the client",
        mcp_host_acp::code::OVER_ACP_UNAVAILABLE => "the client no longer has this server",
        mcp_host_acp::code::OVER_ACP_BACKEND_FAILURE => "the server behind the client failed",
        mcp_host_acp::code::METHOD_NOT_FOUND => "the client does not support MCP over ACP",
        _ => "the client responded with an error",
    };
    let text: String = error.message.chars().filter(|char| !char.is_control()).take(200).collect();
    let message = format!("{what}: {text} (code {number})");
    let error = RequestError::new(message);
    match number {
        mcp_host_acp::code::OVER_ACP_LIMIT
        | mcp_host_acp::code::OVER_ACP_UNAVAILABLE
        | mcp_host_acp::code::METHOD_NOT_FOUND
        | mcp_host_acp::code::INVALID_PARAMS
        | mcp_host_acp::code::INVALID_REQUEST => StreamError::Refused(error),
        _ => StreamError::Lost(error),
    }
}

/// The error for a request whose response cannot be used.
fn lost_error(message: &str) -> StreamError {
    StreamError::Lost(RequestError::new(message.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(response: Value, want: &str) {
        let got = match response_frame(7, response, 200) {
            Ok(frame) => String::from_utf8(frame.to_vec()).unwrap(),
            Err(StreamError::Lost(error)) => format!("lost: {error}"),
            Err(other) => format!("{other:?}"),
        };
        // The order of members depends on the features of the build.
        match serde_json::from_str::<Value>(&got) {
            Ok(got) => assert_eq!(got, serde_json::from_str::<Value>(want).unwrap()),
            Err(_) => assert_eq!(got, want),
        }
    }

    #[test]
    fn acpx_12_response_has_a_result_or_an_error() {
        check(json!({"result": {"a": 1}}), r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
        check(json!({"result": null, "error": {}}), r#"{"jsonrpc":"2.0","id":7,"result":null}"#);
        let error = json!({"error": {"code": -32601, "message": "no"}, "_meta": {}});
        check(error, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#);
        check(json!({"error": 3}), "lost: the client's response has neither a result nor an error");
        check(json!([]), "lost: the client's response is not an object");
        let large = "x".repeat(200);
        check(json!({"result": large}), "lost: the response has 236 bytes; the maximum is 200");
    }

    #[test]
    fn acpx_12_error_code_decides_whether_the_request_may_have_run() {
        #[track_caller]
        fn check(number: i64, want: &str) {
            let error = Error::new(i32::try_from(number).unwrap(), "so\u{1b} it is");
            let got = match stream_error(&error) {
                StreamError::Lost(error) => format!("lost: {error}"),
                StreamError::Unreachable(error) | StreamError::Refused(error) => format!("refused: {error}"),
                _ => String::new(),
            };
            assert_eq!(got, format!("{want}: so it is (code {number})"));
        }
        use mcp_host_acp::code;
        check(code::OVER_ACP_LIMIT, "refused: the request exceeds a limit of the client");
        check(code::OVER_ACP_UNAVAILABLE, "refused: the client no longer has this server");
        check(code::OVER_ACP_BACKEND_FAILURE, "lost: the server behind the client failed");
        check(code::METHOD_NOT_FOUND, "refused: the client does not support MCP over ACP");
        check(code::INTERNAL_ERROR, "lost: the client responded with an error");
    }

    #[test]
    fn debug_output_has_no_parameters() {
        let params = json!({"serverId": "s", "requestId": "r", "method": "m", "params": {"k": "SECRET"}});
        let message = OverAcpMessage::parse_message(METHOD, &params).unwrap();
        assert_eq!(format!("{message:?}"), r#"Message("m", ***)"#);
        assert!(OverAcpMessage::parse_message(METHOD, &json!({"method": "SECRET"})).is_err());
    }
}
