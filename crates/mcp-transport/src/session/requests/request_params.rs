//! The parameters that a caller adds to its requests, and helpers for JSON members as text.

use mcp_host_model::RawJson;
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::rpc::object_members::{MemberName, ObjectMembers, push_member};
use crate::session::forwarded_meta::ForwardedMeta;
use crate::session::options::{CallContext, TaskRequest};

/// Splits an object into its members without `_meta`, which are JSON text without braces, and all members of its
/// `_meta`.
pub(crate) fn split_meta(params: &RawJson) -> Result<(String, ForwardedMeta), String> {
    let ObjectMembers(members) = params.read().map_err(|_| "parameters are a JSON object".to_owned())?;
    let mut meta = ForwardedMeta::default();
    let mut other_members = String::new();
    for (MemberName(name), value) in members {
        if name != "_meta" {
            push_member(&mut other_members, &name, value.get());
            continue;
        }
        let ObjectMembers(inner) =
            serde_json::from_str(value.get()).map_err(|_| "`_meta` is a JSON object".to_owned())?;
        for (MemberName(name), value) in inner {
            meta.push(&name, value.get());
        }
    }
    Ok((other_members, meta))
}

/// Returns the parameters that a caller adds to its request, as JSON members without braces. Fails if they are not an
/// object.
pub(crate) fn extra_params(context: &CallContext) -> Result<String, CallError> {
    let Some(extra_params) = &context.extra_params else { return Ok(String::new()) };
    let invalid = |_| CallError::InvalidParams("parameters are a JSON object".to_owned());
    let ObjectMembers(members) = extra_params.read().map_err(invalid)?;
    Ok(members_except(members, &["_meta"]))
}

/// Adds the member `task`, which requests a task, unless the caller has added its own.
pub(crate) fn add_task_request(extra_params: &mut String, task: &TaskRequest) {
    if !has_member(extra_params, "task") {
        let ttl = task.ttl.map(|it| format!("\"ttl\":{}", it.as_millis())).unwrap_or_default();
        push_member(extra_params, "task", &format!("{{{ttl}}}"));
    }
}

/// Returns the members without those of these names.
pub(crate) fn without_members(members: &str, names: &[&str]) -> String {
    let object = format!("{{{members}}}");
    serde_json::from_str(&object)
        .map(|ObjectMembers(members)| members_except(members, names))
        .unwrap_or_default()
}

/// Returns the members without those of these names, as JSON text without braces.
fn members_except(members: Vec<(MemberName<'_>, &RawValue)>, names: &[&str]) -> String {
    let mut res = String::new();
    for (MemberName(name), value) in members.iter().filter(|(MemberName(name), _)| !names.contains(&&**name))
    {
        push_member(&mut res, name, value.get());
    }
    res
}

/// Whether one of the members, which are JSON text without braces, has this name.
pub(crate) fn has_member(members: &str, name: &str) -> bool {
    let object = format!("{{{members}}}");
    serde_json::from_str::<ObjectMembers<'_>>(&object).is_ok_and(|it| it.0.iter().any(|(it, _)| it.0 == name))
}

#[cfg(test)]
mod tests {
    use mcp_host_model::LogLevel;

    use super::*;

    #[track_caller]
    fn check(params: &'static str, want: Result<(&str, &str), &str>) {
        let got = split_meta(&RawJson::parse(params.into()).unwrap());
        let got = got.map(|(other_members, meta)| (other_members, meta.members().to_owned()));
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
        let json = |it: &'static str| RawJson::parse(it.into()).unwrap();
        let meta = json(
            r#"{"a": {"b":1.0},"progressToken":7,"io.modelcontextprotocol/clientInfo":{},"c/d":[],
                "io.modelcontextprotocol/logLevel":"debug"}"#,
        );
        let meta = ForwardedMeta::read(&meta).unwrap();
        assert_eq!(meta.members(), r#""a":{"b":1.0},"c/d":[]"#);
        assert_eq!(meta.log_level(), Some(LogLevel::Debug));
        assert!(ForwardedMeta::read(&json("[]")).is_err());
    }

    #[test]
    fn extra_params_are_forwarded_without_meta() {
        let extra = |text: &'static str| {
            let extra_params = RawJson::parse(text.into()).ok();
            super::extra_params(&CallContext { extra_params, ..CallContext::default() })
        };
        let params = extra(r#"{"requestState":"s\u0000","_meta":{"x":1},"inputResponses":{}}"#).unwrap();
        assert_eq!(params, r#""requestState":"s\u0000","inputResponses":{}"#);
        assert_eq!(without_members(&params, &["requestState"]), r#""inputResponses":{}"#);
        assert!(extra("1").is_err());
    }

    #[test]
    fn has_member_ignores_nested_names_and_values() {
        assert!(has_member(r#""a":1,"b":2"#, "b"));
        assert!(!has_member(r#""a":{"b":2},"c":"b""#, "b"));
        assert!(!has_member("", "b"));
    }
}
