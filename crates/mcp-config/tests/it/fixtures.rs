//! Our own files, judged twice: by the reader and by the schema.
//!
//! A valid file pleases both. An invalid one is refused by the reader with an error at the pointer that its name gives,
//! and by the schema too, unless it is listed here: what a schema cannot say.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use mcp_config::{Profile, schema, to_json};
use mcp_model::Severity;

use crate::reading;

/// What only the reader sees: rules about parsed URLs, about variables, about the text that JSON no longer has.
const ONLY_THE_READER: &[&str] = &[
    "dominds/__tab",
    "dominds/__two_documents",
    "dominds/servers-__empty_id",
    "dominds/servers-a__twice",
    "dominds/servers-a-command__twice",
    "dominds/servers-a-cwd__blank",
    "dominds/servers-a-env__name_holds_equals",
    "dominds/servers-a-headers-Bad Header__blank_in_name",
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
    "holodeck/tools-0-headers-Bad Header__blank_in_name",
    "holodeck/tools-0-name__line_break",
    "holodeck/tools-0-name__variable",
    "holodeck/tools-0-server__blank",
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
    /// The pointer its name gives, `/` written as `-`.
    pointer: String,
    text: String,
}

fn fixtures(profile: Profile, verdict: &str) -> Vec<Fixture> {
    let dialect = profile.dialect().as_str();
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
    // What is no YAML, or cannot be said in JSON, no schema ever sees.
    to_json(text).is_none_or(|it| validator.is_valid(&it.read().unwrap()))
}

const DIALECTS: [Profile; 2] = [Profile::HoloDeck, Profile::Dominds];

#[test]
fn valid_files_please_both_judges() {
    for profile in DIALECTS {
        for Fixture { label, text, .. } in fixtures(profile, "valid") {
            let reading = reading(profile, &text);
            assert!(!reading.refused && !reading.has_errors(), "{label}: {}", crate::found(&reading));
            assert!(reading.entries.iter().all(|it| it.accepted), "{label}");
            let running = reading.entries.iter().filter(|it| !it.disabled);
            assert_eq!(reading.servers.len(), running.count(), "{label}");
            assert!(schema_accepts(profile, &text), "the schema refuses {label}");
        }
    }
}

#[test]
fn invalid_files_are_refused_where_their_names_say() {
    let mut missed = BTreeSet::new();
    for profile in DIALECTS {
        for Fixture { label, pointer, text } in fixtures(profile, "invalid") {
            let reading = reading(profile, &text);
            let at_pointer = reading
                .diagnostics
                .iter()
                .any(|it| it.severity == Severity::Error && it.pointer.replace('/', "-") == pointer);
            assert!(at_pointer, "{label}: {}", crate::found(&reading));
            if profile == Profile::HoloDeck {
                assert!(reading.refused, "{label} is not refused");
            }
            if schema_accepts(profile, &text) {
                missed.insert(label);
            }
        }
    }
    let listed: BTreeSet<_> = ONLY_THE_READER.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(missed, listed, "what the schema does not see has changed");
}

#[test]
fn dm_122_a_bad_server_leaves_the_good_one_alone() {
    for Fixture { label, text, .. } in fixtures(Profile::Dominds, "invalid") {
        if !text.contains("good:") {
            continue;
        }
        let reading = reading(Profile::Dominds, &text);
        let accepted: Vec<_> = reading.entries.iter().map(|it| (it.name.as_str(), it.accepted)).collect();
        assert_eq!(accepted, [("a", false), ("good", true)], "{label}");
        assert_eq!(reading.servers.len(), 1, "{label}");
        assert!(!reading.refused, "{label}");
    }
}
