//! Real servers over each transport, each era, JSON responses and event streams: lists and results are equal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mcp_host_model::{Endpoint, Era, RawJson, Secret, StdioEndpoint, ToolResult, UrlEndpoint};
use mcp_host_transport::{CallOptions, DialOptions, Eras, Session, SessionOptions, dialer};
use mcp_testkit::program::{installed_folder, root};
use serde_json::Value;

use crate::compare::{Server, demo, start};

/// A connection to a server.
struct ServerVariant {
    name: &'static str,
    endpoint: Endpoint,
    eras: Eras,
    /// The expected era, if it is certain: a probe without a response in time falls back to the older one.
    era: Option<Era>,
}

/// Tool calls, with their arguments.
type Calls<'a> = &'a [(&'a str, &'a str)];

/// The lists and results of a server.
#[derive(Debug, PartialEq)]
struct ServerOutput {
    tools: Vec<Value>,
    answers: Vec<String>,
}

async fn query(variant: &ServerVariant, calls: Calls<'_>) -> ServerOutput {
    let dial = dialer(&variant.endpoint, &DialOptions::default()).unwrap();
    let session = Session::connect(dial, {
        let mut options = SessionOptions::default();
        options.eras = variant.eras;
        options
    })
    .await;
    let session = session.unwrap_or_else(|error| panic!("{}: {error}", variant.name));
    assert_eq!(session.era(), variant.era.unwrap_or(session.era()), "{}", variant.name);
    let listing = session.list_tools().await.unwrap();
    assert_eq!(listing.rejected.len(), 0, "{}: {:?}", variant.name, listing.rejected);
    let tools = listing.items.iter().map(|it| it.raw.read().unwrap()).collect();
    let mut answers = Vec::new();
    for (tool, arguments) in calls {
        let arguments = RawJson::parse((*arguments).to_owned().into()).unwrap();
        let called = session.call_tool(tool, &arguments, CallOptions::default()).await;
        answers.push(match called {
            Ok(answer) => {
                let ToolResult { content, structured, is_error, .. } = answer.value;
                // As a value, because a server may format it differently.
                let structured = structured.map(|it| it.read::<Value>().unwrap());
                format!("{content:?} {structured:?} {is_error}")
            }
            Err(error) => error.to_string(),
        });
    }
    session.close(Duration::from_secs(5)).await;
    ServerOutput { tools, answers }
}

/// Connects in all variants and compares with the first.
async fn check(variants: &[ServerVariant], calls: Calls<'_>) {
    let (first, others) = variants.split_first().unwrap();
    let want = query(first, calls).await;
    assert!(!want.tools.is_empty());
    for variant in others {
        let got = query(variant, calls).await;
        assert_eq!(got.tools, want.tools, "{} and {}", variant.name, first.name);
        for ((got, want), call) in got.answers.iter().zip(&want.answers).zip(calls) {
            assert_eq!(got, want, "{} and {}: {call:?}", variant.name, first.name);
        }
    }
}

fn variant(name: &'static str, endpoint: Endpoint, era: Era) -> ServerVariant {
    let eras = match era {
        Era::Legacy => Eras::Legacy,
        Era::Modern => Eras::Modern,
    };
    ServerVariant { name, endpoint, eras, era: Some(era) }
}

const WIRES: [&str; 4] = ["stdio", "websocket", "sse", "http"];

/// A server program with its environment.
struct Program<'a> {
    command: String,
    arguments: Vec<String>,
    env: Vec<(&'a str, PathBuf)>,
}

impl Program<'_> {
    fn stdio(&self) -> Endpoint {
        let mut endpoint = StdioEndpoint::new(self.command.clone());
        endpoint.args = self.arguments.iter().map(|it| Secret::new(it.clone())).collect();
        let value = |it: &Path| Secret::new(it.display().to_string());
        endpoint.env = self.env.iter().map(|(name, it)| ((*name).to_owned(), value(it))).collect();
        Endpoint::Stdio(endpoint)
    }

    /// The server behind supergateway, which serves the transport before the colon.
    fn behind_gateway(&self, modules: &Path, speaks: &str, path: &str) -> (Server, String) {
        let gateway = modules.join("supergateway/dist/index.js");
        let quoted = |it: &String| format!("'{it}'");
        let words: Vec<String> = std::iter::once(&self.command).chain(&self.arguments).map(quoted).collect();
        let (server, port) = start(|port| {
            let mut command = Command::new("node");
            command.arg(&gateway).args(["--stdio", &words.join(" "), "--port", &port.to_string()]);
            command.args(["--outputTransport", speaks]).envs(self.env.iter().map(|(name, it)| (name, it)));
            match speaks {
                "ws" => command.args(["--messagePath", path]),
                "streamableHttp" => command.args(["--stateful", "--streamableHttpPath", path]),
                _ => command.args(["--ssePath", path]),
            };
            command
        });
        (server, format!("127.0.0.1:{port}{path}"))
    }

    /// The server itself, or behind a gateway over another transport.
    fn by(&self, modules: &Path, wire: &'static str) -> (Option<Server>, ServerVariant) {
        let url = |scheme: &str, place: &str| at(&format!("{scheme}://{place}"));
        let (server, endpoint) = match wire {
            "stdio" => (None, self.stdio()),
            "websocket" => {
                let (server, place) = self.behind_gateway(modules, "ws", "/message");
                (Some(server), Endpoint::WebSocket(url("ws", &place)))
            }
            "sse" => {
                let (server, place) = self.behind_gateway(modules, "sse", "/sse");
                (Some(server), Endpoint::Sse(url("http", &place)))
            }
            _ => {
                let (server, place) = self.behind_gateway(modules, "streamableHttp", "/mcp");
                (Some(server), Endpoint::Http(url("http", &place)))
            }
        };
        (server, ServerVariant { name: wire, endpoint, eras: Eras::Both, era: None })
    }

    /// The server over each transport.
    fn variants(&self, modules: &Path) -> (Vec<Option<Server>>, Vec<ServerVariant>) {
        WIRES.into_iter().map(|wire| self.by(modules, wire)).unzip()
    }
}

fn node(script: &Path, arguments: &[&str]) -> Program<'static> {
    let script = std::iter::once(script.display().to_string());
    let arguments = script.chain(arguments.iter().map(|it| (*it).to_owned())).collect();
    Program { command: "node".to_owned(), arguments, env: Vec::new() }
}

fn at(url: &str) -> UrlEndpoint {
    UrlEndpoint::new(url.parse().unwrap())
}

#[tokio::test]
async fn hd_fr004_hd_fr005_hd_fr007_a_typescript_server_is_the_same_over_its_transports() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    let speaking = |wire: &str| {
        start(|port| {
            let mut command = Command::new("node");
            command.arg(&script).arg(wire).env("PORT", port.to_string());
            command
        })
    };
    let ((_sse, events), (_http, web)) = (speaking("sse"), speaking("streamableHttp"));
    let program = node(&script, &["stdio"]);
    let (_websocket, sockets) = program.behind_gateway(&modules, "ws", "/message");
    let variants = [
        ("stdio", program.stdio()),
        ("sse", Endpoint::Sse(at(&format!("http://127.0.0.1:{events}/sse")))),
        ("http", Endpoint::Http(at(&format!("http://127.0.0.1:{web}/mcp")))),
        ("websocket", Endpoint::WebSocket(at(&format!("ws://{sockets}")))),
    ];
    let variants = variants.map(|(name, endpoint)| ServerVariant {
        name,
        endpoint,
        eras: Eras::Both,
        era: Some(Era::Legacy),
    });
    check(
        &variants,
        &[
            ("echo", r#"{"message":"hello, \u4e16\u754c"}"#),
            ("get-sum", r#"{"a":2,"b":40}"#),
            ("get-tiny-image", "{}"),
            ("get-structured-content", r#"{"location":"Chicago"}"#),
            ("get-resource-links", r#"{"count":3}"#),
            ("get-sum", r#"{"a":"no number","b":1}"#),
            ("no-such-tool", "{}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn hd_fr004_hd_fr005_hd_fr007_a_python_server_is_the_same_over_its_transports_and_eras() {
    let Some(venv) = installed_folder("MCP_HOST_VENV") else { return };
    let script = root().join("tests/python/server.py").display().to_string();
    let python = venv.join("bin/python").display().to_string();
    let speaking = |wire: &str| {
        start(|port| {
            let mut command = Command::new(&python);
            command.args([&script, wire, &port.to_string()]);
            command
        })
    };
    let ((_sse, sse), (_http, http), (_json, json)) = (speaking("sse"), speaking("http"), speaking("json"));
    let program =
        Program { command: python.clone(), arguments: vec![script.clone(), "stdio".into()], env: vec![] };
    let mut variants = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        variants.push(variant("stdio", program.stdio(), era));
        variants.push(variant("sse", Endpoint::Sse(at(&format!("http://127.0.0.1:{sse}/sse"))), era));
        variants.push(variant("http", Endpoint::Http(at(&format!("http://127.0.0.1:{http}/mcp"))), era));
        variants.push(variant(
            "http, JSON replies",
            Endpoint::Http(at(&format!("http://127.0.0.1:{json}/mcp"))),
            era,
        ));
    }
    check(
        &variants,
        &[
            ("add", r#"{"a":2,"b":40}"#),
            ("greet", r#"{"name":"Ann, \u4e16\u754c","loud":true}"#),
            ("add", r#"{"a":"no number","b":1}"#),
            ("no_such_tool", "{}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn hd_fr006_the_demo_server_is_the_same_over_all_transports_and_eras() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, http) = demo(folder.path(), |url| url.starts_with("http://") && url.ends_with("/mcp"));
    let address = http.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let command = mcp_testkit::program::binary().display().to_string();
    let program = Program { command, arguments: vec!["demo-server".into()], env: vec![] };
    let mut variants = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        variants.push(variant("stdio", program.stdio(), era));
        variants.push(variant("http", Endpoint::Http(at(&http)), era));
        variants.push(variant("sse", Endpoint::Sse(at(&format!("http://{address}/sse"))), era));
        variants.push(variant("websocket", Endpoint::WebSocket(at(&format!("ws://{address}/ws"))), era));
    }
    check(
        &variants,
        &[
            ("echo", r#"{"text":"hello, \u4e16\u754c"}"#),
            ("add", r#"{"a":2,"b":40}"#),
            ("mixed", "{}"),
            ("fail", r#"{"message":"as it was asked to"}"#),
            ("add", r#"{"a":"no number","b":1}"#),
            ("grow", r#"{"bytes":4194304}"#),
            ("no_such_tool", "{}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_filesystem_server_is_the_same_over_all_transports() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    std::fs::write(place.join("a.txt"), "one\ntwo\nthree, \u{4e16}\u{754c}\n").unwrap();
    let script = modules.join("@modelcontextprotocol/server-filesystem/dist/index.js");
    let program = node(&script, &[&place.display().to_string()]);
    let (_servers, variants) = program.variants(&modules);
    let here = |file: &str| format!(r#"{{"path":"{}{file}"}}"#, place.display());
    check(
        &variants,
        &[
            ("list_directory", &here("")),
            ("read_text_file", &here("/a.txt")),
            ("read_text_file", &here("/none.txt")),
            ("read_text_file", r#"{"path":"/etc/hostname"}"#),
            ("read_text_file", r#"{"path":7}"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_memory_server_is_the_same_over_all_transports() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let script = modules.join("@modelcontextprotocol/server-memory/dist/index.js");
    let folder = tempfile::tempdir().unwrap();
    let memory = |file: &str| Program {
        env: vec![("MEMORY_FILE_PATH", folder.path().join(file))],
        ..node(&script, &[])
    };
    // Each variant has its own, empty memory.
    let (_servers, variants): (Vec<_>, Vec<_>) =
        WIRES.into_iter().map(|wire| memory(wire).by(&modules, wire)).unzip();
    check(
        &variants,
        &[
            ("read_graph", "{}"),
            (
                "create_entities",
                r#"{"entities":[{"name":"Ann","entityType":"person","observations":["says \u4e16\u754c"]}]}"#,
            ),
            ("add_observations", r#"{"observations":[{"entityName":"Bob","contents":["unknown"]}]}"#),
            ("search_nodes", r#"{"query":"says"}"#),
            ("read_graph", "{}"),
            ("delete_entities", r#"{"entityNames":"no list"}"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_git_server_is_the_same_over_all_transports_and_eras() {
    let (Some(modules), Some(venv)) =
        (installed_folder("MCP_HOST_NODE_MODULES"), installed_folder("MCP_HOST_VENV"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    for arguments in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "a.txt"],
        &[
            "-c",
            "user.name=Ann",
            "-c",
            "user.email=ann@example.com",
            "commit",
            "--quiet",
            "-m",
            "One \u{4e16}",
        ],
    ] {
        let done = Command::new("git").args(["-C", &place]).args(arguments).status().unwrap();
        assert!(done.success(), "{arguments:?}");
    }
    std::fs::write(folder.path().join("a.txt"), "two\n").unwrap();
    let program = Program {
        command: venv.join("bin/mcp-server-git").display().to_string(),
        arguments: vec!["--repository".to_owned(), place.clone()],
        env: vec![],
    };
    let (_servers, mut variants) = program.variants(&modules);
    variants.push(variant("stdio, as before", program.stdio(), Era::Legacy));
    variants.push(variant("stdio, as now", program.stdio(), Era::Modern));
    let with = |more: &str| format!(r#"{{"repo_path":"{place}"{more}}}"#);
    check(
        &variants,
        &[
            ("git_status", &with("")),
            ("git_log", &with(r#","max_count":1"#)),
            ("git_diff_unstaged", &with("")),
            ("git_show", &with(r#","revision":"no-such-revision""#)),
            ("git_log", &with(r#","max_count":"no number""#)),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_time_server_is_the_same_over_all_transports_and_eras() {
    let (Some(modules), Some(venv)) =
        (installed_folder("MCP_HOST_NODE_MODULES"), installed_folder("MCP_HOST_VENV"))
    else {
        return;
    };
    let command = venv.join("bin/mcp-server-time").display().to_string();
    let program = Program { command, arguments: vec!["--local-timezone=UTC".to_owned()], env: vec![] };
    let (_servers, mut variants) = program.variants(&modules);
    variants.push(variant("stdio, as before", program.stdio(), Era::Legacy));
    variants.push(variant("stdio, as now", program.stdio(), Era::Modern));
    // These results do not depend on the clock.
    check(
        &variants,
        &[
            ("get_current_time", r#"{"timezone":"Nowhere/At_All"}"#),
            ("convert_time", r#"{"source_timezone":"UTC","time":"25:61","target_timezone":"Asia/Tokyo"}"#),
            ("convert_time", "{}"),
        ],
    )
    .await;
}
