//! The tracing span of a request, `serve`, with the fields that `mcp_host_runtime` exports to OpenTelemetry.
//!
//! It has neither arguments nor results. With the feature `otel`, it belongs to the trace of the request's `_meta`, and
//! the requests to servers belong to it.

use mcp_host_model::Method;
use tracing::Span;
use tracing::field::Empty;

use crate::methods::context::{MAX_NAME_CHARS, RequestContext, to_printable};

/// The `method` of methods that do not exist: the client may choose any name.
const UNKNOWN_METHOD: &str = "(unknown)";

/// Creates the span of a request.
pub(super) fn request_span(context: &RequestContext<'_>) -> Span {
    let RequestContext { client, request, .. } = context;
    let method = request.method.as_known();
    let span = tracing::info_span!(
        "serve",
        method = method.map_or(UNKNOWN_METHOD, Method::as_str),
        tool = Empty,
        prompt = Empty,
        uri = Empty,
        request_id = %to_printable(request.id.as_str().trim_matches('"'), MAX_NAME_CHARS),
        version = client.version.as_str(),
        session = client.dialog_id().as_ref().map(|id| id.as_str()),
        transport = client.principal.transport().as_str(),
        address = client.source.address.map(tracing::field::display),
        outcome = Empty,
        code = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let named = match method {
        Some(Method::CallTool) => Some(("tool", "name")),
        Some(Method::GetPrompt) => Some(("prompt", "name")),
        Some(Method::ReadResource | Method::Subscribe | Method::Unsubscribe) => Some(("uri", "uri")),
        _ => None,
    };
    if let Some((field, parameter)) = named
        && let Some(text) = request.params.text(parameter)
    {
        span.record(field, to_printable(&text, MAX_NAME_CHARS));
    }
    #[cfg(feature = "otel")]
    if let Some(trace) = &request.meta().trace {
        mcp_host_runtime::otel::set_parent(&span, trace);
    }
    span
}
