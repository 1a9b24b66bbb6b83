//! The names of spans in OpenTelemetry's convention for MCP, which is still in development. Nothing else in the
//! workspace knows them: spans have plain fields, and get these names when they are exported.
//!
//! | field of a span | attribute |
//! |---|---|
//! | `method` | `mcp.method.name` |
//! | `tool`, of `tools/call` | `gen_ai.tool.name`, and `gen_ai.operation.name` = `execute_tool` |
//! | `prompt` | `gen_ai.prompt.name` |
//! | `uri` | `mcp.resource.uri` |
//! | `request_id` | `jsonrpc.request.id` |
//! | `version` | `mcp.protocol.version` |
//! | `session` | `mcp.session.id` |
//! | `transport` | `network.transport` and `network.protocol.name` |
//! | `address`, `port` | `server.address`, `server.port` in a client's span, `client.address`, `client.port` in a server's |
//! | `code` | `rpc.response.status_code` |
//! | `outcome`, unless success | `error.type`: `tool_error`, else the code, else the error kind |
//! | `arguments`, `result` | `gen_ai.tool.call.arguments`, `gen_ai.tool.call.result` |
//!
//! Every other field gets the prefix `mcp_host.`. A session with a server has no `mcp.session.id`, because the server's
//! id of a session is a credential.

use std::sync::Arc;

use mcp_host_model::{ErrorKind, Method};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;

use crate::telemetry::metrics::SUCCESS;

/// The span of a tool call.
const CALL: &str = "call";
/// The span of a request for a list.
const LIST: &str = "list";
/// The span of another request to a server.
const REQUEST: &str = "request";
/// The span of a request that a gateway handles.
const SERVE: &str = "serve";

/// The attribute with the kind of the error.
const ERROR_TYPE: &str = "error.type";

/// Returns whether a span is a request of MCP, and who sent it: the kind is that of the convention.
pub(super) fn operation_kind(span: &str) -> Option<SpanKind> {
    match span {
        CALL | REQUEST | LIST => Some(SpanKind::Client),
        SERVE => Some(SpanKind::Server),
        _ => None,
    }
}

/// Converts the fields of a span of this kind to the attributes of the convention.
pub(super) fn to_attributes(span: &str, kind: &SpanKind, fields: Vec<KeyValue>) -> Vec<KeyValue> {
    let mut attributes = Vec::with_capacity(fields.len() + 4);
    if span == CALL {
        attributes.push(KeyValue::new("mcp.method.name", Method::CallTool.as_str()));
    }
    let is_server = *kind == SpanKind::Server;
    let (mut outcome, mut code) = (None, None);
    for KeyValue { key, value, .. } in fields {
        let name = match key.as_str() {
            "method" => "mcp.method.name",
            "tool" => {
                attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                "gen_ai.tool.name"
            }
            "prompt" => "gen_ai.prompt.name",
            "uri" => "mcp.resource.uri",
            "request_id" => "jsonrpc.request.id",
            "version" => "mcp.protocol.version",
            "session" => "mcp.session.id",
            "transport" => {
                let (transport, protocol) = network_names(&value.as_str());
                attributes.extend(protocol.map(|name| KeyValue::new("network.protocol.name", name)));
                attributes.push(KeyValue::new("network.transport", transport));
                continue;
            }
            "address" if is_server => "client.address",
            "address" => "server.address",
            "port" if is_server => "client.port",
            "port" => "server.port",
            "code" => {
                code = Some(value.as_str().into_owned());
                continue;
            }
            "arguments" => "gen_ai.tool.call.arguments",
            "result" => "gen_ai.tool.call.result",
            // A span has its duration.
            "duration" => continue,
            other => {
                if other == "outcome" {
                    outcome = Some(value.as_str().into_owned());
                }
                attributes.push(KeyValue::new(format!("mcp_host.{other}"), value));
                continue;
            }
        };
        attributes.push(KeyValue::new(name, value));
    }
    if let Some(code) = &code {
        attributes.push(KeyValue::new("rpc.response.status_code", code.clone()));
    }
    if let Some(outcome) = outcome.filter(|outcome| outcome != SUCCESS) {
        attributes.push(KeyValue::new(ERROR_TYPE, error_type(outcome, code)));
    }
    attributes
}

/// Returns `error.type` of an operation with this outcome, which is no success, and this JSON-RPC error code.
fn error_type(outcome: String, code: Option<String>) -> String {
    match outcome == ErrorKind::Tool.as_str() {
        true => "tool_error".to_owned(),
        false => code.unwrap_or(outcome),
    }
}

/// Returns `network.transport` and `network.protocol.name` of one of our transports.
fn network_names(transport: &str) -> (&'static str, Option<&'static str>) {
    match transport {
        "stdio" => ("pipe", None),
        "websocket" => ("tcp", Some("websocket")),
        _ => ("tcp", Some("http")),
    }
}

/// Returns the name of an operation's span: the method, and the tool or prompt.
fn span_name(attributes: &[KeyValue]) -> Option<String> {
    let find = |name: &str| {
        let attribute = attributes.iter().find(|attribute| attribute.key.as_str() == name);
        attribute.map(|attribute| attribute.value.as_str())
    };
    let method = find("mcp.method.name")?;
    match find("gen_ai.tool.name").or_else(|| find("gen_ai.prompt.name")) {
        Some(item) => Some(format!("{method} {item}")),
        None => Some(method.into_owned()),
    }
}

/// The error of the last batch; `None` if it was sent. The SDK does not report it.
pub(super) type LastError = Arc<Mutex<Option<String>>>;

/// Gives exported spans the names of the convention.
#[derive(Debug)]
pub(super) struct ConventionExporter<E> {
    pub(super) exporter: E,
    pub(super) last_error: LastError,
}

impl<E: SpanExporter> SpanExporter for ConventionExporter<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(rename);
        let result = self.exporter.export(batch).await;
        let error = result.as_ref().err().map(ToString::to_string);
        let previous = std::mem::replace(&mut *self.last_error.lock(), error.clone());
        if let (None, Some(error)) = (previous, error) {
            tracing::error!(
                error,
                "traces cannot be sent to the OpenTelemetry collector; further errors are not logged"
            );
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: std::time::Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Gives a span the names of the convention.
fn rename(span: &mut SpanData) {
    let operation = operation_kind(&span.name);
    let kind = operation.clone().unwrap_or(SpanKind::Internal);
    span.attributes = to_attributes(&span.name, &kind, std::mem::take(&mut span.attributes));
    span.span_kind = kind;
    if operation.is_some()
        && let Some(name) = span_name(&span.attributes)
    {
        span.name = name.into();
    }
    if span.attributes.iter().any(|attribute| attribute.key.as_str() == ERROR_TYPE) {
        span.status = Status::error("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(span: &str, fields: &[(&'static str, &'static str)], want: &str) {
        let kind = operation_kind(span).unwrap_or(SpanKind::Internal);
        let fields = fields.iter().map(|&(key, value)| KeyValue::new(key, value)).collect();
        let attributes = to_attributes(span, &kind, fields);
        let name = span_name(&attributes).unwrap_or_default();
        let mut lines: Vec<String> =
            attributes.iter().map(|it| format!("{}={}", it.key, it.value.as_str())).collect();
        lines.sort();
        assert_eq!(format!("{name}: {}", lines.join(" ")), want);
    }

    #[test]
    fn operations_have_the_names_of_the_convention() {
        check(
            CALL,
            &[("server", "s"), ("tool", "echo"), ("transport", "stdio"), ("outcome", "success")],
            "tools/call echo: gen_ai.operation.name=execute_tool gen_ai.tool.name=echo mcp.method.name=tools/call \
             mcp_host.outcome=success mcp_host.server=s network.transport=pipe",
        );
        check(
            REQUEST,
            &[
                ("method", "prompts/get"),
                ("prompt", "p"),
                ("address", "h"),
                ("port", "1"),
                ("transport", "http"),
            ],
            "prompts/get p: gen_ai.prompt.name=p mcp.method.name=prompts/get network.protocol.name=http \
             network.transport=tcp server.address=h server.port=1",
        );
        check(
            SERVE,
            &[("method", "resources/read"), ("uri", "a:b"), ("address", "::1"), ("session", "d")],
            "resources/read: client.address=::1 mcp.method.name=resources/read mcp.resource.uri=a:b mcp.session.id=d",
        );
        check("connect", &[("duration", "1"), ("era", "legacy")], ": mcp_host.era=legacy");
    }

    #[test]
    fn error_type_is_the_most_precise_known() {
        let error = |outcome: &str, code: Option<&str>| error_type(outcome.into(), code.map(str::to_owned));
        assert_eq!(error("MCPToolError", None), "tool_error");
        assert_eq!(error("MCPProtocolError", Some("-32602")), "-32602");
        assert_eq!(error("cancelled", None), "cancelled");
        check(
            LIST,
            &[("method", "tools/list"), ("outcome", "MCPProtocolError"), ("code", "-32601")],
            "tools/list: error.type=-32601 mcp.method.name=tools/list mcp_host.outcome=MCPProtocolError \
             rpc.response.status_code=-32601",
        );
    }
}
