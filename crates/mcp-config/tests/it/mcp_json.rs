//! Editor files: spellings, positions of servers, and lowering.

use std::path::Path;

use mcp_host_config::{Applicability, Diagnostic, Document, Profile, Reading, ResolveContext, read, resolve};
use mcp_host_model::{ConfigValue, Endpoint, ExposureFilter, SseFallback, TransportSpec};

use crate::{diagnostic_lines, read_text};

/// The transport of a server: `stdio x`, `http URL +sse`.
fn describe_transport(transport: &TransportSpec) -> String {
    let text = |it: &ConfigValue| match it {
        ConfigValue::Literal(it) => it.expose().to_owned(),
        other => format!("{other:?}"),
    };
    match transport {
        TransportSpec::Stdio(it) => {
            let words: Vec<_> = std::iter::once(it.command.clone()).chain(it.args.iter().map(text)).collect();
            format!("stdio {}", words.join(" "))
        }
        TransportSpec::Sse(it) => format!("sse {}", text(&it.url)),
        TransportSpec::WebSocket(it) => format!("websocket {}", text(&it.url)),
        TransportSpec::Http(it) => {
            let fallback = if it.sse_fallback == SseFallback::Allowed { " +sse" } else { "" };
            format!("http {}{fallback}", text(&it.url))
        }
    }
}

fn read_named(name: &str, text: &str) -> Reading {
    read(&Document::new(name, text, Profile::McpJson))
}

/// Reads one server under `mcpServers`; returns its transport or its diagnostics.
#[track_caller]
fn check(entry: &str, want: &str) {
    let reading = read_text(Profile::McpJson, &format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#));
    let got = match reading.servers.first() {
        Some(server) => describe_transport(&server.transport),
        None => diagnostic_lines(&reading),
    };
    assert_eq!(got, want, "{entry}");
}

#[test]
fn dia_04_every_spelling_of_a_transport_is_read() {
    for word in ["http", "streamable-http", "streamable_http", "streamableHttp"] {
        for key in ["type", "transport", "transportType"] {
            check(&format!(r#"{{"{key}": "{word}", "url": "https://a.example"}}"#), "http https://a.example");
        }
    }
    check(r#"{"transport": {"type": "http"}, "url": "https://a.example"}"#, "http https://a.example");
    check(r#"{"type": "sse", "url": "https://a.example"}"#, "sse https://a.example");
    check(r#"{"type": "ws", "url": "wss://a.example"}"#, "websocket wss://a.example");
    check(r#"{"type": "stdio", "command": "x", "args": ["y z"]}"#, "stdio x y z");
    check(r#"{"type": "local", "command": ["x", "y"], "args": ["z"]}"#, "stdio x y z");
    check(r#"{"command": {"path": "x", "args": ["y"]}, "settings": {}}"#, "stdio x y");
}

#[test]
fn dia_03_dia_08_transport_is_derived_from_the_url() {
    check(r#"{"url": "https://a.example"}"#, "http https://a.example +sse");
    check(r#"{"serverUrl": "https://a.example/sse"}"#, "http https://a.example/sse +sse");
    check(r#"{"type": "remote", "url": "https://a.example"}"#, "http https://a.example +sse");
    check(r#"{"url": "ws://localhost:1"}"#, "websocket ws://localhost:1");
    check(r#"{"httpUrl": "https://a.example"}"#, "http https://a.example");
}

/// The first server of a file of this name.
#[track_caller]
fn check_file(name: &str, text: &str, want: &str) {
    let reading = read_named(name, text);
    let got = reading
        .servers
        .first()
        .map_or_else(|| diagnostic_lines(&reading), |it| describe_transport(&it.transport));
    assert_eq!(got, want, "{name}");
}

#[test]
fn dia_08_transport_names_depend_on_the_editor() {
    let vscode = r#"{"servers": {"a": {"type": "http", "url": "https://a.example"}}}"#;
    check_file(".vscode/mcp.json", vscode, "http https://a.example +sse");
    let plain = r#"{"mcpServers": {"a": {"url": "https://a.example"}}}"#;
    check_file(".mcp.json", plain, "http https://a.example +sse");
    check_file(".gemini/settings.json", plain, "http https://a.example +sse");
    check_file("gemini-extension.json", plain, "http https://a.example +sse");
    check_file(".qwen/settings.json", plain, "sse https://a.example");
}

#[test]
fn dia_01_servers_are_found_under_every_known_key() {
    let text = r#"{"mcpServers": {"a": {"command": "1"}}, "servers": {"b": {"command": "2"}},
        "mcp.servers": {"c": {"command": "3"}}, "mcp": {"servers": {"d": {"command": "4"}}},
        "context_servers": {"e": {"command": "5"}}}"#;
    let reading = read_text(Profile::McpJson, text);
    assert_eq!(diagnostic_lines(&reading), "");
    let all: Vec<_> = reading.servers.iter().map(|it| (it.id.as_str(), it.origin.pointer.as_str())).collect();
    assert_eq!(
        all,
        [
            ("a", "/mcpServers/a"),
            ("b", "/servers/b"),
            ("c", "/mcp.servers/c"),
            ("e", "/context_servers/e"),
            ("d", "/mcp/servers/d")
        ]
    );
}

#[test]
fn dia_07_each_key_has_its_unit() {
    let limits = |fields: &str| {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", {fields}}}}}}}"#);
        read_text(Profile::McpJson, &text).servers[0].limits.clone()
    };
    let seconds = |fields: &str| limits(fields).request.as_secs_f64();
    assert_eq!(seconds(r#""timeout": 60"#), 60.0);
    assert_eq!(seconds(r#""timeout": 30000"#), 30.0);
    assert_eq!(seconds(r#""timeout": 1500"#), 1.5);
    assert_eq!(seconds(r#""requestTimeout": 500, "timeout": 60"#), 0.5);
    assert_eq!(seconds(r#""tool_timeout_sec": 90"#), 90.0);
    assert_eq!(limits(r#""connectionTimeout": 3000"#).connect.as_secs_f64(), 3.0);
    assert_eq!(limits(r#""startup_timeout_sec": 20"#).startup.as_secs_f64(), 20.0);
}

#[test]
fn dia_07_excluded_tools_are_hidden_even_if_included() {
    let filter = |fields: &str| {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", {fields}}}}}}}"#);
        read_text(Profile::McpJson, &text).servers[0].exposure.tools.filter.clone()
    };
    let of = |whitelist: &[&str], blacklist: &[&str]| {
        let texts = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        ExposureFilter { whitelist: texts(whitelist), blacklist: texts(blacklist) }
    };
    assert_eq!(filter(r#""includeTools": ["a", "b"]"#), of(&["a", "b"], &[]));
    assert_eq!(filter(r#""excludeTools": ["a"], "disabledTools": ["b"]"#), of(&[], &["a", "b"]));
    // In the model a whitelist overrides the blacklist, so excluded tools are removed from the whitelist.
    assert_eq!(filter(r#""includeTools": ["a", "b"], "excludeTools": ["b"]"#), of(&["a"], &[]));
    assert_eq!(filter(r#""includeTools": ["a"], "excludeTools": ["a"]"#), of(&[], &["*"]));
    assert_eq!(filter(r#""tools": ["*"], "excludeTools": ["a"]"#), of(&[], &["a"]));
    assert_eq!(filter(r#""tools": {}, "autoApprove": ["a"]"#), of(&[], &[]));
}

#[test]
fn dia_05_command_lines_are_not_split() {
    const LINE: &str = "error 1:34 /mcpServers/a/command MCPConfigError: 'command' is a whole command line; it must \
        be one program";
    check(r#"{"command": "npm start --prefix x"}"#, LINE);
    check(r#"{"command": "npx server"}"#, LINE);
    check(r#"{"command": "/opt/My Tool/run"}"#, "stdio /opt/My Tool/run");
    check(
        r#"{"command": "C:\\Program Files\\node.exe", "args": ["-x"]}"#,
        "stdio C:\\Program Files\\node.exe -x",
    );
    let reading = read_text(Profile::McpJson, r#"{"mcpServers": {"a": {"command": "/bin/npx -y x"}}}"#);
    assert_eq!(diagnostic_lines(&reading), LINE.replace("error", "warning"));
}

/// The diagnostics of one server under `mcpServers`: severity, pointer below it, and message.
#[track_caller]
fn check_diagnostics(entry: &str, want: &[&str]) {
    let reading = read_text(Profile::McpJson, &format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#));
    let pointer = |it: &str| it.trim_start_matches("/mcpServers/a").to_owned();
    let got = reading
        .diagnostics
        .iter()
        .map(|it| format!("{} {} {}", it.severity, pointer(&it.pointer), it.message));
    assert_eq!(got.collect::<Vec<_>>(), want, "{entry}");
}

#[test]
fn command_line_beside_args_and_blanks_are_reported() {
    const LINE: &str = "/command 'command' is a whole command line; it must be one program";
    const BLANK: &str =
        "warning /command 'command' begins or ends with whitespace, which counts as part of the name";
    check_diagnostics(r#"{"command": "docker run -i", "args": ["x"]}"#, &[&format!("error {LINE}")]);
    check_diagnostics(r#"{"command": "NPX server", "args": ["x"]}"#, &[&format!("error {LINE}")]);
    check_diagnostics(r#"{"command": "My Tool", "args": ["x"]}"#, &[&format!("warning {LINE}")]);
    check_diagnostics(r#"{"command": "npx ", "args": ["x"]}"#, &[BLANK]);
    check_diagnostics(r#"{"command": " /opt/x"}"#, &[BLANK]);
    check_diagnostics(r#"{"command": "/opt/My Tool/x", "args": ["-y", "--a=b c", "- x", "a -b"]}"#, &[]);
    const OPTION: &str =
        "warning /args/0 an argument holds an option and further words; the program gets them as one word";
    check_diagnostics(r#"{"command": "npx", "args": ["-y server"]}"#, &[OPTION]);
}

#[test]
fn variables_that_are_not_text_are_reported() {
    let message = |name: &str, found: &str| {
        format!("warning /env/{name} the variable '{name}' is {found}, not text; most programs refuse that")
    };
    check_diagnostics(
        r#"{"command": "x", "env": {"A": 1, "B": true, "C": null, "D": "1"}}"#,
        &[&message("A", "a number"), &message("B", "a boolean"), &message("C", "null")],
    );
    check_diagnostics(
        r#"{"command": "x", "env": ["A=b"]}"#,
        &["warning /env 'env' is a list; the programs that have such files read a mapping"],
    );
    let vscode = r#"{"servers": {"a": {"command": "x", "env": {"A": 1, "C": null}}}}"#;
    assert_eq!(diagnostic_lines(&read_named(".vscode/mcp.json", vscode)), "");
}

#[test]
fn dia_06_incomplete_references_are_reported() {
    let of = |text: &str| format!(r#"{{"command": "x", "env": {{"A": "{text}"}}}}"#);
    check_diagnostics(&of("${B"), &["warning /env/A `${B` has no closing `}` and is not replaced"]);
    check_diagnostics(
        &of("${ B }"),
        &["warning /env/A `${ B }` has spaces between the braces and is not replaced"],
    );
    check_diagnostics(&of("${ B C }"), &[]);
}

#[test]
fn keys_of_other_programs_are_not_misspelt() {
    let message =
        |key: &str| format!("warning /{key} '{key}' is a key of other programs and has no effect here");
    let url = |fields: &str| format!(r#"{{"url": "https://a.example", {fields}}}"#);
    for key in ["requestInit", "headersHelper", "bearerToken", "protocol"] {
        check_diagnostics(&url(&format!(r#""{key}": {{}}"#)), &[&message(key)]);
    }
    check_diagnostics(r#"{"command": "x", "working_directory": "/"}"#, &[&message("working_directory")]);
    check_diagnostics(r#"{"command": "x", "cwd": "/", "workingDirectory": "/"}"#, &[]);
    check_diagnostics(&url(r#""title": "A", "displayName": "A", "alwaysLoad": true"#), &[]);
    check_diagnostics(&url(r#""comand": "x""#), &["warning /comand unknown key 'comand'"]);
    check_diagnostics(
        r#"{"transport": {"type": "http", "url": "https://a.example", "headers": {}}}"#,
        &[
            "error /transport/url 'url' must not be inside of 'transport'",
            "error /transport/headers 'headers' must not be inside of 'transport'",
        ],
    );
}

#[test]
fn file_must_be_in_the_form_that_its_program_reads() {
    #[track_caller]
    fn check(name: &str, text: &str, want: &[&str]) {
        let reading = read_named(name, text);
        let got = reading.diagnostics.iter().map(|it| format!("{} {}", it.severity, it.message));
        assert_eq!(got.collect::<Vec<_>>(), want, "{name} {text}");
        assert!(!reading.refused && reading.servers.len() == 1, "{name} {text}");
    }
    let under = |key: &str| format!(r#"{{"{key}": {{"a": {{"command": "x"}}}}}}"#);
    const IGNORED: &str = "warning VS Code reads servers under 'servers', and ignores 'mcpServers'";
    check(".vscode/mcp.json", &under("mcpServers"), &[IGNORED]);
    check(".vscode/mcp.json", &under("servers"), &[]);
    check(".vscode/mcp.json", r#"{"servers": {"a": {"command": "x"}}, "mcpServers": {}}"#, &[]);
    check(
        ".cursor/mcp.json",
        &under("servers"),
        &["warning Cursor reads servers under 'mcpServers', and ignores 'servers'"],
    );
    check(
        ".cursor/mcp.json",
        r#"{"a": {"command": "x"}}"#,
        &["warning Cursor reads servers under 'mcpServers' only"],
    );
    check(".vscode/settings.json", r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#, &[]);
    check(".vscode/settings.json", &under("amp.mcpServers"), &[]);
    for key in ["servers", "mcpServers", "context_servers"] {
        check("mcp.json", &under(key), &[]);
    }
    check(".mcp.json", &under("servers"), &[]);
    check(".mcp.json", r#"{"a": {"command": "x"}}"#, &[]);
    let commented = "// mine\n{\"mcpServers\": {\"a\": {\"command\": \"x\",},},}";
    let refuses = |program: &str, what: &str| {
        format!("warning {program} refuses {what} in this file, which is strict JSON there")
    };
    const COMMA: &str = "a comma before a closing bracket";
    check(
        "claude_desktop_config.json",
        commented,
        &[&refuses("Claude Desktop", "a comment"), &refuses("Claude Desktop", COMMA)],
    );
    check(".gemini/settings.json", commented, &[&refuses("Gemini CLI", COMMA)]);
    check(
        "claude_desktop_config.json",
        "{\n\u{a0}\u{a0}\"mcpServers\": {\"a\": {\"command\": \"x\"}}\n}",
        &[&refuses("Claude Desktop", "a blank that is not a space, tab or line break")],
    );
    check("mcp.json", commented, &[]);
}

#[test]
fn variables_stay_where_the_program_replaces_none() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "args": ["${A}", "${env:B}"]}}}"#;
    let name = "Claude/claude_desktop_config.json";
    assert_eq!(
        diagnostic_lines(&read_named(name, text)).lines().next(),
        Some(
            "warning 1:48 /mcpServers/a/args/0 MCPConfigError: Claude Desktop replaces no variables: only mcp-host \
            replaces `${…}`"
        )
    );
    let Ok(Endpoint::Stdio(it)) = endpoint(name, "/w", text, &[("B", "b")]) else { panic!() };
    assert_eq!(it.args.iter().map(|it| it.expose()).collect::<Vec<_>>(), ["${A}", "b"]);
    let shell = r#"{"mcp": {"a": {"type": "stdio", "command": "x", "env": {"A": "$TOKEN"}}}}"#;
    let Ok(Endpoint::Stdio(it)) = endpoint("crush.json", "/w", shell, &[("TOKEN", "t")]) else { panic!() };
    assert_eq!(it.env[0].1.expose(), "t");
}

#[test]
fn folders_of_extensions_and_plugins_are_replaced() {
    let text = r#"{"mcpServers": {"a": {"command": "node", "args": ["${extensionPath}${/}x.js", "${CLAUDE_PLUGIN_ROOT}"]}}}"#;
    let Ok(Endpoint::Stdio(it)) = endpoint("gemini-extension.json", "/e", text, &[]) else { panic!() };
    assert_eq!(it.args.iter().map(|it| it.expose()).collect::<Vec<_>>(), ["/e/x.js", "/e"]);
}

#[test]
fn dia_10_extension_settings_have_nothing_to_start() {
    let text = r#"{"context_servers": {"a": {"settings": {"x": 1}}, "b": {"source": "extension"}, "c": {"enabled": false}}}"#;
    let reading = read_text(Profile::McpJson, text);
    assert!(reading.servers.is_empty() && !reading.has_errors());
    assert!(reading.entries.iter().all(|it| it.accepted && it.disabled), "{:?}", reading.entries);
}

#[test]
fn dia_11_files_of_other_programs_differ_from_empty_ones() {
    let codes = |name: &str, text: &str| {
        let reading = read_named(name, text);
        (reading.refused, diagnostic_lines(&reading).lines().count())
    };
    assert_eq!(codes("mcp.json", r#"{"mcpVersion": 1}"#), (true, 1));
    assert_eq!(codes("/home/a/.config/zed/settings.json", r#"{"theme": "One"}"#), (false, 1));
    assert_eq!(codes("mcp.json", r#"{"mcpServers": {}}"#), (false, 0));
}

#[test]
fn disabled_servers_are_not_checked() {
    let text =
        r#"{"mcpServers": {"a": {"disabled": true, "command": 5, "colour": 1}, "b": {"enabled": false}}}"#;
    let reading = read_text(Profile::McpJson, text);
    assert_eq!(diagnostic_lines(&reading), "");
    assert!(reading.entries.iter().all(|it| it.accepted && it.disabled));
}

#[test]
fn x_16_duplicate_keys_outside_of_servers_are_warnings() {
    let text = r#"{"editor": 1, "editor": 2, "mcpServers": {"a": {"command": "x"}}}"#;
    let outside = read_text(Profile::McpJson, text);
    assert_eq!((outside.refused, outside.servers.len(), outside.has_errors()), (false, 1, false));
    let inside = read_text(
        Profile::McpJson,
        r#"{"mcpServers": {"a": {"env": {"A": "b", "A": "c"}, "command": "x"}}}"#,
    );
    assert!(inside.refused);
}

#[test]
fn dia_07_unknown_keys_are_kept() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "autoApprove": ["y"], "colour": "red", "_own": 1}}}"#;
    let reading = read_text(Profile::McpJson, text);
    assert_eq!(
        diagnostic_lines(&reading),
        "warning 1:61 /mcpServers/a/colour ValidationError: unknown key 'colour'"
    );
    let extra = &reading.servers[0].metadata["extra"];
    assert_eq!(extra.as_str(), r#"{"autoApprove":["y"],"colour":"red","_own":1}"#);
}

/// The first server of a file, resolved in `directory` with these variables.
pub(crate) fn endpoint(
    name: &str,
    directory: &str,
    text: &str,
    variables: &[(&str, &str)],
) -> Result<Endpoint, String> {
    let reading = read_named(name, text);
    let server = reading.servers.first().unwrap_or_else(|| panic!("{}", diagnostic_lines(&reading)));
    let variable = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
    let read_file = |path: &Path| match path == Path::new("/w/.env") {
        true => Ok("FROM_FILE=1\nA=file\n".to_owned()),
        false => Err(format!("no {}", path.display())),
    };
    let context = ResolveContext::new(&variable, Path::new(directory), &read_file);
    let line = |it: &mcp_host_config::ResolveError| {
        let place = reading.diagnose(it);
        format!("{}:{} {} {it}", place.line, place.column, it.pointer)
    };
    resolve(server, &context)
        .map(|it| it.endpoint)
        .map_err(|it| it.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[test]
fn dia_06_variables_are_replaced_in_every_value() {
    let text = r#"{"servers": {"a": {"command": "${PY:-python3}", "args": ["${workspaceFolder}/x", "${env:A}${A}", "${EMPTY:-e}"],
        "cwd": "${workspaceFolder}/src", "envFile": "${workspaceFolder}/.env", "env": {"A": "${A}", "H": "${userHome}", "N": "${workspaceFolderBasename}"}}}}"#;
    let variables = [("A", "1"), ("EMPTY", ""), ("HOME", "/home/ada")];
    let Ok(Endpoint::Stdio(it)) = endpoint(".vscode/mcp.json", "/w/.vscode", text, &variables) else {
        panic!()
    };
    assert_eq!(it.command, "python3");
    assert_eq!(it.args.iter().map(|it| it.expose()).collect::<Vec<_>>(), ["/w/x", "11", "e"]);
    assert_eq!(it.cwd.as_deref(), Some(Path::new("/w/src")));
    let env: Vec<_> = it.env.iter().map(|it| (it.0.as_str(), it.1.expose())).collect();
    assert_eq!(env, [("FROM_FILE", "1"), ("A", "1"), ("H", "/home/ada"), ("N", "w")]);
}

#[test]
fn relative_paths_start_at_the_parent_of_the_editor_folder() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "cwd": "sub", "envFile": ".env"}}}"#;
    for directory in ["/w/.vscode", "/w/.cursor", "/w/.kiro/settings", "/w"] {
        let Ok(Endpoint::Stdio(it)) = endpoint("mcp.json", directory, text, &[]) else {
            panic!("{directory}")
        };
        assert_eq!(it.cwd.as_deref(), Some(Path::new("/w/sub")), "{directory}");
    }
}

#[test]
fn dia_06_inputs_are_taken_from_a_variable_or_the_default() {
    let text = r#"{"inputs": [{"id": "api-key"}, {"id": "zone", "default": "eu"}],
 "servers": {"a": {"command": "x", "args": ["${input:api-key}", "${input:zone}"]}}}"#;
    let Ok(Endpoint::Stdio(it)) = endpoint("mcp.json", "/w", text, &[("MCP_INPUT_API_KEY", "k")]) else {
        panic!()
    };
    assert_eq!(it.args.iter().map(|it| it.expose()).collect::<Vec<_>>(), ["k", "eu"]);
    assert_eq!(
        endpoint("mcp.json", "/w", text, &[]).unwrap_err(),
        "2:45 /servers/a/args/0 ConfigError: the input 'api-key' has no value"
    );
}

#[test]
fn missing_variable_affects_one_server_only() {
    let text = r#"{"mcpServers": {"a": {"url": "https://${NOPE}/"}, "b": {"command": "x"}}}"#;
    let reading = read_named("mcp.json", text);
    assert!(!reading.refused && reading.servers.len() == 2);
    assert!(endpoint("mcp.json", "/w", text, &[]).is_err());
}

#[test]
fn lists_of_variables_are_read_in_each_of_their_forms() {
    let text = r#"{"mcpServers": [{"name": "a", "command": "x", "env": ["A=b=c", "PATH", {"name": "D", "value": "e"}]}]}"#;
    let Ok(Endpoint::Stdio(it)) = endpoint("x.json", "/w", text, &[("PATH", "/bin")]) else { panic!() };
    let env: Vec<_> = it.env.iter().map(|it| (it.0.as_str(), it.1.expose())).collect();
    assert_eq!(env, [("A", "b=c"), ("PATH", "/bin"), ("D", "e")]);
}

#[test]
fn dia_13_goose_keys_in_other_files_are_reported_as_misspelt() {
    let warning = |key: &str, common: &str| {
        format!("warning /{key} '{key}' is a key of Goose; other programs read '{common}'")
    };
    check_diagnostics(r#"{"command": "x", "envs": {"A": "b"}}"#, &[&warning("envs", "env")]);
    check_diagnostics(r#"{"cmd": "x"}"#, &[&warning("cmd", "command")]);
    check_diagnostics(r#"{"uri": "https://a.example"}"#, &[&warning("uri", "url")]);
    check_diagnostics(
        r#"{"command": "x", "envs": {}, "env": {}}"#,
        &["error /envs the same field is given twice; only one is allowed"],
    );
    let text = r#"{"mcpServers": {"a": {"command": "x", "envs": {"A": "b"}}}}"#;
    let fixed = mcp_host_config::fix_all(
        &Document::new(".mcp.json", text, Profile::McpJson),
        Applicability::Suggested,
    );
    assert_eq!(fixed.text, text.replace("envs", "env"));
}

/// The warnings of a text with servers under `mcpServers`, and these members.
#[track_caller]
fn check_member_warnings(members: &str, want: &[&str]) {
    let reading =
        read_named(".mcp.json", &format!(r#"{{"mcpServers": {{"a": {{"command": "x"}}}}, {members}}}"#));
    let line = |it: &Diagnostic| {
        format!("{} {} ({})", it.pointer, it.message, it.help.as_deref().unwrap_or_default())
    };
    assert_eq!(reading.diagnostics.iter().map(line).collect::<Vec<_>>(), want, "{members}");
}

#[test]
fn dia_13_misspelt_key_next_to_the_servers_is_reported() {
    let server = r#"{"b": {"command": "y"}}"#;
    let want = |key: &str, near: &str| {
        format!("/{key} unknown key '{key}'; its content is not read (did you mean `{near}`?)")
    };
    check_member_warnings(&format!(r#""mcpServer": {server}"#), &[&want("mcpServer", "mcpServers")]);
    check_member_warnings(r#""input": [{"id": "k", "type": "promptString"}]"#, &[&want("input", "inputs")]);
    // Extensions, and servers that are set aside.
    check_member_warnings(&format!(r#""mcpServers_disabled": {server}"#), &[]);
    check_member_warnings(&format!(r#""_mcpServer": {server}"#), &[]);
    check_member_warnings(r#""server": {"port": 1}, "input": [1], "colour": {"b": 1}"#, &[]);
}
