//! The secrets of the user in configurations: where they are replaced, and what is read of a source.

use std::path::Path;
use std::sync::Mutex;

use mcp_host_config::{Profile, ResolveContext, ResolvedServer, SecretAccess, SecretSource, resolve};
use mcp_host_model::{Endpoint, Secret};

use crate::read_text;

/// A source with some secrets, which notes the names that are read.
#[derive(Default)]
struct Source {
    read: Mutex<Vec<String>>,
}

impl SecretSource for Source {
    fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        self.read.lock().unwrap().push(name.to_owned());
        match name {
            "KEY" | "MCP_INPUT_API_KEY" => Ok(Some(Secret::new(format!("<{name}>")))),
            "BROKEN" => Err("the keyring is locked".to_owned()),
            _ => Ok(None),
        }
    }
}

/// Resolves the first server of a text, and returns its values or its errors.
fn resolve_with(profile: Profile, text: &str, access: SecretAccess<'_>) -> Result<ResolvedServer, String> {
    let reading = read_text(profile, text);
    assert!(!reading.has_errors(), "{}", crate::diagnostic_lines(&reading));
    let variable = |name: &str| (name == "SET").then(|| "set".to_owned());
    let read_file = |_: &Path| Err(String::new());
    let mut context = ResolveContext::new(&variable, Path::new("/srv"), &read_file);
    context.secrets = access;
    resolve(&reading.servers[0], &context).map_err(|errors| {
        let line = |it: &mcp_host_config::ResolveError| {
            format!("{} {}: {} ({})", it.code, it.pointer, it.message, it.help.as_deref().unwrap_or_default())
        };
        errors.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

/// The values of a server as one text.
fn values(server: &ResolvedServer) -> String {
    let pairs = |it: &[(String, Secret)]| {
        it.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect::<Vec<_>>().join(" ")
    };
    match &server.endpoint {
        Endpoint::Stdio(it) => pairs(&it.env),
        Endpoint::Http(it) | Endpoint::Sse(it) | Endpoint::WebSocket(it) => {
            format!("{} {}", it.url, pairs(&it.headers))
        }
    }
}

#[track_caller]
fn check(profile: Profile, text: &str, want: &str) {
    let got = resolve_with(profile, text, SecretAccess::Granted(&Source::default()));
    assert_eq!(got.as_ref().map_or_else(String::clone, values), want, "{text}");
}

/// An editor's file with this entry.
fn editor_file(entry: &str) -> String {
    format!(r#"{{"servers": {{"a": {entry}}}}}"#)
}

// RPT-300
#[test]
fn secrets_are_replaced_in_every_dialect() {
    check(
        Profile::McpJson,
        &editor_file(r#"{"command": "x", "env": {"T": "a ${secret:KEY}", "I": "${input:api-key}"}}"#),
        "T=a <KEY> I=<MCP_INPUT_API_KEY>",
    );
    check(
        Profile::McpJson,
        &editor_file(
            r#"{"url": "https://a.example/?k=${secret:KEY}", "headers": {"A": "Bearer ${secret:KEY}"}}"#,
        ),
        "https://a.example/?k=%3CKEY%3E A=Bearer <KEY>",
    );
    check(
        Profile::McpJson,
        r#"{"mcp": {"a": {"type": "local", "command": ["x"], "environment": {"T": "{secret:KEY}"}}}}"#,
        "T=<KEY>",
    );
    let agent = "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, \
                 env: {T: '${secret:KEY}'}, config: {k: '${secret:KEY}'}}\n";
    check(Profile::HoloDeck, agent, "T=<KEY> MCP_CONFIG={\"k\":\"<KEY>\"}");
    let servers = "version: 1\nservers:\n  a:\n    transport: stdio\n    command: x\n    env: {T: 'a ${secret:KEY}', \
                   U: '${KEY}', V: {env: SET}}\n";
    check(Profile::Dominds, servers, "T=a <KEY> U=${KEY} V=set");
}

// RPT-301
#[test]
fn secret_that_would_be_visible_or_is_missing_is_an_error() {
    let visible = "a secret is not replaced here, because it would be visible";
    let help = "write it into `env`, `headers` or the query of the URL";
    for (entry, pointer) in [
        (r#"{"command": "x", "args": ["--token=${secret:KEY}"]}"#, "args/0"),
        (r#"{"command": "x", "cwd": "/${secret:KEY}"}"#, "cwd"),
        (r#"{"url": "https://${secret:KEY}.example/mcp"}"#, "url"),
        (r#"{"url": "https://a.example/${secret:KEY}?x=1"}"#, "url"),
    ] {
        let want = format!("MCP0046 /servers/a/{pointer}: {visible} ({help})");
        check(Profile::McpJson, &editor_file(entry), &want);
    }
    check(
        Profile::McpJson,
        &editor_file(r#"{"command": "x", "env": {"A": "${secret:OTHER}", "B": "${secret:BROKEN}"}}"#),
        "MCP0046 /servers/a/env/A: the secret 'OTHER' is not stored (store it: `mcp-host secret set OTHER`)\n\
         MCP0046 /servers/a/env/B: cannot read the secret 'BROKEN': the keyring is locked \
         (`mcp-host secret list` shows where secrets are stored)",
    );
    // An input is not read from the secrets where others would see it.
    let text = editor_file(r#"{"command": "x", "args": ["${input:api-key}"]}"#);
    let got = resolve_with(Profile::McpJson, &text, SecretAccess::Granted(&Source::default()));
    assert!(got.is_err_and(|it| it.contains("the input 'api-key' has no value")));
}

// RPT-304
#[test]
fn each_secret_is_read_once_and_none_if_they_are_withheld() {
    let text = editor_file(
        r#"{"command": "x",
            "env": {"A": "${secret:KEY}${secret:KEY}", "B": "${secret:KEY}", "C": "${input:api-key}"}}"#,
    );
    let source = Source::default();
    let granted = resolve_with(Profile::McpJson, &text, SecretAccess::Granted(&source)).unwrap();
    assert_eq!(*source.read.lock().unwrap(), ["KEY", "MCP_INPUT_API_KEY"]);
    let names = ["KEY", "MCP_INPUT_API_KEY"].map(str::to_owned);
    let exposed: Vec<_> = granted.secrets.values.iter().map(Secret::expose).collect();
    assert_eq!(
        (&granted.secrets.names[..], &exposed[..]),
        (&names[..], &["<KEY>", "<MCP_INPUT_API_KEY>"][..])
    );
    assert!(!granted.secrets.are_withheld && !format!("{granted:?}").contains("<KEY>"));

    let withheld = resolve_with(Profile::McpJson, &text, SecretAccess::Withheld).unwrap();
    assert_eq!(values(&withheld), "A=${secret:KEY}${secret:KEY} B=${secret:KEY} C=${input:api-key}");
    assert_eq!((&withheld.secrets.names[..], withheld.secrets.values.len()), (&names[..], 0));
    assert!(withheld.secrets.are_withheld);
}

#[test]
fn value_of_a_secret_is_not_expanded_again() {
    struct Nested;
    impl SecretSource for Nested {
        fn secret(&self, _: &str) -> Result<Option<Secret>, String> {
            Ok(Some(Secret::new("${SET}${secret:KEY}")))
        }
    }
    let text = editor_file(r#"{"command": "x", "env": {"A": "${secret:A}"}}"#);
    let server = resolve_with(Profile::McpJson, &text, SecretAccess::Granted(&Nested)).unwrap();
    assert_eq!(values(&server), "A=${SET}${secret:KEY}");
}
