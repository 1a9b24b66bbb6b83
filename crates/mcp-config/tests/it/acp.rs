//! Servers of an ACP session: accepted entries, and diagnostics with positions.

use mcp_host_config::acp::{
    self, EnvVariable, HttpHeader, HttpServer, Leniency, McpServerConfig, SseServer, StdioServer, Tolerance,
};
use mcp_host_config::{Document, Profile, ResolveContext, resolve};
use mcp_host_model::{Endpoint, EnvInheritance, Sharing, SseFallback, TransportKind, TransportSpec};

use crate::{diagnostic_lines, read_text};

#[track_caller]
fn check(profile: Profile, text: &str, want: &str) {
    assert_eq!(diagnostic_lines(&read_text(profile, text)), want, "{text}");
}

const REQUEST: &str = include_str!("../../../../fixtures/acp-v1/valid/session_new.json");

/// The names and transports of the accepted servers.
fn describe_servers(text: &str, profile: Profile) -> String {
    let reading = read_text(profile, text);
    let kind =
        |it: &mcp_host_model::ServerSpec| format!("{} {}", it.id.as_str(), it.transport.kind().as_str());
    reading.servers.iter().map(kind).collect::<Vec<_>>().join(", ")
}

#[test]
fn acpx_14_control_characters_in_a_name_are_replaced() {
    let reading = read_text(
        Profile::AcpV1,
        r#"[{"name": "a\tb c\u00a0d", "command": "/x", "args": [], "env": []}, {"name": "a b", "command": "/x", "args": [], "env": []}]"#,
    );
    let names: Vec<_> = reading.servers.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(names, ["a_b_c_d", "a b"]);
    assert_eq!(
        diagnostic_lines(&reading),
        "warning 1:11 /0/name ValidationError: the server's name contains a control character or unusual whitespace"
    );
}

#[test]
fn acp_004_acp_005_acp_006_acp_048_a_request_gives_its_servers_in_order() {
    assert_eq!(describe_servers(REQUEST, Profile::AcpV1), "files stdio, board http, events sse");
    let reading = read_text(Profile::AcpV1, REQUEST);
    assert_eq!(diagnostic_lines(&reading), "");
    let TransportSpec::Stdio(files) = &reading.servers[0].transport else { panic!() };
    assert_eq!(
        (files.command.as_str(), files.cwd.as_deref()),
        ("/opt/tools/files-server", Some("/home/ada/desk"))
    );
    assert_eq!((files.inherit, reading.servers[0].sharing), (EnvInheritance::All, Sharing::PerOwner));
    let TransportSpec::Http(board) = &reading.servers[1].transport else { panic!() };
    assert_eq!((board.headers[0].0.as_str(), board.sse_fallback), ("Authorization", SseFallback::Never));
    assert_eq!(reading.servers[1].origin.pointer, "/params/mcpServers/1");
}

#[test]
fn acp_036_acp_046_acp_047_values_are_literal() {
    let text = r#"[{"name": "a", "command": "/x", "args": ["${HOME}"], "env": [{"name": "A", "value": "$B ${C}"}]},
        {"type": "sse", "name": "b", "url": "http://b.example/sse", "headers": [{"name": "X-Key", "value": "${K}"}]}]"#;
    let reading = read_text(Profile::AcpV1, text);
    let context = ResolveContext::new(&|_| None, std::path::Path::new("/w"), &|_| Err(String::new()));
    let endpoints: Vec<_> =
        reading.servers.iter().map(|it| resolve(it, &context).unwrap().endpoint).collect();
    let [Endpoint::Stdio(a), Endpoint::Sse(b)] = &endpoints[..] else { panic!("{endpoints:?}") };
    assert_eq!(
        (a.args[0].expose(), a.env[0].1.expose(), b.headers[0].1.expose()),
        ("${HOME}", "$B ${C}", "${K}")
    );
}

#[test]
fn acp_006_an_unknown_type_never_becomes_stdio() {
    let with_type = |tag: &str| {
        format!(
            r#"[{{"type": {tag}, "name": "a", "command": "/x", "args": [], "env": [], "url": "https://a.example", "headers": []}}]"#
        )
    };
    for (tag, v1, v2) in [
        ("\"stdio\"", "a stdio", "a stdio"),
        ("\"http\"", "a http", "a http"),
        ("\"sse\"", "a sse", ""),
        ("\"websocket\"", "", ""),
        ("\"STDIO\"", "", ""),
        ("\"\"", "", ""),
        ("null", "", ""),
        ("[\"stdio\"]", "", ""),
        ("\"_custom\"", "", ""),
    ] {
        let text = with_type(tag);
        assert_eq!(
            (
                describe_servers(&text, Profile::AcpV1).as_str(),
                describe_servers(&text, Profile::AcpV2).as_str()
            ),
            (v1, v2),
            "{tag}"
        );
    }
}

#[test]
fn x_10_acpx_11_without_a_type_it_is_stdio_in_version_1_only() {
    let text = r#"[{"name": "a", "command": "/x", "args": [], "env": []}]"#;
    check(Profile::AcpV1, text, "");
    check(
        Profile::AcpV2,
        text,
        "error 1:3 /0/type ValidationError: 'type' is required in protocol version 2",
    );
}

#[test]
fn acpx_11_acpx_12_extensions_are_kept() {
    let text =
        r#"[{"type": "_pigeon", "name": "a", "loft": 7}, {"type": "acp", "name": "b", "serverId": "1"}]"#;
    let reading = read_text(Profile::AcpV2, text);
    assert!(!reading.refused && reading.servers.is_empty());
    let kept: Vec<_> = reading.entries.iter().filter_map(|it| it.extension.as_ref()).collect();
    let [mcp_host_model::Passthrough::Literal(first), _] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(first.as_str(), r#"{"type":"_pigeon","name":"a","loft":7}"#);
    check(
        Profile::AcpV1,
        r#"[{"type": "_pigeon", "name": "a"}]"#,
        "error 1:11 /0/type MCPConfigError: there is no transport '_pigeon' in protocol version 1",
    );
}

#[test]
fn acpx_01_acp_012_acp_025_all_mistakes_are_reported_in_one_pass() {
    let text = r#"{"mcpServers": [
  {"name": "", "command": "npx", "args": "x", "env": [{"name": "A=B", "value": 1}]},
  {"type": "http", "name": "b", "url": "ws://x", "headers": [{"name": "X Y", "value": "a\nb"}]},
  {"type": "sse", "name": "b"}
]}"#;
    let reading = read_text(Profile::AcpV1, text);
    assert!(reading.refused);
    insta::assert_snapshot!(diagnostic_lines(&reading), @r"
    error 2:12 /mcpServers/0/name ValidationError: MCP server name cannot be empty
    error 2:27 /mcpServers/0/command MCPConfigError: MCP server command must be an absolute path
    error 2:42 /mcpServers/0/args ValidationError: 'args' must be a list, not text
    error 2:64 /mcpServers/0/env/0/name MCPConfigError: the name of an environment variable must not be empty or contain `=` or NUL
    error 2:80 /mcpServers/0/env/0/value ValidationError: 'value' must be text, not a number
    error 3:40 /mcpServers/1/url MCPConfigError: MCP server 'b' URL must start with http:// or https://
    error 3:71 /mcpServers/1/headers/0/name MCPConfigError: a header's name must be one word of ASCII letters, digits and hyphens
    error 3:87 /mcpServers/1/headers/0/value MCPConfigError: a header's value must be one line without control characters
    error 4:4 /mcpServers/2/headers ValidationError: MCP server 'b': 'headers' is required
    error 4:4 /mcpServers/2/url MCPConfigError: MCP server 'b' has no URL
    error 4:27 /mcpServers/2/name ValidationError: two servers of this session are named 'b'
    ");
}

#[test]
fn acp_022_x_05_tolerated_deviations_are_warnings() {
    let text = r#"[{"name": "a", "command": "npx"}]"#;
    let document = Document::new("request", text, Profile::AcpV1);
    let mut lenient = Leniency::default();
    lenient.relative_commands = Tolerance::Warn;
    lenient.missing_lists = Tolerance::Warn;
    let reading = acp::read(&document, lenient).reading;
    assert!(!reading.refused && reading.entries[0].accepted);
    insta::assert_snapshot!(diagnostic_lines(&reading), @r"
    warning 1:3 /0/args ValidationError: MCP server 'a': 'args' is required
    warning 1:3 /0/env ValidationError: MCP server 'a': 'env' is required
    warning 1:27 /0/command MCPConfigError: MCP server 'a' command must be an absolute path
    ");
    assert!(acp::read(&document, Leniency::default()).reading.refused);
}

#[test]
fn x_28_of_repeated_variables_the_last_wins() {
    let text = include_str!("../../../../fixtures/acp-v1/valid/repeated_variable.json");
    let reading = read_text(Profile::AcpV1, text);
    let context = ResolveContext::new(&|_| None, std::path::Path::new("/w"), &|_| Err(String::new()));
    let Endpoint::Stdio(it) = resolve(&reading.servers[0], &context).unwrap().endpoint else { panic!() };
    let env: Vec<_> = it.env.iter().map(|it| (it.0.as_str(), it.1.expose())).collect();
    assert_eq!(env, [("A", "2")]);
    assert!(diagnostic_lines(&reading).contains("warning"), "{}", diagnostic_lines(&reading));
}

#[test]
fn acpx_09_meta_and_unknown_members_are_kept() {
    let text = r#"[{"name": "a", "command": "/x", "args": [], "env": [], "_meta": {"a": 1}, "_own": [2], "colour": "red"}]"#;
    let reading = read_text(Profile::AcpV1, text);
    assert_eq!(diagnostic_lines(&reading), "warning 1:88 /0/colour ValidationError: unknown key 'colour'");
    let metadata = &reading.servers[0].metadata;
    assert_eq!(metadata["_meta"].as_str(), r#"{"a":1}"#);
    assert_eq!(metadata["extra"].as_str(), r#"{"_own":[2],"colour":"red"}"#);
}

#[test]
fn acpx_10_request_without_a_required_member_is_refused() {
    let request = |method: &str, params: &str| format!(r#"{{"method": "{method}", "params": {params}}}"#);
    let check = |profile, method, params, want| check(profile, &request(method, params), want);
    const NO_CWD: &str = "error 1:27 /params/cwd ValidationError: 'cwd' is required";
    check(Profile::AcpV1, "session/new", r#"{"mcpServers": []}"#, NO_CWD);
    check(
        Profile::AcpV1,
        "session/load",
        r#"{"cwd": "/", "sessionId": "s"}"#,
        "error 1:28 /params/mcpServers ValidationError: 'mcpServers' is required",
    );
    check(Profile::AcpV1, "session/resume", r#"{"cwd": "/", "sessionId": "s"}"#, "");
    check(
        Profile::AcpV2,
        "session/fork",
        r#"{"cwd": "/"}"#,
        "error 1:28 /params/sessionId ValidationError: 'sessionId' is required",
    );
    check(
        Profile::AcpV1,
        "session/resume",
        r#"{"cwd": "/", "sessionId": " "}"#,
        "error 1:66 /params/sessionId ValidationError: 'sessionId' must not be blank",
    );
    check(Profile::AcpV2, "session/new", r#"{"cwd": "/"}"#, "");
    check(
        Profile::AcpV2,
        "session/load",
        r#"{"cwd": "/"}"#,
        "error 1:12 /method MCPConfigError: the method 'session/load' has no servers",
    );
}

#[test]
fn acp_007_to_acp_011_serialized_servers_are_read_without_diagnostics() {
    let mut stdio = StdioServer::new("a", "/a");
    stdio.args = vec!["-x".into()];
    stdio.env = vec![EnvVariable::new("A", "b")];
    let mut http = HttpServer::new("b", "https://b.example");
    http.headers = vec![HttpHeader::new("A", "b")];
    let servers = [
        McpServerConfig::Stdio(stdio),
        McpServerConfig::Http(http),
        McpServerConfig::Sse(SseServer::new("c", "http://c.example")),
    ];
    let text = serde_json::to_string(&serde_json::json!({ "mcpServers": servers })).unwrap();
    let reading = read_text(Profile::AcpV1, &text);
    assert_eq!(diagnostic_lines(&reading), "");
    let describe_servers: Vec<_> = reading.entries.iter().map(|it| it.transport).collect();
    assert_eq!(describe_servers, [TransportKind::Stdio, TransportKind::Http, TransportKind::Sse].map(Some));
    let schema = schemars::schema_for!(McpServerConfig).to_value();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(servers.iter().all(|it| validator.is_valid(&serde_json::to_value(it).unwrap())));
}

#[test]
fn rpt_160_server_with_a_url_and_no_type_is_told_to_add_type() {
    let text = r#"{"mcpServers": [{"name": "a", "url": "https://a.example/mcp", "headers": []}]}"#;
    check(
        Profile::AcpV1,
        text,
        "error 1:18 /mcpServers/0/type ValidationError: 'type' is required for a server with a 'url'",
    );
    let help = read_text(Profile::AcpV1, text).diagnostics[0].help.clone().unwrap();
    assert!(help.starts_with("add `\"type\": \"http\"`"), "{help}");
}
