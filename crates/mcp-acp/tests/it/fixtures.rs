//! The requests of the workspace's fixtures: valid ones are accepted, invalid ones refused, and no entry is lost.

use std::path::Path;

use mcp_host_acp::{
    AcpVersion, AgentProfile, InvalidEntryPolicy, Policy, SessionRequest, SessionRequestError, WarningEffect,
    validate,
};
use mcp_host_model::RawJson;
use serde_json::Value;

use crate::{all_capabilities, validate_with_all};

/// The requests of a folder, with the names of their files. Files that are no JSON or no request are left out.
fn requests(folder: &str) -> Vec<(String, RawJson)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    let files = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
    let read = |it: std::path::PathBuf| {
        let json = RawJson::parse(std::fs::read(&it).unwrap().into()).ok()?;
        let value: Value = serde_json::from_str(json.as_str()).unwrap();
        let name = it.file_name().unwrap().to_string_lossy().into_owned();
        value.get("method").is_some().then_some((name, json))
    };
    files.filter_map(read).collect()
}

#[test]
fn acp_030_acp_032_fixture_requests_are_validated() {
    for (version, name) in [(AcpVersion::V1, "acp-v1"), (AcpVersion::V2, "acp-v2")] {
        let valid = requests(&format!("{name}/valid"));
        let invalid = requests(&format!("{name}/invalid"));
        assert!(valid.len() > 2 && invalid.len() > 5, "{} {}", valid.len(), invalid.len());
        for (file, json) in valid {
            let result = SessionRequest::read(&json).and_then(|it| validate_with_all(version, &it));
            assert!(result.is_ok(), "{file}: {}", result.unwrap_err());
        }
        for (file, json) in invalid {
            let result = SessionRequest::read(&json).and_then(|it| validate_with_all(version, &it));
            assert!(result.is_err(), "{file}");
        }
    }
}

/// If invalid entries are dropped, each entry is among the servers or in a warning.
#[test]
fn acp_048_a_dropped_entry_is_reported() {
    let (mut accepted, mut dropped) = (0, 0);
    for (version, folder) in [(AcpVersion::V1, "acp-v1/invalid"), (AcpVersion::V2, "acp-v2/invalid")] {
        for (file, json) in requests(folder) {
            let Ok(request) = SessionRequest::read(&json) else { continue };
            let params: Value = serde_json::from_str(request.params.as_str()).unwrap();
            let entries = params["mcpServers"].as_array().map_or(0, Vec::len);
            let mut policy = Policy::default();
            policy.invalid_entries = InvalidEntryPolicy::Drop;
            let capabilities = all_capabilities();
            let mut agent = AgentProfile::new(version, &capabilities);
            agent.policy = policy;
            match validate(&request, &agent) {
                Ok(it) => {
                    let mut reported: Vec<_> = it
                        .warnings
                        .iter()
                        .filter(|it| it.effect == WarningEffect::Dropped)
                        .filter_map(|it| it.diagnostic.index)
                        .collect();
                    reported.dedup();
                    assert_eq!(it.servers.len() + reported.len(), entries, "{file}");
                    accepted += it.servers.len();
                    dropped += reported.len();
                }
                Err(SessionRequestError::InvalidParams(it)) => {
                    assert!(it.errors().iter().any(|it| it.index.is_none()), "{file}: {it}");
                }
                Err(SessionRequestError::MethodNotFound { .. }) => assert_eq!(file, "method__load.json"),
                Err(it) => panic!("{file}: {it}"),
            }
        }
    }
    assert!(accepted > 0 && dropped > 20, "{accepted} {dropped}");
}
