//! Parameters that somebody else wrote, taken apart so that our own `_meta` can be put beside theirs.

use std::borrow::Cow;
use std::fmt;

use mcp_model::{LogLevel, RawJson};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::rpc::frame;
use crate::session::CallOptions;

/// The members of an object but for `_meta`, and the members of its `_meta`, both as JSON text without braces.
pub(super) fn split(params: &RawJson) -> Result<(String, String), String> {
    let Members(members) = params.read().map_err(|_| "parameters are a JSON object".to_owned())?;
    let mut meta = String::new();
    let mut others = String::new();
    for (Name(name), value) in members {
        if name != "_meta" {
            push(&mut others, &name, value);
            continue;
        }
        let Members(inner) =
            serde_json::from_str(value.get()).map_err(|_| "`_meta` is a JSON object".to_owned())?;
        for (Name(name), value) in inner {
            push(&mut meta, &name, value);
        }
    }
    Ok((others, meta))
}

/// What a caller gives beside the parameters of his request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// Members of `_meta`; may be empty, as the other.
    pub(super) meta: String,
    /// Other members.
    pub(super) more: String,
    /// From which level on he wants log messages, where he says so.
    pub(super) log_level: Option<LogLevel>,
}

/// What a `_meta` says of the connection that it came by, and nothing of the one that it goes by.
const OF_A_CONNECTION: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

impl Given {
    /// Reads what the options hold of it. Fails, in words, where that is no object.
    pub(super) fn of(options: &CallOptions) -> Result<Given, CallError> {
        let CallOptions { meta, extra_params: more, .. } = options;
        let mut res = Given::default();
        if let Some(meta) = meta {
            let Members(members) = meta.read().map_err(|_| invalid("`_meta` is a JSON object"))?;
            for (Name(name), value) in members {
                match &*name {
                    "io.modelcontextprotocol/logLevel" => {
                        let level: Option<String> = serde_json::from_str(value.get()).ok();
                        res.log_level = level.and_then(|it| it.parse().ok());
                    }
                    name if OF_A_CONNECTION.contains(&name) => {}
                    name => push(&mut res.meta, name, value),
                }
            }
        }
        if let Some(more) = more {
            let Members(members) = more.read().map_err(|_| invalid("parameters are a JSON object"))?;
            for (Name(name), value) in members.iter().filter(|(Name(name), _)| name != "_meta") {
                push(&mut res.more, name, value);
            }
        }
        Ok(res)
    }
}

fn invalid(what: &str) -> CallError {
    CallError::InvalidParams(what.to_owned())
}

/// These members without those of these names.
pub(super) fn without(members: &str, names: &[&str]) -> String {
    let object = format!("{{{members}}}");
    let Ok(Members(members)) = serde_json::from_str(&object) else { return String::new() };
    let mut res = String::new();
    for (Name(name), value) in members.iter().filter(|(Name(name), _)| !names.contains(&&**name)) {
        push(&mut res, name, value);
    }
    res
}

/// Whether one of these members, as [`split`] gives them, has this name.
pub(super) fn holds(members: &str, name: &str) -> bool {
    let object = format!("{{{members}}}");
    serde_json::from_str::<Members<'_>>(&object).is_ok_and(|it| it.0.iter().any(|(it, _)| it.0 == name))
}

fn push(into: &mut String, name: &str, value: &RawValue) {
    if !into.is_empty() {
        into.push(',');
    }
    into.push_str(&frame::text(name));
    into.push(':');
    into.push_str(value.get());
}

/// A member's name, borrowed where it holds no escape.
#[derive(serde::Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// An object's members in their order.
pub(super) struct Members<'a>(pub(super) Vec<(Name<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Name<'de>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    res.push(entry);
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(InOrder).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: &'static str, want: Result<(&str, &str), &str>) {
        let got = split(&RawJson::parse(params.into()).unwrap());
        let want = want.map(|(others, meta)| (others.to_owned(), meta.to_owned())).map_err(str::to_owned);
        assert_eq!(got, want);
    }

    #[test]
    fn members_keep_their_order_and_meta_is_apart() {
        check("{}", Ok(("", "")));
        check(r#"{ "b": {"c":{}} , "a":1 }"#, Ok((r#""b":{"c":{}},"a":1"#, "")));
        check(r#"{"a\"":1,"_meta":{"x":[1]},"c":2}"#, Ok((r#""a\"":1,"c":2"#, r#""x":[1]"#)));
        check("[1]", Err("parameters are a JSON object"));
        check(r#"{"_meta":1}"#, Err("`_meta` is a JSON object"));
    }

    #[test]
    fn what_is_of_another_connection_is_not_handed_on() {
        let json = |it: &'static str| Some(RawJson::parse(it.into()).unwrap());
        let meta = json(
            r#"{"a": {"b":1.0},"progressToken":7,"io.modelcontextprotocol/clientInfo":{},"c/d":[],
                "io.modelcontextprotocol/logLevel":"debug"}"#,
        );
        let more = json(r#"{"requestState":"s\u0000","_meta":{"x":1},"inputResponses":{}}"#);
        let given = Given::of(&CallOptions { meta, extra_params: more, ..CallOptions::default() }).unwrap();
        assert_eq!(given.meta, r#""a":{"b":1.0},"c/d":[]"#);
        assert_eq!(given.more, r#""requestState":"s\u0000","inputResponses":{}"#);
        assert_eq!(given.log_level, Some(LogLevel::Debug));
        assert_eq!(without(&given.more, &["requestState"]), r#""inputResponses":{}"#);
        assert!(Given::of(&CallOptions { meta: json("[]"), ..CallOptions::default() }).is_err());
        assert!(Given::of(&CallOptions { extra_params: json("1"), ..CallOptions::default() }).is_err());
    }

    #[test]
    fn a_member_is_found_by_its_own_name_only() {
        assert!(holds(r#""a":1,"b":2"#, "b"));
        assert!(!holds(r#""a":{"b":2},"c":"b""#, "b"));
        assert!(!holds("", "b"));
    }
}
