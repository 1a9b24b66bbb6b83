//! The client of the official SDK and this crate's, each with its default options, over the same eight broken servers.
//! The table of `docs/library/beside-rmcp.md` is what this test measures.

use std::process::Command;
use std::time::{Duration, Instant};

use mcp_host_model::{RawJson, Secret, StdioEndpoint};
use mcp_host_transport::{CallOptions, DialOptions, Session, SessionOptions, stdio_dialer};
use mcp_testkit::servers::SHELL_SERVER;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;

/// Longer than every default timeout.
const BOUND: Duration = Duration::from_secs(75);
/// On a busy machine, a process needs seconds to start.
const AT_ONCE: Duration = Duration::from_secs(30);

/// A list of one tool that is followed by another page, whatever page is requested.
const ENDLESS_LIST: &str = r#""{\"tools\":[],\"nextCursor\":\"$((n = n + 1))\"}""#;
const LIST: &str = r#"'{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'"#;

/// A broken server.
struct BrokenServer {
    description: &'static str,
    /// What it runs before it serves.
    before: &'static str,
    /// How it answers a call, with the id of the request in `$id`.
    tool: &'static str,
    list: &'static str,
}

const HELLO: &str = r#"text "$id" hello"#;
const SERVERS: [BrokenServer; 8] = [
    BrokenServer {
        description: "prints a banner on standard output",
        before: "echo 'Server v1.2 listens on stdio'",
        tool: HELLO,
        list: LIST,
    },
    BrokenServer {
        description: "exits at the first request, with the reason on standard error",
        before: "read -r line; echo 'Error: API_KEY is not set' >&2; exit 1",
        tool: HELLO,
        list: LIST,
    },
    BrokenServer { description: "never answers", before: "exec sleep 600", tool: HELLO, list: LIST },
    BrokenServer {
        description: "has always another page of tools",
        before: "n=0",
        tool: HELLO,
        list: ENDLESS_LIST,
    },
    BrokenServer {
        description: "exits during a call, with the reason on standard error",
        before: "",
        tool: "echo 'fatal: out of memory' >&2; exit 3",
        list: LIST,
    },
    BrokenServer {
        description: "answers a call under another id",
        before: "",
        tool: "text 999 hello",
        list: LIST,
    },
    BrokenServer {
        description: "answers with an error whose code is a text",
        before: "",
        tool: r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":"E_QUOTA","message":"no quota left"}}\n' "$id""#,
        list: LIST,
    },
    BrokenServer {
        description: "answers a call with a result of another shape",
        before: "",
        tool: r#"answer "$id" '{"content":"hello"}'"#,
        list: LIST,
    },
];

impl BrokenServer {
    fn script(&self) -> String {
        SHELL_SERVER.replace(LIST, self.list)
    }
}

/// Connects, lists the tools and calls one, as the README of rmcp does.
async fn with_rmcp(server: &BrokenServer) -> Result<String, String> {
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", &server.script()]).env("BEFORE", server.before).env("TOOL", server.tool);
    let process = TokioChildProcess::new(command).map_err(|error| error.to_string())?;
    let client = ().serve(process).await.map_err(|error| error.to_string())?;
    let result = async {
        client.list_all_tools().await?;
        client.call_tool(CallToolRequestParams::new("t")).await
    };
    let result = result.await.map_err(|error| error.to_string())?;
    let texts = result.content.iter().filter_map(|it| it.as_text()).map(|it| it.text.as_str());
    Ok(texts.collect())
}

/// The same with this crate.
async fn with_ours(server: &BrokenServer) -> Result<String, String> {
    let mut endpoint = StdioEndpoint::new("sh");
    endpoint.args = vec![Secret::new("-c"), Secret::new(server.script())];
    endpoint.env = [("BEFORE", server.before), ("TOOL", server.tool)]
        .map(|(name, value)| (name.to_owned(), Secret::new(value)))
        .into();
    let dial = stdio_dialer(&endpoint, &DialOptions::default()).map_err(|error| error.to_string())?;
    let session =
        Session::connect(dial, SessionOptions::default()).await.map_err(|error| error.to_string())?;
    let result = async {
        session.list_tools().await?;
        let arguments = RawJson::parse("{}".into()).unwrap();
        session.call_tool("t", &arguments, CallOptions::default()).await
    };
    Ok(result.await.map_err(|error| error.to_string())?.value.text())
}

/// What a user sees, and when.
async fn outcome(run: impl Future<Output = Result<String, String>>) -> String {
    let start = Instant::now();
    let Ok(result) = tokio::time::timeout(BOUND, run).await else {
        return format!("no end within {} s", BOUND.as_secs());
    };
    let when = if start.elapsed() < AT_ONCE {
        String::new()
    } else {
        format!(", after {} s", start.elapsed().as_secs() / 10 * 10)
    };
    match result {
        Ok(text) => format!("`{text}`{when}"),
        Err(error) => format!("error{when}: `{}`", error.replace('|', "\\|").replace('\n', " ")),
    }
}

/// The version of rmcp in the lock file.
fn rmcp_version() -> String {
    let tree = Command::new(env!("CARGO")).args(["pkgid", "--offline", "rmcp"]).output().unwrap();
    let id = String::from_utf8(tree.stdout).unwrap();
    id.trim().rsplit(['@', '#']).next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_broken_servers_end_as_the_guide_says() {
    let runs = SERVERS.iter().map(|server| async move {
        let (rmcp, ours) = tokio::join!(outcome(with_rmcp(server)), outcome(with_ours(server)));
        format!("| {} | {rmcp} | {ours} |\n", server.description)
    });
    let rows: String = futures_util::future::join_all(runs).await.concat();
    let table = format!("| the server | rmcp {} | mcp-transport |\n|---|---|---|\n{rows}", rmcp_version());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/library/beside-rmcp.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "the page does not have this table:\n\n{table}");
}
