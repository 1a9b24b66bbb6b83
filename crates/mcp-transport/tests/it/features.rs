//! Prompts, resources, completions, subscriptions and pings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_model::{RawJson, ResourceBody, TraceContext};
use mcp_host_transport::{
    CallError, CallOptions, CompletionArgument, CompletionReference, Handlers, Listener, ServerEvent,
    Session, SessionOptions,
};
use serde_json::{Value, json};

use crate::in_memory::{Reply, Server, answer, refuse};

fn everything() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}, "logging": {}})
}

fn options() -> CallOptions {
    CallOptions::default()
}

/// Handles requests as a server with one prompt, one resource and so on.
fn rich(message: &Value) -> Vec<Reply> {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("prompts/get") => answer(
            message,
            json!({"description": "d", "messages": [{"role": "user",
                "content": {"type": "text", "text": params["arguments"]["city"]}}]}),
        ),
        Some("resources/read") if params["uri"] == "a:b" => {
            answer(message, json!({"contents": [{"uri": "a:b", "text": "hello"}]}))
        }
        Some("resources/read") => {
            refuse(message, if params["uri"] == "a:old" { -32002 } else { -32602 }, Value::Null)
        }
        Some("resources/templates/list") => answer(
            message,
            json!({"resourceTemplates": [{"uriTemplate": "a:{x}", "name": "n"}, {"name": "odd"}]}),
        ),
        Some("completion/complete") => {
            answer(message, json!({"completion": {"values": ["Paris"], "total": 1, "hasMore": false}}))
        }
        Some("ping" | "resources/subscribe" | "resources/unsubscribe") => answer(message, json!({})),
        _ => vec![],
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_is_rendered() {
    for server in [Server::legacy(everything(), rich), Server::modern(everything(), rich)] {
        let session = server.connect(SessionOptions::default()).await;
        let arguments = RawJson::parse(r#"{"city":"Rome"}"#.into()).unwrap();
        let prompt = session.get_prompt("p", &arguments, options()).await.unwrap().value;
        assert_eq!(prompt.messages[0].content.text(), Some("Rome"));
        assert_eq!(server.first("prompts/get")["params"]["name"], "p");
        let list = RawJson::parse("[]".into()).unwrap();
        assert!(matches!(session.get_prompt("p", &list, options()).await, Err(CallError::InvalidParams(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn missing_resource_is_reported_for_both_error_codes() {
    let server = Server::legacy(everything(), rich);
    let session = server.connect(SessionOptions::default()).await;
    let read = session.read_resource("a:b", options()).await.unwrap();
    assert_eq!(read.contents[0].body, ResourceBody::Text("hello".to_owned()));
    for missing in ["a:old", "a:new"] {
        let error = session.read_resource(missing, options()).await.unwrap_err();
        assert!(matches!(error, CallError::ResourceNotFound(_)), "{missing}: {error}");
        assert!(error.help().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn server_without_the_template_method_has_no_templates() {
    let server = Server::legacy(everything(), rich);
    let listing = server.connect(SessionOptions::default()).await.list_resource_templates().await.unwrap();
    assert_eq!((listing.items.len(), listing.rejected.len()), (1, 1));
    let poor = Server::legacy(everything(), |message| refuse(message, -32601, Value::Null));
    let session = poor.connect(SessionOptions::default()).await;
    assert_eq!(session.list_resource_templates().await.unwrap().items, []);
    assert!(session.list_resources().await.is_err(), "a list that it says it has is another matter");
    let none = Server::legacy(json!({}), |message| panic!("{message}"));
    let session = none.connect(SessionOptions::default()).await;
    assert_eq!(session.list_resource_templates().await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn argument_is_completed() {
    let server = Server::legacy(everything(), rich);
    let session = server.connect(SessionOptions::default()).await;
    let known = vec![("country".to_owned(), "France".to_owned())];
    let mut argument = CompletionArgument::new("city", "Pa");
    argument.context = known;
    let got =
        session.complete(&CompletionReference::Prompt("p".to_owned()), &argument, options()).await.unwrap();
    assert_eq!((got.values, got.total, got.has_more), (vec!["Paris".to_owned()], Some(1), false));
    assert_eq!(
        server.first("completion/complete")["params"],
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "city", "value": "Pa"},
               "context": {"arguments": {"country": "France"}}})
    );
    argument.context = Vec::new();
    let of = CompletionReference::ResourceTemplate("a:{x}".to_owned());
    session.complete(&of, &argument, options()).await.unwrap();
    let params = &server.received().pop().unwrap()["params"];
    assert_eq!(params["ref"], json!({"type": "ref/resource", "uri": "a:{x}"}));
    assert_eq!(params.get("context"), None);
}

#[tokio::test(start_paused = true)]
async fn ping_is_sent_in_the_legacy_era_only() {
    let session = Server::legacy(everything(), rich).connect(SessionOptions::default()).await;
    session.ping(options()).await.unwrap();
    let server = Server::modern(everything(), rich);
    let session = server.connect(SessionOptions::default()).await;
    let error = session.ping(options()).await.unwrap_err();
    assert_eq!(error.to_string(), "`ping` is not part of protocol version 2026-07-28");
    assert_eq!(server.received().iter().filter(|message| message["method"] == "ping").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn legacy_subscription_is_a_request() {
    let server = Server::legacy(everything(), rich);
    let session = server.connect(SessionOptions::default()).await;
    session.subscribe_resource("a:b").await.unwrap();
    session.unsubscribe_resource("a:b").await.unwrap();
    assert_eq!(server.first("resources/subscribe")["params"], json!({"uri": "a:b"}));
    assert!(server.summary().ends_with("resources/subscribe resources/unsubscribe"), "{}", server.summary());
}

/// Handles requests as a modern server that acknowledges subscriptions of URIs that begin with `a:`.
fn agreeable(message: &Value) -> Vec<Reply> {
    if message["method"] != "subscriptions/listen" {
        return rich(message);
    }
    let wanted =
        message["params"]["notifications"]["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
    let agreed: Vec<Value> = wanted.into_iter().filter(|it| it.as_str().unwrap().starts_with("a:")).collect();
    let updated = agreed.first().cloned();
    let meta = json!({"io.modelcontextprotocol/subscriptionId": message["id"]});
    let mut replies = vec![Reply::Send(json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": meta, "notifications": {"resourceSubscriptions": agreed}},
    }))];
    if let Some(uri) = updated {
        replies.push(Reply::Send(json!({
            "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"_meta": meta, "uri": uri},
        })));
    }
    replies
}

#[derive(Default)]
struct Updates(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Listener for Updates {
    async fn on_event(&self, event: ServerEvent) {
        if let ServerEvent::ResourceUpdated { uri } = event {
            self.0.lock().unwrap().push(uri);
        }
    }
}

fn wanted(server: &Server) -> Vec<Value> {
    let listens = server.received().into_iter().filter(|message| message["method"] == "subscriptions/listen");
    listens.map(|message| message["params"]["notifications"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn modern_subscription_replaces_the_listen_request() {
    let mut capabilities = everything();
    capabilities["tools"] = json!({"listChanged": true});
    let server = Server::modern(capabilities, agreeable);
    let updates = Arc::new(Updates::default());
    let mut handlers = Handlers::default();
    handlers.listener = Some(Arc::clone(&updates) as Arc<dyn Listener>);
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.handlers = handlers;
            options
        })
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.subscribe_resource("a:1").await.unwrap();
    let error = session.subscribe_resource("b:1").await.unwrap_err();
    assert_eq!(error.to_string(), "the server does not send changes of this resource");
    session.subscribe_resource("a:1").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tools = json!({"toolsListChanged": true});
    let with = |uris: &[&str]| json!({"toolsListChanged": true, "resourceSubscriptions": uris});
    assert_eq!(wanted(&server), [tools, with(&["a:1"]), with(&["a:1", "b:1"]), with(&["a:1"])]);
    assert_eq!(updates.0.lock().unwrap()[0], "a:1");
    // The old request is cancelled after the new one was sent.
    let words = server.summary();
    let listens: Vec<&str> =
        words.split(' ').filter(|it| it.contains("listen") || it.contains("cancel")).collect();
    assert_eq!(listens[..3], ["subscriptions/listen", "subscriptions/listen", "notifications/cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn modern_listen_request_starts_with_the_first_subscription() {
    let server = Server::modern(everything(), agreeable);
    let session = server.connect(SessionOptions::default()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(wanted(&server), [] as [Value; 0]);
    session.subscribe_resource("a:1").await.unwrap();
    session.unsubscribe_resource("a:1").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(wanted(&server), [json!({"resourceSubscriptions": ["a:1"]}), json!({})]);
}

/// Options that record notifications about resources, in order, with the record.
fn event_recorder() -> (SessionOptions, Arc<Mutex<Vec<String>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&received);
    let record = move |it: mcp_host_transport::SessionNotification| match it.event {
        ServerEvent::ResourceUpdated { uri } => note.lock().unwrap().push(uri),
        other => panic!("{other:?}"),
    };
    (
        {
            let mut options = SessionOptions::default();
            options.on_notification = Some(Arc::new(record));
            options
        },
        received,
    )
}

#[tokio::test(start_paused = true)]
async fn resubscription_reports_all_lists_as_changed() {
    // In the modern era, the server ends the `subscriptions/listen` request.
    let server = Server::modern(everything(), |message| match message["method"].as_str() {
        Some("x/end") => {
            let listen = Reply::Send(json!({"id": message["params"]["id"], "result": {}}));
            [answer(message, json!({})), vec![listen]].into_iter().flatten().collect()
        }
        _ => agreeable(message),
    });
    let (options, received) = event_recorder();
    let session = server.connect(options).await;
    session.subscribe_resource("a:1").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*received.lock().unwrap(), ["a:1"], "the server says so itself");
    let listen = server.received().into_iter().rfind(|message| message["method"] == "subscriptions/listen");
    let end = json!({"id": listen.unwrap()["id"]}).to_string();
    let end = RawJson::parse(end.into()).unwrap();
    session.request_raw("x/end", None, &end, CallOptions::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(wanted(&server).len(), 2);
    assert_eq!(*received.lock().unwrap(), ["a:1", "a:1", "a:1"]);

    // In the legacy era, the server loses the session.
    let server = Server::legacy(everything(), |message| match message["method"].as_str() {
        Some("tools/call") => match message["id"].as_u64() {
            Some(id) if message["params"]["name"] == "forgets" => {
                vec![Reply::FailStream(
                    id,
                    mcp_host_transport::StreamError::NotExecuted(mcp_host_transport::Epoch(0)),
                )]
            }
            _ => answer(message, json!({"content": []})),
        },
        Some("resources/subscribe" | "resources/unsubscribe" | "logging/setLevel") => {
            answer(message, json!({}))
        }
        _ => vec![],
    });
    let (options, received) = event_recorder();
    let session = server.connect(options).await;
    session.subscribe_resource("a:1").await.unwrap();
    session.subscribe_resource("a:2").await.unwrap();
    session.unsubscribe_resource("a:2").await.unwrap();
    session.set_log_level(mcp_host_model::LogLevel::Error).await.unwrap();
    let none = RawJson::empty_object();
    session.call_tool("forgets", &none, CallOptions::default()).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*received.lock().unwrap(), ["a:1"]);
    let words = server.summary();
    let again = words.rsplit_once("initialize").unwrap().1;
    assert_eq!(again.matches("resources/subscribe").count(), 1, "{words}");
    assert_eq!(again.matches("logging/setLevel").count(), 1, "{words}");
}

#[tokio::test(start_paused = true)]
async fn unacknowledged_subscription_times_out() {
    let subscribe = async |session: Session| session.subscribe_resource("a:1").await.unwrap_err();
    let refusing = Server::modern(everything(), |message| refuse(message, -32601, Value::Null));
    let error = subscribe(refusing.connect(SessionOptions::default()).await).await;
    assert!(matches!(error, CallError::Unsupported(_)), "{error}");
    let silent = Server::modern(everything(), |_| vec![]);
    let error = subscribe(silent.connect(SessionOptions::default()).await).await;
    assert!(matches!(error, CallError::TimedOut(_)), "{error}");
    let leaving = Server::modern(everything(), |_| vec![Reply::Disconnect]);
    let error = subscribe(leaving.connect(SessionOptions::default()).await).await;
    assert!(matches!(error, CallError::Closed(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn request_contains_the_trace_context() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let rich = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => answer(message, json!({"content": []})),
        _ => answer(message, json!({})),
    };
    for server in [Server::legacy(everything(), rich), Server::modern(everything(), rich)] {
        let session = server.connect(SessionOptions::default()).await;
        let none = RawJson::empty_object();
        let traced = |state| {
            let mut res = options();
            res.context.trace = TraceContext::parse(parent, state).ok();
            res
        };
        session.call_tool("t", &none, traced(Some("a=\"1\""))).await.unwrap();
        let meta = server.first("tools/call")["params"]["_meta"].clone();
        assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(parent), &json!("a=\"1\"")));
        session.request_raw("x/y", None, &none, traced(None)).await.unwrap();
        let meta = server.first("x/y")["params"]["_meta"].clone();
        assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(parent), &Value::Null));
        // The caller's own member is kept and occurs once.
        let own = RawJson::parse(r#"{"_meta":{"traceparent":"own"}}"#.into()).unwrap();
        session.request_raw("x/z", None, &own, traced(Some("a=1"))).await.unwrap();
        let meta = server.first("x/z")["params"]["_meta"].clone();
        assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!("own"), &Value::Null));
    }
}
