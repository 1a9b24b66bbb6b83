//! What must hold of anything that a client sends, for the fuzz targets in `fuzz/`.
//!
//! No part of the crate's interface: it is there for the fuzzer (`cfg(fuzzing)`) and for the tests, which feed each
//! function from its seeds.

use bytes::Bytes;
use mcp_model::{RawJson, Secret};
use mcp_registry::Selection;
use serde_json::Value;

use crate::access::scope;
use crate::access::tokens::Tokens;
use crate::protocol::frame::{self, Incoming, Unreadable};
use crate::protocol::json_splice;
use crate::protocol::meta::Meta;

/// A body: messages, what is read out of them, and what is spliced into others.
pub fn gateway_body(bytes: &[u8]) {
    let text = Bytes::copy_from_slice(bytes);
    let whole = serde_json::from_slice::<Value>(bytes).ok();
    match frame::read_many(&text) {
        Ok(messages) => {
            for message in messages {
                looked_at(message);
            }
        }
        Err(it) => refused(&it),
    }
    let single = frame::read(&text);
    if let (Ok(Incoming::Request(request)), Some(Value::Object(whole))) = (&single, &whole) {
        assert_eq!(whole.get("method"), Some(&Value::from(&*request.method)));
        assert_eq!(whole.get("id"), request.id.read::<Value>().ok().as_ref());
        assert!(whole.get("params").is_none_or(|it| it.is_null() || it.is_object()));
    }
    looked_at(single);
}

fn refused(it: &Unreadable) {
    assert!(!it.error.message.is_empty());
    assert!(it.error.message.len() < 1024, "{}", it.error.message);
}

fn looked_at(message: Result<Incoming, Unreadable>) {
    let params = match message {
        Ok(Incoming::Request(it)) => it.params,
        Ok(Incoming::Notification(it)) => it.params,
        Ok(Incoming::Response(_)) => return,
        Err(it) => return refused(&it),
    };
    assert!(params.raw().is_object());
    let meta = Meta::of(&params);
    if let Err(error) = meta.demanded() {
        assert!(!error.message.is_empty());
    }
    if let Some(raw) = &meta.raw {
        assert!(raw.is_object() && !raw.read::<Value>().is_ok_and(|it| it.get("mcp-host/dialog").is_some()));
    }
    spliced(params.raw());
}

/// What was JSON stays JSON, says what it is meant to say, and nothing else has changed.
fn spliced(object: &RawJson) {
    let Ok(Value::Object(before)) = object.read::<Value>() else { return };
    let renamed = json_splice::named(object, "s__\"t\n");
    // A definition that has two names has none: it is left as it is, with one more.
    if let Ok(Value::Object(after)) = serde_json::from_slice::<Value>(&renamed) {
        let others = |it: &serde_json::Map<String, Value>| {
            it.iter()
                .filter(|(key, _)| *key != "name")
                .map(|(key, it)| (key.clone(), it.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(others(&before), others(&after));
        if object.read::<Named<'_>>().is_ok() {
            assert_eq!(after.get("name"), Some(&Value::from("s__\"t\n")));
        }
    } else {
        panic!("{} is no JSON", String::from_utf8_lossy(&renamed));
    }
    let completed = json_splice::completed(object, &[("resultType", "\"complete\""), ("ttlMs", "0")]);
    let after: Value = serde_json::from_slice(&completed).expect("what is completed is JSON");
    for (key, value) in [("resultType", Value::from("complete")), ("ttlMs", Value::from(0))] {
        assert_eq!(after.get(key), Some(before.get(key).unwrap_or(&value)));
    }
    let without = json_splice::without(object, "name");
    let after: Value = without.read().expect("what is taken out of JSON leaves JSON");
    assert!(after.get("name").is_none() && after.as_object().map(|it| it.len()) <= Some(before.len()));
    let replaced = json_splice::replaced(object, |key, _| (key == "name").then(|| "0".to_owned()));
    let after: Value = replaced.read().expect("a value in the place of another one leaves JSON");
    assert_eq!(after.get("name").is_some(), before.contains_key("name"));
    assert!(after.get("name").is_none_or(|it| *it == 0));
    assert_eq!(json_splice::members(object).len(), before.len());
}

#[derive(serde::Deserialize)]
struct Named<'a> {
    #[serde(borrow, rename = "name")]
    _name: Option<&'a serde_json::value::RawValue>,
}

/// The head of a request: a target, fields, an empty line, and a body that they must agree with.
pub fn gateway_head(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let target = lines.next().unwrap_or_default();
    crate::http::fuzzing::head(lines, body);

    let query = target.split_once('?').map_or(target, |it| it.1);
    let pairs = query.split('&').filter_map(|it| it.split_once('='));
    let selections = pairs.clone().filter(|it| scope::SELECTIONS.contains(&it.0)).count();
    match scope::view(pairs) {
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

/// The bytes of a connection, as requests one after the other.
pub fn gateway_wire(bytes: &[u8]) {
    crate::http::fuzzing::wire(bytes);
}

/// A file of tokens: what is read admits who has one of them, and nobody else.
pub fn gateway_tokens(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let tokens = match Tokens::read(&Secret::from(text)) {
        Ok(tokens) => tokens,
        Err(error) => {
            let words = error.to_string();
            assert!(error.line >= 1 && words.len() < 300);
            let repeated = text.split_whitespace().filter(|it| it.len() >= 16);
            assert!(repeated.into_iter().all(|it| !words.contains(it)), "{words}");
            return;
        }
    };
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    let known: Vec<&str> = lines.filter_map(|it| it.split_whitespace().next()).collect();
    assert_eq!(known.is_empty(), tokens.is_empty());
    for token in known.iter().take(8) {
        assert!(tokens.admit(Some(format!("Bearer {token}").as_bytes())).is_some());
        assert!(tokens.admit(Some(format!("Basic {token}").as_bytes())).is_none());
    }
    if !known.is_empty() {
        assert!(tokens.admit(None).is_none() && tokens.admit(Some(b"Bearer ")).is_none());
        let other = format!("{}x", known[0]);
        assert!(
            known.contains(&other.as_str())
                || tokens.admit(Some(format!("Bearer {other}").as_bytes())).is_none()
        );
    }
}

#[path = "../../../fuzz/src/pieces.rs"]
pub(crate) mod pieces;

#[cfg(test)]
#[path = "../../../fuzz/src/feed.rs"]
mod feed;

#[cfg(test)]
mod tests {
    use super::feed::feed;

    #[test]
    fn any_bytes_can_be_a_body() {
        feed("gateway_body", super::gateway_body);
    }

    #[test]
    fn any_text_can_be_a_head() {
        feed("gateway_head", super::gateway_head);
    }

    #[test]
    fn any_bytes_can_come_on_a_connection() {
        feed("gateway_wire", super::gateway_wire);
    }

    #[test]
    fn any_text_can_be_tokens() {
        feed("gateway_tokens", super::gateway_tokens);
    }
}
