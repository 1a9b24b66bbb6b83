//! Resolving specs: variables, env files, and errors for missing ones.

use std::path::Path;

use mcp_host_config::{Document, Profile, ResolveContext, ResolveErrors, ResolvedServer, resolve};
use mcp_host_model::{Endpoint, ErrorKind, StdioEndpoint};

use crate::read_text;

/// Resolves the one server of a text. The environment is `A`, `EMPTY`, `NESTED`, `LINES`; the env files are `.env` and
/// `sub/x.env`.
fn resolve_text(profile: Profile, directory: &str, text: &str) -> Result<ResolvedServer, ResolveErrors> {
    let reading = read_text(profile, text);
    assert!(!reading.has_errors(), "{}", crate::diagnostic_lines(&reading));
    let variable = |name: &str| match name {
        "A" => Some("va".to_owned()),
        "EMPTY" => Some(String::new()),
        "NESTED" => Some("${A}".to_owned()),
        "LINES" => Some("x\nargs: [evil]".to_owned()),
        "HOST" => Some("localhost".to_owned()),
        "EVIL" => Some("localhost.evil.example".to_owned()),
        _ => None,
    };
    let read_file = |path: &Path| match path.to_str() {
        Some("/srv/.env") => Ok("# made by hand\nONE=file\nTWO=file\nTHREE=${A}\n".to_owned()),
        Some("/srv/sub/x.env") => Ok("ONE=sub\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let mut context = ResolveContext::new(&variable, Path::new(directory), &read_file);
    context.names = &|| vec!["A".to_owned(), "GITHUB_TOKEN".to_owned()];
    resolve(&reading.servers[0], &context)
}

fn agent_with_item(fields: &str) -> String {
    format!("tools:\n  - {{name: a, description: d, type: mcp, server: s, {fields}}}\n")
}

#[track_caller]
fn resolve_stdio(fields: &str) -> StdioEndpoint {
    match resolve_text(Profile::HoloDeck, "/srv", &agent_with_item(fields)).unwrap().endpoint {
        Endpoint::Stdio(it) => it,
        other => panic!("not stdio: {other:?}"),
    }
}

fn env_text(endpoint: &StdioEndpoint) -> String {
    let all = endpoint.env.iter().map(|it| format!("{}={}", it.0, it.1.expose()));
    all.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check_errors(profile: Profile, text: &str, want: &str) {
    let errors = resolve_text(profile, "/srv", text).unwrap_err();
    let all: Vec<_> = errors.iter().map(|it| format!("{} {it}", it.pointer)).collect();
    assert_eq!(all.join("\n"), want);
}

#[test]
fn hd_050_hd_055_variables_are_replaced_once() {
    let endpoint = resolve_stdio(
        "command: npx, args: ['${A}', 'x${A}y${EMPTY}z', '${NESTED}', '$A', '${A:-d}', '${input:x}', '${LINES}', \
        '$${A}']",
    );
    let args: Vec<_> = endpoint.args.iter().map(|it| it.expose()).collect();
    // HD-054: HoloDeck replaces variables in the text of the file, so a line break in a value could add keys. Here
    // it cannot.
    assert_eq!(args, ["va", "xvayz", "${A}", "$A", "${A:-d}", "${input:x}", "x\nargs: [evil]", "$va"]);
}

#[test]
fn dia_06_references_of_opencode_are_resolved() {
    let file = |command: &str, value: &str| {
        format!(
            r#"{{"mcp": {{"a": {{"type": "local", "command": [{command}], "environment": {{"K": "{value}"}}}}}}}}"#
        )
    };
    let text = file(r#""{env:A}/x", "{file:sub/x.env}", "${A}""#, "x{file:/srv/sub/x.env}y{env:EMPTY}");
    let Endpoint::Stdio(endpoint) = resolve_text(Profile::McpJson, "/srv", &text).unwrap().endpoint else {
        panic!("not stdio")
    };
    let args: Vec<_> = endpoint.args.iter().map(|it| it.expose()).collect();
    assert_eq!((endpoint.command.as_str(), &args[..]), ("va/x", &["ONE=sub", "${A}"][..]));
    assert_eq!(env_text(&endpoint), "K=xONE=suby");
    check_errors(
        Profile::McpJson,
        &file(r#""x", "{file:none}""#, "{env:MISSING}"),
        "/mcp/a/args/0 ConfigError: cannot read the file of a reference: no such file",
    );
    // RPT-092
    let text = file(r#""x""#, "x{env:MISSING}y");
    let Endpoint::Stdio(endpoint) = resolve_text(Profile::McpJson, "/srv", &text).unwrap().endpoint else {
        panic!("not stdio")
    };
    assert_eq!(env_text(&endpoint), "K=xy");
}

#[test]
fn hd_051_hd_052_hd_063_every_missing_variable_is_named() {
    check_errors(
        Profile::HoloDeck,
        &agent_with_item(
            "command: npx, args: ['${ONE}', '${TWO} ${ONE} ${ONE}'], env: {K: '${THREE}'}, config: {a: \
            ['${FOUR}']}, description2: x",
        )
        .replace(", description2: x", ""),
        "/tools/0/config/a/0 ConfigError: Environment variable 'FOUR' not found\n\
         /tools/0/args/0 ConfigError: Environment variable 'ONE' not found\n\
         /tools/0/args/1 ConfigError: Environment variable 'TWO' not found\n\
         /tools/0/args/1 ConfigError: Environment variable 'ONE' not found\n\
         /tools/0/env/K ConfigError: Environment variable 'THREE' not found",
    );
    // Variables are replaced in every text of an item, not only in values.
    let text = "tools:\n  - {name: a, description: '${D}', type: mcp, server: '${S}', command: npx, encoding: \
        '${E}'}\n";
    let errors = resolve_text(Profile::HoloDeck, "/srv", text).unwrap_err();
    let missing: Vec<_> =
        errors.iter().filter(|it| it.kind == ErrorKind::Config).map(|it| it.pointer.as_str()).collect();
    assert_eq!(missing, ["/tools/0/description", "/tools/0/server", "/tools/0/encoding"]);
}

#[test]
fn hd_056_workspace_folder_is_the_file_folder_except_in_0_7() {
    assert_eq!(
        resolve_stdio("command: npx, args: ['${workspaceFolder}/data']").args[0].expose(),
        "/srv/data"
    );
    check_errors(
        Profile::HoloDeck07,
        "tools:\n  - {name: a, description: d, type: mcp, command: npx, args: ['${workspaceFolder}']}\n",
        "/tools/0/args/0 ConfigError: Environment variable 'workspaceFolder' not found",
    );
}

#[test]
fn hd_057_env_takes_precedence_over_the_env_file() {
    assert_eq!(
        env_text(&resolve_stdio("command: npx, envFile: .env, env: {TWO: own}")),
        "ONE=file TWO=own THREE=${A}"
    );
    assert_eq!(env_text(&resolve_stdio("command: npx, env_file: sub/x.env")), "ONE=sub");
    // Variables are never taken from the env file.
    check_errors(
        Profile::HoloDeck,
        &agent_with_item("command: npx, envFile: .env, env: {X: '${ONE}'}"),
        "/tools/0/env/X ConfigError: Environment variable 'ONE' not found",
    );
}

#[test]
fn hd_019_hd_058_env_file_is_relative_to_the_configuration_and_readable() {
    check_errors(
        Profile::HoloDeck,
        &agent_with_item("command: npx, envFile: other.env"),
        "/tools/0/envFile ConfigError: cannot read the env file: no such file",
    );
}

#[test]
fn hd_104_hdx_08_config_variable_takes_precedence() {
    let endpoint = resolve_stdio(
        "command: npx, env: {MCP_CONFIG: own}, config: {b: 1, a: ['${A}', {n: 123456789012345678901234567890}]}",
    );
    assert_eq!(env_text(&endpoint), r#"MCP_CONFIG={"b":1,"a":["va",{"n":123456789012345678901234567890}]}"#);
    assert_eq!(env_text(&resolve_stdio("command: npx, config: {}")), "");
    assert_eq!(env_text(&resolve_stdio("command: npx, config:")), "");
    let text = agent_with_item("transport: http, url: 'https://x.example', config: {q: '\"${A}\"'}");
    let config = resolve_text(Profile::HoloDeck, "/srv", &text).unwrap().config.unwrap();
    assert_eq!(config.expose(), r#"{"q":"\"va\""}"#);
}

#[test]
fn hd_044_resolved_url_is_checked() {
    let text =
        |url: &str| agent_with_item(&format!("transport: http, url: '{url}', headers: {{A: '${{A}}'}}"));
    let Endpoint::Http(http) =
        resolve_text(Profile::HoloDeck, "/srv", &text("http://${HOST}:1/x")).unwrap().endpoint
    else {
        panic!("not http")
    };
    assert_eq!((http.url.as_str(), http.headers[0].1.expose()), ("http://localhost:1/x", "va"));
    check_errors(
        Profile::HoloDeck,
        &text("http://${EVIL}/x"),
        "/tools/0/url MCPConfigError: 'url' must use https:// (or http:// for localhost)",
    );
}

#[test]
fn hd_022_a_variable_cannot_add_a_header() {
    check_errors(
        Profile::HoloDeck,
        &agent_with_item("transport: http, url: 'https://x.example', headers: {A: '${LINES}'}"),
        "/tools/0/headers/A MCPConfigError: a header's value must be one line without control characters",
    );
}

#[test]
fn deprecated_item_keeps_argument_pointers() {
    let text = "tools:\n  - {name: a, description: d, type: mcp, server: '@acme/x', args: ['${NOPE}']}\n";
    check_errors(
        Profile::HoloDeck,
        text,
        "/tools/0/args/0 ConfigError: Environment variable 'NOPE' not found",
    );
}

#[test]
fn dm_071_missing_host_variable_is_named_with_its_field() {
    check_errors(
        Profile::Dominds,
        "version: 1\nservers:\n  a: {transport: stdio, command: x, env: {K: {env: X}, L: {env: EMPTY}}}\n",
        "/servers/a/env/K ConfigError: MCP server 'a' missing required host env var 'X' (for env.K)",
    );
    check_errors(
        Profile::Dominds,
        "version: 1\nservers:\n  a: {transport: streamable_http, url: 'http://x.example', headers: {H: {env: X}}}\n",
        "/servers/a/headers/H ConfigError: MCP server 'a' missing required host env var 'X' (for headers.H)",
    );
}

#[test]
fn dm_072_empty_variable_is_set_and_gets_the_prefix() {
    let text = "version: 1\nservers:\n  a: {transport: stdio, command: x, env: {E: {env: EMPTY}, P: {prefix: 'Bearer \
        ', env: A}, L: '${A}'}}\n";
    let Endpoint::Stdio(endpoint) = resolve_text(Profile::Dominds, "/srv/.minds", text).unwrap().endpoint
    else {
        panic!("not stdio")
    };
    assert_eq!(env_text(&endpoint), "E= P=Bearer va L=${A}");
}

#[test]
fn dmx_04_a_working_directory_is_relative_to_the_workspace() {
    let cwd = |directory: &str| {
        let text = "version: 1\nservers:\n  a: {transport: stdio, command: x, cwd: ' tools '}\n";
        let Endpoint::Stdio(endpoint) = resolve_text(Profile::Dominds, directory, text).unwrap().endpoint
        else {
            panic!("not stdio")
        };
        endpoint.cwd.unwrap()
    };
    assert_eq!(cwd("/srv/.minds"), Path::new("/srv/tools"));
    assert_eq!(cwd("/srv"), Path::new("/srv/tools"));
    assert_eq!(cwd(".minds"), Path::new("tools"));
}

#[test]
fn resolve_errors_have_file_positions() {
    let text = "tools:\n  - name: a\n    description: d\n    type: mcp\n    server: s\n    command: npx\n    \
        env:\n      K: \"${X}\"\n";
    let reading = read_text(Profile::HoloDeck, text);
    let context = ResolveContext::new(&|_| None, Path::new("/"), &|_| Err(String::new()));
    let errors = resolve(&reading.servers[0], &context).unwrap_err();
    let diagnostic = reading.diagnose(&errors[0]);
    assert_eq!((diagnostic.line, diagnostic.column, &text[diagnostic.span.clone()]), (8, 10, "\"${X}\""));
    assert_eq!(diagnostic.server.as_deref(), Some("a"));
    assert_eq!(diagnostic.to_string(), errors[0].to_string());
}

#[test]
fn name_close_to_a_missing_variable_is_suggested() {
    let help = |profile, name: &str| {
        let text = match profile {
            Profile::McpJson => {
                format!(r#"{{"mcpServers": {{"a": {{"command": "x", "args": ["${{{name}}}"]}}}}}}"#)
            }
            Profile::Dominds => format!(
                "version: 1\nservers:\n  a: {{transport: stdio, command: x, env: {{K: {{env: {name}}}}}}}\n"
            ),
            _ => agent_with_item(&format!("command: npx, args: ['${{{name}}}']")),
        };
        resolve_text(profile, "/srv", &text).unwrap_err()[0].help.clone().unwrap()
    };
    for profile in [Profile::McpJson, Profile::Dominds, Profile::HoloDeck] {
        assert_eq!(
            help(profile, "GITHUB_TOKN"),
            "did you mean `GITHUB_TOKEN`? Otherwise set it before the start: `export GITHUB_TOKN=…`"
        );
        assert_eq!(help(profile, "OTHER"), "set it before the start: `export OTHER=…`");
    }
    assert!(help(Profile::McpJson, "workspaceFoldr").starts_with("did you mean `workspaceFolder`?"));
}

/// The folder in which the server of a file starts. The home folder is `/home/me`.
#[track_caller]
fn check_start_folder(path: &str, text: &str, want: Option<&str>) {
    let dialect = mcp_host_config::detect(path, text).unwrap();
    let reading = mcp_host_config::read_detecting(dialect, path, text, Document::DEFAULT_MAX_SERVERS).reading;
    let home = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
    let context = ResolveContext::new(&home, Path::new(path).parent().unwrap(), &|_| Err(String::new()));
    let Endpoint::Stdio(endpoint) = resolve(&reading.servers[0], &context).unwrap().endpoint else {
        panic!("not stdio")
    };
    assert_eq!(endpoint.cwd.as_deref(), want.map(Path::new), "{path}");
}

#[test]
fn rpt_080_a_server_starts_in_the_workspace_of_its_file() {
    let json = |key: &str| format!(r#"{{"{key}": {{"a": {{"command": "x"}}}}}}"#);
    for (file, key) in [
        (".mcp.json", "mcpServers"),
        ("mcp.json", "mcpServers"),
        ("own-name.json", "mcpServers"),
        (".vscode/mcp.json", "servers"),
        (".cursor/mcp.json", "mcpServers"),
        (".roo/mcp.json", "mcpServers"),
        (".kiro/settings/mcp.json", "mcpServers"),
        (".gemini/settings.json", "mcpServers"),
        (".qwen/settings.json", "mcpServers"),
        (".zed/settings.json", "context_servers"),
        (".amp/settings.json", "amp.mcpServers"),
        (".continue/config.yaml", "mcpServers"),
        ("librechat.yaml", "mcpServers"),
    ] {
        check_start_folder(&format!("/srv/project/{file}"), &json(key), Some("/srv/project"));
    }
    let codex = "[mcp_servers.a]\ncommand = 'x'\n";
    check_start_folder("/srv/project/.codex/config.toml", codex, Some("/srv/project"));
    let dominds = "version: 1\nservers:\n  a: {transport: stdio, command: x}\n";
    check_start_folder("/srv/project/.minds/mcp.yaml", dominds, Some("/srv/project"));
    let agent = agent_with_item("command: npx");
    check_start_folder("/srv/project/agent.yaml", &agent, Some("/srv/project"));
}

#[test]
fn rpt_081_a_server_of_a_user_file_starts_in_the_folder_of_the_caller() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    for file in [
        "/home/me/.cursor/mcp.json",
        "/home/me/.gemini/settings.json",
        "/home/me/.kiro/settings/mcp.json",
        "/home/me/.claude.json",
        "/home/me/.config/Claude/claude_desktop_config.json",
        "/srv/project/claude_desktop_config.json",
        "/srv/x/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        "/home/you/.codeium/windsurf/mcp_config.json",
    ] {
        check_start_folder(file, text, None);
    }
    let goose = "extensions:\n  a: { type: stdio, name: a, cmd: x }\n";
    check_start_folder("/srv/config/goose/config.yaml", goose, None);
    check_start_folder("/home/me/mcp.json", text, Some("/home/me"));
    check_start_folder("mcp.json", text, None);
    let session = r#"{"mcpServers": [{"name": "a", "command": "/x", "args": [], "env": []}]}"#;
    check_start_folder("/srv/session.json", session, None);
}

#[test]
fn rpt_082_a_server_of_a_project_starts_in_the_project() {
    let text = r#"{"projects": {"/srv/project": {"mcpServers": {"a": {"command": "x"}}}}}"#;
    check_start_folder("/home/me/.claude.json", text, Some("/srv/project"));
}

/// The command, the arguments and the working directory of the server `a` of a file, and its diagnostics.
fn start_texts(path: &str, entry: &str) -> (String, String) {
    let key = if path.contains(".vscode") { "servers" } else { "mcpServers" };
    let text = format!(r#"{{"{key}": {{"a": {entry}}}}}"#);
    let dialect = mcp_host_model::Dialect::McpJson;
    let limit = Document::DEFAULT_MAX_SERVERS;
    let reading = mcp_host_config::read_detecting(dialect, path, &text, limit).reading;
    let variable = |name: &str| match name {
        "HOME" => Some("/home/me".to_owned()),
        "TOKEN" => Some("t".to_owned()),
        _ => None,
    };
    let context = ResolveContext::new(&variable, Path::new("/srv"), &|_| Err(String::new()));
    let Endpoint::Stdio(endpoint) = resolve(&reading.servers[0], &context).unwrap().endpoint else {
        panic!("not stdio")
    };
    let args: Vec<_> = endpoint.args.iter().map(|it| it.expose()).collect();
    let texts = format!("{} {} {}", endpoint.command, args.join(" "), endpoint.cwd.unwrap().display());
    let found: Vec<_> = reading.diagnostics.iter().map(|it| it.message.as_str()).collect();
    (texts, found.join("\n"))
}

#[test]
fn rpt_090_vs_code_replaces_the_home_prefix() {
    let entry = r#"{"command": "~/x", "args": ["~/y", "~", "a~/b", "~z"], "cwd": "~/c"}"#;
    let want = "/home/me/x /home/me/y /home/me a~/b ~z /home/me/c";
    assert_eq!(start_texts("/srv/.vscode/mcp.json", entry), (want.to_owned(), String::new()));
    let (texts, found) = start_texts("/srv/.cursor/mcp.json", entry);
    assert_eq!(texts, "~/x ~/y ~ a~/b ~z /srv/~/c");
    assert_eq!(found.lines().count(), 4, "{found}");
    assert!(found.starts_with("`~` is not replaced here: Cursor passes it as it is"), "{found}");
}

#[test]
fn rpt_091_gemini_replaces_shell_variables_everywhere() {
    let entry = r#"{"command": "$HOME/x", "args": ["-t$TOKEN", "$UNSET/${TOKEN}"], "cwd": "$HOME"}"#;
    let want = "/home/me/x -tt $UNSET/t /home/me";
    assert_eq!(start_texts("/srv/.gemini/settings.json", entry), (want.to_owned(), String::new()));
    let (texts, found) = start_texts("/srv/.mcp.json", entry);
    assert_eq!(texts, "$HOME/x -t$TOKEN $UNSET/t /srv/$HOME");
    assert!(found.contains("`$NAME` is not replaced"), "{found}");
}

#[test]
fn rpt_093_references_of_other_programs_are_told() {
    for text in ["{{USER_ID}}", "%APPDATA%/x", "{env:TOKEN}", "$TOKEN"] {
        let entry = format!(r#"{{"command": "x", "args": ["{text}"]}}"#);
        let (texts, found) = start_texts("/srv/mcp.json", &entry);
        assert_eq!(texts, format!("x {text} /srv"));
        assert!(found.contains("is not replaced"), "{text}: {found}");
    }
}

#[test]
fn rpt_095_path_separator_is_replaced() {
    let entry = r#"{"command": "x", "args": ["a${pathSeparator}b${/}c"]}"#;
    assert_eq!(start_texts("/srv/mcp.json", entry), ("x a/b/c /srv".to_owned(), String::new()));
}
