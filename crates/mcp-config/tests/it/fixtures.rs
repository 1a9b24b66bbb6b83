//! The repository's fixtures, checked by the reader and by the schema.
//!
//! A valid file passes both. For an invalid file the reader reports an error at the pointer in its name, and the schema
//! rejects it too, unless it is listed here.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use mcp_host_config::{Profile, schema, text_to_json};
use mcp_host_model::Severity;

use crate::read_text;

/// Mistakes that a schema cannot express: rules for parsed URLs, for variables, and for source text.
const ONLY_THE_READER: &[&str] = &[
    "mcp-json/__backslashes",
    "mcp-json/__fragment",
    "mcp-json/__missing_comma",
    "mcp-json/__single_quotes",
    "mcp-json/__two_values",
    "mcp-json/mcpServers-1-name__twice",
    "mcp-json/mcpServers-a-args__twice",
    "mcp-json/mcpServers-a-command__twice",
    "mcp-json/mcpServers-a-command__whole_line",
    "mcp-json/mcpServers-a-env-A__nul",
    "mcp-json/mcpServers-a-env__name_holds_equals",
    "mcp-json/mcpServers-a-environment__beside_env",
    "mcp-json/mcpServers-a-headers-A__line_break",
    "mcp-json/mcpServers-a-headers__no_token",
    "mcp-json/mcpServers-a-headers-Host__of_the_connection",
    "mcp-json/mcpServers-a-serverUrl__no_host",
    "mcp-json/mcpServers-a-url__beside_command",
    "mcp-json/mcpServers-a-url__file",
    "mcp-json/mcpServers-a-url__http_for_websocket",
    "mcp-json/mcpServers-a-url__no_scheme",
    "mcp-json/mcpServers-a-url__other_than_serverUrl",
    "mcp-json/mcpServers-a__twice",
    "mcp-json/servers-a__also_elsewhere",
    "acp-v1/0-env__twice",
    "acp-v1/0-name__raw_line_break",
    "acp-v1/__comma",
    "acp-v1/__comment",
    "acp-v1/__odd_blank",
    "acp-v1/params-mcpServers-0-args-0__nul",
    "acp-v1/params-mcpServers-0-command__nul",
    "acp-v1/params-mcpServers-0-env-0-name__holds_equals",
    "acp-v1/params-mcpServers-0-env-0-name__nul",
    "acp-v1/params-mcpServers-0-env-0-value__nul",
    "acp-v1/params-mcpServers-0-headers-0-name__no_token",
    "acp-v1/params-mcpServers-0-headers-0-name__of_the_connection",
    "acp-v1/params-mcpServers-0-headers-0-value__line_break",
    "acp-v1/params-mcpServers-0-url__bad_port",
    "acp-v1/params-mcpServers-0-url__blank",
    "acp-v1/params-mcpServers-0-url__no_host",
    "acp-v1/params-mcpServers-1-name__twice",
    "dominds/__tab",
    "dominds/__two_documents",
    "dominds/servers-__empty_id",
    "dominds/servers-a__twice",
    "dominds/servers-a-command__twice",
    "dominds/servers-a-env__name_holds_equals",
    "dominds/servers-a-headers__blank_in_name",
    "dominds/servers-a-sessionId__line_break",
    "dominds/servers-a-url__bad_port",
    "dominds/servers-a-url__no_host",
    "dominds/servers-a-url__no_scheme",
    "dominds/servers-a-url__websocket",
    "dominds/servers__key_is_a_list",
    "holodeck/__open_quote",
    "holodeck/__tab",
    "holodeck/__two_documents",
    "holodeck/tools-0-args__alias_of_nothing",
    "holodeck/tools-0-command__twice",
    "holodeck/tools-0-config__infinity",
    "holodeck/tools-0-encoding__unknown",
    "holodeck/tools-0-encoding__utf_16",
    "holodeck/tools-0-env-8080__key_is_a_number",
    "holodeck/tools-0-env__name_holds_equals",
    "holodeck/tools-0-headers-A__line_break",
    "holodeck/tools-0-headers__blank_in_name",
    "holodeck/tools-0-name__line_break",
    "holodeck/tools-0-name__variable",
    "holodeck/tools-0-timeout__infinite",
    "holodeck/tools-0-type__upper_case",
    "holodeck/tools-0-url__bad_port",
    "holodeck/tools-0-url__begins_like_localhost",
    "holodeck/tools-0-url__blank",
    "holodeck/tools-0-url__https_for_websocket",
    "holodeck/tools-0-url__localhost_as_user",
    "holodeck/tools-0-url__no_host",
    "holodeck/tools-0-url__plain_http",
    "holodeck/tools-0-url__websocket_scheme_for_http",
    "holodeck/tools-1-name__also_a_function",
];

struct Fixture {
    label: String,
    /// The pointer in the name of the file, with `-` for `/`.
    pointer: String,
    text: String,
}

fn fixtures(profile: Profile, verdict: &str) -> Vec<Fixture> {
    let dialect = profile.as_str();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(dialect).join(verdict);
    let mut paths: Vec<_> = fs::read_dir(root).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let fixture = |path: PathBuf| {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let pointer = stem.split_once("__").map_or("", |it| it.0);
        Fixture {
            label: format!("{dialect}/{stem}"),
            pointer: if pointer.is_empty() { String::new() } else { format!("-{pointer}") },
            text: fs::read_to_string(path).unwrap(),
        }
    };
    paths.into_iter().map(fixture).collect()
}

fn schema_accepts(profile: Profile, text: &str) -> bool {
    let validator = jsonschema::validator_for(&schema(profile)).unwrap();
    // A text that is not valid YAML, or cannot be expressed in JSON, counts as accepted: a schema cannot reject
    // it.
    text_to_json(text).is_none_or(|it| validator.is_valid(&it.read().unwrap()))
}

const PROFILES: [Profile; 5] =
    [Profile::HoloDeck, Profile::Dominds, Profile::AcpV1, Profile::AcpV2, Profile::McpJson];

#[test]
fn valid_fixtures_pass_reader_and_schema() {
    for profile in PROFILES {
        for Fixture { label, text, .. } in fixtures(profile, "valid") {
            let reading = read_text(profile, &text);
            assert!(
                !reading.refused && !reading.has_errors(),
                "{label}: {}",
                crate::diagnostic_lines(&reading)
            );
            assert!(reading.entries.iter().all(|it| it.accepted), "{label}");
            let running = reading.entries.iter().filter(|it| !it.disabled);
            assert_eq!(reading.servers.len(), running.count(), "{label}");
            assert!(schema_accepts(profile, &text), "the schema refuses {label}");
        }
    }
}

#[test]
fn invalid_fixtures_fail_at_the_named_pointer() {
    let mut missed = BTreeSet::new();
    for profile in PROFILES {
        for Fixture { label, pointer, text } in fixtures(profile, "invalid") {
            let reading = read_text(profile, &text);
            let at_pointer = reading
                .diagnostics
                .iter()
                .any(|it| it.severity == Severity::Error && it.pointer.replace('/', "-") == pointer);
            assert!(at_pointer, "{label}: {}", crate::diagnostic_lines(&reading));
            if [Profile::HoloDeck, Profile::AcpV1, Profile::AcpV2].contains(&profile) {
                assert!(reading.refused, "{label} is not refused");
            }
            if schema_accepts(profile, &text) {
                missed.insert(label);
            }
        }
    }
    let listed: BTreeSet<_> = ONLY_THE_READER.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(missed, listed, "the list of mistakes that only the reader finds differs");
}

#[test]
fn dm_122_invalid_server_does_not_affect_others() {
    let all = [Profile::Dominds, Profile::McpJson]
        .map(|profile| fixtures(profile, "invalid").into_iter().map(move |it| (profile, it)));
    for (profile, Fixture { label, text, .. }) in all.into_iter().flatten() {
        if !text.contains("good:") && !text.contains("\"good\"") {
            continue;
        }
        let reading = read_text(profile, &text);
        let accepted: Vec<_> = reading.entries.iter().map(|it| (it.name.as_str(), it.accepted)).collect();
        assert_eq!(accepted, [("a", false), ("good", true)], "{label}");
        assert_eq!(reading.servers.len(), 1, "{label}");
        assert!(!reading.refused, "{label}");
    }
}
