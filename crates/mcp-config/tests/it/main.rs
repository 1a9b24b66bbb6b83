//! Tests of the public interface of mcp-config.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acp;
mod call_rules;
mod client_credentials;
mod collections;
mod contract;
mod conversion;
mod corpus;
mod dominds;
mod edits;
mod field_changes;
mod fixes;
mod fixtures;
mod holodeck;
mod limits;
mod mcp_json;
mod oracles;
mod other_programs;
mod program_by_content;
mod program_limits;
mod property;
mod reader;
mod remedies;
mod resolve;
mod sandbox;
mod sarif;
mod schema_agreement;
mod schemas;
mod secrets;
mod shell_variables;
mod switches;
mod three_mistakes;
mod user_secrets;
mod wording;

use mcp_host_config::{Document, Profile, Reading, read};

/// Reads a text by a profile.
fn read_text(profile: Profile, text: &str) -> Reading {
    read(&Document::new("config.yaml", text, profile))
}

/// The diagnostics, one per line: `error 3:5 /pointer Kind: message`.
fn diagnostic_lines(reading: &Reading) -> String {
    let line = |it: &mcp_host_config::Diagnostic| {
        format!("{} {}:{} {} {it}", it.severity, it.line, it.column, it.pointer)
    };
    reading.diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}
