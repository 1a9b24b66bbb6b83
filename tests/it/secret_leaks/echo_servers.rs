//! Servers that echo all their secrets wherever a server sends text: a program on a pipe and an HTTP server.
//!
//! Call results are not searched, because a caller gets them unchanged.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use axum::routing::any;
use serde_json::{Value, json};

/// A server on a pipe. The first argument selects its behaviour; it echoes its arguments and its environment.
pub(crate) const PROGRAM: &str = r#"#!/bin/sh
mode=$1
all=$(printf '%s ' "$@" "$TOKEN" "$LITERAL" "$FROM_FILE" "$DOTENV" "$MCP_CONFIG" | tr -d '"\\\n')
answer() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
error() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32000,"message":"no: '"$all"'","data":{"of":"'"$all"'"}}}'; }
echo "heard: $all" >&2
case $mode in
  crash) exit 3 ;;
  noise) echo "listening, $all" ;;
  garbage) while read -r line; do echo "{\"jsonrpc\":\"2.0\",\"id\":\"$all\",\"result\":$all}"; done ;;
  silent) exec sleep 600 ;;
esac
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*)
    if [ "$mode" = refuse ]; then error; else answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{},"prompts":{},"resources":{}},"serverInfo":{"name":"echoing","version":"1"}}'; fi ;;
  *'"tools/list"'*)
    if [ "$mode" = lists ]; then error; else answer '{"tools":[{"name":"fine","inputSchema":{"type":"object"}},{"name":"errs","inputSchema":{"type":"object"}},{"name":"dies","inputSchema":{"type":"object"}}]}'; fi ;;
  *'"prompts/list"'*|*'"resources/list"'*|*'"resources/templates/list"'*) error ;;
  *'"tools/call"'*'"errs"'*) error ;;
  *'"tools/call"'*'"dies"'*) echo "fatal: $all" >&2; exit 4 ;;
  *'"tools/call"'*)
    printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"'"$all"'","data":{"said":"'"$all"'"}}}'
    token=$(printf %s "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
    [ -n "$token" ] && printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'"$token"',"progress":1,"message":"'"$all"'"}}'
    answer '{"content":[{"type":"text","text":"done"}]}' ;;
  *'"method":"notifications/'*) ;;
  *) error ;;
  esac
done
"#;

/// An HTTP server. The first segment of the path selects its behaviour.
pub(crate) struct EchoServer {
    pub(crate) port: u16,
}

impl EchoServer {
    /// The tasks end with the test's runtime.
    pub(crate) async fn start() -> EchoServer {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let app = axum::Router::new().fallback(any(reply));
        tokio::spawn(async move { axum::serve(listener, app).await });
        EchoServer { port }
    }
}

async fn reply(request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let all = repeated(&head.headers, &head.uri.to_string());
    let mode = head.uri.path().split('/').nth(1).unwrap_or_default();
    let status = |code: u16| Response::builder().status(code);
    let text = |it: axum::http::response::Builder| it.body(Body::from(format!("heard: {all}"))).unwrap();
    match mode {
        "unauthorized" => text(
            status(401)
                .header("www-authenticate", format!("Bearer realm=\"{all}\", error_description=\"{all}\"")),
        ),
        "forbidden" => text(
            status(403)
                .header("www-authenticate", format!("Bearer error=\"insufficient_scope\", scope=\"{all}\"")),
        ),
        "missing" => text(status(404)),
        "broken" => text(status(500)),
        "elsewhere" => {
            text(status(302).header("location", format!("ftp://127.0.0.1/?{}", all.replace(' ', "&"))))
        }
        "page" => {
            status(200).header("content-type", "text/html").body(Body::from(format!("<p>{all}</p>"))).unwrap()
        }
        "garbage" => json_body(200, format!("{{\"jsonrpc\":\"2.0\",\"{all}")),
        "silent" => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            text(status(200))
        }
        _ if head.method != "POST" => text(status(405)),
        _ => {
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let capabilities = message["params"]["capabilities"].to_string().replace(['"', '\\'], "");
            legacy_response(mode, &message, &format!("{all} {capabilities}"))
        }
    }
}

/// The response of a legacy-era server.
fn legacy_response(mode: &str, message: &Value, all: &str) -> Response<Body> {
    let id = &message["id"];
    let error = json!({"jsonrpc": "2.0", "id": id,
        "error": {"code": -32000, "message": format!("no: {all}"), "data": {"of": all}}});
    let result = match message["method"].as_str().unwrap_or_default() {
        _ if id.is_null() => return Response::builder().status(202).body(Body::empty()).unwrap(),
        "initialize" if mode == "refuse" => return json_body(200, error.to_string()),
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}, "resources": {}},
            "serverInfo": {"name": "echoing", "version": "1"},
        }),
        "tools/list" if mode == "ok" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("fine"), tool("errs")]})
        }
        "tools/call" if message["params"]["name"] == "fine" => {
            let said = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "error", "logger": all, "data": all}});
            let done = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "done"}]}});
            let stream = format!("data: {said}\n\ndata: {done}\n\n");
            return Response::builder()
                .header("content-type", "text/event-stream")
                .body(Body::from(stream))
                .unwrap();
        }
        _ => return json_body(200, error.to_string()),
    };
    json_body(200, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

fn json_body(status: u16, text: String) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Body::from(text))
        .unwrap()
}

fn repeated(headers: &HeaderMap, uri: &str) -> String {
    let values = headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap_or_default()));
    let all = values.collect::<Vec<_>>().join(" ");
    format!("{uri} {all}").replace(['"', '\\'], "")
}
