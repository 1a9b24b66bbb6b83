//! Properties of mcp-gateway for all input of clients.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_host_gateway::Tokens;
use mcp_host_gateway::internal::frame::{self, ClientMessage, FrameError};
use mcp_host_gateway::internal::guard::HostGuard;
use mcp_host_gateway::internal::{headers, is_admitted, json_splice, scope};
use mcp_host_model::{HeaderArgument, RawJson, Secret};
use mcp_host_registry::Selection;
use serde_json::Value;

/// A body: its messages, and the functions that change members of JSON objects.
pub fn gateway_body(bytes: &[u8]) {
    let text = Bytes::copy_from_slice(bytes);
    let whole = serde_json::from_slice::<Value>(bytes).ok();
    match frame::read_messages(&text) {
        Ok(messages) => {
            for message in messages {
                check_message(message);
            }
        }
        Err(error) => check_error(&error),
    }
    let single = frame::read_message(&text);
    if let (Ok(ClientMessage::Request(request)), Some(Value::Object(whole))) = (&single, &whole) {
        assert_eq!(whole.get("method"), Some(&Value::from(request.method.as_str())));
        assert_eq!(whole.get("id"), request.id.read::<Value>().ok().as_ref());
        assert!(whole.get("params").is_none_or(|it| it.is_null() || it.is_object()));
    }
    check_message(single);
}

fn check_error(error: &FrameError) {
    let message = &error.error.message;
    assert!(!message.is_empty() && message.len() < 1024, "{message}");
}

fn check_message(message: Result<ClientMessage, FrameError>) {
    let params = match message {
        Ok(ClientMessage::Request(it)) => it.params,
        Ok(ClientMessage::Notification(it)) => it.params,
        Ok(ClientMessage::Response(_)) => return,
        Err(error) => return check_error(&error),
    };
    assert!(params.raw().is_object());
    let meta = params.meta();
    if let Err(error) = meta.required_members() {
        assert!(!error.message.is_empty());
    }
    // A number may be too large for a value.
    if let Ok(forwarded) = RawJson::parse(format!("{{{}}}", meta.forwarded.members()).into()) {
        assert!(!forwarded.read::<Value>().is_ok_and(|it| it.get("mcp-host/dialog").is_some()));
    } else {
        panic!("{meta:?} has invalid members");
    }
    check_splices(params.raw());
}

/// Checks that changed objects are valid JSON, contain the change, and are otherwise equal.
fn check_splices(object: &RawJson) {
    let Ok(Value::Object(before)) = object.read::<Value>() else { return };
    let renamed = json_splice::with_name(object, "s__\"t\n");
    // A definition with a repeated name keeps both and gets a third.
    if let Ok(Value::Object(after)) = serde_json::from_slice::<Value>(&renamed) {
        let others = |members: &serde_json::Map<String, Value>| {
            members
                .iter()
                .filter(|(key, _)| *key != "name")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(others(&before), others(&after));
        if object.read::<Named<'_>>().is_ok() {
            assert_eq!(after.get("name"), Some(&Value::from("s__\"t\n")));
        }
    } else {
        panic!("{} is not JSON", String::from_utf8_lossy(&renamed));
    }
    let completed = json_splice::with_defaults(object, &[("resultType", "\"complete\""), ("ttlMs", "0")]);
    let after: Value = serde_json::from_slice(&completed).expect("a completed object is JSON");
    for (key, value) in [("resultType", Value::from("complete")), ("ttlMs", Value::from(0))] {
        assert_eq!(after.get(key), Some(before.get(key).unwrap_or(&value)));
    }
    let without = json_splice::without_members(object, &["name"]);
    let after: Value = without.read().expect("an object without a member is JSON");
    assert!(after.get("name").is_none() && after.as_object().map(|it| it.len()) <= Some(before.len()));
    let replaced = json_splice::replace_values(object, |key, _| (key == "name").then(|| "0".to_owned()));
    let after: Value = replaced.read().expect("an object with a replaced value is JSON");
    assert_eq!(after.get("name").is_some(), before.contains_key("name"));
    assert!(after.get("name").is_none_or(|it| *it == 0));
    let names: std::collections::BTreeSet<_> =
        json_splice::members(object).into_iter().map(|(name, _)| name.into_owned()).collect();
    assert!(names.iter().eq(before.keys().collect::<std::collections::BTreeSet<_>>()));
}

#[derive(serde::Deserialize)]
struct Named<'a> {
    #[serde(borrow, rename = "name")]
    _name: Option<&'a serde_json::value::RawValue>,
}

/// The head of a request: a target, headers, an empty line, and a body that the headers must match.
pub fn gateway_head(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let target = lines.next().unwrap_or_default();
    check_headers(lines, body);

    let query = target.split_once('?').map_or(target, |it| it.1);
    let pairs = query.split('&').filter_map(|it| it.split_once('='));
    let selections = pairs.clone().filter(|it| scope::SELECTIONS.contains(&it.0)).count();
    match scope::read_view(pairs) {
        Ok(view) => {
            assert_eq!(view.is_some(), selections > 0);
            for selection in view.iter().flat_map(|it| [&it.toolsets, &it.tools, &it.prompts, &it.resources])
            {
                if let Selection::Patterns(patterns) = selection {
                    assert!(!patterns.is_empty() && patterns.len() <= 64);
                }
            }
        }
        Err(error) => assert!(error.to_string().len() < 200),
    }
}

/// Checks headers (`name: value`) against the body that they must match.
fn check_headers<'a>(lines: impl Iterator<Item = &'a str>, body: &str) {
    let mut map = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')).take(64) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.trim())) {
            map.append(name, value);
        }
    }
    headers::accepted_format(&map);
    headers::has_json_body(&map);
    check_guard(&map);
    let Ok(ClientMessage::Request(request)) = frame::read_message(&Bytes::copy_from_slice(body.as_bytes()))
    else {
        return;
    };
    let meta = request.params.meta();
    if headers::check_required_headers(&map, &request).is_ok() {
        // A header without encoding is equal to the body.
        let plain = |name: &str| text(&map, name).filter(|value| !value.starts_with("=?"));
        assert!(plain("mcp-method").is_none_or(|value| value == request.method.as_str()));
        assert!(plain("mcp-protocol-version").is_none_or(|value| {
            Some(value) == meta.version.as_deref() || (value.is_empty() && meta.version.is_none())
        }));
    }
    // Use the parameters as the schema and as the arguments, because both are untrusted.
    let arguments = request.params.read::<Value>().ok().and_then(|params| params.get("arguments").cloned());
    let arguments = arguments.and_then(|arguments| RawJson::from_value(&arguments).ok());
    let repeated = HeaderArgument::all_in(request.params.raw()).unwrap_or_default();
    if let Err(error) = headers::check_argument_headers(&map, &repeated, arguments.as_ref()) {
        assert!(!error.message.is_empty());
    }
}

fn text<'a>(map: &'a HeaderMap, name: &str) -> Option<&'a str> {
    map.get(name)?.to_str().ok()
}

/// Checks that a request that the guard of a loopback listener admits names loopback in `Host` and `Origin`.
fn check_guard(map: &HeaderMap) {
    let (host, origin) = (text(map, header::HOST.as_str()), text(map, header::ORIGIN.as_str()));
    let guard = HostGuard {
        address: "127.0.0.1:8807".parse().expect("an address"),
        hosts: Vec::new(),
        origins: Vec::new(),
        has_tokens: false,
    };
    if guard.check(host, origin).is_err() {
        return;
    }
    let is_local = |host: &str| {
        let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = host.rsplit_once(':').filter(|(_, port)| has_port(port)).map_or(host, |(name, _)| name);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        // A colon may be part of the address.
        let whole = host.trim_start_matches('[').trim_end_matches(']');
        let loopback =
            |name: &str| name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        bare.eq_ignore_ascii_case("localhost") || loopback(bare) || loopback(whole)
    };
    assert!(host.is_some_and(is_local), "{host:?} was admitted");
    assert!(
        origin.is_none_or(|origin| origin.split_once("://").is_some_and(|(_, host)| is_local(host))),
        "{origin:?} was admitted"
    );
}

/// A list of tokens: exactly the tokens in the list are admitted.
pub fn gateway_tokens(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let tokens = match Tokens::read(&Secret::from(text)) {
        Ok(tokens) => tokens,
        Err(error) => {
            let message = error.to_string();
            assert!(error.line >= 1 && message.len() < 300);
            let repeated = text.split_whitespace().filter(|it| it.len() >= 16);
            assert!(repeated.into_iter().all(|it| !message.contains(it)), "{message}");
            return;
        }
    };
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    let known: Vec<&str> = lines.filter_map(|it| it.split_whitespace().next()).collect();
    assert_eq!(known.is_empty(), tokens.is_empty());
    for token in known.iter().take(8) {
        assert!(is_admitted(&tokens, Some(&format!("Bearer {token}"))));
        assert!(!is_admitted(&tokens, Some(&format!("Basic {token}"))));
    }
    if !known.is_empty() {
        assert!(!is_admitted(&tokens, None) && !is_admitted(&tokens, Some("Bearer ")));
        let other = format!("{}x", known[0]);
        assert!(known.contains(&other.as_str()) || !is_admitted(&tokens, Some(&format!("Bearer {other}"))));
    }
}
