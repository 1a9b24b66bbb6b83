//! The log of one connection: makes exchanges of its messages. No I/O.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_host_model::{Method, MethodName, ProtocolVersion, RawJson};
use mcp_host_transport::internal::{Redactor, map_json_strings};
use serde_json::value::RawValue;

use crate::canonical;
use crate::message::{self, PROGRESS_TOKEN, ResponseContent, RpcMessage, SUBSCRIPTION, VERSION};
use crate::recording::{Exchange, ServerMessage, ServerMessageKind, is_matched_by_method};

/// The remaining size of a recording, and the number of omitted messages.
#[derive(Debug)]
pub(crate) struct SizeBudget {
    remaining: AtomicUsize,
    /// Number of messages that did not fit.
    omitted: AtomicUsize,
}

impl SizeBudget {
    pub(crate) fn new(bytes: usize) -> SizeBudget {
        SizeBudget { remaining: AtomicUsize::new(bytes), omitted: AtomicUsize::new(0) }
    }

    pub(crate) fn omitted(&self) -> usize {
        self.omitted.load(Ordering::Relaxed)
    }

    /// Reserves this number of bytes plus overhead. Returns false, and counts an omitted message, if they do not fit.
    fn try_reserve(&self, bytes: usize) -> bool {
        // The approximate memory of a message beside its bytes.
        const MESSAGE_OVERHEAD: usize = 128;
        let bytes = bytes.saturating_add(MESSAGE_OVERHEAD);
        let reserved =
            self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(bytes));
        if reserved.is_err() {
            self.omitted.fetch_add(1, Ordering::Relaxed);
        }
        reserved.is_ok()
    }
}

/// The log of one connection.
pub(crate) struct ConnectionLog {
    redactor: Arc<Redactor>,
    budget: Arc<SizeBudget>,
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) version: Option<ProtocolVersion>,
    /// The index of each exchange without a response, by the JSON text of the request id.
    open_requests: HashMap<String, usize>,
    /// The index of each exchange without a response, by the JSON text of the progress token.
    progress_tokens: HashMap<String, usize>,
}

impl ConnectionLog {
    pub(crate) fn new(redactor: Arc<Redactor>, budget: Arc<SizeBudget>) -> ConnectionLog {
        ConnectionLog {
            redactor,
            budget,
            exchanges: Vec::new(),
            version: None,
            open_requests: HashMap::new(),
            progress_tokens: HashMap::new(),
        }
    }

    /// Records a message from the client.
    pub(crate) fn record_client_frame(&mut self, frame: &[u8]) {
        for it in message::parse_frame(frame) {
            match it {
                RpcMessage::Request { id, method, params } => self.record_request(id, method, params),
                // Its responses and notifications are not recorded.
                RpcMessage::Notification { .. } | RpcMessage::Response { .. } => {}
            }
        }
    }

    /// Records a message from the server, with the request whose response stream it arrived on.
    pub(crate) fn record_server_frame(&mut self, frame: &[u8], stream_request: Option<&str>) {
        for it in message::parse_frame(frame) {
            match it {
                RpcMessage::Response { id, content } => self.record_response(id.get(), content),
                RpcMessage::Notification { method, params } => {
                    let at = self.find_exchange(&method, params, stream_request);
                    let params = self.without_connection_ids(params);
                    let kind = ServerMessageKind::Notification;
                    self.record_server_message(at, ServerMessage { kind, method, params });
                }
                RpcMessage::Request { id: _, method, params } => {
                    let at = self.find_exchange(&method, params, stream_request);
                    let params = params.map(|it| self.redact(it));
                    let kind = ServerMessageKind::Request;
                    self.record_server_message(at, ServerMessage { kind, method, params });
                }
            }
        }
    }

    /// Removes a request that was not run and will be sent again.
    pub(crate) fn remove_request(&mut self, id: &str) {
        if let Some(at) = self.open_requests.remove(id) {
            self.exchanges.remove(at);
            let shifted = self.open_requests.values_mut().chain(self.progress_tokens.values_mut());
            shifted.filter(|it| **it > at).for_each(|it| *it -= 1);
        }
    }

    /// Records an error with which a request failed without a JSON-RPC message.
    pub(crate) fn record_refusal(&mut self, id: &str, error: &mcp_host_model::RpcError) {
        if let Ok(error) = serde_json::value::to_raw_value(error) {
            self.record_response(id, Err(&error));
        }
    }

    fn record_request(&mut self, id: &RawValue, method: MethodName, raw: Option<&RawValue>) {
        if let Some(version) = message::meta_member(raw, VERSION) {
            self.version = serde_json::from_str::<String>(version.get()).ok().and_then(|it| it.parse().ok());
        }
        let recorded_params = if is_matched_by_method(&method) {
            String::new()
        } else {
            let redacted = raw.map(|it| self.redact(it));
            canonical::params(redacted.as_ref().and_then(|it| it.read().ok()))
        };
        let method = self.redactor.redact(method.as_str()).map_or(method, MethodName::from);
        if !self.budget.try_reserve(method.as_str().len() + recorded_params.len()) {
            return;
        }
        let params = if recorded_params.is_empty() { None } else { parse_json(recorded_params) };
        let at = self.exchanges.len();
        self.exchanges.push(Exchange {
            method,
            params,
            before_response: Vec::new(),
            response: None,
            after_response: Vec::new(),
        });
        self.open_requests.insert(id.get().to_owned(), at);
        if let Some(token) = message::meta_member(raw, PROGRESS_TOKEN) {
            self.progress_tokens.insert(token.get().to_owned(), at);
        }
    }

    fn record_response(&mut self, id: &str, content: ResponseContent<'_>) {
        let Some(at) = self.open_requests.remove(id) else { return };
        self.progress_tokens.retain(|_, it| *it != at);
        let (Ok(value) | Err(value)) = content;
        if self.exchanges[at].method == Method::Listen && content.is_ok() {
            // A stream ends with its connection; a replay keeps it open.
            return;
        }
        let value = self.redact(value);
        if !self.budget.try_reserve(value.as_bytes().len()) {
            // A replayed request without its response would never end.
            self.open_requests.insert(id.to_owned(), at);
            return self.remove_request(id);
        }
        let exchange = &mut self.exchanges[at];
        exchange.response = Some(if content.is_ok() { Ok(value) } else { Err(value) });
        if let (Some(Ok(result)), Some(Method::Initialize)) = (&exchange.response, exchange.method.as_known())
        {
            let result = result.read::<&RawValue>().ok();
            let version = message::param(result, "protocolVersion");
            let version = version.and_then(|it| serde_json::from_str::<String>(it.get()).ok());
            self.version = version.and_then(|it| it.parse().ok());
        }
    }

    /// Finds the exchange that a message of the server belongs to. Returns its index.
    fn find_exchange(
        &self,
        method: &MethodName,
        params: Option<&RawValue>,
        stream_request: Option<&str>,
    ) -> Option<usize> {
        let by_token =
            message::param(params, PROGRESS_TOKEN).and_then(|it| self.progress_tokens.get(it.get()));
        let subscription = message::meta_member(params, SUBSCRIPTION).map(RawValue::get);
        // An acknowledgement belongs to the listen request. A notification on the stream belongs to another
        // open request.
        let acknowledged = subscription
            .filter(|_| *method == Method::SubscriptionsAcknowledged)
            .and_then(|it| self.open_requests.get(it));
        let by_stream =
            stream_request.filter(|_| subscription.is_none()).and_then(|it| self.open_requests.get(it));
        by_token.or(acknowledged).or(by_stream).copied().or_else(|| {
            let open_calls =
                self.open_requests.values().filter(|it| self.exchanges[**it].method != Method::Listen);
            open_calls.max().copied()
        })
    }

    /// Adds a server message to the exchange at an index, or after the last response.
    fn record_server_message(&mut self, at: Option<usize>, message: ServerMessage) {
        let size =
            message.method.as_str().len() + message.params.as_ref().map_or(0, |it| it.as_bytes().len());
        if self.exchanges.is_empty() || !self.budget.try_reserve(size) {
            return;
        }
        match at {
            Some(at) => self.exchanges[at].before_response.push(message),
            None => {
                // Nothing follows the end of a stream, because a replay keeps it open.
                let last = self.exchanges.iter_mut().rfind(|it| it.method != Method::Listen);
                if let Some(last) = last {
                    last.after_response.push(message);
                }
            }
        }
    }

    /// The parameters of a notification, without the numbers of this connection.
    fn without_connection_ids(&self, params: Option<&RawValue>) -> Option<RawJson> {
        let clean = self.redact(params?);
        let raw = clean.read::<&RawValue>().ok()?;
        let mut text = None;
        if message::param(Some(raw), PROGRESS_TOKEN).is_some() {
            text = message::replace_member(raw, &[PROGRESS_TOKEN], "0");
        } else if message::meta_member(Some(raw), SUBSCRIPTION).is_some() {
            text = message::replace_member(raw, &["_meta", SUBSCRIPTION], "0");
        }
        text.and_then(parse_json).or(Some(clean))
    }

    /// Replaces the secrets in a value by `***`.
    fn redact(&self, value: &RawValue) -> RawJson {
        // The result is invalid JSON if a secret was in the middle of an escape.
        parse_json(map_json_strings(value.get(), |it| self.redactor.redact(it)))
            .unwrap_or_else(|| RawJson::from_value(&"***").expect("a string is JSON"))
    }
}

fn parse_json(text: String) -> Option<RawJson> {
    RawJson::parse(text.into()).ok()
}

#[cfg(test)]
mod tests {
    use mcp_host_model::Secret;
    use mcp_host_transport::json_secrets;

    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        let secrets = [Secret::new("hunter2"), Secret::new("12345678"), Secret::new("über-geheim")];
        let redactor = Redactor::new(secrets.iter());
        assert_eq!(map_json_strings(json, |it| redactor.redact(it)), want);
    }

    #[test]
    fn hd_sc5_strings_of_a_configuration_are_secrets() {
        let secrets = json_secrets(&Secret::new(r#"{"a":{"key":"hunter2-1"},"b":["hunter2-2",1,null]}"#));
        let mut texts: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts, ["hunter2-1", "hunter2-2"]);
        assert!(json_secrets(&Secret::new("\"hunter2\"")).is_empty());
    }

    #[test]
    fn hd_sc5_only_secrets_are_redacted() {
        check(
            r#"{"a": "x hunter2 y", "b":1.0000000000000000000001}"#,
            r#"{"a":"x *** y","b":1.0000000000000000000001}"#,
        );
        check(r#"{"hunter2":[" hunter2 ", "\u0068unter2"]}"#, r#"{"***":[" *** ","***"]}"#);
        check(r#"["über-geheim","\u00fcber-geheim","\u00e9 \"q\""]"#, r#"["***","***","\u00e9 \"q\""]"#);
        check(r#"{"pin":12345678,"n":-1.5e3}"#, r#"{"pin":0,"n":-1.5e3}"#);
        check(r#"["hun\u0007ter2","a\nb"]"#, r#"["***","a\nb"]"#);
        check(r#"["\ud800 hunter2"]"#, r#"["\ud800 ***"]"#);
        check("\"\"", "\"\"");
        check("\"\\\\\"", "\"\\\\\"");
    }
}
