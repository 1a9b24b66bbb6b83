//! A host with several callers: a server request is answered by the caller that it belongs to, raw results are
//! returned unchanged, and notifications contain the name of their server.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, LogLevel, Method, MethodName, RawJson, RpcError, ServerId, Sharing};
use mcp_host_runtime::{
    DesiredServers, DialogId, Host, HostOptions, NotificationStream, NotificationStreamItem, RequestOptions,
    Supervision, ToolCall,
};
use mcp_host_transport::{
    Caller, CallerId, ClientCapabilities, CompletionArgument, CompletionReference, Eras, ForwardedMeta,
    Handlers, InputHandling, RawRequestHandler, RawServerRequest, ServerEvent,
};
use mcp_testkit::servers::configured_server;
use serde_json::{Value, json};

use crate::demo_server::demo_dialer;
use crate::fixture::{HostFixture, text_or_error};
use crate::leases::leased;
use crate::scripted_server::ScriptedServer;

/// A caller that answers every server request with its name, after a second.
struct Person(&'static str);

impl RawRequestHandler for Person {
    fn handles(&self, method: &MethodName) -> bool {
        matches!(method.as_known(), Some(Method::Elicit | Method::CreateMessage | Method::ListRoots))
    }

    fn handle<'a, 'b>(
        &'a self,
        question: RawServerRequest,
    ) -> Pin<Box<dyn Future<Output = Result<RawJson, RpcError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let name = self.0;
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let answer = match question.method.as_str() {
                "elicitation/create" => {
                    json!({"action": "accept", "content": {"answer": name}, "by": name})
                }
                "sampling/createMessage" => {
                    json!({"role": "assistant", "content": {"type": "text", "text": name}, "model": "m"})
                }
                _ => json!({"roots": [{"uri": format!("file:///{name}")}]}),
            };
            Ok(RawJson::from_value(&answer).unwrap())
        })
    }
}

fn person(name: &'static str) -> Arc<Caller> {
    let handlers = Handlers::with_raw_requests(Arc::new(Person(name)));
    Arc::new(Caller::new(CallerId::unique(), handlers))
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

fn everything() -> Option<ClientCapabilities> {
    ClientCapabilities::new(raw(r#"{"sampling":{},"elicitation":{"form":{}},"roots":{}}"#))
}

async fn demo(server: ResolvedServer, eras: Eras) -> Host {
    let dialer = demo_dialer();
    let mut options = HostOptions::default();
    options.supervision = Supervision::Off;
    options.server_requests.declared_capabilities = everything();
    options.connections.eras = eras;
    let host = Host::with_dialer(options, dialer);
    host.apply(DesiredServers::new(vec![server])).await;
    host.wait_until_ready().await;
    host
}

fn ask(of: &str, caller: Option<&Arc<Caller>>) -> ToolCall {
    let arguments = raw(&format!(r#"{{"question":"who?","of":"{of}"}}"#));
    let mut call = ToolCall::new("ask", arguments);
    call.options.context.caller = caller.cloned();
    call
}

#[tokio::test(start_paused = true)]
async fn modern_server_request_is_answered_by_its_caller() {
    let host = demo(configured_server("a"), Eras::Modern).await;
    let (a, b) = (person("ann"), person("bob"));
    let calls = tokio::join!(
        host.call(ask("user", Some(&a))),
        host.call(ask("user", Some(&b))),
        host.call(ask("model", Some(&a))),
        host.call(ask("model", Some(&b))),
        host.call(ask("user", None)),
    );
    assert_eq!(text_or_error(&calls.0), "the user answers: ann");
    assert_eq!(text_or_error(&calls.1), "the user answers: bob");
    assert_eq!(text_or_error(&calls.2), "the model m answers: ann");
    assert_eq!(text_or_error(&calls.3), "the model m answers: bob");
    assert!(
        text_or_error(&calls.4).contains("MissingRequiredClientCapability") || !calls.4.success,
        "{:?}",
        calls.4
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn legacy_shared_server_serves_one_caller_at_a_time_and_leased_ones_their_own() {
    let host = demo(configured_server("a"), Eras::Legacy).await;
    assert_eq!(host.snapshot().servers[0].era, Some(Era::Legacy));
    let (a, b) = (person("ann"), person("bob"));
    assert_eq!(text_or_error(&host.call(ask("user", Some(&a))).await), "the user answers: ann");
    assert_eq!(text_or_error(&host.call(ask("model", Some(&b))).await), "the model m answers: bob");
    let both = tokio::join!(host.call(ask("user", Some(&a))), host.call(ask("user", Some(&b))));
    for refused in [text_or_error(&both.0), text_or_error(&both.1)] {
        // The first server request may arrive before the second call starts. Then its own caller answers.
        let own = refused.starts_with("the user answers: ann") && refused == text_or_error(&both.0);
        assert!(own || refused.contains("several callers share this connection"), "{refused}");
    }
    host.shutdown().await;

    let host = demo(leased("a"), Eras::Legacy).await;
    let one = host.dialog_with_caller(DialogId::new("1"), person("ann"));
    let two = host.dialog_with_caller(DialogId::new("2"), person("bob"));
    let both =
        tokio::join!(one.call(ask("user", None)), two.call(ask("user", None)), two.call(ask("model", None)));
    assert_eq!(text_or_error(&both.0), "the user answers: ann");
    assert_eq!(text_or_error(&both.1), "the user answers: bob");
    assert_eq!(text_or_error(&both.2), "the model m answers: bob");
    // A call's own caller takes precedence over the dialog's.
    assert_eq!(text_or_error(&one.call(ask("user", Some(&person("amy")))).await), "the user answers: amy");
    host.shutdown().await;
}

fn question(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create",
           "params": {"message": "?", "requestedSchema": {"type": "object"}}})
}

#[tokio::test(start_paused = true)]
async fn leased_instance_gets_the_capabilities_of_its_dialog_and_sends_it_requests() {
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["t"]))], {
        let mut res = HostOptions::default();
        res.supervision = Supervision::Off;
        res.server_requests.declared_capabilities = everything();
        res
    });
    fixture.apply(vec![leased("a")]).await;
    fixture.host.wait_until_ready().await;
    let peer = fixture.peer("a");
    assert_eq!(peer.count(everything().unwrap().json().as_str()), 1, "who lists declares what may be");
    let dialog = fixture.host.dialog_with_caller(DialogId::new("1"), person("ann"));
    assert!(dialog.call(ToolCall::new("t", RawJson::empty_object())).await.success);
    let own = r#"{"sampling":{},"elicitation":{"form":{}},"roots":{"listChanged":true}}"#;
    assert_eq!(peer.count(own), 1, "{:?}", peer.log.lock().unwrap());
    peer.send(question(1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(peer.count("\"ann\"null"), 1, "{:?}", peer.log.lock().unwrap());
    fixture.host.notify_roots_changed(dialog.id());
    fixture.host.notify_roots_changed(&DialogId::new("2"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.count("notifications/roots/list_changed"), 1);
    drop(dialog);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // A later dialog with the same id has no caller.
    let dialog = fixture.host.dialog(DialogId::new("1"));
    assert!(dialog.call(ToolCall::new("t", RawJson::empty_object())).await.success);
    peer.send(question(2));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(peer.count("null\"Method not found\""), 1, "{:?}", peer.log.lock().unwrap());
    fixture.host.shutdown().await;
}

/// The futures of raw requests are `Send`, as spawned and boxed tasks require.
#[tokio::test(start_paused = true)]
async fn requests_can_be_sent_from_any_task() {
    let host = Arc::new(demo(configured_server("a"), Eras::Modern).await);
    let asks: Pin<Box<dyn Future<Output = bool> + Send>> = Box::pin({
        let host = Arc::clone(&host);
        async move {
            let uri = "demo://numbers/3".to_owned();
            let read = host.read_resource_raw(&uri, RequestOptions::default()).await.is_ok();
            let call = host.call_raw(ToolCall::new("echo", raw(r#"{"text":"x"}"#))).await.is_ok();
            // The demo server has no subscriptions.
            read && call && host.subscribe_resource(&uri, RequestOptions::default()).await.is_err()
        }
    });
    assert!(tokio::spawn(asks).await.unwrap());
    let info = host.server_info(&ServerId::parse("a").unwrap()).unwrap();
    assert_eq!((host.snapshot().servers[0].sharing, info.name.is_empty()), (Some(Sharing::Shared), false));
    assert!(host.server_info(&ServerId::parse("x").unwrap()).is_none());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn results_and_errors_are_forwarded_unchanged() {
    let peer = ScriptedServer::new(&["strange", "fail", "meta"]);
    *peer.resources.lock().unwrap() = Some(vec![json!({"uri": "x:1", "name": "n", "icons": [1.0]})]);
    let fixture = HostFixture::running(&[("a", peer)]).await;
    let meta = ForwardedMeta::read(&raw(r#"{"k":1.0,"progressToken":3}"#)).unwrap();
    let call = |name: &str| {
        let mut call = ToolCall::new(name, RawJson::empty_object());
        call.options.context.meta = meta.clone();
        call
    };
    let odd = fixture.host.call_raw(call("strange")).await.unwrap();
    assert_eq!((odd.result.as_str(), odd.server.as_str()), (r#"{"content":[],"y":1.0}"#, "a"));
    assert!(odd.request_id.is_some());
    let failed = fixture.host.call_raw(call("fail")).await.unwrap();
    assert!(failed.result.as_str().contains(r#""isError":true"#), "a tool that fails has a result");
    let meta = fixture.host.call(call("meta")).await.text();
    assert_eq!(meta, r#"{"k":1.0}"#);
    let missing = fixture.host.call_raw(call("nowhere")).await.unwrap_err();
    assert_eq!((missing.error.kind.as_str(), missing.rpc), ("MCPToolNotFoundError", None));

    let gone = fixture.host.read_resource_raw("x:1", RequestOptions::default()).await.unwrap_err();
    let rpc = gone.rpc.unwrap();
    assert_eq!((rpc.code, rpc.message.as_str(), gone.server.unwrap().as_str()), (-32002, "gone", "a"));
    assert_eq!(rpc.data.unwrap().as_str(), r#"{"x":1.0}"#);
    fixture.host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn other_server_requests_are_forwarded() {
    let host = demo(configured_server("a"), Eras::Modern).await;
    let asking = || {
        let mut options = RequestOptions::default();
        options.context.caller = Some(person("ann"));
        options
    };
    let text = raw(r#"{"text":"a long text"}"#);
    let prompt = host.get_prompt_raw("summarise", &text, asking()).await.unwrap();
    assert!(prompt.result.as_str().contains("a long text") && prompt.server.as_str() == "a");
    let few = host.get_prompt_raw("summarise", &RawJson::empty_object(), asking()).await.unwrap_err();
    assert_eq!(few.error.kind.as_str(), "ValidationError");
    let read = host.read_resource_raw("demo://numbers/3", asking()).await.unwrap();
    assert!(read.result.as_str().contains(r#""text":"1\n2\n3\n""#), "{}", read.result.as_str());
    let of = CompletionReference::ResourceTemplate("demo://numbers/{count}".to_owned());
    let argument = CompletionArgument::new("count", "1");
    let completed = host.complete_raw(&of, &argument, asking()).await.unwrap();
    let values = r#""values":["1","10","100","1000"]"#;
    assert!(completed.result.as_str().contains(values), "{}", completed.result.as_str());

    // With `ReturnToCaller`, the result that requires input is returned unchanged, and the caller repeats the
    // request.
    let input = InputHandling::ReturnToCaller;
    let able = Arc::new({
        let mut caller = Caller::new(CallerId::unique(), Handlers::default());
        caller.capabilities = everything();
        caller
    });
    let first = host
        .call_raw({
            let mut call = ask("user", Some(&able));
            call.options.context.input = input;
            call
        })
        .await
        .unwrap();
    let first: Value = first.result.read().unwrap();
    assert_eq!(first["resultType"], "input_required");
    let reply = json!({"answer": {"action": "accept", "content": {"answer": "by himself"}}});
    let more = json!({"inputResponses": reply, "requestState": first["requestState"]});
    let mut call = ask("user", Some(&able));
    call.options.context.input = input;
    call.options.context.extra_params = Some(raw(&more.to_string()));
    let second = host.call_raw(call).await.unwrap();
    assert!(second.result.as_str().contains("the user answers: by himself"), "{}", second.result.as_str());
    host.shutdown().await;
}

/// Returns the next notification, as text.
async fn next(hearing: &mut NotificationStream) -> String {
    let Some(NotificationStreamItem::Notification(said)) = hearing.next().await else {
        panic!("nothing is said")
    };
    let what = match &said.event {
        ServerEvent::Log(message) => format!("{:?}", message.data.as_ref().unwrap().as_str()),
        ServerEvent::ResourceUpdated { uri } => uri.clone(),
        ServerEvent::Notification { method, params: _ } => method.to_string(),
        other => panic!("{other:?}"),
    };
    let dialog = said.dialog.as_ref().map_or("-", |it| it.as_str());
    format!("{} {dialog} {} {what}", said.server, if said.owner.is_some() { "call" } else { "-" })
}

fn log(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}})
}

#[tokio::test(start_paused = true)]
async fn notifications_contain_the_name_of_their_server() {
    let fixture =
        HostFixture::new(&[("a", ScriptedServer::new(&["slow"])), ("b", ScriptedServer::new(&["t"]))]);
    fixture.apply(vec![configured_server("a"), leased("b")]).await;
    fixture.host.wait_until_ready().await;
    let mut hearing = fixture.host.notifications();
    fixture.peer("a").send(log("one"));
    assert_eq!(next(&mut hearing).await, r#"a - - "\"one\"""#);
    let dialog = fixture.host.dialog(DialogId::new("d"));
    assert!(dialog.call(ToolCall::new("b__t", RawJson::empty_object())).await.success);
    fixture.peer("b").send(json!({"jsonrpc": "2.0", "method": "notifications/odd"}));
    assert_eq!(next(&mut hearing).await, "b d - notifications/odd");
    let mut call = ToolCall::new("slow", RawJson::empty_object());
    call.options.context.caller = Some(person("ann"));
    let (slow, ()) = tokio::join!(fixture.host.call(call), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.peer("a").send(log("two"));
        assert_eq!(next(&mut hearing).await, r#"a - call "\"two\"""#);
        fixture.peer("a").release.notify_one();
    });
    assert!(slow.success);
    fixture.host.shutdown().await;
    assert_eq!(hearing.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn log_level_is_set_on_running_and_later_servers() {
    let fixture =
        HostFixture::supervised(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))])
            .started()
            .await;
    let (a, b) = (fixture.peer("a"), fixture.peer("b"));
    assert_eq!(a.count("logging/setLevel"), 0);
    fixture.host.set_log_level(LogLevel::Warning).await;
    assert_eq!((a.count("warning"), b.count("warning")), (1, 1));
    let only_b = ServerId::parse("b").unwrap();
    fixture.host.set_server_log_level(&only_b, LogLevel::Debug).await.unwrap();
    assert_eq!((a.count("debug"), b.count("debug")), (0, 1));
    assert!(
        fixture.host.set_server_log_level(&ServerId::parse("x").unwrap(), LogLevel::Debug).await.is_err()
    );
    a.disconnect();
    b.disconnect();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((a.count("warning"), b.count("warning")), (2, 1));
    assert_eq!((a.count("debug"), b.count("debug")), (0, 2));
    fixture.host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn resource_is_subscribed_once_and_again_after_a_restart() {
    let peer = ScriptedServer::new(&["t"]);
    *peer.resources.lock().unwrap() = Some(vec![json!({"uri": "x:1", "name": "n"})]);
    let fixture = HostFixture::supervised(&[("a", peer)]).started().await;
    let peer = fixture.peer("a");
    let mut hearing = fixture.host.notifications();
    let one = fixture.host.subscribe_resource("x:1", RequestOptions::default()).await.unwrap();
    let two = fixture.host.subscribe_resource("x:1", RequestOptions::default()).await.unwrap();
    assert_eq!((one.server().as_str(), one.uri(), one.dialog()), ("a", "x:1", None));
    assert_eq!(peer.count("subscribe x:1"), 1);
    let updated = || {
        peer.send(
            json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x:1"}}),
        );
    };
    updated();
    assert_eq!(next(&mut hearing).await, "a - - x:1");

    peer.disconnect();
    // The successor is subscribed too. The resource counts as updated, because its content may differ.
    assert_eq!(next(&mut hearing).await, "a - - x:1");
    assert_eq!(peer.count("subscribe x:1"), 2);
    updated();
    assert_eq!(next(&mut hearing).await, "a - - x:1");

    drop(one);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.count("unsubscribe x:1"), 0);
    drop(two);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.count("unsubscribe x:1"), 1);

    peer.failing_methods.lock().unwrap().push("resources/subscribe");
    let refused = fixture.host.subscribe_resource("x:1", RequestOptions::default()).await.unwrap_err();
    assert_eq!(refused.rpc.unwrap().message, "out of order");
    let unknown = fixture.host.subscribe_resource("y:1", RequestOptions::default()).await.unwrap_err();
    // A resource that no list contains is searched by reading it.
    assert_eq!(unknown.server.unwrap().as_str(), "a");
    assert_eq!(peer.count("resources/read"), 1);
    fixture.host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn leased_instance_notifies_its_dialog_only() {
    let peer = ScriptedServer::new(&["t"]);
    *peer.resources.lock().unwrap() = Some(vec![json!({"uri": "x:1", "name": "n"})]);
    let fixture = HostFixture::new(&[("a", peer)]);
    fixture.apply(vec![leased("a")]).await;
    fixture.host.wait_until_ready().await;
    let (one, two) = (fixture.host.dialog(DialogId::new("1")), fixture.host.dialog(DialogId::new("2")));
    let of = |dialog: &mcp_host_runtime::Dialog| {
        let mut options = RequestOptions::default();
        options.dialog = Some(dialog.id().clone());
        options
    };
    let wanted = fixture.host.subscribe_resource("x:1", of(&one)).await.unwrap();
    let other = fixture.host.subscribe_resource("x:1", of(&two)).await.unwrap();
    let peer = fixture.peer("a");
    assert_eq!((peer.count("subscribe x:1"), wanted.dialog()), (2, Some(one.id())));
    drop(other);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.count("unsubscribe x:1"), 1);
    // After a release and a new lease, the new instance is subscribed too.
    let server = ServerId::parse("a").unwrap();
    assert!(fixture.host.release(one.id(), &server).await.unwrap());
    assert!(one.call(ToolCall::new("t", RawJson::empty_object())).await.success);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.count("subscribe x:1"), 3);
    fixture.host.shutdown().await;
}
