//! The headers of a request, read once, and what the stateless era demands of them.
//!
//! In that era a header repeats what the body says, so that whoever stands between can look at it; a request whose
//! headers say something else is refused, for somebody was deceived.

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::prelude::{BASE64_STANDARD, Engine};
use http::HeaderName;
use mcp_model::{RawJson, RpcError, code};
use memchr::memmem::{self, Finder};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{Fields, Name};
use crate::protocol::frame::Request;
use crate::protocol::meta::Meta;

/// What a client takes as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepts {
    /// One JSON document, or a stream of events.
    Events,
    /// One JSON document.
    Json,
}

/// What the client says that he takes.
pub(super) fn accepts(headers: &Fields) -> Accepts {
    static EVENTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("text/event-stream"));
    let holds = |it: &[u8], kind: &str| memmem::find(it, kind.as_bytes()).is_some();
    let takes = |it: &[u8]| EVENTS.find(it).is_some() || holds(it, "text/*") || holds(it, "*/*");
    match headers.all(Name::Accept).any(takes) {
        true => Accepts::Events,
        false => Accepts::Json,
    }
}

/// Is the body said to be JSON?
pub(super) fn is_json(headers: &Fields) -> bool {
    const JSON: &str = "application/json";
    let kind = headers.text(Name::ContentType).unwrap_or_default();
    // Most say just that.
    kind == JSON || kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

/// Looks whether the headers of a request of the stateless era say what its body says.
pub(super) fn agree(headers: &Fields, request: &Request, meta: &Meta) -> Result<(), RpcError> {
    let version = meta.version.as_deref().unwrap_or_default();
    one(headers.all(Name::Version), "MCP-Protocol-Version", version)?;
    one(headers.all(Name::Method), "Mcp-Method", &request.method)?;
    let Some(key) = named(&request.method) else { return Ok(()) };
    let Some(name) = request.params.text(key) else {
        // What is wrong with the parameters is said elsewhere.
        return Ok(());
    };
    one(headers.all(Name::Target), "Mcp-Name", &name)
}

/// The parameter that `Mcp-Name` repeats.
fn named(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// Looks whether the only one of these values is the one that is wanted.
fn one<'a>(mut values: impl Iterator<Item = &'a [u8]>, words: &str, want: &str) -> Result<(), RpcError> {
    let mismatch = |what: &str| RpcError::new(code::HEADER_MISMATCH, format!("the header `{words}` {what}"));
    let Some(value) = values.next() else { return Err(mismatch("is missing")) };
    if values.next().is_some() {
        return Err(mismatch("stands there twice"));
    }
    match decoded(value).is_some_and(|it| it == want.as_bytes()) {
        true => Ok(()),
        false => Err(mismatch("says something else than the body")),
    }
}

/// A header's value as it was meant: text that a header cannot hold is sent as `=?base64?…?=`.
fn decoded(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let inner = value.strip_prefix(b"=?base64?").and_then(|it| it.strip_suffix(b"?="));
    match inner {
        Some(inner) => BASE64_STANDARD.decode(inner).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

/// Looks whether `Mcp-Param-*` says what the arguments of a tool's call say: for each argument that the tool's schema
/// marks with `x-mcp-header`.
pub(super) fn arguments_agree(
    headers: &Fields,
    schema: &RawJson,
    arguments: Option<&RawJson>,
) -> Result<(), RpcError> {
    for (argument, header) in marked(schema) {
        let name = format!("mcp-param-{header}");
        // What is no name of a header can stand among none.
        if HeaderName::try_from(&name).is_err() {
            continue;
        }
        let said = arguments.and_then(|it| member(it, &argument)).and_then(|it| plain(&it));
        let words = format!("Mcp-Param-{header}");
        match (said, headers.named(&name).next().is_some()) {
            (Some(said), _) => one(headers.named(&name), &words, &said)?,
            (None, true) => {
                let message = format!("the header `{words}` stands there, and the argument does not");
                return Err(RpcError::new(code::HEADER_MISMATCH, message));
            }
            (None, false) => {}
        }
    }
    Ok(())
}

/// The arguments that a schema wants among the headers, with the ends of their headers' names.
fn marked(schema: &RawJson) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Schema<'a> {
        #[serde(borrow)]
        properties: Option<std::collections::BTreeMap<Cow<'a, str>, &'a RawValue>>,
    }
    #[derive(Deserialize)]
    struct Property {
        #[serde(rename = "x-mcp-header")]
        header: Option<String>,
    }
    if memmem::find(schema.as_bytes(), b"x-mcp-header").is_none() {
        return Vec::new();
    }
    let properties = schema.read::<Schema<'_>>().ok().and_then(|it| it.properties).unwrap_or_default();
    let header = |it: &RawValue| serde_json::from_str::<Property>(it.get()).ok()?.header;
    properties.iter().filter_map(|(name, it)| Some((name.to_string(), header(it)?))).collect()
}

/// A text, number or truth as a header says it; `None` for `null` and what is larger.
fn plain(value: &RawJson) -> Option<String> {
    match value.as_bytes().first()? {
        b'"' => value.to_text().map(Cow::into_owned),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.as_str().to_owned()),
    }
}

fn member(object: &RawJson, key: &str) -> Option<RawJson> {
    let read: std::collections::BTreeMap<Cow<'_, str>, &RawValue> = object.read().ok()?;
    read.get(key).map(|it| object.slice(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> Fields {
        Fields::of(text.split(';').filter_map(|it| it.trim().split_once('=')))
    }

    #[track_caller]
    fn check(given: &str, params: &str, want: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let params = crate::protocol::params::Params::of(json(params)).unwrap();
        let request = Request::new(json("1"), "tools/call".into(), params);
        let meta = Meta { version: Some("2026-07-28".to_owned()), ..Meta::default() };
        let got =
            agree(&headers(given), &request, &meta).map_or_else(|it| it.message, |()| "fine".to_owned());
        assert_eq!(got, want);
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let both = "mcp-protocol-version=2026-07-28; mcp-method=tools/call";
        check("", r#"{"name":"x"}"#, "the header `MCP-Protocol-Version` is missing");
        check(
            "mcp-protocol-version=2025-11-25",
            "{}",
            "the header `MCP-Protocol-Version` says something else than the body",
        );
        check("mcp-protocol-version=2026-07-28", "{}", "the header `Mcp-Method` is missing");
        check(both, "{}", "fine");
        check(both, r#"{"name":"x"}"#, "the header `Mcp-Name` is missing");
        check(
            &format!("{both}; mcp-name=y"),
            r#"{"name":"x"}"#,
            "the header `Mcp-Name` says something else than the body",
        );
        check(&format!("{both}; mcp-name=x"), r#"{"name":"x"}"#, "fine");
        check(
            &format!("{both}; mcp-name=x; mcp-name=x"),
            r#"{"name":"x"}"#,
            "the header `Mcp-Name` stands there twice",
        );
        check(&format!("{both}; mcp-name==?base64?w6k=?="), r#"{"name":"é"}"#, "fine");
    }

    #[track_caller]
    fn check_arguments(given: &str, arguments: &str, want: &str) {
        let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"x-mcp-header":"N"}}}"#;
        let schema = RawJson::parse(schema.into()).unwrap();
        let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
        let got = arguments_agree(&headers(given), &schema, Some(&arguments));
        assert_eq!(got.map_or_else(|it| it.message, |()| "fine".to_owned()), want);
    }

    #[test]
    fn marked_arguments_are_repeated_in_headers() {
        check_arguments("", "{}", "fine");
        check_arguments("", r#"{"region":null}"#, "fine");
        check_arguments("mcp-param-region=eu; mcp-param-n=7", r#"{"region":"eu","n":7}"#, "fine");
        check_arguments("", r#"{"region":"eu"}"#, "the header `Mcp-Param-Region` is missing");
        check_arguments(
            "mcp-param-n=8",
            r#"{"n":7}"#,
            "the header `Mcp-Param-N` says something else than the body",
        );
        check_arguments(
            "mcp-param-n=8",
            "{}",
            "the header `Mcp-Param-N` stands there, and the argument does not",
        );
    }
}
