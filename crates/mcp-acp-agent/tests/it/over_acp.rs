//! MCP over ACP (ACPX-12), with the client of the SDK and MCP servers behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol::mcp_server::{McpOutcome, McpRequest, McpRequestContext, McpServer, McpService};
use agent_client_protocol::v1::schema::{McpError, NewSessionResponse};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, BoxFuture, Client, ConnectTo, Error, NullRun, on_receive_request};
use mcp_host_acp::{Capabilities, Policy};
use mcp_host_acp_agent::{NewSession, OverAcp, SessionServers, TypedSessionRequest};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::raw_client::RawClient;
use crate::sessions::{failure, options, summary, text_or_error, tool_call};

/// An MCP server of the client, which speaks 2026-07-28.
#[derive(Clone, Default)]
struct Editor {
    cancelled: Arc<AtomicBool>,
}

impl McpService<Agent> for Editor {
    fn execute(
        &self,
        request: McpRequest,
        context: McpRequestContext<Agent>,
    ) -> BoxFuture<'static, Result<McpOutcome, Error>> {
        let cancelled = Arc::clone(&self.cancelled);
        Box::pin(async move {
            let params = Value::Object(request.params.unwrap_or_default());
            match (request.method.as_str(), params["name"].as_str()) {
                ("server/discover", _) => Ok(McpOutcome::Result(json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "editor", "version": "1"}},
                }))),
                ("tools/list", _) => {
                    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                    let tools = json!([tool("echo"), tool("fail"), tool("hang"), tool("break")]);
                    Ok(McpOutcome::Result(
                        json!({"resultType": "complete", "tools": tools, "ttlMs": 60000, "cacheScope": "private"}),
                    ))
                }
                ("tools/call", Some("echo")) => {
                    let mut progress = Map::new();
                    progress.insert("progressToken".to_owned(), params["_meta"]["progressToken"].clone());
                    progress.insert("progress".to_owned(), json!(1));
                    context.send_notification("notifications/progress", Some(progress)).await?;
                    let text = params["arguments"]["text"].clone();
                    let content = json!([{"type": "text", "text": text}]);
                    Ok(McpOutcome::Result(json!({"resultType": "complete", "content": content})))
                }
                ("tools/call", Some("hang")) => {
                    context.operation_cancellation().cancelled().await;
                    cancelled.store(true, Ordering::SeqCst);
                    Err(Error::request_cancelled())
                }
                ("tools/call", Some("break")) => Err(Error::new(-33002, "the backend is gone")),
                ("tools/call", _) => Ok(McpOutcome::Error(McpError::new(-32000, "as asked"))),
                _ => Ok(McpOutcome::Error(McpError::new(-32601, "no such method"))),
            }
        })
    }
}

/// An agent that passes its sessions to the test.
fn agent(sessions: mpsc::UnboundedSender<SessionServers>) -> impl ConnectTo<Client> + 'static {
    Agent.v1().on_receive_request(
        async move |request: NewSession,
                    responder: Responder<NewSessionResponse>,
                    connection: ConnectionTo<Client>| {
            let sessions = sessions.clone();
            let raw_connection = connection.clone().into_raw();
            connection.spawn(async move {
                let setup = async {
                    let mut capabilities = Capabilities::STDIO;
                    capabilities.acp = true;
                    let validated = request.validate(&capabilities, Policy::default()).await?;
                    let mut options = options();
                    options.set_over_acp(Some(OverAcp::new(raw_connection)?));
                    Ok::<_, Error>(SessionServers::connect(validated, options).await?)
                };
                match setup.await {
                    Ok(session) => {
                        let _ = sessions.send(session);
                        responder.respond(NewSessionResponse::new("s"))
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            })
        },
        on_receive_request!(),
    )
}

#[tokio::test]
async fn acpx_12_client_server_is_called_over_the_acp_connection() {
    let (sessions, mut created) = mpsc::unbounded_channel();
    let editor = Editor::default();
    let cancelled = Arc::clone(&editor.cancelled);
    let served = Client.v1().connect_with(agent(sessions), async move |connection| {
        let server = McpServer::new_service("editor", editor, NullRun);
        let client_session =
            connection.build_session_cwd()?.with_mcp_server(server)?.block_task().start_session().await?;
        let session = created.recv().await.unwrap();
        assert_eq!(summary(&session), "editor:connected");

        let received_progress = Arc::new(AtomicBool::new(false));
        let reports_progress = Arc::clone(&received_progress);
        let mut echo = tool_call("editor__echo", r#"{"text":"hello"}"#);
        echo.options.context.progress =
            Some(Arc::new(move |_| reports_progress.store(true, Ordering::SeqCst)));
        assert_eq!(text_or_error(&session.call(echo).await), "hello");
        assert!(received_progress.load(Ordering::SeqCst));

        let error = text_or_error(&session.call(tool_call("fail", "{}")).await);
        assert!(error.contains("as asked"), "{error}");
        let error = text_or_error(&session.call(tool_call("break", "{}")).await);
        assert!(error.contains("the server behind the client failed") && error.contains("-33002"), "{error}");

        // Calls run concurrently, and a dropped one is cancelled at its server.
        let hang = session.call(tool_call("hang", "{}"));
        let echo = session.call(tool_call("echo", r#"{"text":"meanwhile"}"#));
        tokio::select! {
            hung = hang => panic!("{hung:?}"),
            echoed = echo => assert_eq!(text_or_error(&echoed), "meanwhile"),
        }
        while !cancelled.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(client_session);
        session.close().await;
        assert_eq!(summary(&session), "editor:closed");
        Ok(())
    });
    tokio::time::timeout(Duration::from_secs(30), served).await.unwrap().unwrap();
}

/// Connects a session whose client answers every `mcp/message` with this error.
async fn connect_with_failing_client(error: Value) -> SessionServers {
    let (sessions, mut created) = mpsc::unbounded_channel();
    let mut client = RawClient::connect(agent(sessions));
    let servers = json!([{"type": "acp", "name": "editor", "serverId": "server-1"}]);
    let params = json!({"cwd": std::env::temp_dir(), "mcpServers": servers});
    client.send(json!({"jsonrpc": "2.0", "id": "new", "method": "session/new", "params": params}));
    loop {
        let message = client.receive().await;
        if message["id"] == "new" {
            return created.recv().await.unwrap();
        }
        if message["method"] == "mcp/message" {
            assert_eq!(message["params"]["serverId"], "server-1");
            client.send(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    }
}

/// A client distinguishes the requests of one connection by these ids, and refuses an id that is in use.
#[tokio::test(start_paused = true)]
async fn acpx_12_sessions_of_one_connection_use_different_request_ids() {
    let (sessions, mut created) = mpsc::unbounded_channel();
    let mut client = RawClient::connect(agent(sessions));
    let servers = json!([{"type": "acp", "name": "editor", "serverId": "server-1"}]);
    let params = json!({"cwd": std::env::temp_dir(), "mcpServers": servers});
    let mut ids = Vec::new();
    for session in ["one", "two"] {
        client.send(json!({"jsonrpc": "2.0", "id": session, "method": "session/new", "params": params}));
        loop {
            let message = client.receive().await;
            if message["id"] == session {
                break;
            }
            if message["method"] == "mcp/message" {
                ids.push(message["params"]["requestId"].to_string());
                let error = json!({"code": -33002, "message": "no"});
                client.send(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
        }
    }
    let (_one, _two) = (created.recv().await.unwrap(), created.recv().await.unwrap());
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert!(ids.len() >= 2 && distinct.len() == ids.len(), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn acpx_12_server_unknown_to_the_client_is_reported() {
    let session = connect_with_failing_client(json!({"code": -33001, "message": "it was closed"})).await;
    insta::assert_snapshot!(failure(&session, "editor"), @r#"
    {
      "code": -32603,
      "message": "MCP server 'editor': connection failed: the client no longer has this server: it was closed (code -33001)",
      "data": {"serverName":"editor","transportType":"acp","error":"the client no longer has this server: it was closed (code -33001)","suggestion":"check that the client still provides the server"}
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn acpx_12_client_without_mcp_over_acp_is_reported() {
    let session = connect_with_failing_client(json!({"code": -32601, "message": "Method not found"})).await;
    let error = failure(&session, "editor");
    assert!(error.contains("the client does not support MCP over ACP"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn acpx_12_failed_backend_is_not_retried_in_another_era() {
    let session = connect_with_failing_client(json!({"code": -33002, "message": "no backend"})).await;
    let error = failure(&session, "editor");
    assert!(error.contains("the server behind the client failed: no backend (code -33002)"), "{error}");
}
