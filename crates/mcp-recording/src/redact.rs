//! Redacts secrets in JSON and text, and leaves everything else unchanged: numbers, order, escapes. Pure.

use mcp_host_model::Secret;
use mcp_host_transport::internal::{Redactor, map_json_strings};

/// Redacts these secrets.
pub(crate) struct JsonRedactor(Redactor);

impl JsonRedactor {
    pub(crate) fn new(secrets: &[Secret]) -> JsonRedactor {
        JsonRedactor(Redactor::new(secrets.iter()))
    }

    /// Returns the JSON on one line, with `***` for each secret in a string and `0` for a number that contains one.
    pub(crate) fn redact_json(&self, json: &str) -> String {
        map_json_strings(json, |it| self.0.redact(it))
    }

    /// Redacts plain text.
    pub(crate) fn redact_text(&self, text: &str) -> String {
        self.0.redact(text).unwrap_or_else(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_transport::json_secrets;

    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        let secrets = [Secret::new("hunter2"), Secret::new("12345678"), Secret::new("über-geheim")];
        assert_eq!(JsonRedactor::new(&secrets).redact_json(json), want);
    }

    #[test]
    fn hd_sc5_strings_of_a_configuration_are_secrets() {
        let secrets = json_secrets(&Secret::new(r#"{"a":{"key":"hunter2-1"},"b":["hunter2-2",1,null]}"#));
        let mut texts: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts, ["hunter2-1", "hunter2-2"]);
        assert!(json_secrets(&Secret::new("\"hunter2\"")).is_empty());
    }

    #[test]
    fn hd_sc5_only_secrets_are_redacted() {
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
