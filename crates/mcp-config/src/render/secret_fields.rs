//! The fields of a server whose values are written in its file and may be secrets.

use mcp_host_model::{ConfigValue, ServerSpec, TemplatePart, TransportSpec};
use url::Url;

use crate::render::safe_values;

/// The fields of a server whose values are literal and may be secrets, such as `env.TOKEN` or `headers.Authorization`.
///
/// [`render`](crate::render()) does not print these values. A value that is only a reference is no secret.
pub fn secret_fields(server: &ServerSpec) -> Vec<String> {
    let is_secret =
        |(name, value): &&(String, ConfigValue)| literal_parts(value).any(|it| is_secret(name, it));
    let named = |field: &str, entries: &[(String, ConfigValue)]| {
        entries.iter().filter(is_secret).map(|(name, _)| format!("{field}.{name}")).collect::<Vec<_>>()
    };
    match &server.transport {
        TransportSpec::Stdio(spec) => named("env", &spec.env),
        TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
            let mut fields = named("headers", &spec.headers);
            if literal_parts(&spec.url).any(has_credential) {
                fields.insert(0, "url".to_owned());
            }
            fields
        }
    }
}

/// The literal texts of a value.
fn literal_parts(value: &ConfigValue) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        ConfigValue::Literal(text) => Box::new(std::iter::once(text.expose())),
        ConfigValue::HostEnv { name: _, prefix } => Box::new(std::iter::once(prefix.expose())),
        ConfigValue::Template(parts) => Box::new(parts.iter().filter_map(|part| match part {
            TemplatePart::Text(text) => Some(text.expose()),
            TemplatePart::VariableOr { name: _, default } => Some(default.expose()),
            TemplatePart::Variable(_)
            | TemplatePart::OptionalVariable(_)
            | TemplatePart::Input(_)
            | TemplatePart::File(_)
            | TemplatePart::Secret(_) => None,
        })),
    }
}

/// Whether a literal text under this name may be a secret. A scheme before a reference, as in `Bearer ${TOKEN}`, is
/// none.
fn is_secret(name: &str, text: &str) -> bool {
    !split_scheme(text.trim()).1.is_empty() && !safe_values::is_safe_value(name, text)
}

/// Splits the value of an `Authorization` header after its scheme and the blanks that follow it. The scheme is empty if
/// it is not known.
pub fn split_scheme(value: &str) -> (&str, &str) {
    const SCHEMES: [&str; 3] = ["Bearer", "Basic", "token"];
    let (scheme, _) = value.split_once(' ').unwrap_or((value, ""));
    if !SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(scheme)) {
        return ("", value);
    }
    value.split_at(value.len() - value[scheme.len()..].trim_start().len())
}

/// Whether a URL has a password or a query.
fn has_credential(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.password().is_some() || url.query().is_some())
}

#[cfg(test)]
mod tests {
    use mcp_host_model::Profile;

    use super::*;
    use crate::read::{Document, read};

    #[track_caller]
    fn check(entry: &str, want: &[&str]) {
        let text = format!("{{\"mcpServers\": {{\"a\": {entry}}}}}");
        let reading = read(&Document::new("mcp.json", &text, Profile::McpJson));
        assert_eq!(secret_fields(&reading.servers[0]), want, "{entry}");
    }

    #[test]
    fn known_schemes_are_split_from_the_credentials() {
        let check = |value, scheme, rest| assert_eq!(split_scheme(value), (scheme, rest), "{value}");
        check("Bearer abc", "Bearer ", "abc");
        check("basic  abc", "basic  ", "abc");
        check("token a b", "token ", "a b");
        check("Bearer ", "Bearer ", "");
        check("Bearer", "Bearer", "");
        check("tokens abc", "", "tokens abc");
        check("abc", "", "abc");
        check("", "", "");
    }

    /// RPT-214
    #[test]
    fn literal_values_that_may_be_secrets_are_found() {
        check(r#"{"command": "x", "env": {"TOKEN": "hunter2", "LOG_LEVEL": "debug"}}"#, &["env.TOKEN"]);
        check(r#"{"command": "x", "env": {"TOKEN": "${TOKEN}", "EMPTY_TOKEN": ""}}"#, &[]);
        check(r#"{"command": "x", "env": {"TOKEN": "${TOKEN:-hunter2}"}}"#, &["env.TOKEN"]);
        check(r#"{"url": "https://x.example", "headers": {"Authorization": "Bearer ${T}"}}"#, &[]);
        check(
            r#"{"url": "https://x.example/?k=hunter2", "headers": {"Authorization": "Bearer hunter2"}}"#,
            &["url", "headers.Authorization"],
        );
        check(r#"{"url": "https://x.example/mcp"}"#, &[]);
    }
}
