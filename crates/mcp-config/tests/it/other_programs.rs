//! Files of Codex, Goose, Continue, LibreChat and Amp, and servers inside of other settings.

use mcp_config::{Code, Document, Profile, add_server, detect, read};
use mcp_model::{ConfigValue, Dialect, ServerSpec, TemplatePart, TransportSpec};

use crate::edits::{document, server, shown};

/// Checks the servers of another program's file: their JSON-like description, and the diagnostics.
#[track_caller]
fn check_program(name: &str, text: &str, want: &[&str]) {
    assert_eq!(detect(name, text), Some(Dialect::McpJson), "{name}");
    let reading = read(&Document { name, text, profile: Profile::McpJson });
    let shown = |it: &ConfigValue| match it {
        ConfigValue::Literal(text) => text.expose().to_owned(),
        ConfigValue::HostEnv { name, prefix } => format!("{}${name}", prefix.expose()),
        ConfigValue::Template(parts) => parts
            .iter()
            .map(|part| match part {
                TemplatePart::Text(text) => text.expose().to_owned(),
                TemplatePart::Variable(name) => format!("${name}"),
                TemplatePart::VariableOr { .. } | TemplatePart::Input(_) | TemplatePart::File(_) => {
                    "?".to_owned()
                }
            })
            .collect(),
    };
    let pairs = |it: &[(String, ConfigValue)]| {
        it.iter().map(|(name, value)| format!(" {name}={}", shown(value))).collect::<String>()
    };
    let line = |it: &mcp_model::ServerSpec| {
        let limits = (it.limits.startup.as_millis(), it.limits.request.as_millis());
        let what = match &it.transport {
            TransportSpec::Stdio(spec) => {
                let args: String = spec.args.iter().map(|it| format!(" {}", shown(it))).collect();
                format!("{}{args};{}", spec.command, pairs(&spec.env))
            }
            TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec) => {
                format!("{} {};{}", it.transport.kind().as_str(), shown(&spec.url), pairs(&spec.headers))
            }
        };
        format!("{}: {what}; {limits:?} {:?}", it.id, it.exposure.tools.filter.whitelist)
    };
    let off = reading.entries.iter().filter(|it| it.disabled).map(|it| format!("{}: off", it.name));
    let diagnostics = reading.diagnostics.iter().filter(|it| it.code != Code::NothingToStart);
    let diagnostics = diagnostics.map(|it| format!("{}:{}", it.line, it));
    let found: Vec<_> = reading.servers.iter().map(line).chain(off).chain(diagnostics).collect();
    assert_eq!(found, want, "{name}");
}

#[test]
fn files_of_codex_goose_continue_and_librechat_are_read() {
    check_program(
        ".codex/config.toml",
        "model = 'm'\n[mcp_servers.a]\ncommand = 'npx'\nargs = ['-y']\nenv = { A = 'b' }\nenv_vars = ['PATH']\n\
         startup_timeout_sec = 20\ntool_timeout_sec = 30\nenabled_tools = ['x']\n[mcp_servers.a.tools.x]\n\
         approval_mode = 'approve'\n[mcp_servers.b]\nurl = 'https://b.example'\nbearer_token_env_var = 'T'\n\
         http_headers = { X = 'y' }\nenv_http_headers = { Z = 'V' }\nscopes = ['s']\n[mcp_servers.c]\n\
         command = 'x'\nenabled = false\n[mcp_servers.d]\ncomand = 'x'\n",
        &[
            "a: npx -y; A=b; (20000, 30000) [\"x\"]",
            "b: http https://b.example; X=y Authorization=Bearer $T Z=$V; (60000, 60000) []",
            "c: off",
            "21:MCPConfigError: a server needs a 'command' to start, or a 'url' to connect to",
            "22:ValidationError: unknown key 'comand'",
        ],
    );
    check_program(
        ".config/goose/config.yaml",
        "GOOSE_MODEL: m\nextensions:\n  developer: {type: builtin, name: developer, enabled: true, bundled: true}\n  \
         a:\n    type: stdio\n    name: a\n    cmd: npx\n    args: [-y]\n    envs: {A: b}\n    env_keys: [KEY]\n    \
         timeout: 300\n    enabled: true\n    available_tools: []\n  b: {type: streamable_http, uri: 'https://b.example', \
         headers: {X: y}, enabled: true}\n",
        &[
            "a: npx -y; A=b KEY=$KEY; (60000, 300000) []",
            "b: http https://b.example; X=y; (60000, 60000) []",
            "developer: off",
        ],
    );
    check_program(
        ".continue/config.yaml",
        "name: mine\nmcpServers:\n  - name: a\n    command: npx\n    args: [-y]\n    env: {K: '${{ secrets.KEY }}'}\n  \
         - name: b\n    type: streamable-http\n    url: https://b.example\n    requestOptions:\n      headers: {X: y}\n",
        &["a: npx -y; K=$KEY; (60000, 60000) []", "b: http https://b.example; X=y; (60000, 60000) []"],
    );
    check_program(
        "librechat.yaml",
        "version: 1.2.1\nmcpServers:\n  a:\n    url: https://a.example/sse\n    headers: {X: '${KEY}'}\n    \
         initTimeout: 10000\n    serverInstructions: true\n  b: {command: npx, args: [-y], iconPath: /x}\n",
        &["a: sse https://a.example/sse; X=$KEY; (10000, 60000) []", "b: npx -y;; (60000, 60000) []"],
    );
}

#[test]
fn nested_server_maps_are_read() {
    check_program(
        ".devcontainer/devcontainer.json",
        "{\"customizations\": {\"vscode\": {\"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}}}, // c\n}",
        &["a: x;; (60000, 60000) []"],
    );
    check_program(
        "/home/me/.claude.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"projects\": {\"/w/p\": {\"mcpServers\": {\"a\": {\"command\": \"y\"}, \
         \"b\": {\"command\": \"z\"}}}, \"/w/q\": {\"mcpServers\": {}}}}",
        &["a: x;; (60000, 60000) []", "a@p: y;; (60000, 60000) []", "b: z;; (60000, 60000) []"],
    );
    check_program(
        ".config/amp/settings.json",
        "{\"amp.mcpServers\": {\"a\": {\"command\": \"x\", \"includeTools\": [\"t\"]}}}",
        &["a: x;; (60000, 60000) [\"t\"]"],
    );
}

#[test]
fn server_of_opencode_is_written_in_its_own_form() {
    let add = |text: &str, server: &ServerSpec| {
        let document = Document { name: "opencode.jsonc", text, profile: Profile::McpJson };
        add_server(&document, server).map(|it| {
            let lost: Vec<_> = it.unsupported.iter().filter(|it| it.reason.contains("opencode")).collect();
            assert!(lost.iter().all(|it| it.field == "description"), "{lost:?}");
            it.text
        })
    };
    assert_eq!(
        shown(add("{\"mcp\": {\"b\": {\"enabled\": true}}}", &server("new"))),
        "{\"mcp\": {\"b\": {\"enabled\": true}, \"new\": {\"type\": \"local\", \"command\": [\"npx\", \"-y\", \"p\"], \
         \"environment\": {\"A\": \"b\"}}}}"
    );
    let servers = |text: &str| read(&document(Profile::McpJson, text)).servers;
    let web = servers(
        "{\"mcpServers\": {\"w\": {\"type\": \"sse\", \"url\": \"https://a.example\", \"headers\": {\"A\": \"Bearer ${T}\"}, \
         \"requestTimeout\": 9000}}}",
    );
    assert_eq!(
        shown(add("{}", &web[0])),
        "{\n  \"mcp\": {\n    \"w\": {\n      \"type\": \"remote\",\n      \"url\": \"https://a.example\",\n      \
         \"headers\": {\n        \"A\": \"Bearer {env:T}\"\n      },\n      \"timeout\": 9000\n    }\n  }\n}"
    );
    let socket = servers("{\"mcpServers\": {\"w\": {\"type\": \"ws\", \"url\": \"wss://a.example\"}}}");
    assert_eq!(
        shown(add("{}", &socket[0])),
        "error: the server cannot be written there: transport: opencode does not connect over WebSocket"
    );
}
