//! Detects the dialect of a file by its name, else by its content.

use mcp_host_model::{Dialect, Profile};

use crate::dialect::editor::conventions::Program;
use crate::dialect::editor::programs::DEV_CONTAINER_SERVERS;
use crate::dialect::editor::{is_goose_extensions, is_map_of_servers, is_server};
use crate::dialect::holodeck;
use crate::syntax::{self, Content, Node, Syntax, looks_like_json, looks_like_toml};

/// The dialect of a file, by its path (`agent.yaml`, `.minds/mcp.yaml`, `mcp.json`), else by its content. `None` if it
/// is not a dialect that this crate reads.
pub fn detect(path: &str, text: &str) -> Option<Dialect> {
    detect_by_name(path).or_else(|| detect_by_content(text))
}

/// Detects the profile of a file from its tree: HoloDeck 0.7 if its MCP tools have `command` or `url` but
/// neither `server` nor `envFile`, otherwise the default of the dialect. See
/// [`read_detecting`](crate::read_detecting).
pub(crate) fn detect_profile(dialect: Dialect, root: Option<&Node>) -> Profile {
    let default = Profile::default_for(dialect);
    let Some(root) = root.filter(|_| dialect == Dialect::HoloDeck) else { return default };
    let tools = holodeck::tools(root).and_then(Node::items).unwrap_or_default();
    let mcp_tools = || tools.iter().filter(|tool| tool.text_of("type") == Some("mcp"));
    let has = |key| mcp_tools().any(|tool| tool.get(key).is_some());
    let is_startable = has("command") || has("url");
    if is_startable && !has("server") && !has("envFile") { Profile::HoloDeck07 } else { default }
}

/// A format that configures MCP servers, and that is known but not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedFormat {
    /// What the file is: "the manifest of an MCP bundle".
    pub name: &'static str,
    /// How to use its servers. [`parse_server_json`](crate::parse_server_json) reads the server.json of a
    /// published server.
    pub help: &'static str,
}

/// Recognizes a format that is known but not supported, in a file whose dialect [`detect`] does not know. `None` if the
/// format is unknown too.
pub fn detect_unsupported_format(path: &str, text: &str) -> Option<UnsupportedFormat> {
    const WRITE_MCP_JSON: &str = "write its servers in an mcp.json";
    let path = path.replace('\\', "/");
    let format = |name, help| Some(UnsupportedFormat { name, help });
    if path.contains(".docker/mcp/") {
        return format("a file of Docker's MCP gateway", WRITE_MCP_JSON);
    }
    let root = syntax::parse_any(text).root?;
    let is_mcp = |it: &Node| it.text_of("type") == Some("mcp");
    let agents = root.value("agents").and_then(Node::members).unwrap_or_default();
    let toolsets = agents.iter().filter_map(|it| it.value.value("toolsets")?.items()).flatten();
    if toolsets.into_iter().any(is_mcp) {
        return format("an agent of Docker's cagent", WRITE_MCP_JSON);
    }
    if root.value("server").is_some_and(|it| it.get("mcp_config").is_some()) {
        return format(
            "the manifest of an MCP bundle",
            "add the member `mcp_config` as a server to an mcp.json",
        );
    }
    let is_list = |key| root.value(key).and_then(Node::items).is_some();
    if is_list("extensions") && (root.get("instructions").is_some() || root.get("prompt").is_some()) {
        return format("a recipe of Goose", WRITE_MCP_JSON);
    }
    if root.get("name").is_some() && (is_list("packages") || is_list("remotes")) {
        let help = "add the server that it describes to an mcp.json";
        return format("the server.json of a published server", help);
    }
    None
}

/// Detects the dialect by the name of the file and its folder.
fn detect_by_name(path: &str) -> Option<Dialect> {
    let mut parts = path.rsplit(['/', '\\']);
    let file = parts.next()?;
    let folder = parts.next();
    match (folder, file) {
        (_, "agent.yaml" | "agent.yml") => Some(Dialect::HoloDeck),
        (Some(".minds"), "mcp.yaml") => Some(Dialect::Dominds),
        // A file of a known program is an editor file, whatever it contains.
        _ => Program::of_file(path).map(|_| Dialect::McpJson),
    }
}

/// Detects the dialect by the top-level keys. A JSON text may also be a Dominds or HoloDeck file, because it is
/// valid YAML.
fn detect_by_content(text: &str) -> Option<Dialect> {
    if looks_like_toml(text) {
        return Some(Dialect::McpJson);
    }
    let is_json = looks_like_json(text);
    if is_json {
        let parsed = syntax::parse_as(text, Syntax::JsonWithComments);
        let dialect = parsed.root.as_ref().map_or_else(|| guess_json(text), detect_by_members);
        if dialect.is_some() {
            return dialect;
        }
    }
    let Some(root) = syntax::parse_any(text).root else { return guess_yaml(text) };
    if root.get("mcpServers").is_some()
        || root.value("extensions").is_some_and(is_goose_extensions)
        || root.at(DEV_CONTAINER_SERVERS).is_some()
    {
        return Some(Dialect::McpJson);
    }
    let has_transports = |node: &Node| {
        let members = node.members().unwrap_or_default();
        members.iter().any(|it| it.value.get("transport").is_some())
    };
    if let Some(servers) = root.get("servers") {
        // In YAML, `servers` alone is too common a key. In JSON it is the key of VS Code.
        let is_dominds = root.get("version").is_some() || has_transports(&servers.value);
        return match servers.value.resolved_content() {
            Content::Sequence(_) => None,
            _ if is_dominds => Some(Dialect::Dominds),
            _ => is_json.then_some(Dialect::McpJson),
        };
    }
    if holodeck::tools(&root).and_then(Node::items).is_some() {
        return Some(Dialect::HoloDeck);
    }
    (root.get("instructions").is_some() && root.get("model").is_some()).then_some(Dialect::HoloDeck)
}

/// Detects ACP and editor files by the members of their JSON.
fn detect_by_members(root: &Node) -> Option<Dialect> {
    let servers = root.value("mcpServers");
    let params = root.value("params");
    let method = root.text_of("method").unwrap_or_default();
    // An ACP session request, or its parameters: an object with a list of servers.
    let params_have_servers = params.is_some_and(|it| it.get("mcpServers").is_some());
    if method.starts_with("session/") || params_have_servers || servers.and_then(Node::items).is_some() {
        return Some(Dialect::Acp);
    }
    // A server of an ACP session, or a list of them. Its `env` and `headers` are lists, which editors write as
    // maps.
    let has_lists =
        |it: &Node| ["env", "headers"].iter().any(|key| it.value(key).and_then(Node::items).is_some());
    let is_acp_entry =
        |it: &Node| it.get("name").is_some() && (has_lists(it) || it.get("serverId").is_some());
    if is_acp_entry(root) || root.items().is_some_and(|it| !it.is_empty() && it.iter().all(is_acp_entry)) {
        return Some(Dialect::Acp);
    }
    // An editor file: `mcpServers`, a list or map of servers, or settings that contain servers.
    let is_server_list = root.items().is_some_and(|it| !it.is_empty() && it.iter().all(is_server));
    let has_settings_key =
        ["mcp.servers", "context_servers", "amp.mcpServers"].iter().any(|it| root.get(it).is_some());
    let mcp_has_servers =
        root.value("mcp").is_some_and(|it| it.get("servers").is_some() || is_map_of_servers(it));
    (servers.is_some() || is_server_list || has_settings_key || mcp_has_servers || is_map_of_servers(root))
        .then_some(Dialect::McpJson)
}

/// Guesses the dialect of invalid JSON by its keys, so that the syntax error can be reported.
fn guess_json(text: &str) -> Option<Dialect> {
    if text.contains("\"session/") {
        return Some(Dialect::Acp);
    }
    // The quotes of this key may be the mistake.
    let keys = ["mcpServers", "\"servers\"", "\"mcp.servers\"", "\"context_servers\""];
    keys.iter().any(|it| text.contains(it)).then_some(Dialect::McpJson)
}

/// Guesses the dialect of invalid YAML by its lines, so that the syntax error can be reported.
fn guess_yaml(text: &str) -> Option<Dialect> {
    let has = |key: &str| text.lines().any(|it| it.starts_with(key));
    if has("mcpServers:") {
        return Some(Dialect::McpJson);
    }
    if has("servers:") {
        return has("version:").then_some(Dialect::Dominds);
    }
    has("tools:").then_some(Dialect::HoloDeck)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, want: Option<Dialect>) {
        assert_eq!(detect(path, text), want, "{path} {text:?}");
    }

    #[test]
    fn dialect_is_detected_by_name_then_content() {
        check("agent.yaml", "", Some(Dialect::HoloDeck));
        check("x/agent.yml", "version: 1\nservers: {}", Some(Dialect::HoloDeck));
        check("/w/.minds/mcp.yaml", "", Some(Dialect::Dominds));
        check("C:\\w\\.minds\\mcp.yaml", "", Some(Dialect::Dominds));
        check("mcp.yaml", "version: 1\nservers: {}", Some(Dialect::Dominds));
        check("x.yaml", "servers:\n  a: {transport: stdio}", Some(Dialect::Dominds));
        check("x.yaml", "tools:\n  - {name: a, type: mcp}", Some(Dialect::HoloDeck));
        check("x.yaml", "model: {}\ninstructions: {}", Some(Dialect::HoloDeck));
        check("x.yaml", "servers: [a]\nversion: 1", None);
        check("x.yaml", "- {name: a, type: mcp}\n- {name: b, type: function}", Some(Dialect::HoloDeck));
        check("x.yaml", "- {name: a, type: other}", None);
        check("x.yaml", "a: b", None);
        check("x.yaml", "", None);
        check("x.yaml", "a: [", None);
        check("x.yaml", "version: 1\nservers:\n\ta: 1", Some(Dialect::Dominds));
        check("x.yaml", "servers: [", None);
        check("x.yaml", "name: a\ntools:\n\t- 1", Some(Dialect::HoloDeck));
        check("x.json", "{\n  \"tools\": {,\n", None);
    }

    #[test]
    fn unsupported_formats_are_recognized() {
        let name = |path: &str, text: &str| detect_unsupported_format(path, text).map_or("", |it| it.name);
        assert_eq!(
            name("/home/a/.docker/mcp/registry.yaml", "registry: {}"),
            "a file of Docker's MCP gateway"
        );
        let agent = "agents:\n  root:\n    toolsets:\n      - {type: mcp, command: npx}\n";
        assert_eq!(name("a.yaml", agent), "an agent of Docker's cagent");
        let bundle = r#"{"name": "a", "server": {"type": "node", "mcp_config": {"command": "node"}}}"#;
        assert_eq!(name("manifest.json", bundle), "the manifest of an MCP bundle");
        let published =
            r#"{"name": "io.example/a", "remotes": [{"type": "sse", "url": "https://a.example"}]}"#;
        assert_eq!(name("server.json", published), "the server.json of a published server");
        let recipe = "title: a\ninstructions: b\nextensions:\n  - {type: stdio, name: c, cmd: npx}\n";
        assert_eq!(name("recipe.yaml", recipe), "a recipe of Goose");
        for other in ["", "a: b", "agents: [a]", r#"{"packages": []}"#] {
            assert_eq!(detect_unsupported_format("a.json", other), None, "{other}");
        }
        for text in [agent, bundle, published, recipe] {
            let help = detect_unsupported_format("a.json", text).map_or("", |it| it.help);
            assert!(help.contains("mcp.json") && !help.contains("mcp-host"), "{help}");
            assert_eq!(detect("x", text), None, "{text}");
        }
    }

    #[test]
    fn hd_007_holodeck_files_without_server_follow_version_07() {
        let profile = |dialect, text: &str| crate::read_detecting(dialect, "agent.yaml", text, 9).profile;
        let check = |text: &str, want| assert_eq!(profile(Dialect::HoloDeck, text), want, "{text}");
        check("tools: [{name: a, type: mcp, command: npx}]", Profile::HoloDeck07);
        check("tools: [{name: a, type: mcp, transport: sse, url: 'https://a.example'}]", Profile::HoloDeck07);
        check(
            "tools: [{name: v, type: function, server: x}, {type: mcp, command: npx}]",
            Profile::HoloDeck07,
        );
        check("tools: [{type: mcp, command: npx}, {type: mcp, server: b}]", Profile::HoloDeck);
        check("tools: [{type: mcp, command: npx, envFile: .env}]", Profile::HoloDeck);
        check("[{name: a, type: mcp, command: npx}]", Profile::HoloDeck07);
        check("tools: [{name: a, type: mcp}]", Profile::HoloDeck);
        check("tools: []", Profile::HoloDeck);
        check("tools: {", Profile::HoloDeck);
        assert_eq!(profile(Dialect::Dominds, "tools: [{type: mcp, command: a}]"), Profile::Dominds);
    }

    #[test]
    fn dia_01_editor_files_are_detected() {
        let editor = Some(Dialect::McpJson);
        check(".mcp.json", "", editor);
        check("C:\\x\\.vscode\\mcp.json", "{}", editor);
        check("/home/a/.gemini/settings.json", "{}", editor);
        check("settings.json", "{}", None);
        check("x.json", r#"{"mcpServers": {}}"#, editor);
        check("x.json", "// of Claude\n{\"mcpServers\": {},}", editor);
        check("x.json", r#"{"servers": {"a": {"type": "http", "url": "https://a.example"}}}"#, editor);
        check("x.json", r#"{"mcp": {"servers": {}}}"#, editor);
        check("x.json", r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#, editor);
        check("x.json", r#"{"mcp.servers": {}}"#, editor);
        check("x.json", r#"{"context_servers": {}}"#, editor);
        check("x.json", r#"{"a": {"command": "x"}}"#, editor);
        check("x.json", r#"[{"name": "a", "command": "x"}]"#, editor);
        check("x.json", r#""mcpServers": {}"#, editor);
        check("x.json", "{\n  \"servers\": {,\n", editor);
        check("x.json", r#"{"version": 1, "servers": {}}"#, Some(Dialect::Dominds));
        check("x.json", r#"{"mcpVersion": 1}"#, None);
        check("x.json", "[]", None);
        check("x.yaml", "mcpServers: {}", editor);
        // RPT-101
        check("x.yaml", "mcpServers:\n  a:\n    command: \"C:\\Users\"\n", editor);
        check("x.json", "{\u{201c}mcpServers\u{201d}: {}}", editor);
        check("x.json", "{'mcpServers': {'a': }}", editor);
        check("x.toml", "model = 'x'\r[mcp_servers.a]\n", editor);
        check("x.yaml", "extensions:\n  a: {type: stdio, cmd: x}", editor);
        check("x.yaml", "extensions:\n  - a", None);
        check("x.toml", "a = 1\n[mcp_servers.a]\ncommand = 'x'", editor);
        check("/home/a/.codex/config.toml", "", editor);
        check("librechat.yaml", "version: 1", editor);
        check("x.json", r#"{"customizations": {"vscode": {"mcp": {"servers": {}}}}}"#, editor);
    }

    #[test]
    fn acpx_10_session_requests_are_detected() {
        let acp = Some(Dialect::Acp);
        check("x.json", r#"{"method": "session/new", "params": {}}"#, acp);
        check("x.json", r#"{"params": {"mcpServers": []}}"#, acp);
        check("x.json", r#"{"cwd": "/", "mcpServers": []}"#, acp);
        check("x.json", r#"[{"name": "a", "command": "/x", "args": [], "env": []}]"#, acp);
        check("x.json", r#"{"type": "http", "name": "a", "url": "https://a.example", "headers": []}"#, acp);
        check("x.json", r#"{"type": "acp", "name": "a", "serverId": "1"}"#, acp);
        check("x.json", r#"{"method": "session/new", "params": {,"#, acp);
        check("x.json", r#"{"method": "tools/call", "params": {}}"#, None);
    }
}
