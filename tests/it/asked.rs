//! Two callers at once, with the demo server behind each wire in each era: what it asks goes back to the one whose call it
//! is about, or to nobody.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_host::{DialogId, Host, HostOptions, LoadRequest, ToolCall, load};
use mcp_model::{CallResult, Era, RawJson, RpcError, Sharing};
use mcp_tests::binary;
use mcp_transport::{
    Caller, CallerId, ClientCapabilities, Eras, Handlers, RawRequestHandler, RawServerRequest,
};

use crate::same::{demo, holodeck, over_stdio};

/// Answers with his name, after a while in which others may come.
struct Person(&'static str);

#[async_trait]
impl RawRequestHandler for Person {
    fn handles(&self, method: &str) -> bool {
        matches!(method, "elicitation/create" | "sampling/createMessage")
    }

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let answer = match question.method.as_str() {
            "elicitation/create" => format!(r#"{{"action":"accept","content":{{"answer":"{}"}}}}"#, self.0),
            _ => {
                let name = self.0;
                format!(r#"{{"role":"assistant","content":{{"type":"text","text":"{name}"}},"model":"m"}}"#)
            }
        };
        Ok(json(answer))
    }
}

fn json(text: String) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}

fn person(name: &'static str) -> Arc<Caller> {
    let handlers = Handlers { raw_requests: Some(Arc::new(Person(name))), ..Handlers::default() };
    Arc::new(Caller::new(CallerId::unique(), handlers))
}

fn ask(of: &str) -> ToolCall {
    ToolCall::new("ask", json(format!(r#"{{"question":"who?","of":"{of}"}}"#)))
}

/// Is it the answer of the one who asked? What is refused says why.
#[track_caller]
fn own(result: &CallResult, name: &str, sure: bool) {
    let text = result.error.as_ref().map_or_else(|| result.text(), |it| it.message.clone());
    let is_own = text.ends_with(&format!("answers: {name}"));
    let is_refused = text.contains("several callers share this connection");
    assert!(is_own || is_refused && !sure, "{name}: {text}");
}

/// A host with this one server.
async fn host(file: &Path, eras: Eras, sharing: Sharing) -> Host {
    let mut wanted = load(&LoadRequest::new(file)).unwrap().desired;
    assert!(wanted.failed.is_empty(), "{:?}", wanted.failed);
    for server in &mut wanted.servers {
        server.spec.sharing = sharing;
    }
    let everything = json(r#"{"sampling":{},"elicitation":{"form":{}}}"#.to_owned());
    let declared = ClientCapabilities::new(everything);
    let host = Host::start(HostOptions { eras, declared_capabilities: declared, ..HostOptions::default() });
    host.apply(wanted).await;
    host.ready().await;
    host
}

async fn check(file: PathBuf) {
    for eras in [Eras::Legacy, Eras::Modern] {
        let host = host(&file, eras, Sharing::Shared).await;
        let era = host.snapshot().servers[0].era;
        assert_eq!(era, Some(if eras == Eras::Modern { Era::Modern } else { Era::Legacy }));
        let (ann, bob) = (person("ann"), person("bob"));
        let by =
            |caller: &Arc<Caller>, of| host.call(ToolCall { caller: Some(Arc::clone(caller)), ..ask(of) });
        own(&by(&ann, "user").await, "ann", true);
        // What comes beside the answers might still be about a call that was answered a moment ago.
        own(&by(&bob, "model").await, "bob", eras == Eras::Modern);
        for of in ["user", "model", "user"] {
            let calls = tokio::join!(by(&ann, "user"), by(&bob, of), by(&ann, of), by(&bob, "model"));
            for (result, name) in [(calls.0, "ann"), (calls.1, "bob"), (calls.2, "ann"), (calls.3, "bob")] {
                own(&result, name, eras == Eras::Modern);
            }
        }
        host.shutdown().await;
    }
    let host = host(&file, Eras::Legacy, Sharing::PerOwner).await;
    let ann = host.dialog_with(DialogId::new("1"), person("ann"));
    let bob = host.dialog_with(DialogId::new("2"), person("bob"));
    for of in ["user", "model", "user"] {
        let calls = tokio::join!(ann.call(ask("user")), bob.call(ask(of)), ann.call(ask(of)));
        own(&calls.0, "ann", true);
        own(&calls.1, "bob", true);
        own(&calls.2, "ann", true);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn over_stdio_a_question_goes_back_to_whose_call_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let program = binary().display().to_string();
    check(over_stdio(folder.path(), &[&program, "demo-server"])).await;
}

/// Clients of the era without sessions are another caller with each request.
#[tokio::test]
async fn however_many_were_answered_the_next_one_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let program = binary().display().to_string();
    let file = over_stdio(folder.path(), &[&program, "demo-server"]);
    let host = host(&file, Eras::Legacy, Sharing::Shared).await;
    for _ in 0..300 {
        let echo = ToolCall::new("echo", json(r#"{"text":"x"}"#.to_owned()));
        let result = host.call(ToolCall { caller: Some(person("stranger")), ..echo }).await;
        assert!(result.error.is_none(), "{:?}", result.error);
    }
    own(&host.call(ToolCall { caller: Some(person("ann")), ..ask("user") }).await, "ann", true);
    host.shutdown().await;
}

#[tokio::test]
async fn over_http_a_question_goes_back_to_whose_call_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |it| it.ends_with("/mcp"));
    check(holodeck(folder.path(), "http", &url)).await;
}

#[tokio::test]
async fn over_sse_a_question_goes_back_to_whose_call_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |it| it.ends_with("/sse"));
    check(holodeck(folder.path(), "sse", &url)).await;
}

#[tokio::test]
async fn over_websocket_a_question_goes_back_to_whose_call_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |it| it.starts_with("ws://"));
    check(holodeck(folder.path(), "websocket", &url)).await;
}
