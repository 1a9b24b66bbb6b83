//! One session for several callers: owners of server requests, events, and forwarding of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{LogLevel, Method, MethodName, RawJson, RpcError};
use mcp_host_transport::{
    CallError, CallOptions, Caller, CallerId, ClientCapabilities, Expiry, ForwardedMeta, Handlers,
    InputHandling, OnServerEvent, RawRequestHandler, RawServerRequest, ServerEvent, Session, SessionOptions,
};
use serde_json::{Value, json};

use crate::in_memory::{Reply, Server, answer};

/// A handler that answers every server request with its name, after a delay.
struct NamedHandler(&'static str, Duration);

#[async_trait]
impl RawRequestHandler for NamedHandler {
    fn handles(&self, method: &MethodName) -> bool {
        *method == Method::Elicit
    }

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        assert_eq!(question.params.as_str(), r#"{"message":"who?","x":1.0}"#, "the bytes of the question");
        tokio::time::sleep(self.1).await;
        Ok(raw(&format!(r#"{{"by":"{}"}}"#, self.0)))
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

fn named_handler(name: &'static str, takes: u64) -> Handlers {
    Handlers::with_raw_requests(Arc::new(NamedHandler(name, Duration::from_secs(takes))))
}

fn question(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": "who?", "x": 1.0}})
}

/// A legacy server. Its tool `hold` never responds. `ask` and `own` send a server request first, on the shared
/// stream and on the call's own stream. `quick` responds at once, `logs` logs first. A ping makes it send a server
/// request (`loose` in order with the responses, `beside` on another stream), or respond to a call late.
fn server() -> Server {
    let waiting = Mutex::new(HashMap::<String, Value>::new());
    Server::legacy(json!({"tools": {}, "logging": {}}), move |message| {
        let id = message["id"].clone();
        let say = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
        match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("ping"), _) => {
                let mut replies = answer(message, json!({}));
                replies.push(match message["params"]["do"].as_str() {
                    Some("loose") => Reply::Send(question("loose")),
                    Some("beside") => Reply::SendUnsolicited(question("beside")),
                    _ => {
                        return [replies, answer(&message["params"], json!({"content": []}))]
                            .into_iter()
                            .flatten()
                            .collect();
                    }
                });
                replies
            }
            (Some("tools/call"), Some("ask" | "own")) => {
                let name = message["params"]["name"].as_str().unwrap();
                waiting.lock().unwrap().insert(name.to_owned(), message.clone());
                match name {
                    "ask" => vec![Reply::Send(question("ask"))],
                    _ => vec![Reply::SendOn(id.as_u64().unwrap(), question("own"))],
                }
            }
            (Some("tools/call"), Some("quick")) => answer(message, json!({"content": [], "x": {"y": 1.0}})),
            (Some("tools/call"), Some("logs")) => {
                let log = say("notifications/message", json!({"data": "mine"}));
                let odd = say("notifications/odd", json!({"z": 1.0}));
                let changed = say("notifications/tools/list_changed", json!({}));
                let own = id.as_u64().unwrap();
                [
                    vec![Reply::SendOn(own, log), Reply::SendOn(own, odd), Reply::SendOn(own, changed)],
                    answer(message, json!({"content": []})),
                ]
                .into_iter()
                .flatten()
                .collect()
            }
            (None, _) => {
                let asked = message["id"].as_str().and_then(|it| waiting.lock().unwrap().remove(it));
                let text = message["result"]["by"].as_str().map_or("refused", |it| it);
                asked.map_or(vec![], |it| answer(&it, json!({"content": [{"type": "text", "text": text}]})))
            }
            _ => vec![],
        }
    })
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

struct CallerFixture {
    session: Arc<Session>,
    server: Server,
    owners: HashMap<String, CallerId>,
}

impl CallerFixture {
    async fn new(handlers: Handlers) -> CallerFixture {
        let server = server();
        let session = Arc::new(
            server
                .connect({
                    let mut options = SessionOptions::default();
                    options.handlers = handlers;
                    options
                })
                .await,
        );
        let owners = ["a", "b"].map(|it| (it.to_owned(), CallerId::unique()));
        CallerFixture { session, server, owners: owners.into() }
    }

    /// The options of a call for the caller `name`; `-` for none.
    fn options(&self, name: &str) -> CallOptions {
        let caller = match name {
            "-" => None,
            "a" => Some(Caller::new(self.owners["a"], named_handler("a", 0))),
            "b" => Some(Caller::new(self.owners["b"], named_handler("b", 0))),
            other => panic!("{other}"),
        };
        let mut options = CallOptions::default();
        options.context.caller = caller.map(Arc::new);
        options.timeout = Some(Duration::from_secs(100_000));
        options
    }

    async fn ping(&self, params: Value) {
        let params = raw(&params.to_string());
        self.session.request_raw("ping", None, &params, CallOptions::default()).await.unwrap();
        settle().await;
    }

    /// The handler that last answered the server request with this id, or the reason why none did.
    fn caller_name(&self, id: &str) -> String {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        let answer = self.server.received().into_iter().rfind(is_it).unwrap();
        match (answer["result"]["by"].as_str(), answer["error"]["message"].as_str()) {
            (Some(name), _) => name.to_owned(),
            (_, Some(why)) if why.contains("several callers share") => "several".to_owned(),
            (_, Some(why)) if why.contains("has ended") => "over".to_owned(),
            (_, Some("Method not found")) => "none".to_owned(),
            other => panic!("{other:?}"),
        }
    }
}

/// Runs steps: a call stays open (`hold:a`), is dropped (`drop:a`), gets a late (`late:a`) or an immediate
/// response (`quick:a`), or causes a server request on the shared stream (`ask:a`) or on its own (`own:a`). The
/// server sends a request on its own, in order with its responses (`loose`) or not (`beside`). Time passes (`7s`).
/// Checks which handler answered each server request.
#[track_caller]
fn check(steps: &'static str, host: &'static str, want: &'static str) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    assert_eq!(runtime.block_on(run(steps, host)), want, "{steps}");
}

async fn run(steps: &str, host: &'static str) -> String {
    let handlers = if host.is_empty() { Handlers::default() } else { named_handler(host, 0) };
    let fixture = CallerFixture::new(handlers).await;
    let mut held: HashMap<String, (u64, tokio::task::JoinHandle<()>)> = HashMap::new();
    let mut seen = Vec::new();
    for step in steps.split_whitespace() {
        if let Some(seconds) = step.strip_suffix('s') {
            tokio::time::advance(Duration::from_secs(seconds.parse().unwrap())).await;
            continue;
        }
        let (what, name) = step.split_once(':').unwrap_or((step, ""));
        let call = |tool: &'static str| {
            let (session, options) = (Arc::clone(&fixture.session), fixture.options(name));
            async move { session.call_tool(tool, &RawJson::empty_object(), options).await }
        };
        match what {
            "hold" => {
                let call = call("hold");
                let task = tokio::spawn(async move { drop(call.await) });
                settle().await;
                let call =
                    fixture.server.received().into_iter().rfind(|message| message["method"] == "tools/call");
                held.insert(name.to_owned(), (call.unwrap()["id"].as_u64().unwrap(), task));
            }
            "drop" => {
                held[name].1.abort();
                settle().await;
            }
            "late" => fixture.ping(json!({"do": what, "id": held[name].0})).await,
            "quick" => drop(call("quick").await.unwrap()),
            "ask" | "own" => {
                let text = call(if what == "ask" { "ask" } else { "own" }).await.unwrap().value.text();
                let who = fixture.caller_name(what);
                assert!(text == who || text == "refused", "{text} is not {who}");
                seen.push(who);
            }
            "loose" | "beside" => {
                fixture.ping(json!({"do": what})).await;
                seen.push(fixture.caller_name(what));
            }
            other => panic!("no step: {other}"),
        }
    }
    seen.join(" ")
}

#[test]
fn server_request_is_answered_by_its_caller() {
    check("ask:a own:a ask:b own:b", "", "a a b b");
    check("hold:a loose beside ask:a", "", "a a a");
    check("loose beside", "", "none none");
    // On a stream for each request, the owner is known, whatever other calls are in flight.
    check("hold:a own:b hold:b own:a own:b own:-", "", "b a b none");
}

#[test]
fn ambiguous_server_request_is_refused() {
    check("hold:a ask:b hold:b loose late:a loose", "", "several several b");
    check("hold:- ask:a", "", "several");
    check("hold:a ask:-", "", "several");
    // The server may still send requests for a dropped call, until its late response arrives.
    check("hold:a drop:a loose hold:b loose late:a loose", "", "over several b");
    check("hold:a drop:a 900s hold:b loose", "", "b");
    // Messages on another stream may arrive later than the responses.
    check("quick:a hold:b beside loose 31s beside", "", "several b b");
}

#[test]
fn host_answers_server_requests_without_an_owner() {
    check("loose hold:a loose hold:b loose drop:b own:a loose", "host", "host a host a host");
    check("ask:- own:-", "host", "host host");
}

/// The outcome of a call whose caller takes `takes` seconds to answer, and allows a deadline pause of `patience`
/// seconds.
async fn call_with_slow_user(server: Server, takes: u64, patience: u64) -> Result<String, CallError> {
    let session = server.connect(SessionOptions::default()).await;
    let caller = Caller::new(CallerId::unique(), named_handler("a", takes));
    let mut options = CallOptions::default();
    options.context.caller = Some(Arc::new({
        let mut res = caller;
        res.max_deadline_pause = Duration::from_secs(patience);
        res
    }));
    options.timeout = Some(Duration::from_secs(60));
    options.idle_timeout = Some(Duration::from_secs(3));
    let answer = session.call_tool("ask", &RawJson::empty_object(), options).await;
    answer.map(|reply| reply.value.text())
}

#[tokio::test(start_paused = true)]
async fn only_the_absolute_deadline_runs_while_a_user_is_asked() {
    for server in [server, modern] {
        assert_eq!(call_with_slow_user(server(), 50, 0).await.unwrap(), "a");
        assert_eq!(call_with_slow_user(server(), 500, 600).await.unwrap(), "a");
        for (takes, patience) in [(70, 0), (700, 600)] {
            let late = call_with_slow_user(server(), takes, patience).await.unwrap_err();
            assert!(matches!(late, CallError::TimedOut(Expiry::Absolute(_))), "{late}");
        }
    }
}

/// A callback that records events, with its record.
fn ear() -> (OnServerEvent, Arc<Mutex<Vec<String>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&received);
    let on_event = move |event| {
        note.lock().unwrap().push(match event {
            ServerEvent::Log(it) => format!("log {}", it.raw.as_str()),
            ServerEvent::Notification { method, params } => format!("{method} {}", params.unwrap().as_str()),
            other => panic!("{other:?}"),
        });
    };
    (Arc::new(on_event), received)
}

#[tokio::test(start_paused = true)]
async fn events_of_a_call_precede_its_result() {
    let all = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&all);
    let server = server();
    let mut options = SessionOptions::default();
    options.on_notification =
        Some(Arc::new(move |it: mcp_host_transport::SessionNotification| note.lock().unwrap().push(it)));
    let session = server.connect(options).await;
    let ((hears, received), (others, nothing)) = (ear(), ear());
    let caller = |hears| {
        Some(Arc::new({
            let mut caller = Caller::new(CallerId::unique(), Handlers::default());
            caller.on_event = Some(hears);
            caller
        }))
    };
    let (own, other) = (caller(hears), caller(others));
    let options = |caller| {
        let mut options = CallOptions::default();
        options.context.caller = caller;
        options
    };
    let arguments = RawJson::empty_object();
    let held = session.call_tool("hold", &arguments, options(other));
    let call = session.call_tool("logs", &arguments, options(own.clone()));
    tokio::select! {
        _ = held => panic!("it is held"),
        done = call => drop(done.unwrap()),
    }
    let want = [r#"log {"data":"mine"}"#, r#"notifications/odd {"z":1.0}"#];
    assert_eq!(*received.lock().unwrap(), want);
    assert!(nothing.lock().unwrap().is_empty());
    settle().await;
    let all = all.lock().unwrap();
    assert_eq!(all.len(), 2, "a changed list is the session's business: {all:?}");
    assert!(all.iter().all(|it| it.caller == Some(own.as_ref().unwrap().id)), "{all:?}");
}

/// The parts of a modern server's requests.
fn meta(message: &Value, name: &str) -> Value {
    message["params"]["_meta"][format!("io.modelcontextprotocol/{name}")].clone()
}

fn modern() -> Server {
    Server::modern(json!({"tools": {}, "logging": {}}), |message| match message["method"].as_str() {
        Some("tools/call") if message["params"].get("inputResponses").is_none() => {
            let asks = json!({"method": "elicitation/create", "params": {"message": "who?", "x": 1.0}});
            let requests = json!({"q": asks});
            answer(
                message,
                json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s\u{e9}"}),
            )
        }
        Some("tools/call") => {
            let by = message["params"]["inputResponses"]["q"]["by"].clone();
            answer(message, json!({"content": [{"type": "text", "text": by}], "x": {"y": 1.0}}))
        }
        _ => vec![],
    })
}

#[tokio::test(start_paused = true)]
async fn modern_server_gets_the_capabilities_of_each_caller() {
    let server = modern();
    let session = server.connect(SessionOptions::default()).await;
    let call = async |handlers| {
        let caller = Some(Arc::new(Caller::new(CallerId::unique(), handlers)));
        let mut options = CallOptions::default();
        options.context.caller = caller;
        session.call_tool("t", &RawJson::empty_object(), options).await.map(|reply| reply.value.text())
    };
    let (a, b, none) =
        tokio::join!(call(named_handler("a", 2)), call(named_handler("b", 1)), call(Handlers::default()));
    assert_eq!((a.unwrap().as_str(), b.unwrap().as_str()), ("a", "b"));
    assert!(matches!(none, Err(CallError::InputRequired(_))), "{none:?}");
    let calls = server.received().into_iter().filter(|message| message["method"] == "tools/call");
    let said: Vec<String> = calls.map(|it| meta(&it, "clientCapabilities").to_string()).collect();
    let form = r#"{"elicitation":{"form":{}}}"#;
    assert_eq!(said, [form, form, "{}", form, form]);
    assert_eq!(meta(&server.first("server/discover"), "clientCapabilities"), json!({}));
}

#[tokio::test(start_paused = true)]
async fn modern_list_requests_declare_all_capabilities() {
    let server = Server::modern(json!({"tools": {}}), |message| match message["method"].as_str() {
        Some("tools/list") => answer(message, json!({"tools": []})),
        _ => answer(message, json!({"content": []})),
    });
    let declared = ClientCapabilities::new(raw(r#"{"sampling":{}}"#));
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.client_capabilities = declared;
            options
        })
        .await;
    session.list_tools().await.unwrap();
    session.call_tool("t", &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    let said = |method: &str| meta(&server.first(method), "clientCapabilities").to_string();
    assert_eq!(["server/discover", "tools/list"].map(said), [r#"{"sampling":{}}"#, r#"{"sampling":{}}"#]);
    assert_eq!(said("tools/call"), "{}", "no handler serves this request");
}

#[tokio::test(start_paused = true)]
async fn input_required_result_is_forwarded_and_can_be_retried() {
    let server = modern();
    let log_level = Some(LogLevel::Error);
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.log_level = log_level;
            options
        })
        .await;
    let capabilities = ClientCapabilities::new(raw(r#"{"elicitation":{"url":{}},"x":1.0}"#));
    let caller = Some(Arc::new({
        let mut caller = Caller::new(CallerId::unique(), Handlers::default());
        caller.capabilities = capabilities;
        caller
    }));
    let meta_given = raw(
        r#"{"a/b":{"c":1.0},"progressToken":"theirs","traceparent":"x","io.modelcontextprotocol/logLevel":"debug",
            "io.modelcontextprotocol/clientInfo":{"name":"theirs"}}"#,
    );
    let input = InputHandling::ReturnToCaller;
    let mut options = CallOptions::default();
    options.context.caller = caller;
    options.context.meta = ForwardedMeta::read(&meta_given).unwrap();
    options.context.input = input;
    let arguments = RawJson::empty_object();
    let first = session.call_tool_raw("t", &arguments, options.clone()).await.unwrap().value;
    let first: Value = first.read().unwrap();
    assert_eq!(first["resultType"], "input_required");
    let more =
        json!({"inputResponses": {"q": {"by": "them"}}, "requestState": first["requestState"], "odd": 1.0});
    let mut options = options;
    options.context.extra_params = Some(raw(&more.to_string()));
    let second = session.call_tool_raw("t", &arguments, options).await.unwrap().value;
    assert!(second.as_str().ends_with(r#","x":{"y":1.0}}"#), "{}", second.as_str());
    assert!(second.as_str().contains(r#""text":"them""#), "{}", second.as_str());

    let calls: Vec<Value> =
        server.received().into_iter().filter(|message| message["method"] == "tools/call").collect();
    let last = calls.last().unwrap();
    assert_eq!((calls.len(), &last["params"]["requestState"]), (2, &json!("s\u{e9}")));
    assert_eq!(last["params"]["odd"].to_string(), "1.0");
    let own = &last["params"]["_meta"];
    assert_eq!((own["a/b"].to_string().as_str(), &own["traceparent"]), (r#"{"c":1.0}"#, &json!("x")));
    assert_eq!(own.get("progressToken"), None);
    assert_eq!(meta(last, "clientInfo")["name"], "mcp-host");
    assert_eq!(meta(last, "logLevel"), "debug", "the caller's own");
    assert_eq!(meta(last, "clientCapabilities").to_string(), r#"{"elicitation":{"url":{}},"x":1.0}"#);
}

#[tokio::test(start_paused = true)]
async fn unknown_result_members_are_kept_and_declared_capabilities_are_sent() {
    let server = server();
    let declared = ClientCapabilities::new(raw(r#"{"sampling":{"tools":{}},"roots":{"listChanged":true}}"#));
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.client_capabilities = declared;
            options
        })
        .await;
    let want = json!({"sampling": {"tools": {}}, "roots": {"listChanged": true}});
    assert_eq!(server.first("initialize")["params"]["capabilities"], want);
    let meta = raw(r#"{"a":1.0,"io.modelcontextprotocol/logLevel":"debug"}"#);
    let mut options = CallOptions::default();
    options.context.meta = ForwardedMeta::read(&meta).unwrap();
    let answer = session.call_tool_raw("quick", &RawJson::empty_object(), options).await.unwrap();
    assert_eq!(answer.value.as_str(), r#"{"content":[],"x":{"y":1.0}}"#);
    assert_eq!(server.first("tools/call")["params"]["_meta"].to_string(), r#"{"a":1.0}"#);
    assert!(ForwardedMeta::read(&raw("[]")).is_err());
    let mut options = CallOptions::default();
    options.context.extra_params = Some(raw("1"));
    let refused = session.call_tool("quick", &RawJson::empty_object(), options).await;
    assert!(matches!(refused, Err(CallError::InvalidParams(_))), "{refused:?}");
}
