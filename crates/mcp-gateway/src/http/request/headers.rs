//! Reads the headers of a request, and checks those that the stateless protocol revisions (2026-07-28 and
//! later) require.
//!
//! In these revisions some headers repeat values of the body, so that a proxy can route by them. A request whose
//! headers differ from its body is refused, because a proxy may have routed or admitted it by false values.

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::prelude::{BASE64_STANDARD, Engine};
use http::header::{ACCEPT, AsHeaderName, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use mcp_host_model::{HeaderArgument, Method, RawJson, RpcError, code};
use memchr::memmem::{self, Finder};
use serde_json::Value;

use crate::http::request::header_names::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, only_value};
use crate::protocol::frame::ClientRequest;

/// The form of response that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum AcceptedFormat {
    /// A JSON document or an event stream.
    Events,
    /// A JSON document.
    Json,
}

/// Reads the `Accept` header.
pub fn accepted_format(headers: &HeaderMap) -> AcceptedFormat {
    static EVENTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("text/event-stream"));
    let contains = |value: &[u8], kind: &str| memmem::find(value, kind.as_bytes()).is_some();
    let takes_events = |value: &HeaderValue| {
        let value = value.as_bytes();
        EVENTS.find(value).is_some() || contains(value, "text/*") || contains(value, "*/*")
    };
    if headers.get_all(ACCEPT).iter().any(takes_events) {
        AcceptedFormat::Events
    } else {
        AcceptedFormat::Json
    }
}

/// Whether `Content-Type` is JSON.
pub fn has_json_body(headers: &HeaderMap) -> bool {
    const JSON: &str = "application/json";
    let Ok(Some(content_type)) = only_value(headers, &CONTENT_TYPE) else { return false };
    content_type == JSON
        || content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

/// Checks the headers that every modern request must have: protocol version, method, and the name of a tool, prompt or
/// resource.
pub fn check_required_headers(headers: &HeaderMap, request: &ClientRequest) -> Result<(), RpcError> {
    let version = request.meta().version.as_deref().unwrap_or_default();
    check_header(headers, &MCP_PROTOCOL_VERSION, "MCP-Protocol-Version", version)?;
    check_header(headers, &MCP_METHOD, "Mcp-Method", request.method.as_str())?;
    let key = request.method.as_known().and_then(Method::name_header_param);
    let Some(key) = key else { return Ok(()) };
    // The handler of the method reports a missing parameter.
    let Some(name) = request.params.text(key) else { return Ok(()) };
    check_header(headers, &MCP_NAME, "Mcp-Name", &name)
}

/// Checks that a header exists once, with this value.
fn check_header(
    headers: &HeaderMap,
    name: impl AsHeaderName,
    label: &str,
    expected: &str,
) -> Result<(), RpcError> {
    let mismatch = |what: &str| RpcError::new(code::HEADER_MISMATCH, format!("the header `{label}` {what}"));
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Err(mismatch("is missing")) };
    if values.next().is_some() {
        return Err(mismatch("is repeated"));
    }
    if decode_value(value.as_bytes()).is_some_and(|value| value == expected.as_bytes()) {
        Ok(())
    } else {
        Err(mismatch("differs from the body"))
    }
}

/// Decodes a header value: text that a header cannot hold is sent as `=?base64?…?=`.
fn decode_value(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    match value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?=")) {
        Some(encoded) => BASE64_STANDARD.decode(encoded).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

/// Checks the `Mcp-Param-*` headers, each of which must repeat an argument.
pub fn check_argument_headers(
    headers: &HeaderMap,
    repeated: &[HeaderArgument],
    arguments: Option<&RawJson>,
) -> Result<(), RpcError> {
    if repeated.is_empty() {
        return Ok(());
    }
    let arguments = arguments.map(RawJson::read::<Value>).transpose().map_err(|error| {
        RpcError::new(code::INVALID_PARAMS, format!("the arguments cannot be read: {error}"))
    })?;
    let arguments = arguments.unwrap_or_default();
    for argument in repeated {
        let header = argument.header();
        match argument.text(&arguments) {
            Some(value) => check_header(headers, header, header, &value)?,
            None if headers.contains_key(header) => {
                let message = format!("the header `{header}` repeats an argument that is missing");
                return Err(RpcError::new(code::HEADER_MISMATCH, message));
            }
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    use crate::protocol::json_splice;
    use crate::protocol::params::MessageParams;

    /// Headers from `name=value; name=value`.
    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in text.split(';').filter_map(|pair| pair.trim().split_once('=')) {
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[track_caller]
    fn check(header_list: &str, params: &str, expected: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let params = json_splice::with_defaults(&json(params), &[("_meta", meta)]);
        let params = MessageParams::parse(RawJson::parse(params).unwrap()).unwrap();
        let request = ClientRequest::new(json("1"), "tools/call".into(), params);
        let result = check_required_headers(&headers(header_list), &request);
        assert_eq!(result.map_or_else(|error| error.message, |()| "fine".to_owned()), expected);
    }

    #[test]
    fn headers_must_match_the_body() {
        let both = "mcp-protocol-version=2026-07-28; mcp-method=tools/call";
        check("", r#"{"name":"x"}"#, "the header `MCP-Protocol-Version` is missing");
        check(
            "mcp-protocol-version=2025-11-25",
            "{}",
            "the header `MCP-Protocol-Version` differs from the body",
        );
        check("mcp-protocol-version=2026-07-28", "{}", "the header `Mcp-Method` is missing");
        check(both, "{}", "fine");
        check(both, r#"{"name":"x"}"#, "the header `Mcp-Name` is missing");
        check(
            &format!("{both}; mcp-name=y"),
            r#"{"name":"x"}"#,
            "the header `Mcp-Name` differs from the body",
        );
        check(&format!("{both}; mcp-name=x"), r#"{"name":"x"}"#, "fine");
        check(
            &format!("{both}; mcp-name=x; mcp-name=x"),
            r#"{"name":"x"}"#,
            "the header `Mcp-Name` is repeated",
        );
        check(&format!("{both}; mcp-name==?base64?w6k=?="), r#"{"name":"é"}"#, "fine");
    }

    #[track_caller]
    fn check_param_headers(header_list: &str, arguments: &str, expected: &str) {
        let inner = r#"{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}"#;
        let schema = format!(
            r#"{{"properties":{{"region":{{"type":"string","x-mcp-header":"Region"}},"in":{inner}}}}}"#
        );
        let repeated = HeaderArgument::all_in(&RawJson::parse(schema.into()).unwrap()).unwrap();
        let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
        let result = check_argument_headers(&headers(header_list), &repeated, Some(&arguments));
        assert_eq!(result.map_or_else(|error| error.message, |()| "fine".to_owned()), expected);
    }

    #[test]
    fn marked_arguments_must_be_repeated_in_headers() {
        check_param_headers("", "{}", "fine");
        check_param_headers("", r#"{"region":null}"#, "fine");
        check_param_headers(
            "mcp-param-region=eu; mcp-param-n=7",
            r#"{"region":"eu","in":{"n":7.0}}"#,
            "fine",
        );
        check_param_headers("", r#"{"region":"eu"}"#, "the header `Mcp-Param-Region` is missing");
        check_param_headers(
            "mcp-param-n=8",
            r#"{"in":{"n":7}}"#,
            "the header `Mcp-Param-N` differs from the body",
        );
        check_param_headers(
            "mcp-param-n=8",
            r#"{"n":8}"#,
            "the header `Mcp-Param-N` repeats an argument that is missing",
        );
    }
}
