//! Our verdicts compared with the recorded verdicts of the protocol's own types. Reads the folder `MCP_HOST_ORACLES`.
//!
//! Intended differences are listed with their reasons. A listed difference that no longer exists fails the test.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use mcp_host_acp::{AcpVersion, SessionMethod, SessionRequest};
use serde_json::{Value, json};

use crate::{raw, validate_with_all};

/// Pairs of a reason and the labels of the cases that differ for it.
type Reasons<'a> = &'a [(&'a str, &'a [&'a str])];

/// Entries about which the schema crate of version 1 decides differently.
const ENTRIES_V1: Reasons<'_> = &[
    (
        "ACPX-01, ACP-040: what is empty starts nothing and leads nowhere; the crate looks at types only",
        &["stdio empty command", "stdio env empty name", "http empty url", "http header empty name"],
    ),
    ("ACP-024: no system takes a variable with `=` in its name", &["stdio env name with ="]),
    ("ACP-025: a line break would add a header", &["http header CRLF value"]),
    ("ACP-006: null is no type; the crate tries every variant until one fits", &["type null"]),
];

/// Entries about which the schema crate of version 2 decides differently.
const ENTRIES_V2: Reasons<'_> = &[
    (
        "ACPX-11: a type that does not begin with `_` is unknown; the crate keeps it, and leaves the refusal to the \
        agent",
        &["type streamable_http", "sse no headers", "unknown type with url"],
    ),
    ("ACPX-01: what is empty leads nowhere", &["http empty url", "http header empty name"]),
    ("ACP-025: a line break would add a header", &["http header CRLF value"]),
];

/// The recorded verdicts. Without them, prints that the test is skipped.
fn read_recorded(test: &str) -> Option<Value> {
    let Some(folder) = std::env::var_os("MCP_HOST_ORACLES").map(PathBuf::from) else {
        let line = format!("{test}: skipped, for MCP_HOST_ORACLES is not set\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    };
    Some(serde_json::from_str(&std::fs::read_to_string(folder.join("acp.json")).unwrap()).unwrap())
}

fn accepts(version: AcpVersion, params: &Value) -> bool {
    validate_with_all(version, &SessionRequest::new(SessionMethod::New, raw(&params.to_string()))).is_ok()
}

/// Checks that exactly the listed cases differ. A case is its label, their verdict and ours.
#[track_caller]
fn compare(cases: &[(&str, bool, bool)], reasons: Reasons<'_>) {
    let listed: BTreeMap<_, _> =
        reasons.iter().flat_map(|(reason, labels)| labels.iter().map(move |it| (*it, *reason))).collect();
    let differ: Vec<_> = cases.iter().filter(|it| it.1 != it.2).map(|it| it.0).collect();
    let new: Vec<_> = differ.iter().filter(|it| !listed.contains_key(*it)).collect();
    assert!(new.is_empty(), "these differ without a reason: {new:?}");
    let gone: Vec<_> = listed.keys().filter(|it| !differ.contains(it)).collect();
    assert!(gone.is_empty(), "listed as different, and are not: {gone:?}");
}

#[test]
fn acpx_09_acpx_11_protocol_types_take_the_same_entries() {
    let name = "acpx_09_acpx_11_protocol_types_take_the_same_entries";
    let Some(recorded) = read_recorded(name) else { return };
    let probes = recorded["probes"].as_array().unwrap();
    assert!(!probes.is_empty());
    for (version, key, reasons) in
        [(AcpVersion::V1, "acp_v1", ENTRIES_V1), (AcpVersion::V2, "acp_v2", ENTRIES_V2)]
    {
        let case = |it: &Value| {
            let params = json!({ "cwd": "/desk", "mcpServers": [it["input"]] });
            (it["r"][key]["ok"] == true, accepts(version, &params))
        };
        let cases: Vec<_> = probes
            .iter()
            .map(|it| {
                let (theirs, ours) = case(it);
                (it["label"].as_str().unwrap(), theirs, ours)
            })
            .collect();
        compare(&cases, reasons);
    }
}

#[test]
fn acpx_10_protocol_types_take_the_same_requests() {
    let Some(recorded) = read_recorded("acpx_10_protocol_types_take_the_same_requests") else { return };
    let requests = recorded["requests"].as_array().unwrap();
    assert!(!requests.is_empty());
    for (version, key) in [(AcpVersion::V1, "v1"), (AcpVersion::V2, "v2")] {
        let cases: Vec<_> = requests
            .iter()
            .map(|it| (it["label"].as_str().unwrap(), it[key]["ok"] == true, accepts(version, &it["input"])))
            .collect();
        compare(&cases, &[]);
    }
}

/// Recorded requests about which the schema crate of version 1 decides differently.
const FOUND_V1: Reasons<'_> = &[
    (
        "ACP-022: the command is no absolute path; the crate looks at types only",
        &[
            "acp/010-index-70388514658.json",
            "acp/014-index-69482610762.json",
            "acp/017-index-70085640826.json",
            "acp/022-codex-acp.json",
            "acp/023-codex-acp.json",
        ],
    ),
    ("ACPX-10: `initialize` carries no servers", &["acp/007-index-56673592992.json"]),
];

/// The same for version 2.
const FOUND_V2: Reasons<'_> = &[];

#[test]
fn acp_048_protocol_types_take_the_same_recorded_requests() {
    let name = "acp_048_protocol_types_take_the_same_recorded_requests";
    let Some(recorded) = read_recorded(name) else { return };
    let Some(corpus) = std::env::var_os("MCP_HOST_CORPUS").map(PathBuf::from) else {
        let line = format!("{name}: skipped, for MCP_HOST_CORPUS is not set\n");
        return std::io::stderr().write_all(line.as_bytes()).unwrap();
    };
    for (version, key, reasons) in
        [(AcpVersion::V1, "request_v1", FOUND_V1), (AcpVersion::V2, "request_v2", FOUND_V2)]
    {
        let mut cases = Vec::new();
        for it in recorded["files"].as_array().unwrap().iter().filter(|it| it[key].is_object()) {
            let file = it["file"].as_str().unwrap();
            let request = raw(&std::fs::read_to_string(corpus.join(file)).unwrap());
            let ours = SessionRequest::read(&request).and_then(|it| validate_with_all(version, &it));
            cases.push((file, it[key]["ok"] == true, ours.is_ok()));
        }
        assert!(cases.len() > 10);
        compare(&cases, reasons);
    }
}
