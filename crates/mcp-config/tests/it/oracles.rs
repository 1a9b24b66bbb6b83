//! Compares our results with recorded results of the real systems.
//!
//! Intended differences are listed with a reason; a listed case that no longer differs fails the test.
//! `MCP_HOST_ORACLES` names the recorded results.

use std::path::Path;

use mcp_host_config::{Profile, Reading, ResolveContext, parse_env_file, resolve};
use mcp_host_model::Endpoint;
use serde_json::{Value, json};

use crate::collections::{Case, Differences, compare, expect_list, expect_text, recorded_results};
use crate::{diagnostic_lines, read_text};

/// Items with another result in HoloDeck 0.7.
const HOLODECK_ITEMS: Differences<'_> = &[
    (
        "HD-044: the parsed host decides whether it is this machine; HoloDeck compares prefixes",
        &[
            "http url=http://localhost.evil.example/",
            "websocket url=http://localhost.evil.example/",
            "sse url=http://localhostevil/",
            "sse url=http://127.0.0.1.evil.example",
            "http url=http://localhost@evil.example/",
            "websocket url=http://localhost@evil.example/",
            "http url=http://127.0.0.2/",
            "http url=http://LOCALHOST/",
            "sse url=http://user@localhost/",
        ],
    ),
    (
        "HD-044: a scheme is the same in upper case; HoloDeck compares prefixes",
        &["sse url=HTTP://localhost/", "http url=HTTPS://a.example"],
    ),
    (
        "HD-042: a URL must have a scheme of its transport; HoloDeck accepts each scheme for each transport",
        &[
            "sse url=ws://a.example",
            "http url=wss://a.example",
            "transport='websocket' +command+url",
            "websocket url=https://a.example/x",
            "websocket url=http://localhost",
            "websocket url=http://127.0.0.1:1",
        ],
    ),
    (
        "HD-045: a text that is not a URL cannot be connected to; HoloDeck checks its first letters only",
        &[
            "sse url=https://",
            "http url=https:///x",
            "websocket url=https:///x",
            "http url=https://a.example:99999/",
            "websocket url=https://a.example:99999/",
            "http url=https://a b",
            "websocket url=https://a b",
        ],
    ),
    (
        "HD-025, HD-026: a duration is finite and greater than zero",
        &["timeout=-1", "timeout=inf", "sse_read_timeout=0"],
    ),
    ("HD-022: a header's name is one word, as HTTP requires", &["headers={'Bad Header': 'x'}"]),
    ("HD-020: an encoding that does not exist is reported at load, not at the first byte", &["encoding=''"]),
    (
        "HD-058: an env file that cannot be read is a mistake at load; no file has an empty name",
        &["env_file=''"],
    ),
];

/// Agents with another result in HoloDeck 0.7.
const HOLODECK_AGENTS: Differences<'_> = &[
    (
        "HD-054: variables are replaced in values; HoloDeck replaces them in the file before it reads the YAML",
        &[
            "var missing in a YAML comment fails too",
            "numeric value unquoted becomes int -> reject",
            "quote in value",
        ],
    ),
    (
        "HDX-24: a duplicate key is a mistake; PyYAML takes the last one silently",
        &["duplicate yaml key: last wins (PyYAML)", "duplicate yaml key bad first"],
    ),
    ("HDX-24: YAML 1.2 has no numbers to the base of sixty", &["octal/sexagesimal timeout 1:30"]),
    ("only the MCP items of an agent are checked", &["anchor/merge"]),
];

/// Workspaces with another result in the version of Dominds that the paper describes. The first reason does
/// not apply to the newest version.
const DOMINDS_WORKSPACES: Differences<'_> = &[
    (
        "newer versions read the key, or are stricter about it",
        &[
            "cwd=\"\"",
            "cwd=1",
            "enabled=no",
            "enabled=~",
            "headers={A: {prefix: 1, env: B}}",
            "resources=~",
            "resources={maxBytes: 0}",
            "transform=[{foo: 1}]",
        ],
    ),
    ("HD-022: a header's name is one word, as HTTP requires", &["headers={\"Bad Header\": x}"]),
];

const ACCEPT: &str = "accept";
const REJECT: &str = "reject";

/// The result of a file whose variables are looked up by `variable`.
fn resolved_outcome(reading: &Reading, variable: &dyn Fn(&str) -> Option<String>) -> &'static str {
    let context = ResolveContext::new(variable, Path::new("/base"), &|_| Ok(String::new()));
    let resolves = reading.servers.iter().all(|it| resolve(it, &context).is_ok());
    if reading.refused || !resolves { REJECT } else { ACCEPT }
}

#[test]
fn holodeck_0_7_accepts_the_same_items() {
    let Some(recorded) = recorded_results("holodeck_0_7_accepts_the_same_items", "holodeck.json") else {
        return;
    };
    let case = |probe: &Value| -> Case {
        let label = expect_text(&probe["label"]);
        let mut agent = json!({ "tools": [probe["input"]] }).to_string().replace("\".inf\"", ".inf");
        if label.starts_with("env={1: ") {
            // In JSON the key is a string; in the original probe it is a number.
            agent = agent.replace("{\"1\":", "{1: ");
        }
        // The recorded results are without variable replacement, so each variable is replaced by itself.
        let ours =
            resolved_outcome(&read_text(Profile::HoloDeck07, &agent), &|name| Some(format!("${{{name}}}")));
        (label.to_owned(), expect_text(&probe["outcome"]).to_owned(), ours.to_owned())
    };
    let cases: Vec<_> = expect_list(&recorded["mcptool_probes"]).iter().map(case).collect();
    compare("HoloDeck 0.7, items", &cases, HOLODECK_ITEMS);
}

#[test]
fn holodeck_0_7_accepts_the_same_agents() {
    let Some(recorded) = recorded_results("holodeck_0_7_accepts_the_same_agents", "holodeck.json") else {
        return;
    };
    let case = |probe: &Value| -> Case {
        let reading = read_text(Profile::HoloDeck07, expect_text(&probe["yaml"]));
        let ours = resolved_outcome(&reading, &|name| probe["env"][name].as_str().map(str::to_owned));
        (expect_text(&probe["label"]).to_owned(), expect_text(&probe["outcome"]).to_owned(), ours.to_owned())
    };
    let cases: Vec<_> = expect_list(&recorded["loader_cases"]).iter().map(case).collect();
    compare("HoloDeck 0.7, agents", &cases, HOLODECK_AGENTS);
}

/// The start parameters of the only server of an item, or its errors.
fn resolve_item(item: &Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<Endpoint, String> {
    let reading = read_text(Profile::HoloDeck07, &json!({ "tools": [item] }).to_string());
    let server = reading.servers.first().ok_or_else(|| diagnostic_lines(&reading))?;
    let read_file = |path: &Path| match path.ends_with("b.env") {
        true => Ok("A=file\nB=fileB\nMCP_CONFIG=fromfile\n".to_owned()),
        false => Err("no such file".to_owned()),
    };
    let context = ResolveContext::new(variable, Path::new("/base"), &read_file);
    let errors =
        |it: mcp_host_config::ResolveErrors| it.iter().map(|it| format!("{it}\n")).collect::<String>();
    resolve(server, &context).map(|it| it.endpoint).map_err(errors)
}

#[test]
fn hd_050_to_hd_055_variables_are_replaced_alike() {
    let Some(recorded) = recorded_results("hd_050_to_hd_055_variables_are_replaced_alike", "holodeck.json")
    else {
        return;
    };
    let environment = &recorded["env_substitution"]["env"];
    let case = |case: &Value| -> Case {
        let item = json!({ "name": "t", "description": "d", "type": "mcp", "command": "npx", "args": [case["input"]] });
        let ours = match resolve_item(&item, &|name| environment[name].as_str().map(str::to_owned)) {
            Ok(Endpoint::Stdio(it)) => it.args[0].expose().to_owned(),
            Ok(other) => panic!("not stdio: {other:?}"),
            Err(why) => why.trim_end().trim_start_matches("ConfigError: ").to_owned(),
        };
        let theirs = match case["message"].as_str() {
            // HoloDeck's message has the name twice and ends with advice; both are removed.
            Some(message) => {
                let message = message.split_once("': ").unwrap().1;
                message.trim_end_matches(". Please set it and try again.").to_owned()
            }
            None => expect_text(&case["value"]).to_owned(),
        };
        (expect_text(&case["input"]).to_owned(), theirs, ours)
    };
    let cases: Vec<_> = expect_list(&recorded["env_substitution"]["cases"]).iter().map(case).collect();
    compare("HoloDeck 0.7, variables", &cases, &[]);
}

#[test]
fn hd_057_env_files_are_read_alike() {
    let Some(recorded) = recorded_results("hd_057_env_files_are_read_alike", "holodeck.json") else { return };
    let case = |case: &Value| -> Option<Case> {
        // A case without a text is a file that cannot be read.
        let input = case["input"].as_str()?;
        let ours: serde_json::Map<_, _> =
            parse_env_file(input).into_iter().map(|it| (it.0, it.1.expose().into())).collect();
        Some((format!("{input:?}"), case["value"].to_string(), Value::Object(ours).to_string()))
    };
    let cases: Vec<_> = expect_list(&recorded["dotenv"]).iter().filter_map(case).collect();
    compare(
        "HoloDeck 0.7, .env files",
        &cases,
        &[("a byte order mark is not part of the first name (HD-057)", &["\"\\u{feff}A=1\\n\""])],
    );
}

#[test]
fn hd_104_a_child_gets_the_same_environment() {
    let Some(recorded) = recorded_results("hd_104_a_child_gets_the_same_environment", "holodeck.json") else {
        return;
    };
    let bridge = &recorded["claude_bridge"];
    let case = |case: &Value| -> Option<Case> {
        let mut item = case["input"].clone();
        item["type"] = "mcp".into();
        let theirs = match case["output"].as_object() {
            Some(servers) => servers.get("t")?.get("env").map_or_else(|| json!({}), Value::clone),
            None => "an error".into(),
        };
        let ours = match resolve_item(&item, &|name| bridge["env"][name].as_str().map(str::to_owned)) {
            Ok(Endpoint::Stdio(it)) => {
                let env = it.env.iter().map(|(name, value)| (name.clone(), value.expose().into()));
                Value::Object(env.collect())
            }
            Ok(other) => panic!("not stdio: {other:?}"),
            Err(_) => "an error".into(),
        };
        Some((
            expect_text(&case["label"]).to_owned(),
            parse_config_variable(theirs),
            parse_config_variable(ours),
        ))
    };
    let cases: Vec<_> = expect_list(&bridge["cases"]).iter().filter_map(case).collect();
    compare("HoloDeck 0.7, environment of a child", &cases, &[]);
}

/// An environment in which `MCP_CONFIG` is compared as JSON.
fn parse_config_variable(mut environment: Value) -> String {
    if let Some(config) = environment.get_mut("MCP_CONFIG") {
        let parsed = config.as_str().and_then(|it| serde_json::from_str(it).ok());
        *config = parsed.unwrap_or_else(|| config.clone());
    }
    environment.to_string()
}

/// Each server and whether it is accepted, or that the file is refused.
pub(crate) fn describe_servers(reading: &Reading) -> String {
    if reading.refused {
        return "refused".to_owned();
    }
    let mut res: Vec<_> = reading.entries.iter().map(|it| format!("{}: {}", it.name, it.accepted)).collect();
    res.sort();
    res.join(", ")
}

/// [`describe_servers`] of a recorded result.
pub(crate) fn describe_their_servers(answer: &Value) -> String {
    if answer["ok"] == false {
        return "refused".to_owned();
    }
    let valid = expect_list(&answer["validServers"])
        .iter()
        .chain(answer["disabled"].as_array().into_iter().flatten());
    let invalid = expect_list(&answer["invalidServers"]).iter().map(|it| &it["serverId"]);
    let valid = valid.map(|it| format!("{}: true", expect_text(it)));
    let mut res: Vec<_> = valid.chain(invalid.map(|it| format!("{}: false", expect_text(it)))).collect();
    res.sort();
    res.join(", ")
}

/// The version that the paper on Dominds describes.
pub(crate) const PAPER_VERSION: &str = "seed(0.2.0@812c7470)";
/// The newest version with recorded results.
pub(crate) const NEWEST_VERSION: &str = "1.29.0";

#[test]
fn dominds_accepts_the_same_workspaces() {
    let Some(recorded) = recorded_results("dominds_accepts_the_same_workspaces", "dominds.json") else {
        return;
    };
    let probes = expect_list(&recorded["probes"]);
    let case = |version: &str, probe: &Value| -> Case {
        let ours = describe_servers(&read_text(Profile::Dominds, expect_text(&probe["yaml"])));
        (expect_text(&probe["label"]).to_owned(), describe_their_servers(&probe[version]), ours)
    };
    let cases: Vec<_> = probes.iter().map(|it| case(PAPER_VERSION, it)).collect();
    compare("Dominds of the paper", &cases, DOMINDS_WORKSPACES);
    let cases: Vec<_> = probes.iter().map(|it| case(NEWEST_VERSION, it)).collect();
    compare("Dominds today", &cases, &DOMINDS_WORKSPACES[1..]);
}

/// Messages with another wording in Dominds.
const DOMINDS_MESSAGES: Differences<'_> = &[
    (
        "ours names the wrong part, theirs the whole value",
        &["args=[~]", "env={A: {env: 1}}", "transform=[{prefix: {add: b}}]"],
    ),
    (
        "ours lists all types that are allowed, theirs the one that was tried last",
        &["env={A: 1}", "env={A: ~}", "transform=[{prefix: 1}]"],
    ),
    (
        "ours distinguishes another type from an empty text",
        &["command=[npx, -y]", "command=~", "cwd=1", "url=~"],
    ),
    ("ours adds the reason", &["url=\"http://\"", "url=\"http://a.example:99999\""]),
];

#[test]
fn dominds_reports_the_same_messages() {
    let Some(recorded) = recorded_results("dominds_reports_the_same_messages", "dominds.json") else {
        return;
    };
    let case = |probe: &Value| -> Option<Case> {
        let answer = &probe[NEWEST_VERSION];
        let message = answer["errorText"].as_str().or(answer["invalidServers"][0]["errorText"].as_str())?;
        // Only Dominds' own messages are compared, not those of its YAML parser.
        let message = message.starts_with("Invalid mcp.yaml").then_some(message)?;
        let reading = read_text(Profile::Dominds, expect_text(&probe["yaml"]));
        let ours = reading.diagnostics.iter().find(|it| it.message == message);
        let ours = ours.map_or_else(|| diagnostic_lines(&reading), |it| it.message.clone());
        Some((expect_text(&probe["label"]).to_owned(), message.to_owned(), ours))
    };
    let cases: Vec<_> = expect_list(&recorded["probes"]).iter().filter_map(case).collect();
    compare("Dominds, messages", &cases, DOMINDS_MESSAGES);
}

/// Entries with another result in the schema crate of version 1.
const ACP_V1_ENTRIES: Differences<'_> = &[
    (
        "ACPX-01, ACP-040: an empty command or URL is a mistake; the crate checks types only",
        &["stdio empty command", "stdio env empty name", "http empty url", "http header empty name"],
    ),
    ("ACP-024: no system accepts a variable with `=` in its name", &["stdio env name with ="]),
    ("ACP-025: a line break would add a header", &["http header CRLF value"]),
    ("ACP-006: null is not a type; the crate tries every variant until one fits", &["type null"]),
];

/// Entries with another result in the schema crate of version 2.
const ACP_V2_ENTRIES: Differences<'_> = &[
    (
        "ACPX-11: only a type that begins with `_` is an extension; the crate keeps any word",
        &["type streamable_http", "sse no headers", "unknown type with url"],
    ),
    ("ACPX-01: an empty URL or name is a mistake", &["http empty url", "http header empty name"]),
    ("ACP-025: a line break would add a header", &["http header CRLF value"]),
];

/// Whether the file is accepted.
fn outcome(reading: &Reading) -> &'static str {
    if reading.refused { REJECT } else { ACCEPT }
}

#[test]
fn acpx_09_acpx_11_protocol_types_accept_the_same_entries() {
    let name = "acpx_09_acpx_11_protocol_types_accept_the_same_entries";
    let Some(recorded) = recorded_results(name, "acp.json") else { return };
    let case = |profile, version: &str, probe: &Value| -> Case {
        let theirs = if probe["r"][version]["ok"] == true { ACCEPT } else { REJECT };
        let ours = outcome(&read_text(profile, &json!([probe["input"]]).to_string()));
        (expect_text(&probe["label"]).to_owned(), theirs.to_owned(), ours.to_owned())
    };
    for (profile, version, differences) in
        [(Profile::AcpV1, "acp_v1", ACP_V1_ENTRIES), (Profile::AcpV2, "acp_v2", ACP_V2_ENTRIES)]
    {
        let cases: Vec<_> =
            expect_list(&recorded["probes"]).iter().map(|it| case(profile, version, it)).collect();
        compare(&format!("ACP's schema crate, {version}"), &cases, differences);
    }
}

#[test]
fn acpx_10_protocol_types_accept_the_same_requests() {
    let name = "acpx_10_protocol_types_accept_the_same_requests";
    let Some(recorded) = recorded_results(name, "acp.json") else { return };
    let case = |profile, version: &str, probe: &Value| -> Case {
        let request = json!({ "method": "session/new", "params": probe["input"] });
        let theirs = if probe[version]["ok"] == true { ACCEPT } else { REJECT };
        let ours = outcome(&read_text(profile, &request.to_string()));
        (expect_text(&probe["label"]).to_owned(), theirs.to_owned(), ours.to_owned())
    };
    for (profile, version) in [(Profile::AcpV1, "v1"), (Profile::AcpV2, "v2")] {
        let cases: Vec<_> =
            expect_list(&recorded["requests"]).iter().map(|it| case(profile, version, it)).collect();
        compare(&format!("ACP's schema crate, requests, {version}"), &cases, &[]);
    }
}
