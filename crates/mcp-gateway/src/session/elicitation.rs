//! Passes server requests (sampling, elicitation, roots) of a running call to its client.
//!
//! A client with a session receives the request during the call. A client without a session cannot receive requests:
//! its call returns that it needs input ([`crate::session::pending_input`]).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{RawJson, RpcError, code};
use mcp_host_transport::{RawRequestHandler, RawServerRequest};
use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::protocol::json_splice;
use crate::session::outbound_queue::MessageSender;
use crate::session::server_requests::internal_error;
use crate::session::state::Session;

/// The server requests that a client supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SupportedRequests {
    sampling: Option<SamplingSupport>,
    elicitation: Option<ElicitationModes>,
    roots: bool,
}

/// The extent of sampling support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SamplingSupport {
    Plain,
    WithTools,
}

/// The supported elicitation modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElicitationModes {
    Form,
    Url,
    Both,
}

impl SupportedRequests {
    /// Reads the supported requests from capabilities. Values that are not objects count as missing.
    pub(crate) fn of(capabilities: &RawJson) -> SupportedRequests {
        let declared =
            |object: &RawJson, name: &str| json_splice::member(object, name).filter(RawJson::is_object);
        let has = |object: &RawJson, name: &str| declared(object, name).is_some();
        let sampling = declared(capabilities, "sampling").map(|sampling| match has(&sampling, "tools") {
            true => SamplingSupport::WithTools,
            false => SamplingSupport::Plain,
        });
        let elicitation = declared(capabilities, "elicitation").map(|modes| {
            match (has(&modes, "form"), has(&modes, "url")) {
                (true, true) => ElicitationModes::Both,
                (false, true) => ElicitationModes::Url,
                // Clients of protocol versions without modes support the form mode.
                (true | false, false) => ElicitationModes::Form,
            }
        });
        SupportedRequests { sampling, elicitation, roots: has(capabilities, "roots") }
    }

    pub(crate) fn supports(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling.is_some(),
            "elicitation/create" => self.elicitation.is_some(),
            "roots/list" => self.roots,
            _ => false,
        }
    }

    /// Checks that the client supports a request with these parameters.
    pub(crate) fn check_params(self, method: &str, params: &RawJson) -> Result<(), RpcError> {
        let refused = |what: &str| Err(RpcError::new(code::INVALID_PARAMS, what));
        if !self.supports(method) {
            return refused("the client does not support this request");
        }
        let Some(members) = params.members() else {
            return refused("`params` must be a JSON object");
        };
        let all =
            |name: &'static str| members.iter().filter(move |(key, _)| key == name).map(|(_, value)| value);
        match method {
            "elicitation/create" => {
                // A repeated member is ambiguous.
                if all("mode").nth(1).is_some() {
                    return refused("`mode` is repeated");
                }
                let mode = match all("mode").next() {
                    None => Some("form".into()),
                    Some(mode) => mode.to_text(),
                };
                match (mode.as_deref(), self.elicitation) {
                    (Some("form"), Some(ElicitationModes::Form | ElicitationModes::Both))
                    | (Some("url"), Some(ElicitationModes::Url | ElicitationModes::Both)) => Ok(()),
                    _ => refused("the client does not support this elicitation mode"),
                }
            }
            "sampling/createMessage" => {
                let mut tools = all("tools").chain(all("toolChoice"));
                if tools.next().is_some() && self.sampling != Some(SamplingSupport::WithTools) {
                    return refused("the client does not support sampling with tools");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Sends server requests to a session during the call.
pub(crate) struct SessionRequestHandler {
    pub(crate) supported: SupportedRequests,
    pub(crate) session: Arc<Session>,
    pub(crate) sender: MessageSender,
    pub(crate) limit: Duration,
}

#[async_trait]
impl RawRequestHandler for SessionRequestHandler {
    fn handles(&self, method: &str) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        let RawServerRequest { method, params, .. } = request;
        self.supported.check_params(&method, &params)?;
        // If nothing reads the call's stream, the session's stream may still be open.
        let sender = if self.sender.is_closed() {
            self.session.stream().unwrap_or_else(|| self.sender.clone())
        } else {
            self.sender.clone()
        };
        self.session.server_requests.send(&sender, &method, params.as_str(), self.limit).await
    }
}

/// A server request that waits for the client to repeat its call with the response.
#[derive(Debug)]
pub(crate) struct InputRequest {
    pub(crate) request: RawServerRequest,
    pub(crate) response: oneshot::Sender<InputReply>,
}

/// The reply to an [`InputRequest`].
#[derive(Debug)]
pub(crate) enum InputReply {
    /// The client's response.
    Response(RawJson),
    /// The call ended before the client got the request.
    Undelivered,
}

/// The running calls of a dialog that can return server requests.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Mutex<Vec<mpsc::Sender<InputRequest>>>);

impl OpenCalls {
    /// Adds a call, and removes those that have ended.
    pub(crate) fn add(&self, call: &mpsc::Sender<InputRequest>) {
        let mut calls = self.0.lock();
        calls.retain(|it| !it.is_closed() && !it.same_channel(call));
        calls.push(call.clone());
    }

    /// The latest call that has not ended.
    pub(crate) fn latest(&self) -> Option<mpsc::Sender<InputRequest>> {
        self.0.lock().iter().rfind(|it| !it.is_closed()).cloned()
    }
}

/// Returns server requests as the result of the call. If the call ends first, another call of the dialog returns the
/// request: a server with one connection does not say to which of the client's calls its request belongs.
pub(crate) struct InputRequestHandler {
    pub(crate) supported: SupportedRequests,
    pub(crate) requests: mpsc::Sender<InputRequest>,
    /// All calls of the dialog.
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) limit: Duration,
}

impl InputRequestHandler {
    /// Sends the request by a call that is open. Dropping the future gives up the response.
    async fn request(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        let mut call = Some(self.requests.clone());
        while let Some(requests) = call {
            let (sender, response) = oneshot::channel();
            match requests.try_send(InputRequest { request: request.clone(), response: sender }) {
                Ok(()) => match response.await {
                    Ok(InputReply::Response(response)) => return Ok(response),
                    Ok(InputReply::Undelivered) => {}
                    Err(_) => {
                        return Err(internal_error("the client did not repeat its call with an answer"));
                    }
                },
                Err(TrySendError::Full(_)) => {
                    return Err(internal_error("too many requests to the client are open"));
                }
                Err(TrySendError::Closed(_)) => {}
            }
            call = self.calls.latest();
        }
        Err(internal_error("the client has no running call"))
    }
}

#[async_trait]
impl RawRequestHandler for InputRequestHandler {
    fn handles(&self, method: &str) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        self.supported.check_params(&request.method, &request.params)?;
        let in_time = tokio::time::timeout(self.limit, self.request(request)).await;
        in_time.unwrap_or_else(|_| {
            Err(internal_error("the client did not repeat its call with an answer in time"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(capabilities: &str, want: &[&str]) {
        let supported = SupportedRequests::of(&RawJson::parse(capabilities.to_owned().into()).unwrap());
        let methods = ["sampling/createMessage", "elicitation/create", "roots/list", "tasks/get"];
        let got: Vec<&str> = methods.into_iter().filter(|method| supported.supports(method)).collect();
        assert_eq!(got, want, "{capabilities}");
    }

    #[test]
    fn only_declared_server_requests_are_supported() {
        check("{}", &[]);
        check(r#"{"sampling":{},"roots":{"listChanged":true}}"#, &["sampling/createMessage", "roots/list"]);
        check(r#"{"elicitation":{"form":{}}}"#, &["elicitation/create"]);
        check("[]", &[]);
        check(r#"{"sampling":null,"elicitation":true,"roots":[]}"#, &[]);
    }

    #[track_caller]
    fn check_request(capabilities: &str, method: &str, params: &str, want: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let got = SupportedRequests::of(&json(capabilities)).check_params(method, &json(params));
        assert_eq!(
            got.map_or_else(|error| error.message, |()| "fine".to_owned()),
            want,
            "{capabilities} {params}"
        );
    }

    #[test]
    fn only_declared_modes_are_accepted() {
        let (ask, sample) = ("elicitation/create", "sampling/createMessage");
        let no_mode = "the client does not support this elicitation mode";
        for (capabilities, form, url) in [
            (r#"{"elicitation":{}}"#, "fine", no_mode),
            (r#"{"elicitation":{"form":{}}}"#, "fine", no_mode),
            (r#"{"elicitation":{"url":{}}}"#, no_mode, "fine"),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, "fine", "fine"),
        ] {
            check_request(capabilities, ask, r#"{"message":"?"}"#, form);
            check_request(capabilities, ask, r#"{"mode":"form"}"#, form);
            check_request(capabilities, ask, r#"{"mode":"url","url":"https://a"}"#, url);
            check_request(capabilities, ask, r#"{"mode":"later"}"#, no_mode);
            check_request(capabilities, ask, r#"{"mode":7}"#, no_mode);
            check_request(capabilities, ask, r#"{"mode":"form","\u006dode":"url"}"#, "`mode` is repeated");
        }
        let plain = r#"{"sampling":{}}"#;
        let no_tools = "the client does not support sampling with tools";
        check_request(plain, sample, r#"{"messages":[]}"#, "fine");
        check_request(plain, sample, r#"{"tools":[]}"#, no_tools);
        check_request(plain, sample, r#"{"toolChoice":{}}"#, no_tools);
        check_request(plain, sample, "[1]", "`params` must be a JSON object");
        check_request(r#"{"sampling":{"tools":{}}}"#, sample, r#"{"tools":[]}"#, "fine");
        check_request(plain, "roots/list", "{}", "the client does not support this request");
        check_request(r#"{"roots":{}}"#, "roots/list", "{}", "fine");
    }
}
