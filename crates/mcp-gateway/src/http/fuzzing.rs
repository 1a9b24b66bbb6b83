//! What must hold of the fields of any request, for the fuzz target `gateway_head`.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_model::RawJson;
use serde_json::Value;

use super::guard::Guard;
use super::headers;
use crate::frame::{self, Incoming};
use crate::meta::Meta;

/// Fields (`name: value`) and the body that they must agree with.
pub(crate) fn head<'a>(fields: impl Iterator<Item = &'a str>, body: &str) {
    let mut map = HeaderMap::new();
    for (name, value) in fields.filter_map(|it| it.split_once(':')).take(64) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.trim())) {
            map.append(name, value);
        }
    }
    headers::accepts(&map);
    headers::is_json(&map);
    guarded(&map);
    let Ok(Incoming::Request(request)) = frame::read(&Bytes::copy_from_slice(body.as_bytes())) else {
        return;
    };
    let meta = Meta::of(&request.params);
    if headers::agree(&map, &request, &meta).is_ok() {
        // What a header says plainly is what the body says.
        let said = map.get("mcp-method").and_then(|it| it.to_str().ok()).filter(|it| !it.starts_with("=?"));
        assert!(said.is_none_or(|it| it == request.method));
        let said = map
            .get("mcp-protocol-version")
            .and_then(|it| it.to_str().ok())
            .filter(|it| !it.starts_with("=?"));
        assert!(said.is_none_or(
            |it| Some(it) == meta.version.as_deref() || (it.is_empty() && meta.version.is_none())
        ));
    }
    // The parameters stand for a schema as well as for the arguments: both are a stranger's.
    let arguments = request.params.read::<Value>().ok().and_then(|it| it.get("arguments").cloned());
    let arguments = arguments.and_then(|it| RawJson::of(&it).ok());
    if let Err(error) = headers::arguments_agree(&map, request.params.raw(), arguments.as_ref()) {
        assert!(!error.message.is_empty());
    }
}

/// A page of another site gets in nowhere, whatever it says.
fn guarded(map: &HeaderMap) {
    let text = |name: HeaderName| headers::text(map, &name);
    let (host, origin) = (text(header::HOST), text(header::ORIGIN));
    let near = Guard {
        address: "127.0.0.1:8807".parse().expect("an address"),
        hosts: Vec::new(),
        origins: Vec::new(),
        has_tokens: false,
    };
    if near.check(host, origin).is_err() {
        return;
    }
    let is_near = |it: &str| {
        let name =
            it.rsplit_once(':').filter(|it| it.1.bytes().all(|it| it.is_ascii_digit())).map_or(it, |it| it.0);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        // A colon may be a part of the address itself.
        let whole = it.trim_start_matches('[').trim_end_matches(']');
        let loopback = |it: &str| it.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback());
        bare.eq_ignore_ascii_case("localhost") || loopback(bare) || loopback(whole)
    };
    assert!(host.is_some_and(is_near), "{host:?} got in");
    assert!(
        origin.is_none_or(|it| it.split_once("://").is_some_and(|it| is_near(it.1))),
        "{origin:?} got in"
    );
}
