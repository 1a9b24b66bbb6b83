//! Replays a recording: takes messages of a client and returns the recorded messages of the server. Does no I/O.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, RawJson, RpcError, code};
use serde_json::value::RawValue;

use crate::canonical;
use crate::message::{self, PROGRESS_TOKEN, RpcMessage, SUBSCRIPTION};
use crate::recording::{Exchange, ServerMessage, ServerMessageKind, ServerRecording, is_matched_by_method};
use mcp_host_transport::internal::frame;

/// Maximum number of exchanges that wait for a client's response.
const MAX_WAITING: usize = 1024;

/// The replacement of a secret.
const REDACTED: &str = "***";

/// Maximum length in bytes of a request in an error message.
const MAX_SHOWN_BYTES: usize = 200;

/// Replays the recording of one server to one client.
#[derive(Debug)]
pub struct Replayer {
    recording: Arc<ServerRecording>,
    /// The indexes of the exchanges of each request, in order.
    exchanges_by_request: HashMap<RequestKey, Vec<usize>>,
    /// How often each request was received.
    counts: HashMap<RequestKey, usize>,
    /// Exchanges that wait for a client's response, by the id of the server request.
    waiting: HashMap<String, ActiveExchange>,
    /// The id of the last open stream request.
    stream: Option<String>,
    /// The number of server requests sent.
    server_request_count: u64,
}

/// A message for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayedMessage {
    /// The JSON text of the id of the client request that it belongs to; `None` if it belongs to none.
    pub request_id: Option<String>,
    /// The message.
    pub message: Bytes,
    /// Whether it is the response to that request, after which nothing follows.
    pub is_response: bool,
}

/// What identifies a request: its method and its canonical parameters.
type RequestKey = (MethodName, String);

/// An exchange in progress.
#[derive(Debug)]
struct ActiveExchange {
    /// The index of the exchange.
    at: usize,
    /// The number of messages already sent.
    sent: usize,
    /// The JSON text of the id of the client's request.
    id: String,
    /// The JSON text of the progress token of the client's request.
    token: Option<String>,
}

impl Replayer {
    /// Replays from the beginning.
    pub fn new(recording: Arc<ServerRecording>) -> Replayer {
        let mut exchanges: HashMap<RequestKey, Vec<usize>> = HashMap::new();
        for (at, it) in recording.exchanges.iter().enumerate() {
            exchanges
                .entry(request_key(&it.method, it.params.as_ref().and_then(|it| it.read().ok())))
                .or_default()
                .push(at);
        }
        Replayer {
            recording,
            exchanges_by_request: exchanges,
            counts: HashMap::new(),
            waiting: HashMap::new(),
            stream: None,
            server_request_count: 0,
        }
    }

    /// Takes a frame from the client and returns the server's messages, in order.
    pub fn receive(&mut self, frame: &[u8]) -> Vec<ReplayedMessage> {
        let mut res = Vec::new();
        for it in message::parse_frame(frame) {
            match it {
                RpcMessage::Request { id, method, params } => {
                    self.handle_request(id, &method, params, &mut res)
                }
                RpcMessage::Response { id, content: _ } => {
                    if let Some(active) = self.waiting.remove(id.get()) {
                        self.continue_exchange(active, &mut res);
                    }
                }
                RpcMessage::Notification { method, params } if method == Method::Cancelled => {
                    let id = message::param(params, "requestId").map(RawValue::get);
                    self.waiting.retain(|_, it| Some(it.id.as_str()) != id);
                    self.stream = self.stream.take().filter(|it| Some(it.as_str()) != id);
                }
                RpcMessage::Notification { .. } => {}
            }
        }
        res
    }

    /// Starts the next recorded exchange of a request.
    fn handle_request(
        &mut self,
        id: &RawValue,
        method: &MethodName,
        params: Option<&RawValue>,
        output: &mut Vec<ReplayedMessage>,
    ) {
        let id = id.get().to_owned();
        let request = request_key(method, params);
        let Some(key) = self.find_recorded(&request).cloned() else {
            return output.push(response_message(&id, self.unknown_request_result(method, &request.1)));
        };
        let exchanges = &self.exchanges_by_request[&key];
        let count = self.counts.entry(key).or_default();
        let at = exchanges[(*count).min(exchanges.len() - 1)];
        *count += 1;
        if *method == Method::Listen {
            self.stream = Some(id.clone());
        }
        let token = message::meta_member(params, PROGRESS_TOKEN).map(|it| it.get().to_owned());
        self.continue_exchange(ActiveExchange { at, sent: 0, id, token }, output);
    }

    /// Finds the key of a request in the recording: exactly, or with any value in place of a redacted secret.
    fn find_recorded(&self, request: &RequestKey) -> Option<&RequestKey> {
        let matching_redacted = || {
            let matching = self
                .exchanges_by_request
                .iter()
                .filter(|(key, _)| key.0 == request.0 && matches_recorded(&key.1, &request.1));
            matching.min_by_key(|(_, exchanges)| exchanges[0])
        };
        self.exchanges_by_request.get_key_value(request).or_else(matching_redacted).map(|(key, _)| key)
    }

    /// Continues until the client must respond, or the exchange is complete.
    fn continue_exchange(&mut self, mut active: ActiveExchange, output: &mut Vec<ReplayedMessage>) {
        let recording = Arc::clone(&self.recording);
        let exchange = &recording.exchanges[active.at];
        while let Some(message) = exchange.before_response.get(active.sent) {
            active.sent += 1;
            if message.kind == ServerMessageKind::Notification {
                output.extend(self.replayed_notification(message, Some(&active)));
                continue;
            }
            self.server_request_count += 1;
            let id = frame::json_string(&format!("replay-{}", self.server_request_count));
            output.push(ReplayedMessage {
                request_id: Some(active.id.clone()),
                message: request_message(&id, &message.method, message.params.as_ref()),
                is_response: false,
            });
            if self.waiting.len() < MAX_WAITING {
                self.waiting.insert(id, active);
            }
            return;
        }
        let result = match &exchange.response {
            Some(Ok(it)) => format!("\"result\":{}", it.as_str()),
            Some(Err(it)) => format!("\"error\":{}", it.as_str()),
            None => return,
        };
        output.push(response_message(&active.id, result));
        output.extend(exchange.after_response.iter().filter_map(|it| self.replayed_notification(it, None)));
    }

    /// A message of the server with the ids of this connection; `None` if this connection did not request it.
    fn replayed_notification(
        &self,
        ServerMessage { kind: _, method, params }: &ServerMessage,
        active: Option<&ActiveExchange>,
    ) -> Option<ReplayedMessage> {
        let raw = params.as_ref().and_then(|it| it.read::<&RawValue>().ok());
        let mut request_id = active.map(|it| it.id.clone());
        let mut text = params.as_ref().map(|it| it.as_str().to_owned());
        if let Some(raw) = raw {
            if message::param(Some(raw), PROGRESS_TOKEN).is_some() {
                text = message::replace_member(raw, &[PROGRESS_TOKEN], active?.token.as_deref()?);
            } else if message::meta_member(Some(raw), SUBSCRIPTION).is_some() {
                let stream = self.stream.clone()?;
                text = message::replace_member(raw, &["_meta", SUBSCRIPTION], &stream);
                request_id = Some(stream);
            }
        }
        let params = text.map(|it| format!(",\"params\":{it}")).unwrap_or_default();
        let message =
            format!(r#"{{"jsonrpc":"2.0","method":{}{params}}}"#, frame::json_string(method.as_str()));
        Some(ReplayedMessage { request_id, message: message.into(), is_response: false })
    }

    /// The member `error` of the response to a request that is not in the recording; `result` for a ping.
    fn unknown_request_result(&self, method: &MethodName, params: &str) -> String {
        if *method == Method::Ping {
            return "\"result\":{}".to_owned();
        }
        let same_method = self.recording.exchanges.iter().filter(|it| it.method == *method);
        let text = |it: &Exchange| canonical::params(it.params.as_ref().and_then(|it| it.read().ok()));
        let nearest = same_method.map(text).max_by_key(|it| similarity(it, params));
        let request_text = shorten(&format!("{method} {params}"));
        let request_text = request_text.trim_end();
        let (code, message) = match nearest {
            Some(it) => {
                let nearest_text = shorten(&format!("{method} {it}"));
                let message = format!(
                    "the recording of `{}` does not contain this request: {request_text}; the most similar one is: {}",
                    self.recording.server,
                    nearest_text.trim_end()
                );
                (code::INVALID_PARAMS, message)
            }
            None => {
                let methods: std::collections::BTreeSet<&str> =
                    self.recording.exchanges.iter().map(|it| it.method.as_str()).collect();
                let methods: Vec<&str> = methods.into_iter().collect();
                let message = format!(
                    "the recording of `{}` does not contain this request: {request_text}; it contains requests of \
                    these methods: {}",
                    self.recording.server,
                    shorten(&methods.join(", "))
                );
                (code::METHOD_NOT_FOUND, message)
            }
        };
        let error = RpcError::new(code, message);
        format!("\"error\":{}", RawJson::from_value(&error).expect("an error is JSON").as_str())
    }
}

/// Whether `text` equals `recorded` with any text in place of each redacted secret.
fn matches_recorded(recorded: &str, text: &str) -> bool {
    let Some((start, rest)) = recorded.split_once(REDACTED) else { return recorded == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split(REDACTED).peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    true
}

/// The similarity of two texts: the length of their common beginning and end.
fn similarity(one: &str, other: &str) -> usize {
    let start = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let end = one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count();
    start + end
}

fn request_key(method: &MethodName, params: Option<&RawValue>) -> RequestKey {
    let params = if is_matched_by_method(method) { String::new() } else { canonical::params(params) };
    (method.clone(), params)
}

/// Truncates text for an error message.
fn shorten(text: &str) -> String {
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    let cut = (0..=MAX_SHOWN_BYTES).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default();
    format!("{}\u{2026}", &text[..cut])
}

/// The response with this member `result` or `error`.
fn response_message(id: &str, result: String) -> ReplayedMessage {
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#);
    ReplayedMessage { request_id: Some(id.to_owned()), message: message.into(), is_response: true }
}

fn request_message(id: &str, method: &MethodName, params: Option<&RawJson>) -> Bytes {
    let params = params.map(|it| format!(",\"params\":{}", it.as_str())).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}{params}}}"#, frame::json_string(method.as_str()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(recorded: &str, text: &str, want: bool) {
        assert_eq!(matches_recorded(recorded, text), want, "{recorded} {text}");
    }

    #[test]
    fn redacted_secret_matches_any_text() {
        check("a***d", "abcd", true);
        check("a***d", "ad", true);
        check("a***d", "abc", false);
        check("***/x/***", "/home/x/y", true);
        check("***/x/***", "/home/y", false);
        check("a***b***c", "a1b2c", true);
        check("a***b***c", "a1c2b", false);
        check("ab***b", "ab", false);
        check("plain", "plain", true);
        check("plain", "plane", false);
    }
}
