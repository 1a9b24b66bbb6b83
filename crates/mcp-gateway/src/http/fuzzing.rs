//! What must hold of the fields of any request, for the fuzz target `gateway_head`.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use mcp_model::RawJson;
use serde_json::Value;

use super::guard::Guard;
use super::headers;
pub(crate) use super::wire::fuzzing::wire;
use super::wire::{Fields, Name};
use crate::protocol::frame::{self, Incoming};
use crate::protocol::meta::Meta;

/// Fields (`name: value`) and the body that they must agree with.
pub(crate) fn head<'a>(fields: impl Iterator<Item = &'a str>, body: &str) {
    let is_field = |(name, value): &(&str, &str)| {
        HeaderName::try_from(*name).is_ok() && HeaderValue::try_from(value.trim()).is_ok()
    };
    let fields = fields.filter_map(|it| it.split_once(':')).take(64).filter(is_field);
    let map = Fields::of(fields.map(|(name, value)| (name, value.trim())));
    headers::accepts(&map);
    headers::is_json(&map);
    guarded(&map);
    let Ok(Incoming::Request(request)) = frame::read(&Bytes::copy_from_slice(body.as_bytes())) else {
        return;
    };
    let meta = Meta::of(&request.params);
    if headers::agree(&map, &request, &meta).is_ok() {
        // What a header says plainly is what the body says.
        let said = map.text(Name::Method).filter(|it| !it.starts_with("=?"));
        assert!(said.is_none_or(|it| it == &*request.method));
        let said = map.text(Name::Version).filter(|it| !it.starts_with("=?"));
        assert!(said.is_none_or(
            |it| Some(it) == meta.version.as_deref() || (it.is_empty() && meta.version.is_none())
        ));
    }
    // The parameters stand for a schema as well as for the arguments: both are a stranger's.
    let arguments = request.params.read::<Value>().ok().and_then(|it| it.get("arguments").cloned());
    let arguments = arguments.and_then(|it| RawJson::from_value(&it).ok());
    if let Err(error) = headers::arguments_agree(&map, request.params.raw(), arguments.as_ref()) {
        assert!(!error.message.is_empty());
    }
}

/// A page of another site gets in nowhere, whatever it says.
fn guarded(map: &Fields) {
    let (host, origin) = (map.text(Name::Host), map.text(Name::Origin));
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
