//! Owners of server requests: two concurrent callers, the demo server over each transport in each era. A request
//! reaches the caller of its call, or is rejected.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{CallResult, Era, Method, MethodName, RawJson, RpcError, Sharing};
use mcp_host_runtime::{DialogId, Host, HostOptions, LoadRequest, ToolCall, load};
use mcp_host_transport::{
    Caller, CallerId, ClientCapabilities, Eras, Handlers, RawRequestHandler, RawServerRequest,
};
use mcp_testkit::program::binary;

use crate::compare::{demo, holodeck, over_stdio};

/// A caller that responds with its name after a delay.
struct NamedCaller(&'static str);

#[async_trait]
impl RawRequestHandler for NamedCaller {
    fn handles(&self, method: &MethodName) -> bool {
        matches!(method.as_known(), Some(Method::Elicit | Method::CreateMessage))
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

fn named_caller(name: &'static str) -> Arc<Caller> {
    let handlers = Handlers::with_raw_requests(Arc::new(NamedCaller(name)));
    Arc::new(Caller::new(CallerId::unique(), handlers))
}

fn ask(of: &str) -> ToolCall {
    ToolCall::new("ask", json(format!(r#"{{"question":"who?","of":"{of}"}}"#)))
}

/// Asserts that the result has the caller's own name, or an error that explains the rejection.
#[track_caller]
fn assert_own_result(result: &CallResult, name: &str, sure: bool) {
    let text = result.error.as_ref().map_or_else(|| result.text(), |error| error.message.clone());
    let is_own = text.ends_with(&format!("answers: {name}"));
    let is_refused = text.contains("several callers share this connection");
    assert!(is_own || is_refused && !sure, "{name}: {text}");
}

/// A host with this server.
async fn host(file: &Path, eras: Eras, sharing: Sharing) -> Host {
    let mut wanted = load(&LoadRequest::new(file)).unwrap().desired;
    assert!(wanted.failed.is_empty(), "{:?}", wanted.failed);
    for server in &mut wanted.servers {
        server.spec.sharing = sharing;
    }
    let everything = json(r#"{"sampling":{},"elicitation":{"form":{}}}"#.to_owned());
    let declared = ClientCapabilities::new(everything);
    let host = Host::start({
        let mut res = HostOptions::default();
        res.connections.eras = eras;
        res.server_requests.declared_capabilities = declared;
        res
    });
    host.apply(wanted).await;
    host.wait_until_ready().await;
    host
}

async fn check(file: PathBuf) {
    for eras in [Eras::Legacy, Eras::Modern] {
        let host = host(&file, eras, Sharing::Shared).await;
        let era = host.snapshot().servers[0].era;
        assert_eq!(era, Some(if eras == Eras::Modern { Era::Modern } else { Era::Legacy }));
        let (ann, bob) = (named_caller("ann"), named_caller("bob"));
        let by = |caller: &Arc<Caller>, of| {
            host.call({
                let mut call = ask(of);
                call.options.context.caller = Some(Arc::clone(caller));
                call
            })
        };
        assert_own_result(&by(&ann, "user").await, "ann", true);
        // A late server request could belong to a call that has just ended.
        assert_own_result(&by(&bob, "model").await, "bob", eras == Eras::Modern);
        for of in ["user", "model", "user"] {
            let calls = tokio::join!(by(&ann, "user"), by(&bob, of), by(&ann, of), by(&bob, "model"));
            for (result, name) in [(calls.0, "ann"), (calls.1, "bob"), (calls.2, "ann"), (calls.3, "bob")] {
                assert_own_result(&result, name, eras == Eras::Modern);
            }
        }
        host.shutdown().await;
    }
    let host = host(&file, Eras::Legacy, Sharing::PerOwner).await;
    let ann = host.dialog_with_caller(DialogId::new("1"), named_caller("ann"));
    let bob = host.dialog_with_caller(DialogId::new("2"), named_caller("bob"));
    for of in ["user", "model", "user"] {
        let calls = tokio::join!(ann.call(ask("user")), bob.call(ask(of)), ann.call(ask(of)));
        assert_own_result(&calls.0, "ann", true);
        assert_own_result(&calls.1, "bob", true);
        assert_own_result(&calls.2, "ann", true);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_request_reaches_its_caller_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let program = binary().display().to_string();
    check(over_stdio(folder.path(), &[&program, "demo-server"])).await;
}

/// In the stateless era each request is another caller.
#[tokio::test]
async fn many_earlier_callers_do_not_block_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let program = binary().display().to_string();
    let file = over_stdio(folder.path(), &[&program, "demo-server"]);
    let host = host(&file, Eras::Legacy, Sharing::Shared).await;
    for _ in 0..300 {
        let echo = ToolCall::new("echo", json(r#"{"text":"x"}"#.to_owned()));
        let result = host
            .call({
                let mut call = echo;
                call.options.context.caller = Some(named_caller("stranger"));
                call
            })
            .await;
        assert!(result.error.is_none(), "{:?}", result.error);
    }
    assert_own_result(
        &host
            .call({
                let mut call = ask("user");
                call.options.context.caller = Some(named_caller("ann"));
                call
            })
            .await,
        "ann",
        true,
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_request_reaches_its_caller_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.ends_with("/mcp"));
    check(holodeck(folder.path(), "http", &url)).await;
}

#[tokio::test]
async fn a_server_request_reaches_its_caller_over_sse() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.ends_with("/sse"));
    check(holodeck(folder.path(), "sse", &url)).await;
}

#[tokio::test]
async fn a_server_request_reaches_its_caller_over_websocket() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.starts_with("ws://"));
    check(holodeck(folder.path(), "websocket", &url)).await;
}
