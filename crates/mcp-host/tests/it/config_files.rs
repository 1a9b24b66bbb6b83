//! Loading of configuration files: an invalid server is skipped in one dialect, and refuses the whole file in the
//! other.

use std::path::Path;

use mcp_host_config::Profile;
use mcp_host_model::{Dialect, Endpoint};
use mcp_host_runtime::{LoadError, LoadRequest, LoadedConfig, load};

use crate::fixture::HostFixture;
use crate::scripted_server::ScriptedServer;

/// Writes `files` into a folder and loads the first one.
fn load_files(
    files: &[(&str, &str)],
    change: impl Fn(&Path, &mut LoadRequest),
) -> Result<LoadedConfig, LoadError> {
    load_files_in(tempfile::tempdir().unwrap().path(), files, change)
}

/// Writes the files into the folder, and loads the first.
fn load_files_in(
    folder: &Path,
    files: &[(&str, &str)],
    change: impl Fn(&Path, &mut LoadRequest),
) -> Result<LoadedConfig, LoadError> {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut request = LoadRequest::new(folder.join(files[0].0));
    change(folder, &mut request);
    load(&request)
}

/// Checks what is loaded, as `servers | failed servers with their messages`.
#[track_caller]
fn check(files: &[(&str, &str)], want_refused: bool, want: &str) -> LoadedConfig {
    let loaded = load_files(files, |_, _| {}).unwrap();
    let servers = loaded.desired.servers.iter().map(|it| it.spec.id.to_string());
    let failed = loaded.desired.failed.iter().map(|server| format!("{}: {}", server.id, server.error));
    let (servers, failed): (Vec<_>, Vec<_>) = (servers.collect(), failed.collect());
    let got = format!("{} | {}", servers.join(" "), failed.join(" "));
    assert_eq!((loaded.refused, got.trim()), (want_refused, want), "{:#?}", loaded.diagnostics);
    loaded
}

const DOMINDS: &str = "version: 1
servers:
  good:
    truely-stateless: true
    transport: stdio
    command: node
    args: [server.js]
  poor:
    transport: stdio
    command: node
    env:
      KEY: { env: MCP_HOST_TEST_UNSET }
  bad:
    transport: pigeon
";

#[tokio::test(start_paused = true)]
async fn dm_121_refused_reload_is_reported_and_keeps_the_configuration() {
    let fixture = HostFixture::new(&[("good", ScriptedServer::new(&["t"]))]);
    let folder = tempfile::tempdir().unwrap();
    for text in [DOMINDS, "version: [", "version: 99\nservers: {}", DOMINDS] {
        let loaded = load_files_in(folder.path(), &[(".minds/mcp.yaml", text)], |_, _| {}).unwrap();
        assert_eq!(loaded.refused, text != DOMINDS, "{text}");
        if !loaded.refused {
            fixture.host.apply(loaded.desired).await;
            fixture.host.wait_until_ready().await;
        }
        assert_eq!(fixture.summary(), "good:ready poor:failed bad:failed | t", "{text}");
    }
    assert_eq!(fixture.peer("good").count("connect"), 1);
}

#[test]
fn dm_122_invalid_server_fails_alone() {
    let loaded = load_files(&[(".minds/mcp.yaml", DOMINDS)], |_, _| {}).unwrap();
    assert_eq!((loaded.profile, loaded.refused), (Profile::Dominds, false));
    assert_eq!(loaded.desired.servers.iter().map(|it| it.spec.id.as_str()).collect::<Vec<_>>(), ["good"]);
    let failed: Vec<_> =
        loaded.desired.failed.iter().map(|server| (server.id.as_str(), server.error.to_string())).collect();
    assert_eq!(failed[0].0, "poor");
    assert!(failed[0].1.contains("MCP_HOST_TEST_UNSET"), "{failed:?}");
    assert_eq!(failed[1].0, "bad");
    assert!(failed[1].1.starts_with("MCPConfigError: server 'bad': "), "{failed:?}");
    // Diagnostics are in the order of the file.
    assert!(loaded.diagnostics.is_sorted_by_key(|it| it.span.start));
    assert!(loaded.diagnostics.iter().any(|it| it.line == 12), "{:#?}", loaded.diagnostics);
}

const HOLODECK: &str = "name: agent
tools:
  - name: files
    type: mcp
    server: files
    description: Files
    transport: stdio
    command: npx
    args: ['-y', 'pkg']
    env:
      KEY: ${MCP_HOST_TEST_UNSET}
    envFile: extra.env
";

#[test]
fn hd_134_missing_variable_refuses_a_holodeck_file() {
    let loaded =
        check(&[("agent.yaml", HOLODECK), ("extra.env", "MCP_HOST_TEST_UNSET=not from here\n")], true, "|");
    let messages: Vec<_> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert!(
        messages.contains(&"ConfigError: Environment variable 'MCP_HOST_TEST_UNSET' not found".to_owned()),
        "{messages:?}"
    );
}

#[test]
fn variables_fall_back_to_the_env_file() {
    let files =
        [("agent.yaml", HOLODECK), ("extra.env", "OTHER=1\n"), ("given.env", "MCP_HOST_TEST_UNSET=given\n")];
    let loaded = load_files(&files, |folder, it| it.env_file = Some(folder.join("given.env"))).unwrap();
    assert!(!loaded.refused, "{:#?}", loaded.diagnostics);
    let Endpoint::Stdio(endpoint) = &loaded.desired.servers[0].endpoint else {
        panic!("it is a child process")
    };
    let env: Vec<_> = endpoint.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("OTHER", "1"), ("KEY", "given")]);
}

#[test]
fn hd_057_unreadable_env_file_refuses_the_file() {
    check(&[("agent.yaml", HOLODECK)], true, "|");
}

#[track_caller]
fn check_error(files: &[(&str, &str)], change: impl Fn(&Path, &mut LoadRequest), want: &str) {
    let error = load_files(files, change).unwrap_err();
    let source = std::error::Error::source(&error).map(|it| format!(": {it}")).unwrap_or_default();
    let text = format!("{error}{source}");
    assert!(text.contains(want), "{text}");
}

#[test]
fn unreadable_file_is_reported_with_its_reason() {
    let some = [("notes.yaml", "hello: fixture\n")];
    check_error(&some, |_, _| {}, "no MCP configuration is recognised");
    check_error(&some, |folder, it| it.path = folder.join("no"), "no: it does not exist");
    check_error(&some, |folder, it| it.env_file = Some(folder.join("no")), "environment file");
    let mismatch = |_: &Path, it: &mut LoadRequest| {
        it.dialect = Some(Dialect::HoloDeck);
        it.profile = Some(Profile::Dominds);
    };
    check_error(&some, mismatch, "the profile dominds is not one of the dialect holodeck");
}

#[test]
fn requested_profile_overrides_detection() {
    let read_as_dominds = |_: &Path, it: &mut LoadRequest| it.profile = Some(Profile::Dominds);
    let loaded = load_files(&[("any.txt", DOMINDS)], read_as_dominds).unwrap();
    assert_eq!(loaded.desired.servers.len(), 1);
}

#[test]
fn dia_06_editor_server_with_a_missing_variable_fails_alone() {
    let text = r#"// of VS Code
{"servers": {
  "good": {"command": "node", "args": ["${workspaceFolder}/server.js"]},
  "poor": {"command": "node", "env": {"KEY": "${env:MCP_HOST_TEST_UNSET}"}},
  "asks": {"command": "node", "env": {"KEY": "${input:mcp-host-test-unset}"}},
  "off": {"disabled": true, "command": ""},
}}"#;
    let loaded = check(
        &[(".vscode/mcp.json", text)],
        false,
        "good | poor: ConfigError: server 'poor': Environment variable 'MCP_HOST_TEST_UNSET' not found \
         asks: ConfigError: server 'asks': the input 'mcp-host-test-unset' has no value",
    );
    assert_eq!(loaded.profile, Profile::McpJson);
    let Endpoint::Stdio(good) = &loaded.desired.servers[0].endpoint else { panic!() };
    let folder = Path::new(&loaded.path).parent().unwrap().parent().unwrap();
    assert_eq!(Path::new(good.args[0].expose()), folder.join("server.js"));
}

#[test]
fn acpx_11_session_request_is_refused_or_loaded_as_a_whole() {
    let entry = r#"{"type": "stdio", "name": "a", "command": "/bin/cat", "args": [], "env": []}"#;
    let request = |servers: &str| {
        format!(r#"{{"method": "session/new", "params": {{"cwd": "/", "mcpServers": [{servers}]}}}}"#)
    };
    let one_bad =
        request(&format!("{entry}, {}", entry.replace("/bin/cat", "cat").replace("\"a\"", "\"b\"")));
    let loaded = load_files(&[("request.json", &one_bad)], |_, _| {}).unwrap();
    assert!(loaded.refused && loaded.desired.servers.is_empty());
    let extended = request(&format!(r#"{entry}, {{"type": "_pigeon", "name": "loft"}}"#));
    let loaded =
        load_files(&[("request.json", &extended)], |_, it| it.profile = Some(Profile::AcpV2)).unwrap();
    assert_eq!((loaded.refused, loaded.desired.servers.len()), (false, 1));
    assert_eq!(
        loaded.desired.failed[0].error.to_string(),
        "MCPConfigError: server 'loft': its transport is an extension that this host does not support"
    );
}
