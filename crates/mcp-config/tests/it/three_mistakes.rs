//! The crate's main example: three mistakes in two servers, all found in one pass, and a valid third server.

use mcp_host_config::{Colour, Profile, Reading, render};

use crate::{diagnostic_lines, read_text};

const WORKSPACE: &str = "\
version: 1
servers:
  files:
    transport: stdio
    command: ''
    args: -y
  web:
    transport: sse
    url: https://acme.example/mcp
  good:
    transport: stdio
    command: npx
";

const AGENT: &str = "\
tools:
  - name: files
    description: Files.
    type: mcp
    server: acme-files
    command: bash
    args: -y
  - name: web
    description: The web.
    type: mcp
    server: acme-web
    transport: http
    url: http://acme.example/mcp
  - name: good
    description: Good.
    type: mcp
    server: acme-good
    command: npx
";

fn accepted_entries(reading: &Reading) -> Vec<(&str, bool)> {
    reading.entries.iter().map(|it| (it.name.as_str(), it.accepted)).collect()
}

#[test]
fn dominds_accepts_the_server_without_errors() {
    let reading = read_text(Profile::Dominds, WORKSPACE);
    assert_eq!(accepted_entries(&reading), [("files", false), ("web", false), ("good", true)]);
    assert!(!reading.refused);
    assert_eq!(reading.servers.len(), 1);
    insta::assert_snapshot!(diagnostic_lines(&reading), @"
    error 5:14 /servers/files/command ValidationError: Invalid mcp.yaml: servers.files.command must be a non-empty \
    string
    error 6:11 /servers/files/args ValidationError: Invalid mcp.yaml: servers.files.args must be string[]
    error 8:16 /servers/web/transport MCPConfigError: Invalid mcp.yaml: servers.web.transport must be 'stdio' or \
    'streamable_http'
    ");
}

#[test]
fn holodeck_refuses_the_file() {
    let reading = read_text(Profile::HoloDeck, AGENT);
    assert_eq!(accepted_entries(&reading), [("files", false), ("web", false), ("good", false)]);
    assert!(reading.refused);
    insta::assert_snapshot!(diagnostic_lines(&reading), @"
    error 6:14 /tools/0/command MCPConfigError: Invalid command 'bash'. Supported commands: npx, uvx, docker
    error 7:11 /tools/0/args ValidationError: 'args' must be a list, not text
    error 13:10 /tools/1/url MCPConfigError: 'url' must use https:// (or http:// for localhost)
    ");
}

#[test]
fn rendered_diagnostics_have_line_and_help() {
    let reading = read_text(Profile::HoloDeck, AGENT);
    insta::assert_snapshot!("text", render("agent.yaml", AGENT, &reading.diagnostics, Colour::Never));
}

#[test]
fn serialized_diagnostics_have_position_and_help() {
    let reading = read_text(Profile::HoloDeck, AGENT);
    insta::assert_json_snapshot!("json", reading.diagnostics);
}

#[test]
fn coloured_output_has_the_same_text() {
    let reading = read_text(Profile::HoloDeck, AGENT);
    let coloured = render("agent.yaml", AGENT, &reading.diagnostics, Colour::Always);
    assert!(coloured.contains("\u{1b}["));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, render("agent.yaml", AGENT, &reading.diagnostics, Colour::Never));
}
