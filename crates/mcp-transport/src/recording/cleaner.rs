//! Takes secrets out of JSON, and leaves all else as it was written: numbers, order, escapes. Pure.

use mcp_model::{Endpoint, Secret};

use crate::redact::{Redactor, argument_secrets, map_json_strings, secret_parts};

/// What a server is given and may repeat, and what must not be written down: the values of its environment, its
/// arguments but for flags and the first name, its headers, its session id, who stands in its URL and what is in its
/// query. Parts of them count too; what is shorter than six bytes is not looked for.
pub fn endpoint_secrets(endpoint: &Endpoint) -> Vec<Secret> {
    match endpoint {
        Endpoint::Stdio(it) => {
            let environment = it.env.iter().map(|(_, value)| value);
            let given: Vec<&Secret> = environment.chain(argument_secrets(&it.args)).collect();
            let parts = given.iter().flat_map(|it| secret_parts(it));
            parts.chain(given.iter().flat_map(|it| json_secrets(it))).collect()
        }
        #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => crate::net::secrets(it),
        #[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => {
            it.headers.iter().map(|(_, value)| value).chain(&it.session_id).flat_map(secret_parts).collect()
        }
    }
}

/// The texts in a value that is a JSON object or array, as a configuration is that is handed to a server: it may repeat
/// each alone. None in any other value.
pub fn json_secrets(value: &Secret) -> Vec<Secret> {
    let is_whole = value.expose().trim_start().starts_with(['{', '[']);
    let mut rest: Vec<serde_json::Value> =
        is_whole.then(|| serde_json::from_str(value.expose()).ok()).flatten().into_iter().collect();
    let mut res = Vec::new();
    while let Some(it) = rest.pop() {
        match it {
            serde_json::Value::String(text) => res.extend(secret_parts(&Secret::new(text))),
            serde_json::Value::Array(items) => rest.extend(items),
            serde_json::Value::Object(members) => rest.extend(members.into_iter().map(|(_, it)| it)),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
    res
}

/// Takes these secrets out.
pub(super) struct Cleaner(Redactor);

impl Cleaner {
    pub(super) fn new(secrets: &[Secret]) -> Cleaner {
        Cleaner(Redactor::new(secrets.iter()))
    }

    /// The JSON text on one line, each secret in a string as `***`, and a number that holds one as `0`.
    pub(super) fn clean(&self, json: &str) -> String {
        map_json_strings(json, |it| self.0.replaced(it))
    }

    /// Plain text, in the same way.
    pub(super) fn text(&self, text: &str) -> String {
        self.0.replaced(text).unwrap_or_else(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        let secrets = [Secret::new("hunter2"), Secret::new("12345678"), Secret::new("über-geheim")];
        assert_eq!(Cleaner::new(&secrets).clean(json), want);
    }

    #[test]
    fn hd_sc5_what_stands_in_a_configuration_may_be_repeated_alone() {
        let secrets = json_secrets(&Secret::new(r#"{"a":{"key":"hunter2-1"},"b":["hunter2-2",1,null]}"#));
        let mut texts: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts, ["hunter2-1", "hunter2-2"]);
        assert!(json_secrets(&Secret::new("\"hunter2\"")).is_empty());
    }

    #[test]
    fn hd_sc5_secrets_go_and_all_else_stays() {
        check(
            r#"{"a": "x hunter2 y", "b":1.0000000000000000000001}"#,
            r#"{"a":"x *** y","b":1.0000000000000000000001}"#,
        );
        check(r#"{"hunter2":[" hunter2 ", "\u0068unter2"]}"#, r#"{"***":[" *** ","***"]}"#);
        check(r#"["über-geheim","\u00fcber-geheim","\u00e9 \"q\""]"#, r#"["***","***","\u00e9 \"q\""]"#);
        check(r#"{"pin":12345678,"n":-1.5e3}"#, r#"{"pin":0,"n":-1.5e3}"#);
        check(r#"["hun\u0007ter2","a\nb"]"#, r#"["***","a\nb"]"#);
        check(r#"["\ud800 hunter2"]"#, r#"["\ud800 ***"]"#);
        check("\"\"", "\"\"");
        check("\"\\\\\"", "\"\\\\\"");
    }
}
