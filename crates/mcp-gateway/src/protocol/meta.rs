//! The `_meta` of a request: protocol version, client capabilities, progress token, log level and dialog.
//!
//! A member of the wrong type counts as missing, except for those that the modern era requires.

use std::borrow::Cow;

use bytestring::ByteString;
use mcp_host_model::internal::{JsonCursor, JsonSlice};
use mcp_host_model::{ProtocolVersion, RawJson, RpcError, TraceContext, code};
use mcp_host_transport::ForwardedMeta;

use crate::protocol::json_splice;

/// The member in which a client without a session names its dialog.
pub const DIALOG_KEY: &str = "mcp-host/dialog";

/// The members of `_meta` with a W3C trace context.
const TRACE_PARENT: &str = "traceparent";
const TRACE_STATE: &str = "tracestate";

/// The header in which a client without a session names its dialog.
pub const DIALOG_HEADER: &str = "Mcp-Host-Dialog";

/// Maximum size of a client's capabilities in bytes. It is limited because they are stored. Larger ones count as
/// none.
pub(crate) const MAX_CAPABILITY_BYTES: usize = 64 * 1024;

/// Maximum size of a progress token in bytes, because each progress notification repeats it.
const MAX_PROGRESS_TOKEN_BYTES: usize = 256;

/// Maximum size of a client's name in bytes, because it is stored. A longer one counts as none.
const MAX_CLIENT_NAME_BYTES: usize = 1024;

/// The `_meta` of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestMeta {
    /// The token for progress notifications: a JSON string or number.
    pub(crate) progress_token: Option<RawJson>,
    /// `io.modelcontextprotocol/protocolVersion`, unparsed.
    pub version: Option<ByteString>,
    /// `io.modelcontextprotocol/clientCapabilities`, an object.
    pub(crate) capabilities: Option<RawJson>,
    /// `io.modelcontextprotocol/clientInfo`.
    pub(crate) client_info: Option<RawJson>,
    /// [`DIALOG_KEY`].
    pub(crate) dialog: Option<String>,
    /// `traceparent` and `tracestate`.
    pub(crate) trace: Option<TraceContext>,
    /// What is forwarded to servers: without [`DIALOG_KEY`], and without the members that concern only the client's
    /// connection.
    pub forwarded: ForwardedMeta,
}

/// The members of `_meta` that the gateway reads.
#[derive(Default)]
struct MetaMembers<'a> {
    progress_token: Option<JsonSlice<'a>>,
    version: Option<JsonSlice<'a>>,
    capabilities: Option<JsonSlice<'a>>,
    client_info: Option<JsonSlice<'a>>,
    log_level: Option<JsonSlice<'a>>,
    dialog: Option<JsonSlice<'a>>,
    traceparent: Option<JsonSlice<'a>>,
    tracestate: Option<JsonSlice<'a>>,
    /// Whether one of these members is repeated, so that it is ambiguous.
    has_repeated: bool,
    forwarded: ForwardedMeta,
}

impl<'a> MetaMembers<'a> {
    /// Adds a member. `whole` has its text.
    fn add(&mut self, name: &str, value: JsonSlice<'a>, whole: &ByteString) {
        // The trace is forwarded by itself, as that of the request to the server.
        if ![DIALOG_KEY, TRACE_PARENT, TRACE_STATE].contains(&name) {
            self.forwarded.add(name, &RawJson::from_slice(whole, value));
        }
        let member = match name {
            "progressToken" => &mut self.progress_token,
            "io.modelcontextprotocol/protocolVersion" => &mut self.version,
            "io.modelcontextprotocol/clientCapabilities" => &mut self.capabilities,
            "io.modelcontextprotocol/clientInfo" => &mut self.client_info,
            "io.modelcontextprotocol/logLevel" => &mut self.log_level,
            DIALOG_KEY => &mut self.dialog,
            TRACE_PARENT => &mut self.traceparent,
            TRACE_STATE => &mut self.tracestate,
            _ => return,
        };
        self.has_repeated |= member.replace(value).is_some();
    }
}

/// The name in a `clientInfo`, if it is not too long.
pub(crate) fn client_name(info: &RawJson) -> Option<String> {
    let name =
        Some(info).filter(|info| info.is_object()).and_then(|info| json_splice::member(info, "name"))?;
    let name = name.to_text()?;
    (name.len() <= MAX_CLIENT_NAME_BYTES).then(|| name.into_owned())
}

impl RequestMeta {
    /// Reads the value at the position of `cursor` in `text`. A value that cannot be read counts as missing.
    pub(crate) fn read_at<'a>(
        cursor: &mut JsonCursor<'a>,
        text: &ByteString,
    ) -> serde_json::Result<(JsonSlice<'a>, RequestMeta)> {
        let start = cursor.clone();
        let mut members = MetaMembers::default();
        let object = cursor.read_object(|name, cursor| {
            members.add(&name, cursor.skip_value()?, text);
            Ok(())
        });
        match object {
            Ok(object) if !members.has_repeated => Ok((object, RequestMeta::from_members(members, text))),
            Ok(object) => Ok((object, RequestMeta::default())),
            Err(_) => {
                *cursor = start;
                Ok((cursor.skip_value()?, RequestMeta::default()))
            }
        }
    }

    fn from_members(members: MetaMembers<'_>, whole: &ByteString) -> RequestMeta {
        let raw = |value: JsonSlice<'_>| RawJson::from_slice(whole, value);
        let text = |value: Option<JsonSlice<'_>>| value?.to_text().map(Cow::into_owned);
        let is_token = |token: &RawJson| matches!(token.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
        let trace = text(members.traceparent).and_then(|parent| {
            let state = text(members.tracestate);
            TraceContext::parse(&parent, state.as_deref()).ok()
        });
        RequestMeta {
            progress_token: members
                .progress_token
                .filter(|token| token.as_str().len() <= MAX_PROGRESS_TOKEN_BYTES)
                .map(raw)
                .filter(is_token),
            version: members.version.and_then(JsonSlice::to_text).map(|version| match version {
                Cow::Borrowed(version) => whole.slice_ref(version),
                Cow::Owned(version) => version.into(),
            }),
            capabilities: members
                .capabilities
                .filter(|capabilities| capabilities.as_str().len() <= MAX_CAPABILITY_BYTES)
                .map(raw)
                .filter(RawJson::is_object),
            client_info: members.client_info.map(raw),
            dialog: text(members.dialog).filter(|name| !name.is_empty()),
            trace,
            forwarded: members.forwarded,
        }
    }

    /// The name that a client without a session gives itself.
    pub(crate) fn client_name(&self) -> Option<String> {
        client_name(self.client_info.as_ref()?)
    }

    /// Whether the request is of the modern era: only such requests have a protocol version here.
    pub(crate) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// Returns the members that the modern era requires: version and capabilities. Fails if one is missing, or if the
    /// version is not of the modern era.
    pub fn required_members(&self) -> Result<(ProtocolVersion, RawJson), RpcError> {
        let missing = |what: &str| {
            let message = format!("`_meta` must contain `io.modelcontextprotocol/{what}`");
            RpcError::new(code::INVALID_PARAMS, message)
        };
        let version = self.version.as_deref().ok_or_else(|| missing("protocolVersion"))?;
        let capabilities = self.capabilities.clone().ok_or_else(|| missing("clientCapabilities"))?;
        match version.parse() {
            Ok(version @ ProtocolVersion::V2026_07_28) => Ok((version, capabilities)),
            Ok(_) | Err(_) => Err(unsupported_version(version)),
        }
    }
}

/// The error for a version without stateless requests.
fn unsupported_version(requested: &str) -> RpcError {
    let requested: String = requested.chars().take(40).collect();
    let data = serde_json::json!({
        "supported": [ProtocolVersion::LATEST.as_str()],
        "requested": requested,
    });
    let message = format!("protocol version {requested} is not supported without `initialize`");
    RpcError {
        data: Some(RawJson::from_value(&data).expect("its keys are strings")),
        ..RpcError::new(code::UNSUPPORTED_PROTOCOL_VERSION, message)
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::LogLevel;

    use super::*;

    fn read(meta: &str) -> RequestMeta {
        let text = ByteString::from(meta);
        RequestMeta::read_at(&mut JsonCursor::new(&text), &text).unwrap().1
    }

    #[test]
    fn invalid_meta_members_count_as_missing() {
        assert_eq!(read("7"), RequestMeta::default());
        assert_eq!(read(r#"{"traceparent":1,"traceparent":2}"#), RequestMeta::default());
        // Members about the client's connection alone are not forwarded.
        assert_eq!(read(r#"{"progressToken":1,"mcp-host/dialog":"d"}"#).forwarded, ForwardedMeta::default());
        let invalid = read(r#"{"progressToken":{},"mcp-host/dialog":7,"traceparent":"x"}"#);
        assert_eq!(RequestMeta { forwarded: ForwardedMeta::default(), ..invalid }, RequestMeta::default());
        let meta =
            read(r#"{"progressToken":"t","mcp-host/dialog":"d","io.modelcontextprotocol/logLevel":"info"}"#);
        assert_eq!(meta.progress_token.unwrap().as_str(), r#""t""#);
        assert_eq!((meta.dialog.as_deref(), meta.forwarded.log_level()), (Some("d"), Some(LogLevel::Info)));
        // The dialog's name is not forwarded.
        for dialog in [r#""mcp-host/dialog":"d""#, r#""mcp-host\/dialog":null"#] {
            let meta = read(&format!(r#"{{"a": 1,{dialog},"b":2}}"#));
            assert_eq!(meta.forwarded.members(), r#""a":1,"b":2"#);
        }
    }

    #[track_caller]
    fn check_required(meta: &str, want: &str) {
        let got = match read(meta).required_members() {
            Ok((version, capabilities)) => format!("{version} {}", capabilities.as_str()),
            Err(error) => error.message,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn stateless_request_requires_version_and_capabilities() {
        let version = r#""io.modelcontextprotocol/protocolVersion""#;
        let capabilities = r#""io.modelcontextprotocol/clientCapabilities""#;
        check_required("{}", "`_meta` must contain `io.modelcontextprotocol/protocolVersion`");
        check_required(
            &format!(r#"{{{version}:"2026-07-28"}}"#),
            "`_meta` must contain `io.modelcontextprotocol/clientCapabilities`",
        );
        check_required(&format!(r#"{{{version}:"2026-07-28",{capabilities}:{{ }}}}"#), "2026-07-28 { }");
        for other in ["2025-11-25", "v9"] {
            check_required(
                &format!(r#"{{{version}:"{other}",{capabilities}:{{}}}}"#),
                &format!("protocol version {other} is not supported without `initialize`"),
            );
        }
    }
}
