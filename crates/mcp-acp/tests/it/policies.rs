//! Policies: deviations that an agent accepts are reported as warnings.

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, FolderStatus, InvalidEntryPolicy, Leniency, Policy,
    SessionMethod, SessionRequest, SessionRequestError, Tolerance, WarningEffect, validate,
};

use crate::{raw, request};

/// The names of the accepted servers and the pointers of the warnings, or the message of the error.
fn outcome(request: &SessionRequest, policy: Policy) -> String {
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    let mut agent = AgentProfile::new(AcpVersion::V1, &capabilities);
    agent.policy = policy;
    match validate(request, &agent) {
        Ok(it) => {
            let warnings = it.warnings.iter().map(|it| {
                let effect = match it.effect {
                    WarningEffect::Noted => "noted",
                    WarningEffect::Dropped => "dropped",
                    _ => "other",
                };
                format!("{effect} {}", it.diagnostic.pointer)
            });
            format!("{:?} {:?}", it.server_names().collect::<Vec<_>>(), warnings.collect::<Vec<_>>())
                .replace('"', "")
        }
        Err(refusal) => refusal.to_string(),
    }
}

const STRICT: fn() -> Policy = Policy::default;

fn drop_invalid() -> Policy {
    let mut policy = Policy::default();
    policy.invalid_entries = InvalidEntryPolicy::Drop;
    policy
}

#[track_caller]
fn check(servers: &str, policy: Policy, expected: &str) {
    assert_eq!(outcome(&request(SessionMethod::New, servers), policy), expected, "{servers}");
}

#[test]
fn acp_048_invalid_entry_fails_the_request_or_is_dropped() {
    let mixed = r#"[{"type":"sse","name":"a","url":"https://a.example","headers":[]},
        {"name":"b","command":"/b","args":[],"env":[]},
        {"name":"c","command":"c","args":[],"env":[]},
        {"type":"http","name":"d","url":"https://d.example","headers":[]},
        {"type":"http","name":"d","url":"https://e.example","headers":[]}]"#;
    check(mixed, STRICT(), "SSE transport not supported: agent did not declare mcpCapabilities.sse");
    check(
        mixed,
        drop_invalid(),
        "[b, d] [dropped /params/mcpServers/0/type, dropped /params/mcpServers/2/command, \
         dropped /params/mcpServers/4/name]",
    );
    let twice = r#"[{"name":"a","name":"b","command":"/b","args":[],"env":[]}]"#;
    check(twice, drop_invalid(), "[] [dropped /params/mcpServers/0/name]");
    check("{}", drop_invalid(), "'mcpServers' must be a list, not a mapping");
    check(r#""SECRET""#, drop_invalid(), "'mcpServers' must be a list, not text");
}

#[test]
fn acp_022_x_05_acpx_09_tolerated_deviations_are_reported() {
    let loose = r#"[{"name":"a","command":"npx"}]"#;
    let mut leniency = Leniency::default();
    leniency.relative_commands = Tolerance::Warn;
    leniency.missing_lists = Tolerance::Warn;
    check(loose, STRICT(), "Invalid mcpServers: MCP server 'a': 'args' is required (and 2 more errors)");
    check(
        loose,
        {
            let mut policy = Policy::default();
            policy.leniency = leniency;
            policy
        },
        "[a] [noted /params/mcpServers/0/args, noted /params/mcpServers/0/env, noted /params/mcpServers/0/command]",
    );
    let nulls = r#"[{"name":"a","command":"/a","args":null,"env":[]}]"#;
    check(nulls, STRICT(), "[a] [noted /params/mcpServers/0/args]");
    let mut no_nulls = Policy::default();
    no_nulls.null_lists = Tolerance::Reject;
    check(
        nulls,
        no_nulls,
        "Invalid mcpServers: MCP server 'a': 'args' is null, which is read as an empty list",
    );
    check("null", STRICT(), "[] [noted /params/mcpServers]");
    check("null", no_nulls, "'mcpServers' is null, which is read as an empty list");
    let unknown = r#"[{"name":"a","command":"/a","args":[],"env":[],"colour":"red","_meta":{},"_own":1}]"#;
    check(unknown, STRICT(), "[a] [noted /params/mcpServers/0/colour]");
}

#[test]
fn timeouts_are_read_from_the_metadata_of_a_server() {
    let servers = r#"[
        {"name":"a","command":"/a","args":[],"env":[],"_meta":{"mcpTimeouts":{"startupMs":120000}}},
        {"name":"b","command":"/b","args":[],"env":[],"_meta":{"mcpTimeouts":{"requestMs":-1,"startupMs":5}}}]"#;
    let capabilities = Capabilities::STDIO;
    let agent = AgentProfile::new(AcpVersion::V1, &capabilities);
    let validated = validate(&request(SessionMethod::New, servers), &agent).unwrap();
    let startup: Vec<_> =
        validated.servers.iter().map(|server| server.timeouts().startup.unwrap().as_millis()).collect();
    assert_eq!(startup, [120_000, 5]);
    check(servers, STRICT(), "[a, b] [noted /params/mcpServers/1/_meta/mcpTimeouts/requestMs]");
}

#[test]
fn acpx_10_missing_server_list_depends_on_the_policy() {
    let request = SessionRequest::new(SessionMethod::New, raw(r#"{"cwd":"/desk"}"#));
    assert_eq!(outcome(&request, Policy::default()), "'mcpServers' is required");
    let mut lenient = Policy::default();
    lenient.missing_servers = Tolerance::Warn;
    assert_eq!(outcome(&request, lenient), "[] [noted /params/mcpServers]");
}

#[test]
fn acpx_02_caller_checks_that_the_folder_exists() {
    let params = r#"{"cwd":"/gone","additionalDirectories":["/file","/secret","/ok"],"mcpServers":[]}"#;
    let request = SessionRequest::new(SessionMethod::New, raw(params));
    let folder = |path: &str| match path {
        "/gone" => FolderStatus::Missing,
        "/file" => FolderStatus::NotAFolder,
        "/secret" => FolderStatus::Forbidden,
        _ => FolderStatus::Usable,
    };
    let capabilities = Capabilities::STDIO;
    let mut agent = AgentProfile::new(AcpVersion::V1, &capabilities);
    agent.check_folder = &folder;
    let Err(SessionRequestError::InvalidParams(refusal)) = validate(&request, &agent) else { panic!() };
    let messages: Vec<_> = refusal.errors().iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the folder 'cwd' does not exist",
            "'additionalDirectories' is not a folder",
            "the folder 'additionalDirectories' may not be used",
        ]
    );
}
