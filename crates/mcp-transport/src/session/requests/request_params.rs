//! The parameters that a caller adds to its requests, and helpers for JSON members as text.

use mcp_host_model::{LogLevel, RawJson};
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::rpc::frame;
use crate::rpc::object_members::{MemberName, ObjectMembers};
use crate::session::options::{CallContext, TaskRequest};

/// Splits an object into its members without `_meta`, and the members of its `_meta`. Both are JSON text without
/// braces.
pub(crate) fn split_meta(params: &RawJson) -> Result<(String, String), String> {
    let ObjectMembers(members) = params.read().map_err(|_| "parameters are a JSON object".to_owned())?;
    let mut meta = String::new();
    let mut other_members = String::new();
    for (MemberName(name), value) in members {
        if name != "_meta" {
            push_member(&mut other_members, &name, value);
            continue;
        }
        let ObjectMembers(inner) =
            serde_json::from_str(value.get()).map_err(|_| "`_meta` is a JSON object".to_owned())?;
        for (MemberName(name), value) in inner {
            push_member(&mut meta, &name, value);
        }
    }
    Ok((other_members, meta))
}

/// A caller's additions to the parameters of its request, as JSON members without braces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CallerParams {
    /// The `_meta` members; may be empty.
    pub(crate) meta: String,
    /// Other members; may be empty.
    pub(crate) extra_params: String,
    /// The log level that the caller requests in its `_meta`.
    pub(crate) log_level: Option<LogLevel>,
}

/// `_meta` members that describe the connection of a caller. They are not forwarded to servers.
pub const CONNECTION_META_KEYS: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

impl CallerParams {
    /// Reads the caller's `meta` and `extra_params`. Fails if they are not objects.
    pub(crate) fn from_context(context: &CallContext) -> Result<CallerParams, CallError> {
        let CallContext { meta, extra_params, .. } = context;
        let mut res = CallerParams::default();
        if let Some(meta) = meta {
            let ObjectMembers(members) =
                meta.read().map_err(|_| invalid_params("`_meta` is a JSON object"))?;
            for (MemberName(name), value) in members {
                match &*name {
                    "io.modelcontextprotocol/logLevel" => {
                        let level: Option<String> = serde_json::from_str(value.get()).ok();
                        res.log_level = level.and_then(|it| it.parse().ok());
                    }
                    name if CONNECTION_META_KEYS.contains(&name) => {}
                    name => push_member(&mut res.meta, name, value),
                }
            }
        }
        if let Some(extra_params) = extra_params {
            let ObjectMembers(members) =
                extra_params.read().map_err(|_| invalid_params("parameters are a JSON object"))?;
            for (MemberName(name), value) in members.iter().filter(|(MemberName(name), _)| name != "_meta") {
                push_member(&mut res.extra_params, name, value);
            }
        }
        Ok(res)
    }

    /// Adds the member `task`, which requests a task, unless the caller has added its own.
    pub(crate) fn add_task_request(&mut self, task: &TaskRequest) {
        if has_member(&self.extra_params, "task") {
            return;
        }
        if !self.extra_params.is_empty() {
            self.extra_params.push(',');
        }
        let ttl = task.ttl.map(|it| format!("\"ttl\":{}", it.as_millis())).unwrap_or_default();
        self.extra_params.push_str(&format!("\"task\":{{{ttl}}}"));
    }
}

fn invalid_params(what: &str) -> CallError {
    CallError::InvalidParams(what.to_owned())
}

/// Returns the members without those of these names.
pub(crate) fn without_members(members: &str, names: &[&str]) -> String {
    let object = format!("{{{members}}}");
    let Ok(ObjectMembers(members)) = serde_json::from_str(&object) else { return String::new() };
    let mut res = String::new();
    for (MemberName(name), value) in members.iter().filter(|(MemberName(name), _)| !names.contains(&&**name))
    {
        push_member(&mut res, name, value);
    }
    res
}

/// Whether one of the members, which are JSON text without braces, has this name.
pub(crate) fn has_member(members: &str, name: &str) -> bool {
    let object = format!("{{{members}}}");
    serde_json::from_str::<ObjectMembers<'_>>(&object).is_ok_and(|it| it.0.iter().any(|(it, _)| it.0 == name))
}

/// Appends a member to JSON members.
fn push_member(into: &mut String, name: &str, value: &RawValue) {
    if !into.is_empty() {
        into.push(',');
    }
    into.push_str(&frame::json_string(name));
    into.push(':');
    into.push_str(value.get());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: &'static str, want: Result<(&str, &str), &str>) {
        let got = split_meta(&RawJson::parse(params.into()).unwrap());
        let want = want
            .map(|(other_members, meta)| (other_members.to_owned(), meta.to_owned()))
            .map_err(str::to_owned);
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
    fn connection_specific_meta_is_not_forwarded() {
        let json = |it: &'static str| Some(RawJson::parse(it.into()).unwrap());
        let meta = json(
            r#"{"a": {"b":1.0},"progressToken":7,"io.modelcontextprotocol/clientInfo":{},"c/d":[],
                "io.modelcontextprotocol/logLevel":"debug"}"#,
        );
        let extra_params = json(r#"{"requestState":"s\u0000","_meta":{"x":1},"inputResponses":{}}"#);
        let params =
            CallerParams::from_context(&CallContext { meta, extra_params, ..CallContext::default() })
                .unwrap();
        assert_eq!(params.meta, r#""a":{"b":1.0},"c/d":[]"#);
        assert_eq!(params.extra_params, r#""requestState":"s\u0000","inputResponses":{}"#);
        assert_eq!(params.log_level, Some(LogLevel::Debug));
        assert_eq!(without_members(&params.extra_params, &["requestState"]), r#""inputResponses":{}"#);
        assert!(
            CallerParams::from_context(&CallContext { meta: json("[]"), ..CallContext::default() }).is_err()
        );
        assert!(
            CallerParams::from_context(&CallContext { extra_params: json("1"), ..CallContext::default() })
                .is_err()
        );
    }

    #[test]
    fn has_member_ignores_nested_names_and_values() {
        assert!(has_member(r#""a":1,"b":2"#, "b"));
        assert!(!has_member(r#""a":{"b":2},"c":"b""#, "b"));
        assert!(!has_member("", "b"));
    }
}
