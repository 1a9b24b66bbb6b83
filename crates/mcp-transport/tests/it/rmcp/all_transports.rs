//! The demo server with the client of the official SDK. The same calls have the same results over all four
//! transports and in both eras, and server requests are answered.

use std::net::SocketAddr;

use mcp_host_demo::HttpServer;
use mcp_host_model::{Secret, StdioEndpoint, UrlEndpoint};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};

use super::*;

/// The environment variable that makes this test binary run the demo server on its standard input and output.
const SERVE: &str = "MCP_TEST_SERVE_DEMO";

/// An SDK client that answers server requests.
struct AnsweringClient;

impl ClientHandler for AnsweringClient {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!("no form") };
        let reply = json!({"answer": format!("{message} Green!")});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(reply))
    }

    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("somebody", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// Starts demo servers on their own ports, which run until the runtime ends.
async fn serving() -> Vec<(&'static str, Endpoint)> {
    let server = HttpServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let url = |text: String| UrlEndpoint::new(text.parse().unwrap());
    let (http, sse, websocket) = (server.url(), server.sse_url(), server.websocket_url());
    tokio::spawn(server.serve(std::future::pending()));
    let mut process = StdioEndpoint::new(std::env::current_exe().unwrap().display().to_string());
    let arguments = [
        "--exact",
        "rmcp::all_transports::results_are_equal_over_all_transports_with_initialize",
        "--nocapture",
        // With one thread, libtest prints the name of the test before it runs, which would corrupt the first
        // message.
        "--test-threads=2",
    ];
    process.args = arguments.map(Secret::new).into();
    process.env.push((SERVE.to_owned(), Secret::new("1")));
    vec![
        ("stdio", Endpoint::Stdio(process)),
        ("http", Endpoint::Http(url(http))),
        ("sse", Endpoint::Sse(url(sse))),
        ("websocket", Endpoint::WebSocket(url(websocket))),
    ]
}

/// The server's lists and results, as text.
async fn talk(endpoint: &Endpoint, mode: ClientLifecycleMode) -> Vec<String> {
    let mut limits = Limits::default();
    limits.message_bytes = 8 << 20;
    let dial = dialer(endpoint, &{
        let mut options = DialOptions::default();
        options.limits = limits;
        options
    })
    .unwrap();
    let transport = RmcpTransport::new(&*dial, RmcpOptions::default());
    let ended = transport.disconnected();
    let client = AnsweringClient.serve_with_lifecycle(transport, mode).await.unwrap();
    let mut results = vec![client.peer_info().unwrap().protocol_version.to_string()];
    let mut names: Vec<String> =
        client.list_all_tools().await.unwrap().iter().map(|it| it.name.to_string()).collect();
    names.sort();
    results.push(names.join(" "));
    for (tool, arguments) in [
        ("echo", json!({"text": "grün, 世界\n"})),
        ("add", json!({"a": 2, "b": 40})),
        ("add", json!({"a": "no number", "b": 40})),
        ("fail", json!({"message": "as it was asked to"})),
        ("mixed", json!({})),
        ("ask", json!({"question": "Colour?"})),
        ("no_such_tool", json!({})),
    ] {
        let called = client.call_tool(request(tool, arguments)).await;
        results.push(match called {
            Ok(result) => serde_json::to_value(result).unwrap().to_string(),
            Err(ServiceError::McpError(error)) => format!("{} {}", error.code.0, error.message),
            Err(other) => panic!("{tool}: {other}"),
        });
    }
    let large = client.call_tool(request("grow", json!({"bytes": 4 << 20}))).await.unwrap();
    results.push(text(&large).len().to_string());
    // The server requests of concurrent calls are answered for the right call.
    let questions = (0..16).map(|it| client.call_tool(request("ask", json!({"question": it.to_string()}))));
    for (number, answered) in futures_util::future::join_all(questions).await.into_iter().enumerate() {
        assert_eq!(text(&answered.unwrap()), format!("the user answers: {number} Green!"));
    }
    let read = client.read_resource(ReadResourceRequestParams::new("demo://numbers/3")).await.unwrap();
    results.push(serde_json::to_value(read.contents).unwrap().to_string());
    client.cancel().await.unwrap();
    assert_eq!(ended.await.reason, mcp_host_transport::DisconnectReason::Stopped);
    results
}

fn request(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|it| it.as_text()).map(|it| it.text.as_str()).collect()
}

/// Checks that the results are the same over all transports.
async fn check(mode: impl Fn() -> ClientLifecycleMode, version: &str) {
    let mut first = None;
    for (wire, endpoint) in serving().await {
        let results = talk(&endpoint, mode()).await;
        assert_eq!(results[0], version, "{wire}");
        assert!(
            results.iter().any(|it| it.contains("the user answers: Colour? Green!")),
            "{wire}: {results:?}"
        );
        assert!(results.iter().any(|it| it == "4194304"), "{wire}");
        let first = first.get_or_insert_with(|| results.clone());
        assert_eq!(*first, results, "{wire}");
    }
}

#[tokio::test]
async fn results_are_equal_over_all_transports_with_initialize() {
    // If started by this test, the process is the server.
    if std::env::var_os(SERVE).is_some() {
        return mcp_host_demo::serve_stdio().await.unwrap();
    }
    check(|| ClientLifecycleMode::Initialize, "2025-11-25").await;
}

#[tokio::test]
async fn results_are_equal_over_all_transports_with_discover() {
    let preferred = || vec![ProtocolVersion::V_2026_07_28];
    check(|| ClientLifecycleMode::Discover { preferred_versions: preferred() }, "2026-07-28").await;
}
