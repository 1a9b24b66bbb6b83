//! The exact messages of HoloDeck's configuration contract.

use mcp_host_config::{Profile, ResolveContext, resolve};

use crate::read_text;

/// The mistake, the fields of an item that has it, and the message.
const CONTRACT_MESSAGES: &[(&str, &str, &str)] = &[
    (
        "invalid command",
        "server: s, command: bash",
        "MCPConfigError: Invalid command 'bash'. Supported commands: npx, uvx, docker",
    ),
    ("missing command for stdio", "server: s", "MCPConfigError: 'command' is required for stdio transport"),
    (
        "missing url for sse",
        "server: s, transport: sse",
        "MCPConfigError: 'url' is required for sse transport",
    ),
    (
        "unresolved env var",
        "server: s, command: npx, env: {A: '${VAR_NAME}'}",
        "ConfigError: Environment variable 'VAR_NAME' not found",
    ),
    (
        "invalid url scheme",
        "server: s, transport: http, url: 'http://acme.example'",
        "MCPConfigError: 'url' must use https:// (or http:// for localhost)",
    ),
    ("empty server", "server: '', command: npx", "ValidationError: 'server' must be a non-empty identifier"),
];

/// The first error of an item, as text.
fn first_error(fields: &str) -> String {
    let text = format!("tools:\n  - {{name: a, description: d, type: mcp, {fields}}}\n");
    let reading = read_text(Profile::HoloDeck, &text);
    if let Some(first) = reading.diagnostics.first() {
        return first.to_string();
    }
    let context = ResolveContext::new(&|_| None, std::path::Path::new("."), &|_| Err("no".to_owned()));
    let errors = resolve(&reading.servers[0], &context).unwrap_err();
    errors[0].to_string()
}

#[test]
fn hd_060_to_hd_065_contract_messages_are_exact() {
    let mut table = String::new();
    for (what, fields, want) in CONTRACT_MESSAGES {
        let got = first_error(fields);
        assert_eq!(got, *want, "{what}");
        table.push_str(&format!("{what}: {got}\n"));
    }
    insta::assert_snapshot!("contract", table);
}
