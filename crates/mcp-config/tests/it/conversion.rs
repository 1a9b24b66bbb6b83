//! Writing servers: they are read back unchanged, and unsupported fields are reported.

use mcp_host_config::{Document, Profile, WrittenFile, read};
use mcp_host_model::{ServerSpec, Sharing, SpecOrigin};

use crate::read_text;

/// Writes for a machine with two programs.
fn write(servers: &[ServerSpec], profile: Profile) -> WrittenFile {
    let program = |name: &str| ["npx", "uvx"].contains(&name).then(|| format!("/usr/bin/{name}"));
    mcp_host_config::write_servers(servers, profile, &program)
}

/// Servers without their origin.
fn without_origin(servers: Vec<ServerSpec>) -> Vec<ServerSpec> {
    let clear_origin = |mut it: ServerSpec| {
        it.origin = SpecOrigin::new(it.origin.profile, "");
        it
    };
    servers.into_iter().map(clear_origin).collect()
}

/// The fixtures of each dialect.
const FIXTURE_FOLDERS: &[(Profile, &str)] = &[
    (Profile::HoloDeck, "holodeck"),
    (Profile::Dominds, "dominds"),
    (Profile::AcpV1, "acp-v1"),
    (Profile::AcpV2, "acp-v2"),
    (Profile::McpJson, "mcp-json"),
];

fn valid_fixtures(folder: &str) -> Vec<(String, String)> {
    let root =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder).join("valid");
    let mut res: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|it| it.unwrap().path())
        .map(|it| (it.display().to_string(), std::fs::read_to_string(it).unwrap()))
        .collect();
    res.sort();
    res
}

#[track_caller]
pub(crate) fn check_round_trip(label: &str, profile: Profile, text: &str) {
    let first = read_text(profile, text);
    let WrittenFile { text: printed, mut unsupported, .. } = write(&first.servers, profile);
    unsupported.retain(|it| it.field != "metadata.inputs");
    assert_eq!(unsupported, [], "{label}");
    let again = read(&Document::new("again", &printed, profile));
    assert!(!again.has_errors(), "{label}: {}\n{printed}", crate::diagnostic_lines(&again));
    assert_eq!(without_origin(again.servers), without_origin(first.servers), "{label}\n{printed}");
}

#[test]
fn sharing_key_is_read_and_written_in_every_dialect() {
    let files = [
        (
            Profile::Dominds,
            "version: 1\nservers:\n  a:\n    transport: stdio\n    command: x\n    sharing: KEY\n",
        ),
        (Profile::McpJson, r#"{"mcpServers": {"a": {"command": "x", "sharing": "KEY"}}}"#),
        (
            Profile::HoloDeck,
            "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, sharing: KEY}\n",
        ),
        (
            Profile::AcpV1,
            r#"[{"name": "a", "command": "/x", "args": [], "env": [], "_meta": {"mcp-host/sharing": "KEY"}}]"#,
        ),
    ];
    for (profile, text) in files {
        for (key, sharing) in
            [("auto", Sharing::Auto), ("shared", Sharing::Shared), ("per-client", Sharing::PerOwner)]
        {
            let text = text.replace("KEY", key);
            assert_eq!(read_text(profile, &text).servers[0].sharing, sharing, "{text}");
            check_round_trip(&text, profile, &text);
        }
        let default = if matches!(profile, Profile::Dominds | Profile::AcpV1) {
            Sharing::PerOwner
        } else {
            Sharing::Auto
        };
        let without = read_text(profile, &text.replace("sharing", "x-other"));
        assert!(without.servers.iter().all(|it| it.sharing == default), "{profile:?}");
    }
    let wrong = read_text(Profile::McpJson, r#"{"mcpServers": {"a": {"command": "x", "sharing": "none"}}}"#);
    assert!(crate::diagnostic_lines(&wrong).contains("sharing"), "{}", crate::diagnostic_lines(&wrong));
}

/// Every valid file of a dialect, written in that dialect, is read back unchanged.
#[test]
fn written_servers_are_read_back_unchanged() {
    for (profile, folder) in FIXTURE_FOLDERS {
        for (label, text) in valid_fixtures(folder) {
            // `${/}` is written as the path separator of this system, and Gemini's `$TOKEN` as `${TOKEN}`.
            let text = text.replace("${/}", "/").replace("$TOKEN", "${TOKEN}");
            check_round_trip(&label, *profile, &text);
        }
    }
}

/// Servers with all rare fields.
#[test]
fn every_field_is_written() {
    let agent = "\
tools:
  - name: \"a b: #1\"
    description: \"line\\nline\\t\\u001b end \"
    type: mcp
    server: 'null'
    command: docker
    args: [run, '', 'yes', '-1', 'ü', \"{\", ' x ', '${A}/${workspaceFolder}']
    env: {'1': 'y', Y: '${B}', '': z}
    envFile: '${DIR}/.env'
    encoding: latin1
    config: {n: 1.5e3, big: 123456789012345678901, list: [[], {}, [null, true]], deep: {a: {b: '${C}'}}}
    load_tools: false
    load_prompts: false
    request_timeout: 61
  - name: w
    description: ''
    type: mcp
    server: s
    transport: websocket
    url: wss://acme.example/ws
  - name: h
    description: h
    type: mcp
    server: s
    transport: http
    url: '${URL}'
    headers: {Authorization: 'Bearer ${TOKEN}', X-Y: '#'}
    timeout: 0.25
    sse_read_timeout: 301.5
    terminate_on_close: false
";
    let agent = agent.replace(", '': z", "");
    check_round_trip("agent", Profile::HoloDeck, &agent);
    let workspace = "\
version: 1
servers:
  '10':
    transport: stdio
    command: ./run it
    args: ['${LITERAL}', '-x']
    cwd: ' sub '
    env: {A: {env: B}, C: {prefix: 'x ', env: D}, E: '${F}'}
    truely-stateless: true
    tools: {whitelist: [a*], blacklist: ['*'], transform: [{prefix: {remove: x_, add: y_}}, {suffix: _z}]}
    transform: [{prefix: all_}]
  web:
    transport: streamable_http
    url: http://acme.example/mcp?x=${Y}
    headers: {Authorization: {prefix: 'Bearer ', env: TOKEN}}
    sessionId: abc
    transform: [{prefix: ''}, {suffix: s}]
    resources: {mimeTypes: [text/plain], maxBytes: 10, skills: {enabled: true, whitelist: [s*]}}
    prompts: {blacklist: [b]}
";
    check_round_trip("workspace", Profile::Dominds, workspace);
}

/// The text that is written for another profile, and the unsupported fields.
#[track_caller]
fn written_text(profile: Profile, text: &str, target: Profile) -> String {
    let reading = read_text(profile, text);
    assert!(!reading.has_errors(), "{}", crate::diagnostic_lines(&reading));
    let WrittenFile { text, unsupported, .. } = write(&reading.servers, target);
    let unsupported: Vec<_> = unsupported
        .iter()
        .map(|it| format!("{}: {}: {}; {}", it.server, it.field, it.reason, it.fallback))
        .collect();
    format!("{text}---\n{}\n", unsupported.join("\n"))
}

const AGENT: &str = "\
tools:
  - name: files
    description: Reads files.
    type: mcp
    server: '@acme/files'
    command: npx
    args: ['-y', '@acme/files', '${workspaceFolder}']
    env: {TOKEN: '${TOKEN}', BOTH: '${A}-${B}', MODE: fast}
    envFile: .env
    config: {deep: [1]}
    request_timeout: 90
  - name: memory
    description: Remembers.
    type: mcp
    server: memory
    command: uvx
    args: [memory]
    config: {path: /tmp}
    load_prompts: false
  - name: events
    description: Listens.
    type: mcp
    server: events
    transport: sse
    url: https://acme.example/sse
    headers: {Authorization: 'Bearer ${TOKEN}'}
  - name: socket
    description: Talks.
    type: mcp
    server: socket
    transport: websocket
    url: wss://acme.example/ws
";

const WORKSPACE: &str = "\
version: 1
servers:
  files:
    transport: stdio
    command: npx
    args: ['-y', '@acme/files@1.2']
    cwd: sub
    env: {TOKEN: {prefix: 'x-', env: TOKEN}, LITERAL: '${NOT_A_VARIABLE}'}
    tools: {blacklist: [rm_*]}
    transform: [{prefix: f_}]
  local-tool:
    transport: stdio
    command: ./tool
  web:
    transport: streamable_http
    url: https://acme.example/mcp
    headers: {Authorization: {prefix: 'Bearer ', env: TOKEN}}
    sessionId: s1
    truely-stateless: true
  plain:
    transport: streamable_http
    url: http://acme.example/mcp
";

#[test]
fn agent_is_written_in_every_dialect() {
    for target in Profile::ALL.iter().filter(|it| **it != Profile::HoloDeck) {
        insta::assert_snapshot!(
            format!("agent-as-{}", target.as_str()),
            written_text(Profile::HoloDeck, AGENT, *target)
        );
    }
}

#[test]
fn workspace_is_written_in_every_dialect() {
    for target in Profile::ALL.iter().filter(|it| **it != Profile::Dominds) {
        let label = format!("workspace-as-{}", target.as_str());
        insta::assert_snapshot!(label, written_text(Profile::Dominds, WORKSPACE, *target));
    }
}

/// Written files are always valid in their dialect.
#[test]
fn written_files_are_accepted_by_their_profile() {
    let sources: Vec<_> = FIXTURE_FOLDERS
        .iter()
        .flat_map(|(profile, folder)| valid_fixtures(folder).into_iter().map(|it| (*profile, it)))
        .chain([(Profile::HoloDeck, ("AGENT".to_owned(), AGENT.to_owned()))])
        .chain([(Profile::Dominds, ("WORKSPACE".to_owned(), WORKSPACE.to_owned()))])
        .collect();
    for (source, (label, text)) in sources {
        let servers = read_text(source, &text).servers;
        for target in Profile::ALL {
            let written = write(&servers, *target);
            let count = |text: &str| text.matches("the server is left out").count();
            let omitted: usize = written.unsupported.iter().map(|it| count(&it.fallback.to_string())).sum();
            let again = read(&Document::new("again", &written.text, *target));
            let mistakes = crate::diagnostic_lines(&again);
            assert!(!again.has_errors(), "{label} as {}: {mistakes}\n{}", target.as_str(), written.text);
            assert_eq!(again.servers.len() + omitted, servers.len(), "{label} as {}", target.as_str());
            // A second round trip in the same dialect changes nothing.
            let twice = write(&again.servers, *target);
            assert_eq!(
                (twice.text, twice.unsupported.len()),
                (written.text, 0),
                "{label} as {}",
                target.as_str()
            );
        }
    }
}

/// An unsupported field names fields and variables, never a value.
#[test]
fn x_31_reports_contain_no_secrets() {
    let text = "version: 1\nservers:\n  a: {transport: stdio, command: npx, args: ['SECRET1${X}'], cwd: SECRET2}\n  \
                b:\n    transport: stdio\n    command: /bin/SECRET3\n  c:\n    transport: streamable_http\n    url: \
                http://u:SECRET4@acme.example/\n    headers: {A: 'SECRET5${X}', B: {prefix: SECRET6, env: E}}\n    \
                sessionId: SECRET7\n  d: {transport: stdio, command: npx, env: {A: 'SECRET8${X}'}}\n";
    let servers = read_text(Profile::Dominds, text).servers;
    assert_eq!(servers.len(), 4);
    for target in Profile::ALL {
        let unsupported = write(&servers, *target).unsupported;
        assert!(!format!("{unsupported:?}").contains("SECRET"), "{unsupported:?}");
        assert!(!serde_json::to_string(&unsupported).unwrap().contains("SECRET"));
    }
}
