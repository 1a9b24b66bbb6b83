//! acpx, an ACP client for the command line, with its own configuration file.

use std::process::{Command, Output, Stdio};

use mcp_host_acp::AcpVersion;
use mcp_testkit::program::installed_folder;
use serde_json::{Value, json};

use super::agent;
use super::conversation::assert_official;
use super::servers::{self, DemoHttpServer};

/// The messages that acpx prints, and its exit code.
struct ProgramOutput {
    wire: Vec<Value>,
    code: Option<i32>,
    told: String,
}

impl ProgramOutput {
    /// The text of the agent's response.
    fn said(&self) -> String {
        let updates = self.wire.iter().map(|it| &it["message"]["params"]["update"]);
        let chunks = updates.filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        chunks.map(|it| it["content"]["text"].as_str().unwrap()).collect()
    }
}

/// Runs one prompt in a session with these servers and prints in a format. acpx stores its files in a folder
/// of the test.
fn acpx(arguments: &[&str], servers: &Value, format: &str, prompt: &str) -> Option<Output> {
    let acpx = installed_folder("MCP_HOST_NODE_MODULES")?.join("acpx/dist/cli.js");
    let home = tempfile::tempdir().unwrap();
    let configuration = home.path().join("mcp.json");
    std::fs::write(&configuration, json!({ "mcpServers": servers }).to_string()).unwrap();
    let mut command = Command::new("node");
    command.arg(acpx).args(["--agent", &agent(arguments).join(" ")]);
    command.args(["--cwd", "/", "--format", format, "--approve-all", "--timeout", "60", "--mcp-config"]);
    command.arg(&configuration).args(["exec", prompt]);
    command.env("HOME", home.path()).env("XDG_STATE_HOME", home.path()).stdin(Stdio::null());
    Some(command.output().unwrap())
}

/// Runs one prompt in a session with these servers, and returns its messages.
fn run(transports: &str, servers: &Value, prompt: &str) -> Option<ProgramOutput> {
    let Output { status, stdout, stderr } = acpx(&["--transports", transports], servers, "json", prompt)?;
    let told = format!("{}\n{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let messages = String::from_utf8_lossy(&stdout).into_owned();
    let messages = messages.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let wire: Vec<_> = messages
        .filter(|it| it["jsonrpc"] == "2.0")
        .map(|message| {
            let method = message["method"].as_str();
            let client = method.is_some_and(|it| it != "session/update");
            json!({ "from": if client { "client" } else { "agent" }, "message": message })
        })
        .collect();
    assert_official(AcpVersion::V1, &wire);
    Some(ProgramOutput { wire, code: status.code(), told })
}

#[test]
fn acp_046_acp_047_acpx_calls_a_tool_over_each_transport() {
    let folder = tempfile::tempdir().unwrap();
    let web = DemoHttpServer::start(folder.path());
    let mut pipe = servers::stdio(AcpVersion::V1, "pipe", "green");
    pipe["type"] = "stdio".into();
    let servers = json!([pipe, web.http("web", "blue"), web.sse("events", "red")]);
    for (prompt, want) in [
        (r#"/pipe__env {"name": "DEMO_COLOUR"}"#, "green"),
        (r#"/web__header {"name": "x-colour"}"#, "blue"),
        (r#"/events__header {"name": "x-colour"}"#, "red"),
    ] {
        let Some(ran) = run("stdio,http,sse", &servers, prompt) else { return };
        assert_eq!((ran.said().as_str(), ran.code), (want, Some(0)), "{}", ran.told);
    }
}

#[test]
fn acp_016_acp_029_acpx_reports_undeclared_transports() {
    let folder = tempfile::tempdir().unwrap();
    let web = DemoHttpServer::start(folder.path());
    let Some(ran) = run("http", &json!([web.sse("events", "red")]), "/tools") else { return };
    let errors = ran.wire.iter().filter_map(|it| it["message"].get("error"));
    let refused = errors.map(|it| (it["code"].clone(), it["message"].clone()));
    let message = "SSE transport not supported: agent did not declare mcpCapabilities.sse";
    assert_eq!(refused.collect::<Vec<_>>(), [(json!(-32602), json!(message))], "{}", ran.told);
    assert_ne!(ran.code, Some(0), "{}", ran.told);
}

#[test]
fn acpx_01_acpx_shows_server_and_reason_of_a_refused_session() {
    let missing = json!([{ "name": "files", "command": "/no/such/program", "args": [], "env": [] }]);
    let relative = json!([{ "name": "files", "command": "npx", "args": [], "env": [] }]);
    for (arguments, servers, want) in [
        (&[][..], &relative, "MCP server 'files' command must be an absolute path"),
        (&["--require-all"], &missing, "MCP server 'files': executable not found"),
    ] {
        let Some(Output { status, stdout, stderr }) = acpx(arguments, servers, "text", "/tools") else {
            return;
        };
        let shown = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(shown.contains(want) && !status.success(), "{shown}");
    }
}
