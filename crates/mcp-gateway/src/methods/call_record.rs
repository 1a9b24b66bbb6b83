//! What is recorded of a request that reaches a server, when it ends or is dropped: counters of its client
//! and tool, and a line of the audit log.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use mcp_host_model::{Method, ResultKind, RpcError, ServerId};
use tokio::time::Instant;

use crate::audit::record::{AuditLog, AuditRecord};
use crate::lists::definitions::Target;
use crate::methods::context::{RequestContext, printable};
use crate::metrics::call_counters::{CallStatus, EndedCall};
use crate::protocol::result_body::HandledResult;

/// Maximum length of a name that a client gives, in characters.
const MAX_NAME_CHARS: usize = 128;

/// Records a request when it is dropped.
pub(super) struct CallRecord<'a> {
    context: &'a RequestContext<'a>,
    start: Instant,
    outcome: CallStatus,
    code: Option<i64>,
    result_bytes: usize,
}

impl<'a> CallRecord<'a> {
    pub(super) fn start(context: &'a RequestContext<'a>) -> CallRecord<'a> {
        CallRecord {
            context,
            start: Instant::now(),
            outcome: CallStatus::Cancelled,
            code: None,
            result_bytes: 0,
        }
    }

    /// Notes how the request ended.
    pub(super) fn end(mut self, result: &HandledResult) {
        match result {
            Ok(result) => {
                let is_call = self.context.request.method == Method::CallTool;
                self.outcome = match result.kind {
                    ResultKind::ToolError if is_call => CallStatus::ToolError,
                    _ => CallStatus::Success,
                };
                self.result_bytes = result.len();
            }
            Err(error) => {
                self.outcome = match self.context.is_limited.load(Ordering::Relaxed) {
                    true => CallStatus::Limited,
                    false => CallStatus::Error,
                };
                self.code = Some(error.code);
            }
        }
    }

    fn write_audit(&self, log: &AuditLog, call: EndedCall) {
        let RequestContext { caller, request, server, .. } = self.context;
        let name = || request.params.text("name").map(|name| printable(&name, MAX_NAME_CHARS));
        let (tool, prompt) = match request.method.as_known() {
            Some(Method::CallTool) => (name(), None),
            Some(Method::GetPrompt) => (None, name()),
            _ => (None, None),
        };
        let client = match &caller.session {
            Some(session) => session.client_name.as_deref().map(Cow::Borrowed),
            None => request.meta().client_name().map(Cow::Owned),
        };
        let client = client.map(|name| printable(&name, MAX_NAME_CHARS));
        let token = caller.principal.to_string();
        let dialog = caller.dialog_id().map(|id| id.to_string());
        let EndedCall { outcome, took, request_bytes, result_bytes } = call;
        log.write(&AuditRecord {
            client: client.as_deref(),
            token: &token,
            session: dialog.as_deref(),
            method: request.method.as_str(),
            server: server.get().map(ServerId::as_str),
            tool: tool.as_deref(),
            prompt: prompt.as_deref(),
            outcome: outcome.as_str(),
            code: self.code,
            duration_ms: took.as_micros() as f64 / 1000.0,
            request_bytes,
            result_bytes,
        });
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        let (gateway, request) = (self.context.gateway, self.context.request);
        if !request.method.as_known().is_some_and(Method::is_forwarded) {
            return;
        }
        let call = EndedCall {
            outcome: self.outcome,
            took: self.start.elapsed(),
            request_bytes: request.params.raw().as_bytes().len(),
            result_bytes: self.result_bytes,
        };
        gateway.calls.count_client(&self.context.caller.principal, call);
        if let Some(counters) = self.context.tool_counters.get() {
            counters.count(call);
        }
        if let Some(log) = &gateway.options.audit {
            self.write_audit(log, call);
        }
    }
}

impl RequestContext<'_> {
    /// Counts the request for its client's rate limit, if it reaches a server.
    pub(super) fn admit_client(&self) -> Result<(), RpcError> {
        match self.request.method.as_known().is_some_and(Method::is_forwarded) {
            true => self.note_limit(self.gateway.rates.admit_client(&self.caller.principal)),
            false => Ok(()),
        }
    }

    /// Notes the server of the request, and counts the request for the server's rate limit.
    pub(super) fn admit_server(&self, server: &ServerId) -> Result<(), RpcError> {
        self.note_server(server);
        self.note_limit(self.gateway.rates.admit_server(server))
    }

    /// Notes the tool that is called, and counts the request for the rate limit of its server.
    pub(super) fn admit_tool(&self, tool: &Target) -> Result<(), RpcError> {
        let _ = self.tool_counters.set(self.gateway.calls.of_tool(tool));
        self.admit_server(&tool.server)
    }

    fn note_limit(&self, admitted: Result<(), RpcError>) -> Result<(), RpcError> {
        admitted.inspect_err(|_| self.is_limited.store(true, Ordering::Relaxed))
    }

    /// Notes the server of the request for its record.
    pub(super) fn note_server(&self, server: &ServerId) {
        if self.gateway.options.audit.is_some() {
            // It stays the first one.
            let _ = self.server.set(server.clone());
        }
    }
}
