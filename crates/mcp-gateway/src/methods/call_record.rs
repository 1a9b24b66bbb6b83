//! What is recorded of a request when it ends or is dropped: counters, and a line of the audit log.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use mcp_model::{RawJson, RpcError, ServerId};
use tokio::time::Instant;

use super::{RequestContext, printable};
use crate::audit::record::{AuditLog, AuditRecord};
use crate::limits::counters::Outcome;
use crate::protocol::json_splice;

/// Maximum length of a name that a client gives, in characters.
const MAX_NAME_CHARS: usize = 128;

/// Records a request when it is dropped.
pub(super) struct CallRecord<'a> {
    context: &'a RequestContext<'a>,
    start: Instant,
    outcome: Outcome,
    /// Whether the result says that the tool failed.
    is_tool_error: bool,
    code: Option<i64>,
    result_bytes: usize,
}

impl<'a> CallRecord<'a> {
    pub(super) fn start(context: &'a RequestContext<'a>) -> CallRecord<'a> {
        CallRecord {
            context,
            start: Instant::now(),
            outcome: Outcome::Cancelled,
            is_tool_error: false,
            code: None,
            result_bytes: 0,
        }
    }

    /// Notes how the request ended.
    pub(super) fn end(mut self, result: &Result<Bytes, RpcError>) {
        match result {
            Ok(result) => {
                self.outcome = Outcome::Success;
                self.result_bytes = result.len();
                let is_call = self.context.request.method == "tools/call";
                // Only the audit log needs it.
                self.is_tool_error =
                    is_call && self.context.gateway.options.audit.is_some() && is_tool_error(result);
            }
            Err(error) => {
                self.outcome = Outcome::Error;
                self.code = Some(error.code);
            }
        }
    }

    fn write_audit(&self, log: &AuditLog, took: Duration) {
        let RequestContext { caller, request, server, .. } = self.context;
        let name = || request.params.text("name").map(|name| printable(&name, MAX_NAME_CHARS));
        let (tool, prompt) = match &*request.method {
            "tools/call" => (name(), None),
            "prompts/get" => (None, name()),
            _ => (None, None),
        };
        let client = match &caller.session {
            Some(session) => session.client_name.as_deref().map(Cow::Borrowed),
            None => request.meta.client_name().map(Cow::Owned),
        };
        let client = client.map(|name| printable(&name, MAX_NAME_CHARS));
        let token = caller.principal.to_string();
        let dialog = caller.dialog_id().map(|id| id.to_string());
        log.write(&AuditRecord {
            client: client.as_deref(),
            token: &token,
            session: dialog.as_deref(),
            method: &request.method,
            server: server.get().map(ServerId::as_str),
            tool: tool.as_deref(),
            prompt: prompt.as_deref(),
            outcome: if self.is_tool_error { "tool_error" } else { self.outcome.as_str() },
            code: self.code,
            duration_ms: took.as_micros() as f64 / 1000.0,
            request_bytes: request.params.raw().as_bytes().len(),
            result_bytes: self.result_bytes,
        });
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        let (gateway, request) = (self.context.gateway, self.context.request);
        let took = self.start.elapsed();
        gateway.counters.request_ended(&request.method, self.outcome, took);
        if let Some(log) = gateway.options.audit.as_ref().filter(|_| is_audited(&request.method)) {
            self.write_audit(log, took);
        }
    }
}

impl RequestContext<'_> {
    /// Notes the server of the request for its record.
    pub(super) fn note_server(&self, server: &ServerId) {
        if self.gateway.options.audit.is_some() {
            // It stays the first one.
            let _ = self.server.set(server.clone());
        }
    }
}

/// Whether a method reaches a server.
fn is_audited(method: &str) -> bool {
    matches!(
        method,
        "tools/call"
            | "prompts/get"
            | "resources/read"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "completion/complete"
    ) || method.starts_with("tasks/")
}

/// Whether the result has `"isError": true`.
fn is_tool_error(result: &Bytes) -> bool {
    // Fast path: most results do not contain the name.
    if memchr::memmem::find(result, b"isError").is_none() {
        return false;
    }
    let result = RawJson::parse(result.clone());
    result.is_ok_and(|result| {
        json_splice::member(&result, "isError").is_some_and(|value| value.as_str() == "true")
    })
}
