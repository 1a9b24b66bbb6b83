//! Records a request that reaches a server when it ends or is dropped: in the counters of its client and tool, and in
//! the audit log.

use std::borrow::Cow;

use mcp_host_model::{Method, ResultKind, RpcError, ServerId};
use mcp_host_runtime::CallRuling;
use tokio::time::Instant;
use tracing::Span;

use crate::audit::record::{AuditLog, AuditRecord};
use crate::limits::rate_limits::RateLimited;
use crate::lists::definitions::CatalogTarget;
use crate::methods::context::{MAX_NAME_CHARS, RequestContext, to_printable};
use crate::metrics::call_counters::{CallStatus, EndedCall};
use crate::protocol::result_body::ResultBody;

/// The record of a request. It is written when this is dropped.
pub(super) struct CallRecord<'a> {
    context: &'a RequestContext<'a>,
    span: Span,
    start: Instant,
    status: CallStatus,
    code: Option<i64>,
    result_bytes: usize,
}

impl<'a> CallRecord<'a> {
    /// Starts the record of a request with this span.
    pub(super) fn start(context: &'a RequestContext<'a>, span: Span) -> CallRecord<'a> {
        CallRecord {
            context,
            span,
            start: Instant::now(),
            status: CallStatus::Cancelled,
            code: None,
            result_bytes: 0,
        }
    }

    /// Notes the outcome of the request.
    pub(super) fn end(mut self, result: &Result<ResultBody, RpcError>) {
        match result {
            Ok(result) => {
                let is_call = self.context.request.method == Method::CallTool;
                self.status = match result.kind {
                    ResultKind::ToolError if is_call => CallStatus::ToolError,
                    _ => CallStatus::Success,
                };
                self.result_bytes = result.len();
            }
            Err(error) => {
                self.status = match self.context.retry_after.get() {
                    Some(_) => CallStatus::Limited,
                    None => CallStatus::Error,
                };
                self.code = Some(error.code);
            }
        }
    }

    /// Writes a line of the audit log.
    fn write_audit(&self, log: &AuditLog, call: EndedCall) {
        let RequestContext { client, request, server, ruling, .. } = self.context;
        let name = || request.params.text("name").map(|name| to_printable(&name, MAX_NAME_CHARS));
        let (tool, prompt) = match request.method.as_known() {
            Some(Method::CallTool) => (name(), None),
            Some(Method::GetPrompt) => (None, name()),
            _ => (None, None),
        };
        let client_name = match &client.session {
            Some(session) => session.client_name.as_deref().map(Cow::Borrowed),
            None => request.meta().client_name().map(Cow::Owned),
        };
        let client_name = client_name.map(|name| to_printable(&name, MAX_NAME_CHARS));
        let token = client.principal.to_string();
        let dialog = client.dialog_id().map(|id| id.to_string());
        let EndedCall { status, duration, request_bytes, result_bytes } = call;
        log.write(&AuditRecord {
            client: client_name.as_deref(),
            address: client.source.address,
            token: &token,
            token_line: client.source.token_line,
            session: dialog.as_deref(),
            method: request.method.as_str(),
            server: server.get().map(ServerId::as_str),
            tool: tool.as_deref(),
            prompt: prompt.as_deref(),
            outcome: status.as_str(),
            ruling: ruling.get().map(|it| it.outcome.as_str()),
            rule: ruling.get().map(|it| &*it.rule),
            code: self.code,
            duration_ms: duration.as_micros() as f64 / 1000.0,
            request_bytes,
            result_bytes,
        });
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        self.span.record("outcome", self.status.as_str()).record("code", self.code);
        let (gateway, request) = (self.context.gateway, self.context.request);
        if !request.method.as_known().is_some_and(Method::is_forwarded) {
            return;
        }
        let call = EndedCall {
            status: self.status,
            duration: self.start.elapsed(),
            request_bytes: request.params.raw().as_bytes().len(),
            result_bytes: self.result_bytes,
        };
        gateway.call_series.count_client(&self.context.client.principal, call);
        if let Some(counters) = self.context.tool_counters.get() {
            counters.count(call);
        }
        if let Some(log) = &gateway.options.audit {
            self.write_audit(log, call);
        }
    }
}

impl RequestContext<'_> {
    /// Counts the request for its client's rate limit, if it reaches a server. Fails if the limit is reached.
    pub(super) fn admit_client(&self) -> Result<(), RpcError> {
        match self.request.method.as_known().is_some_and(Method::is_forwarded) {
            true => self.note_limit(self.gateway.rate_limiters.admit_client(&self.client.principal)),
            false => Ok(()),
        }
    }

    /// Notes the server of the request, and counts the request for the server's rate limit. Fails if the limit is
    /// reached.
    pub(super) fn admit_server(&self, server: &ServerId) -> Result<(), RpcError> {
        self.note_server(server);
        self.note_limit(self.gateway.rate_limiters.admit_server(server))
    }

    /// Notes the tool that is called, and counts the request for the rate limit of its server.
    pub(super) fn admit_tool(&self, tool: &CatalogTarget) -> Result<(), RpcError> {
        let _ = self.tool_counters.set(self.gateway.call_series.tool_counters(tool));
        self.admit_server(&tool.server)
    }

    /// Notes when the request can be tried again, if a rate limit refused it.
    fn note_limit(&self, admitted: Result<(), RateLimited>) -> Result<(), RpcError> {
        admitted.map_err(|RateLimited { error, retry_after }| {
            let _ = self.retry_after.set(retry_after);
            error
        })
    }

    /// Notes which rule decided about the call, for its record.
    pub(super) fn note_ruling(&self, ruling: Option<&CallRuling>) {
        if self.gateway.options.audit.is_some()
            && let Some(ruling) = ruling
        {
            let _ = self.ruling.set(ruling.clone());
        }
    }

    /// Notes the server of the request for its record.
    pub(super) fn note_server(&self, server: &ServerId) {
        if self.gateway.options.audit.is_some() {
            // It stays the first one.
            let _ = self.server.set(server.clone());
        }
    }
}
