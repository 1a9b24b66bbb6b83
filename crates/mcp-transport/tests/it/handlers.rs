//! Server requests and notifications, and the handlers that receive them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{Limits, LogLevel, RawJson, RpcError};
use mcp_host_transport::{
    CallOptions, ElicitMode, ElicitRequest, ElicitResult, Elicitation, Handlers, Listener, Root, Roots,
    Sampling, SamplingRequest, SamplingResult, ServerEvent, Session, SessionOptions,
};
use serde_json::{Value, json};

use crate::in_memory::{Reply, Server, answer, refuse};

/// A model that returns its hints, or another configured result.
#[derive(Default)]
pub(crate) struct Model {
    begun: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

/// Counts when it is dropped.
struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Sampling for Model {
    async fn sample(&self, request: SamplingRequest) -> Result<SamplingResult, RpcError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let _counter = DropCounter(Arc::clone(&self.dropped));
        match request.system_prompt.as_deref() {
            Some("panic") => panic!("the test requires it"),
            Some("refuse") => Err(RpcError::new(-1, "Sampling denied by policy.")),
            Some("wait") => std::future::pending().await,
            Some("long") => Ok(SamplingResult::text("m", &"x".repeat(100_000))),
            _ => Ok(SamplingResult::text("m", &request.hints.join("+"))),
        }
    }
}

/// A user interface that accepts forms.
pub(crate) struct User(pub(crate) &'static [ElicitMode]);

#[async_trait]
impl Elicitation for User {
    fn modes(&self) -> &[ElicitMode] {
        self.0
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        Ok(match request.mode() {
            ElicitMode::Form => {
                ElicitResult::Accept(Some(RawJson::from_value(&json!({"said": request.message})).unwrap()))
            }
            _ => ElicitResult::Decline,
        })
    }
}

pub(crate) struct OneRoot;

#[async_trait]
impl Roots for OneRoot {
    async fn roots(&self) -> Result<Vec<Root>, RpcError> {
        Ok(vec![Root::new("file:///work")])
    }
}

/// A listener that records events.
#[derive(Default)]
struct EventLog(Mutex<Vec<String>>);

#[async_trait]
impl Listener for EventLog {
    async fn on_event(&self, event: ServerEvent) {
        let words = match event {
            ServerEvent::Log(it) => format!("log {:?} {}", it.level, it.data.unwrap().as_str()),
            ServerEvent::Progress { request: _, progress } => format!("progress {}", progress.progress),
            ServerEvent::ResourceUpdated { uri } => format!("updated {uri}"),
            ServerEvent::Notification { method, params } => format!("{method} {}", params.unwrap().as_str()),
            ServerEvent::ProtocolError(what) => format!("fault: {what}"),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(words);
    }
}

fn server_request(id: impl Into<Value>, method: &str, params: Value) -> Reply {
    Reply::Send(json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}))
}

fn notification(method: &str, params: Value) -> Reply {
    Reply::Send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn sample(id: u64, system_prompt: &str) -> Reply {
    let params = json!({"messages": [], "maxTokens": 1, "systemPrompt": system_prompt,
                        "modelPreferences": {"hints": [{"name": "a"}, {"name": "b"}]}});
    server_request(id, "sampling/createMessage", params)
}

/// A server that does this as soon as the handshake is done.
fn opened(replies: impl Fn() -> Vec<Reply> + Send + Sync + 'static) -> Server {
    Server::legacy(json!({"tools": {"listChanged": true}, "logging": {}}), move |message| {
        match message["method"].as_str() {
            Some("notifications/initialized") => replies(),
            Some("tools/list") => answer(message, json!({"tools": []})),
            _ => vec![],
        }
    })
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn all() -> (Handlers, Arc<Model>, Arc<EventLog>) {
    let (model, events) = (Arc::new(Model::default()), Arc::new(EventLog::default()));
    let mut handlers = Handlers::default();
    handlers.sampling = Some(Arc::clone(&model) as Arc<dyn Sampling>);
    handlers.elicitation = Some(Arc::new(User(&[ElicitMode::Form])));
    handlers.roots = Some(Arc::new(OneRoot));
    handlers.listener = Some(Arc::clone(&events) as Arc<dyn Listener>);
    (handlers, model, events)
}

fn with(handlers: Handlers) -> SessionOptions {
    let mut options = SessionOptions::default();
    options.handlers = handlers;
    options
}

/// Checks the response of a host with all handlers to a server request.
async fn check(question: impl Fn() -> Reply + Send + Sync + 'static, want: &str) {
    let server = opened(move || vec![question()]);
    let mut limits = Limits::default();
    limits.message_bytes = 50_000;
    let session = server
        .connect({
            let mut options = with(all().0);
            options.limits = limits;
            options
        })
        .await;
    settle().await;
    // The key order of a serde_json map depends on its features.
    let read = |it: &str| {
        let (id, answer) = it.split_once(": ").unwrap();
        (id.to_owned(), serde_json::from_str::<serde_json::Value>(answer).map_err(|_| answer.to_owned()))
    };
    assert_eq!(server.answers().iter().map(|it| read(it)).collect::<Vec<_>>(), [read(want)]);
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn sk_17_sk_18_server_request_is_answered_by_its_handler() {
    check(
        || sample(1, "x"),
        r#"1: {"content":{"text":"a+b","type":"text"},"model":"m","role":"assistant","stopReason":"endTurn"}"#,
    )
    .await;
    check(|| sample(1, "refuse"), "1: Sampling denied by policy.").await;
    check(|| sample(1, "panic"), "1: the handler failed").await;
    check(|| sample(1, "long"), "1: the result has more than 50000 bytes").await;
    check(
        || server_request(2, "sampling/createMessage", json!({})),
        "2: the parameters cannot be read: missing field `messages` at line 1 column 2",
    )
    .await;
    let form = json!({"message": "name?", "requestedSchema": {"type": "object"}});
    check(
        move || server_request("q", "elicitation/create", form.clone()),
        r#""q": {"action":"accept","content":{"said":"name?"}}"#,
    )
    .await;
    let page = json!({"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "1"});
    check(
        move || server_request(4, "elicitation/create", page.clone()),
        "4: the user interface does not support this mode",
    )
    .await;
    check(|| server_request(5, "roots/list", Value::Null), r#"5: {"roots":[{"uri":"file:///work"}]}"#).await;
    check(|| server_request(6, "tasks/list", json!({})), "6: Method not found").await;
    check(|| server_request(7, "ping", Value::Null), "7: {}").await;
}

#[tokio::test(start_paused = true)]
async fn hd_138_sk_17_unhandled_requests_are_refused_and_not_advertised() {
    let server = opened(|| {
        vec![
            sample(1, "x"),
            server_request(2, "elicitation/create", json!({"message": "m"})),
            server_request(3, "roots/list", json!({})),
        ]
    });
    let _session = server.connect(SessionOptions::default()).await;
    settle().await;
    let mut answers = server.answers();
    answers.sort();
    assert_eq!(
        answers,
        ["1: Sampling denied: no handler is configured", "2: Method not found", "3: Method not found"]
    );
    let denied = server
        .received()
        .into_iter()
        .find(|message| message["id"] == 1 && message.get("method").is_none())
        .unwrap();
    assert_eq!(denied["error"]["code"], -32603);
    assert_eq!(server.first("initialize")["params"]["capabilities"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn handled_requests_are_advertised_in_both_eras() {
    let mut want =
        json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}});
    let mut handlers = all().0;
    handlers.elicitation = Some(Arc::new(User(&[ElicitMode::Form, ElicitMode::Url])));
    let server = opened(Vec::new);
    let session = server.connect(with(handlers.clone())).await;
    assert_eq!(server.first("initialize")["params"]["capabilities"], want);
    session.notify_roots_changed();
    settle().await;
    assert!(server.summary().ends_with("notifications/roots/list_changed"), "{}", server.summary());

    let server = Server::modern(json!({}), |_| vec![]);
    let _session = server.connect(with(handlers)).await;
    let meta = &server.first("server/discover")["params"]["_meta"];
    // Changes of roots are announced in the legacy era only.
    want["roots"] = json!({});
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], want);
}

#[tokio::test(start_paused = true)]
async fn cancelled_server_request_drops_its_handler() {
    let server = opened(|| {
        let cancel = |id: Value| {
            notification("notifications/cancelled", json!({"requestId": id, "reason": "never mind"}))
        };
        vec![
            sample(1, "wait"),
            sample(2, "x"),
            cancel(json!(1)),
            cancel(json!(2)),
            cancel(json!("x")),
            sample(3, "x"),
        ]
    });
    let (handlers, model, _) = all();
    let _session = server.connect(with(handlers)).await;
    settle().await;
    // The second request may have been answered before it was cancelled.
    let answers = server.answers();
    assert!(!answers.iter().any(|it| it.starts_with("1:")), "{answers:?}");
    assert!(answers.iter().any(|it| it.starts_with("3:")), "{answers:?}");
    assert_eq!(model.dropped.load(Ordering::SeqCst), model.begun.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn concurrent_server_requests_are_bounded() {
    let server = opened(|| (0..70).map(|id| sample(id, "wait")).collect());
    let (handlers, model, _) = all();
    let session = server.connect(with(handlers)).await;
    settle().await;
    assert_eq!(model.begun.load(Ordering::SeqCst), 64);
    assert_eq!(server.answers().len(), 6);
    assert!(server.answers()[0].ends_with("too many requests at once"));
    session.close(Duration::from_secs(1)).await;
    settle().await;
    assert_eq!(model.dropped.load(Ordering::SeqCst), 64, "they end with the connection");
}

/// A model and a listener that send the server a request before they return.
#[derive(Default)]
struct ReentrantHandler(OnceLock<Weak<Session>>, AtomicUsize);

impl ReentrantHandler {
    async fn list(&self) {
        while self.0.get().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let session = self.0.get().unwrap().upgrade().unwrap();
        session.list_tools().await.unwrap();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Sampling for ReentrantHandler {
    async fn sample(&self, _request: SamplingRequest) -> Result<SamplingResult, RpcError> {
        self.list().await;
        Ok(SamplingResult::text("m", "listed"))
    }
}

#[async_trait]
impl Listener for ReentrantHandler {
    async fn on_event(&self, event: ServerEvent) {
        if event == ServerEvent::ToolsChanged {
            self.list().await;
        }
    }
}

// SK-11, section 7 number 6: there a handler that lists within the receive loop waits until the request times out.
#[tokio::test(start_paused = true)]
async fn sk_11_handler_may_use_the_session() {
    let server = opened(|| {
        vec![sample(1, "x"), notification("notifications/tools/list_changed", json!({})), sample(2, "x")]
    });
    let asking = Arc::new(ReentrantHandler::default());
    let mut handlers = Handlers::default();
    handlers.sampling = Some(Arc::clone(&asking) as Arc<dyn Sampling>);
    handlers.listener = Some(Arc::clone(&asking) as Arc<dyn Listener>);
    let begun = tokio::time::Instant::now();
    let session = Arc::new(server.connect(with(handlers)).await);
    asking.0.set(Arc::downgrade(&session)).unwrap();
    while asking.1.load(Ordering::SeqCst) < 3 || server.answers().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "no deadline was waited for");
}

#[tokio::test(start_paused = true)]
async fn hd_fr028_sk_21_listener_receives_events_in_order() {
    let server = opened(|| {
        vec![
            notification("notifications/message", json!({"level": "notice", "data": "hello"})),
            Reply::Noise,
            notification("notifications/tools/list_changed", json!({})),
            notification("notifications/resources/updated", json!({"uri": "a:b"})),
            notification("notifications/progress", json!({"progressToken": 1 << 16, "progress": 0.5})),
            Reply::Send(json!({"id": "who", "result": 1})),
            notification("notifications/odd", json!({"x": 1})),
        ]
    });
    let (handlers, _, events) = all();
    let session = server.connect(with(handlers)).await;
    settle().await;
    let want = [
        "log Some(Notice) \"hello\"",
        "fault: 13 bytes that are not JSON-RPC",
        "ToolsChanged",
        "updated a:b",
        "progress 0.5",
        "fault: a response to an unknown request",
        "notifications/odd {\"x\":1}",
    ];
    assert_eq!(*events.0.lock().unwrap(), want);
    assert_eq!(session.list_changes().borrow().tools, 1);
    // None of these messages ended a call.
    session.list_tools().await.unwrap();
}

/// A slow listener that panics at some events.
struct SlowListener(AtomicUsize);

#[async_trait]
impl Listener for SlowListener {
    async fn on_event(&self, _event: ServerEvent) {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            panic!("at the first");
        }
        tokio::time::sleep(Duration::from_secs(1000)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_listener_loses_events_and_delays_no_call() {
    let server = opened(|| {
        let mut replies: Vec<Reply> = (0..900).map(|it| notification("notifications/x", json!(it))).collect();
        replies.push(server_request(1, "ping", Value::Null));
        replies
    });
    let listener = Arc::new(SlowListener(AtomicUsize::new(0)));
    let mut handlers = Handlers::default();
    handlers.listener = Some(Arc::clone(&listener) as Arc<dyn Listener>);
    let session = server.connect(with(handlers)).await;
    settle().await;
    assert_eq!(server.answers(), ["1: {}"]);
    session.list_tools().await.unwrap();
    assert_eq!(listener.0.load(Ordering::SeqCst), 2, "one failed, one is being received");
}

#[tokio::test(start_paused = true)]
async fn sk_16_log_level_is_set_if_declared_and_configured() {
    let connect = async |capabilities: Value, log_level, refused: bool| {
        let server = Server::legacy(capabilities, move |message| match message["method"].as_str() {
            Some("logging/setLevel") if refused => refuse(message, -32603, Value::Null),
            Some("logging/setLevel") => vec![],
            _ => answer(message, json!({"content": []})),
        });
        let session = server
            .connect({
                let mut options = SessionOptions::default();
                options.log_level = log_level;
                options
            })
            .await;
        settle().await;
        let empty = RawJson::empty_object();
        session.call_tool("t", &empty, CallOptions::default()).await.unwrap();
        let asked = server.received().into_iter().find(|message| message["method"] == "logging/setLevel");
        asked.map(|message| message["params"]["level"].as_str().unwrap().to_owned())
    };
    let declared = || json!({"logging": {}});
    assert_eq!(connect(declared(), Some(LogLevel::Warning), false).await.as_deref(), Some("warning"));
    assert_eq!(connect(declared(), Some(LogLevel::Debug), true).await.as_deref(), Some("debug"));
    assert_eq!(connect(declared(), None, false).await, None);
    assert_eq!(connect(json!({}), Some(LogLevel::Debug), false).await, None);
}

#[tokio::test(start_paused = true)]
async fn modern_requests_contain_the_log_level() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let server = Server::modern(json!({"tools": {}, "logging": {}}), |message| {
        answer(message, json!({"content": []}))
    });
    let mut options = SessionOptions::default();
    options.log_level = Some(LogLevel::Info);
    let session = server.connect(options).await;
    let empty = RawJson::empty_object();
    session.call_tool("t", &empty, CallOptions::default()).await.unwrap();
    session.set_log_level(LogLevel::Alert).await.unwrap();
    session.call_tool("t", &empty, CallOptions::default()).await.unwrap();
    let calls = server.received().into_iter().filter(|message| message["method"] == "tools/call");
    let levels: Vec<Value> = calls.map(|message| message["params"]["_meta"][LEVEL].clone()).collect();
    assert_eq!(levels, ["info", "alert"]);
}
