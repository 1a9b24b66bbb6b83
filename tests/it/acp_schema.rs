//! The official JSON Schemas of ACP, from its npm package, validate what we send and are compared with our schemas.
//!
//! A row gives the reason for a difference to the official schema. The test fails if the difference has disappeared.

use jsonschema::Validator;
use mcp_host_acp::{
    AcpTransport, AcpVersion, AgentProfile, Capabilities, ServerStartError, ServerStartErrorKind,
    SessionMethod, SessionRequest, validate,
};
use mcp_host_config::Profile;
use mcp_host_model::{RawJson, RpcError};
use mcp_testkit::program::installed_folder;
use serde_json::{Value, json};

use crate::acp_samples::{Sample, V1, V2};

/// The official schema; `None` where the package is not installed.
pub(crate) fn official(version: AcpVersion, file: &str) -> Option<Value> {
    let modules = installed_folder("MCP_HOST_NODE_MODULES")?;
    let folder = modules.join(format!("@agentclientprotocol/sdk/schema/v{}", version.number()));
    Some(serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap())
}

/// A validator for one definition.
pub(crate) fn judge(schema: &Value, definition: &str) -> Validator {
    assert!(schema["$defs"][definition].is_object(), "{definition} is missing");
    let schema = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"] });
    jsonschema::validator_for(&schema).unwrap()
}

fn as_value(json: &RawJson) -> Value {
    serde_json::from_str(json.as_str()).unwrap()
}

#[test]
fn acp_015_declared_capabilities_match_the_official_schema() {
    for &version in AcpVersion::ALL {
        let Some(schema) = official(version, "schema.unstable.json") else { return };
        let (of_mcp, of_agent) = (judge(&schema, "McpCapabilities"), judge(&schema, "AgentCapabilities"));
        let wrong = match version {
            AcpVersion::V1 => json!({ "http": "yes" }),
            AcpVersion::V2 => json!({ "http": true }),
        };
        assert!(!of_mcp.is_valid(&wrong), "the judge takes anything");
        for number in 0_u8..32 {
            let bit = |it: u8| number & (1 << it) != 0;
            let custom = if bit(4) { vec!["_pigeon".to_owned()] } else { Vec::new() };
            let mut capabilities = Capabilities::STDIO;
            capabilities.stdio = bit(0);
            capabilities.http = bit(1);
            capabilities.sse = bit(2);
            capabilities.acp = bit(3);
            capabilities.custom = custom;
            let advertised = as_value(&capabilities.to_json(version));
            assert!(of_mcp.is_valid(&advertised), "{advertised}");
            let whole = match version {
                AcpVersion::V1 => json!({ "mcpCapabilities": advertised }),
                AcpVersion::V2 => json!({ "session": { "mcp": advertised } }),
            };
            assert!(of_agent.is_valid(&whole), "{whole}");
        }
    }
}

#[test]
fn acp_027_acpx_03_errors_match_the_official_schema() {
    let servers = [
        r#"[{"type":"http","name":"a","url":"https://a.example","headers":[]}]"#,
        r#"[{"type":"sse","name":"a","url":"https://a.example","headers":[]},{"name":""}]"#,
        r#"[{"type":"websocket","name":"a"}, 7, {"name":"b","command":"b","args":"x"}]"#,
        "7",
    ];
    let failures = [
        ServerStartErrorKind::TimedOut { limit: std::time::Duration::from_secs(30), stderr: "no".to_owned() },
        ServerStartErrorKind::Exited {
            command: "/a".to_owned(),
            exit_code: Some(1),
            stderr: "no".to_owned(),
        },
    ];
    for &version in AcpVersion::ALL {
        let Some(schema) = official(version, "schema.json") else { return };
        let judge = judge(&schema, "Error");
        assert!(!judge.is_valid(&json!({ "code": "x", "message": "" })), "the judge takes anything");
        let mut errors = Vec::new();
        for (method, servers) in
            SessionMethod::ALL.iter().flat_map(|&it| servers.map(|servers| (it, servers)))
        {
            let params = format!(r#"{{"cwd":"/a","mcpServers":{servers}}}"#);
            let set_up = SessionRequest::new(method, RawJson::parse(params.into()).unwrap());
            let mut none = Capabilities::STDIO;
            none.stdio = false;
            let refusal = validate(&set_up, &AgentProfile::new(version, &none)).unwrap_err();
            errors.push(serde_json::to_value(RpcError::from(&refusal)).unwrap());
        }
        for kind in &failures {
            let failure = ServerStartError::new("a", AcpTransport::Stdio, kind.clone(), &[]);
            errors.push(serde_json::to_value(RpcError::from(&failure)).unwrap());
        }
        for error in errors {
            assert!(judge.is_valid(&error), "{error}");
        }
    }
}

#[track_caller]
fn check(version: AcpVersion, profile: Profile, samples: &[Sample<'_>]) {
    let Some(schema) = official(version, "schema.unstable.json") else { return };
    let theirs = judge(&schema, "McpServer");
    let ours = jsonschema::validator_for(&mcp_host_config::schema(profile)).unwrap();
    let word = |it: bool| if it { "takes" } else { "refuses" };
    let mut wrong = Vec::new();
    for (entry, verdicts, reason) in samples {
        let value: Value = serde_json::from_str(entry).unwrap();
        let (theirs, ours) = (theirs.is_valid(&value), ours.is_valid(&json!([value])));
        let got = format!("{} {}", word(theirs), word(ours));
        if got != *verdicts || (theirs == ours) != reason.is_empty() {
            wrong.push(format!("{entry}: {got}, and not {verdicts}; {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{version:?}\n{}", wrong.join("\n"));
}

#[test]
fn acpx_09_our_schema_of_version_1_has_the_listed_differences() {
    check(AcpVersion::V1, Profile::AcpV1, V1);
}

#[test]
fn acpx_11_our_schema_of_version_2_has_the_listed_differences() {
    check(AcpVersion::V2, Profile::AcpV2, V2);
}
