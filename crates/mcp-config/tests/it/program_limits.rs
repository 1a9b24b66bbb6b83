//! Limits and filters that follow the program of the file.

use std::path::Path;

use mcp_host_config::{Code, Document, Profile, ResolveContext, read, resolve};

/// Reads an entry from the file of a program; expects the limits of a start and of a request in seconds, and what
/// limits a start in the program.
#[track_caller]
fn check_start(file: &str, text: &str, want: (f64, f64, &str)) {
    let reading = read(&Document::new(file, text, Profile::McpJson));
    let server = &reading.servers[0];
    let limit = server.origin.start_limit.map(|it| it.to_string()).unwrap_or_default();
    let limits = &server.limits;
    assert_eq!((limits.startup.as_secs_f64(), limits.request.as_secs_f64(), &*limit), want, "{file} {text}");
}

/// RPT-116
#[test]
fn rpt_116_timeout_has_the_unit_of_the_program() {
    let check = |file: &str, key: &str, timeout: &str, want: f64, warns: bool| {
        let command = if key == "extensions" { "cmd" } else { "command" };
        let entry = format!(r#"{{"{command}": "x", "type": "stdio", "name": "a", "timeout": {timeout}}}"#);
        let text = format!(r#"{{"{key}": {{"a": {entry}}}}}"#);
        let reading = read(&Document::new(file, &text, Profile::McpJson));
        assert_eq!(reading.servers[0].limits.request.as_secs_f64(), want, "{file} {timeout}");
        let has_warning = reading.diagnostics.iter().any(|it| it.code == Code::SuspiciousUnit);
        assert_eq!(has_warning, warns, "{file} {timeout}");
    };
    check("/p/.gemini/settings.json", "mcpServers", "3000", 3.0, false);
    check("/p/.gemini/settings.json", "mcpServers", "60", 60.0, true);
    check("/p/.mcp.json", "mcpServers", "2000", 2.0, false);
    check("/p/crush.json", "mcp", "3000", 3000.0, false);
    check("/p/cline_mcp_settings.json", "mcpServers", "3600", 3600.0, false);
    check("/p/goose/config.yaml", "extensions", "3000", 3000.0, false);
    check("/p/mcp.json", "mcpServers", "3000", 3.0, true);
    check("/p/mcp.json", "mcpServers", "60", 60.0, false);
}

/// RPT-110
#[test]
fn start_is_limited_by_the_key_of_the_program() {
    let usual = |fields: &str| format!(r#"{{"mcpServers": {{"a": {{"command": "x", {fields}}}}}}}"#);
    let timeout = &usual(r#""timeout": 5000"#);
    check_start(".gemini/settings.json", timeout, (5.0, 5.0, "`timeout`"));
    check_start(".mcp.json", timeout, (60.0, 5.0, "the variable `MCP_TIMEOUT`"));
    check_start(".cursor/mcp.json", timeout, (60.0, 5.0, "`startup_timeout_sec`"));
    check_start("mcp.json", &usual(r#""startup_timeout_sec": 3"#), (3.0, 60.0, "`startup_timeout_sec`"));
    // mcp-host's own key takes precedence.
    let both = usual(r#""timeout": 5000, "startup_timeout_sec": 90"#);
    check_start(".gemini/settings.json", &both, (90.0, 5.0, "`timeout`"));
    let opencode = r#"{"mcp": {"a": {"type": "local", "command": ["x"], "timeout": 7000}}}"#;
    check_start("opencode.json", opencode, (7.0, 7.0, "`timeout`"));
    check_start(
        ".codex/config.toml",
        "[mcp_servers.a]\ncommand = 'x'\nstartup_timeout_sec = 20\n",
        (20.0, 60.0, "`startup_timeout_sec`"),
    );
    check_start(
        "librechat.yaml",
        "version: 1.2.1\nmcpServers:\n  a: {command: x, initTimeout: 9000, timeout: 30000}\n",
        (9.0, 30.0, "`initTimeout`"),
    );
    check_start(
        ".continue/config.yaml",
        "schema: v1\nmcpServers:\n  - {name: a, command: x, connectionTimeout: 4000}\n",
        (4.0, 60.0, "`connectionTimeout`"),
    );
}

/// RPT-109
#[test]
fn included_tool_of_gemini_may_have_arguments() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "includeTools": ["run(ls)", "show", "(x)"]}}}"#;
    let whitelist = |file: &str| {
        let reading = read(&Document::new(file, text, Profile::McpJson));
        reading.servers[0].exposure.tools.filter.whitelist.join(" ")
    };
    assert_eq!(whitelist(".gemini/settings.json"), "run show (x)");
    assert_eq!(whitelist("mcp.json"), "run(ls) show (x)");
}

/// RPT-110
#[test]
fn start_of_claude_code_is_limited_by_its_variable() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    let reading = read(&Document::new(".mcp.json", text, Profile::McpJson));
    let check = |value: Option<&str>, want: f64| {
        let variable = |name: &str| value.filter(|_| name == "MCP_TIMEOUT").map(str::to_owned);
        let none = |_: &Path| Err(String::new());
        let context = ResolveContext::new(&variable, Path::new("/"), &none);
        let limits = resolve(&reading.servers[0], &context).unwrap().spec.limits;
        assert_eq!(limits.startup.as_secs_f64(), want, "{value:?}");
    };
    check(None, 60.0);
    check(Some("15000"), 15.0);
    check(Some("soon"), 60.0);
    check(Some("0"), 60.0);
}
