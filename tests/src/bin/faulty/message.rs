//! Responses of a correct server, and their faulty forms.

use mcp_tests::faults::{At, Script, Step};
use serde_json::{Value, json};

/// The correct response; `None` for messages without one. `other` is whether another server has taken over.
pub(crate) fn answer(script: &Script, message: &Value, replaced: bool) -> Option<Value> {
    message.get("id").filter(|_| message.get("method").is_some())?;
    // Only scripts with unsolicited messages declare list changes.
    let tools = if script.at == At::Hear { json!({"listChanged": true}) } else { json!({}) };
    Some(match message["method"].as_str()? {
        "initialize" => result(
            message,
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": tools},
                "serverInfo": {"name": "faulty", "version": "1"},
            }),
        ),
        "server/discover" => result(
            message,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": tools},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "faulty", "version": "1"}},
                "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        "ping" => result(message, &json!({"resultType": "complete"})),
        "tools/list" => {
            let names: &[&str] = if replaced { &["else"] } else { &["first", "other"] };
            let tools: Vec<Value> =
                names.iter().map(|it| json!({"name": it, "inputSchema": {"type": "object"}})).collect();
            result(
                message,
                &json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}),
            )
        }
        "tools/call" if !replaced => said(message, "hello"),
        "tools/call" => error(message, -32602, "there is no such tool here"),
        _ => error(message, -32601, "there is no such method"),
    })
}

/// The trigger of a request.
pub(crate) fn moment(message: &Value) -> Option<At> {
    match (message["method"].as_str()?, message["params"]["name"].as_str()) {
        ("initialize" | "server/discover", _) => Some(At::Open),
        ("tools/list", _) => Some(At::List),
        ("tools/call", Some("first")) => Some(At::Call),
        ("subscriptions/listen", _) => Some(At::Hear),
        _ => None,
    }
}

/// The messages of a step; empty if it sends none.
pub(crate) fn payloads(step: Step, message: &Value, well: &Value) -> Vec<Vec<u8>> {
    let bytes = |it: &Value| it.to_string().into_bytes();
    let under = |id: Value| {
        let mut res = well.clone();
        res["id"] = id;
        bytes(&res)
    };
    let numbered = message["id"].as_u64().unwrap_or_default();
    match step {
        Step::Well => vec![bytes(well)],
        Step::Twice => vec![bytes(well), bytes(well)],
        Step::Bom => vec![[&[0xef, 0xbb, 0xbf], bytes(well).as_slice()].concat()],
        Step::Latin1 => vec![patched(&said(message, "caf@"), b'@', &[0xe9])],
        Step::WrongId => vec![under(json!(numbered + 1_000_000))],
        Step::TextId => vec![under(json!(numbered.to_string()))],
        Step::Unasked => vec![
            under(json!(numbered + 1_000_000)),
            under(Value::Null),
            bytes(&json!({"jsonrpc": "2.0", "method": "notifications/unknown"})),
            bytes(&json!({"jsonrpc": "2.0", "id": "mine", "method": "unknown/request"})),
            bytes(well),
        ],
        Step::Error => vec![bytes(&error(message, -32000, "no luck"))],
        Step::Deep(depth) => {
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let mut res = said(message, "hello");
            res["result"]["structuredContent"] = json!({"deep": "@"});
            vec![res.to_string().replace("\"@\"", &nested).into_bytes()]
        }
        Step::Huge(size) => vec![bytes(&said(message, &"x".repeat(size)))],
        Step::Pages => vec![bytes(&page(message, &format!("after {numbered}")))],
        Step::SamePage => vec![bytes(&page(message, "again"))],
        Step::Hush
        | Step::Half
        | Step::End
        | Step::Reset
        | Step::Exit(_)
        | Step::Drip(_)
        | Step::Flood
        | Step::Endless
        | Step::Alive
        | Step::Misframed
        | Step::Banner
        | Step::Utf16
        | Step::Round
        | Step::Away
        | Step::Status(_)
        | Step::Spoken(_)
        | Step::Replaced
        | Step::Website
        | Step::Deaf
        | Step::Stubborn
        | Step::Orphan
        | Step::Escape
        | Step::CloseOutput
        | Step::FillErrors
        | Step::Allocate
        | Step::SelfSigned
        | Step::WrongName
        | Step::Expired
        | Step::NoServer => Vec::new(),
    }
}

/// An unsolicited message.
pub(crate) fn notice() -> Vec<u8> {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "noise"}})
        .to_string()
        .into_bytes()
}

fn page(message: &Value, cursor: &str) -> Value {
    let tool = json!({"name": format!("page-{}", message["id"]), "inputSchema": {"type": "object"}});
    result(
        message,
        &json!({"resultType": "complete", "tools": [tool], "nextCursor": cursor, "ttlMs": 0, "cacheScope": "private"}),
    )
}

fn result(message: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

fn said(message: &Value, text: &str) -> Value {
    result(message, &json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
}

fn error(message: &Value, code: i64, words: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words}})
}

fn patched(message: &Value, mark: u8, with: &[u8]) -> Vec<u8> {
    message
        .to_string()
        .into_bytes()
        .into_iter()
        .flat_map(|it| if it == mark { with.to_vec() } else { vec![it] })
        .collect()
}
