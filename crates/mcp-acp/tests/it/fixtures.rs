//! The requests among the workspace's fixtures: the good are taken, the bad refused, and no entry gets lost.

use std::path::Path;

use mcp_host_acp::{
    AcpVersion, AgentProfile, InvalidEntryPolicy, Policy, SessionRequest, SessionRequestError, WarningEffect,
    validate,
};
use mcp_host_model::RawJson;
use serde_json::Value;

use crate::{all, answer};

/// The requests of a folder, with their names. What is no JSON, or no request, is not ours to read.
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
            let got = SessionRequest::read(&json).and_then(|it| answer(version, &it));
            assert!(got.is_ok(), "{file}: {}", got.unwrap_err());
        }
        for (file, json) in invalid {
            let got = SessionRequest::read(&json).and_then(|it| answer(version, &it));
            assert!(got.is_err(), "{file}");
        }
    }
}

/// Whoever drops bad entries has each entry among the servers, or says why not.
#[test]
fn acp_048_a_dropped_entry_is_reported() {
    let (mut taken, mut dropped) = (0, 0);
    for (version, folder) in [(AcpVersion::V1, "acp-v1/invalid"), (AcpVersion::V2, "acp-v2/invalid")] {
        for (file, json) in requests(folder) {
            let Ok(set_up) = SessionRequest::read(&json) else { continue };
            let params: Value = serde_json::from_str(set_up.params.as_str()).unwrap();
            let entries = params["mcpServers"].as_array().map_or(0, Vec::len);
            let mut policy = Policy::default();
            policy.invalid_entries = InvalidEntryPolicy::Drop;
            let capabilities = all();
            let mut agent = AgentProfile::new(version, &capabilities);
            agent.policy = policy;
            match validate(&set_up, &agent) {
                Ok(it) => {
                    let mut gone: Vec<_> = it
                        .warnings
                        .iter()
                        .filter(|it| it.effect == WarningEffect::Dropped)
                        .filter_map(|it| it.diagnostic.index)
                        .collect();
                    gone.dedup();
                    assert_eq!(it.servers.len() + gone.len(), entries, "{file}");
                    taken += it.servers.len();
                    dropped += gone.len();
                }
                Err(SessionRequestError::InvalidParams(it)) => {
                    assert!(it.errors().iter().any(|it| it.index.is_none()), "{file}: {it}");
                }
                Err(SessionRequestError::MethodNotFound { .. }) => assert_eq!(file, "method__load.json"),
                Err(it) => panic!("{file}: {it}"),
            }
        }
    }
    assert!(taken > 0 && dropped > 20, "{taken} {dropped}");
}
