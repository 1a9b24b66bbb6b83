//! Passes server requests (sampling, elicitation, roots) of a running call to its client.
//!
//! A client with a session receives the request during the call. A client without a session cannot receive requests:
//! its call returns that it needs input ([`crate::session::pending_input`]).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_model::{RawJson, RpcError, code};
use mcp_transport::{RawRequestHandler, RawServerRequest};
use tokio::sync::{mpsc, oneshot};

use crate::protocol::json_splice;
use crate::session::outbound_queue::MessageSender;
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
        let members = json_splice::members(capabilities);
        let declared = |key: &str| members.iter().find(|(name, it)| name == key && it.is_object());
        let within = |of: &RawJson, key: &str| {
            json_splice::members(of).iter().any(|(name, it)| name == key && it.is_object())
        };
        let sampling = declared("sampling").map(|(_, it)| match within(it, "tools") {
            true => SamplingSupport::WithTools,
            false => SamplingSupport::Plain,
        });
        let elicitation =
            declared("elicitation").map(|(_, it)| match (within(it, "form"), within(it, "url")) {
                (true, true) => ElicitationModes::Both,
                (false, true) => ElicitationModes::Url,
                // Clients of protocol versions without modes support the form mode.
                (true | false, false) => ElicitationModes::Form,
            });
        SupportedRequests { sampling, elicitation, roots: declared("roots").is_some() }
    }

    fn supports(self, method: &str) -> bool {
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
        let Some(members) = json_splice::ordered_members(params) else {
            return refused("`params` must be a JSON object");
        };
        let all = |key: &'static str| members.iter().filter(move |(name, _)| name == key).map(|(_, it)| it);
        match method {
            "elicitation/create" => {
                // A repeated member is ambiguous.
                if all("mode").nth(1).is_some() {
                    return refused("`mode` is repeated");
                }
                let mode = match all("mode").next() {
                    None => Some("form".into()),
                    Some(it) => it.to_text(),
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
                    refused("the client does not support sampling with tools")
                } else {
                    Ok(())
                }
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

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        let RawServerRequest { method, params } = question;
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

/// A server request that waits for the client to repeat its call with the answer.
#[derive(Debug)]
pub(crate) struct InputRequest {
    pub(crate) question: RawServerRequest,
    pub(crate) answer: oneshot::Sender<RawJson>,
}

/// Returns server requests as the result of the call.
pub(crate) struct InputRequestHandler {
    pub(crate) supported: SupportedRequests,
    pub(crate) requests: mpsc::Sender<InputRequest>,
    pub(crate) limit: Duration,
}

#[async_trait]
impl RawRequestHandler for InputRequestHandler {
    fn handles(&self, method: &str) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        self.supported.check_params(&question.method, &question.params)?;
        let (answer, taken) = oneshot::channel();
        let failed = |message: &str| RpcError::new(code::INTERNAL_ERROR, message);
        let laid = self.requests.try_send(InputRequest { question, answer });
        laid.map_err(|_| failed("too many requests to the client are open"))?;
        match tokio::time::timeout(self.limit, taken).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(failed("the client did not repeat its call with an answer")),
            Err(_) => Err(failed("the client did not repeat its call with an answer in time")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(capabilities: &str, want: &[&str]) {
        let supported = SupportedRequests::of(&RawJson::parse(capabilities.to_owned().into()).unwrap());
        let methods = ["sampling/createMessage", "elicitation/create", "roots/list", "tasks/get"];
        let got: Vec<&str> = methods.into_iter().filter(|it| supported.supports(it)).collect();
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
    fn check_admitted(capabilities: &str, method: &str, params: &str, want: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let got = SupportedRequests::of(&json(capabilities)).check_params(method, &json(params));
        assert_eq!(got.map_or_else(|it| it.message, |()| "fine".to_owned()), want, "{capabilities} {params}");
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
            check_admitted(capabilities, ask, r#"{"message":"?"}"#, form);
            check_admitted(capabilities, ask, r#"{"mode":"form"}"#, form);
            check_admitted(capabilities, ask, r#"{"mode":"url","url":"https://a"}"#, url);
            check_admitted(capabilities, ask, r#"{"mode":"later"}"#, no_mode);
            check_admitted(capabilities, ask, r#"{"mode":7}"#, no_mode);
            check_admitted(capabilities, ask, r#"{"mode":"form","\u006dode":"url"}"#, "`mode` is repeated");
        }
        let plain = r#"{"sampling":{}}"#;
        let no_tools = "the client does not support sampling with tools";
        check_admitted(plain, sample, r#"{"messages":[]}"#, "fine");
        check_admitted(plain, sample, r#"{"tools":[]}"#, no_tools);
        check_admitted(plain, sample, r#"{"toolChoice":{}}"#, no_tools);
        check_admitted(plain, sample, "[1]", "`params` must be a JSON object");
        check_admitted(r#"{"sampling":{"tools":{}}}"#, sample, r#"{"tools":[]}"#, "fine");
        check_admitted(plain, "roots/list", "{}", "the client does not support this request");
        check_admitted(r#"{"roots":{}}"#, "roots/list", "{}", "fine");
    }
}
