//! Sessions with real servers, requests in both directions. The npm server uses the legacy era, the demo server both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{
    Endpoint, Era, LogLevel, RawJson, ResourceBody, RpcError, Secret, StdioEndpoint, UrlEndpoint,
};
use mcp_host_transport::{
    CallError, CallOptions, CompletionArgument, CompletionReference, DialOptions, ElicitMode, ElicitRequest,
    ElicitResult, Elicitation, Eras, Handlers, Listener, Progress, Root, Roots, Sampling, SamplingRequest,
    SamplingResult, ServerEvent, Session, SessionOptions, dialer,
};
use mcp_testkit::program::{Run, binary, installed_folder};

/// Handlers for sampling, elicitation and roots, which record all events.
#[derive(Default)]
struct RecordingHandlers(Mutex<Vec<ServerEvent>>);

#[async_trait]
impl Sampling for RecordingHandlers {
    async fn sample(&self, request: SamplingRequest) -> Result<SamplingResult, RpcError> {
        let words = format!("at most {} tokens", request.max_tokens.unwrap_or_default());
        Ok(SamplingResult::text("test-model", &words))
    }
}

#[async_trait]
impl Elicitation for RecordingHandlers {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        let values = match request.message.as_str() {
            "colour?" => json(r#"{"answer":"green"}"#),
            _ => json(r#"{"name":"Ada","check":true}"#),
        };
        Ok(ElicitResult::Accept(Some(values)))
    }
}

#[async_trait]
impl Roots for RecordingHandlers {
    async fn roots(&self) -> Result<Vec<Root>, RpcError> {
        Ok(vec![{
            let mut root = Root::new("file:///work");
            root.name = Some("work".to_owned());
            root
        }])
    }
}

#[async_trait]
impl Listener for RecordingHandlers {
    async fn on_event(&self, event: ServerEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl RecordingHandlers {
    fn handlers(self: &Arc<RecordingHandlers>) -> Handlers {
        let mut handlers = Handlers::default();
        handlers.sampling = Some(Arc::clone(self) as Arc<dyn Sampling>);
        handlers.elicitation = Some(Arc::clone(self) as Arc<dyn Elicitation>);
        handlers.roots = Some(Arc::clone(self) as Arc<dyn Roots>);
        handlers.listener = Some(Arc::clone(self) as Arc<dyn Listener>);
        handlers
    }

    /// Waits for a matching event.
    async fn wait_for_event(&self, what: impl Fn(&ServerEvent) -> bool) -> ServerEvent {
        let found = || self.0.lock().unwrap().iter().find(|it| what(it)).cloned();
        for _ in 0..2000 {
            match found() {
                Some(event) => return event,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        panic!("no matching event among {:?}", self.0.lock().unwrap());
    }
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

fn options() -> CallOptions {
    CallOptions::default()
}

async fn connect(endpoint: Endpoint, eras: Eras, handlers: &Arc<RecordingHandlers>) -> Session {
    let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
    let handlers = handlers.handlers();
    let log_level = Some(LogLevel::Debug);
    Session::connect(dial, {
        let mut options = SessionOptions::default();
        options.handlers = handlers;
        options.eras = eras;
        options.log_level = log_level;
        options
    })
    .await
    .unwrap()
}

async fn everything(modules: &Path, handlers: &Arc<RecordingHandlers>) -> Session {
    let mut server = StdioEndpoint::new("node");
    let script: PathBuf = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    server.args = vec![Secret::new(script.display().to_string()), Secret::new("stdio")];
    connect(Endpoint::Stdio(server), Eras::Both, handlers).await
}

fn demo() -> Endpoint {
    let mut server = StdioEndpoint::new(binary().display().to_string());
    server.args = vec![Secret::new("demo-server")];
    Endpoint::Stdio(server)
}

async fn text(session: &Session, tool: &str, arguments: &str) -> String {
    let answer = session.call_tool(tool, &json(arguments), options()).await;
    answer.unwrap_or_else(|error| panic!("{tool}: {error}")).value.text()
}

#[tokio::test]
async fn all_requests_to_a_real_server_work() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let handlers = Arc::new(RecordingHandlers::default());
    let session = everything(&modules, &handlers).await;
    assert_eq!(session.era(), Era::Legacy);
    session.ping(options()).await.unwrap();

    let prompts = session.list_prompts().await.unwrap();
    let prompt = prompts.items.iter().find(|item| &*item.name == "completable-prompt").unwrap();
    let names: Vec<String> = prompt.arguments().into_iter().map(|item| item.name).collect();
    assert_eq!(names, ["department", "name"]);
    let filled = json(r#"{"department":"Sales","name":"Eve"}"#);
    let filled = session.get_prompt("completable-prompt", &filled, options()).await.unwrap().value;
    assert_eq!(filled.messages[0].content.text(), Some("Please promote Eve to the head of the Sales team."));
    let mut argument = CompletionArgument::new("name", "D");
    argument.context = vec![("department".to_owned(), "Sales".to_owned())];
    let of = CompletionReference::Prompt("completable-prompt".to_owned());
    assert_eq!(session.complete(&of, &argument, options()).await.unwrap().values, ["David"]);

    let resources = session.list_resources().await.unwrap();
    assert!(!resources.items.is_empty() && resources.rejected.is_empty());
    let read = session.read_resource(&resources.items[0].uri, options()).await.unwrap();
    assert!(matches!(&read.contents[0].body, ResourceBody::Text(text) if !text.is_empty()));
    let templates = session.list_resource_templates().await.unwrap();
    assert!(
        templates.items.iter().any(|it| &*it.uri_template == "demo://resource/dynamic/text/{resourceId}")
    );
    let blob = session.read_resource("demo://resource/dynamic/blob/1", options()).await.unwrap();
    assert!(!blob.contents[0].body.to_bytes().unwrap().is_empty());
    let missing = session.read_resource("demo://nowhere", options()).await.unwrap_err();
    assert!(matches!(missing, CallError::ResourceNotFound(_)), "{missing}");
    session.close(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn hd_fr027_hd_fr028_a_real_server_sends_requests_and_notifications() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let handlers = Arc::new(RecordingHandlers::default());
    let session = everything(&modules, &handlers).await;
    // The server has these tools only for capable clients, and notifies when it knows them.
    handlers.wait_for_event(|it| *it == ServerEvent::ToolsChanged).await;
    let said = text(&session, "trigger-sampling-request", r#"{"prompt":"hi","maxTokens":7}"#).await;
    assert!(said.contains("at most 7 tokens") && said.contains("test-model"), "{said}");
    let said = text(&session, "trigger-elicitation-request", "{}").await;
    assert!(said.contains("Ada"), "{said}");
    let said = text(&session, "get-roots-list", "{}").await;
    assert!(said.contains("file:///work"), "{said}");

    text(&session, "toggle-simulated-logging", "{}").await;
    let ServerEvent::Log(message) = handlers.wait_for_event(|it| matches!(it, ServerEvent::Log(_))).await
    else {
        unreachable!()
    };
    assert!(message.level.is_some() && message.data.is_some(), "{message:?}");

    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let progress = Arc::new(move |it: Progress| seen.lock().unwrap().push(it.progress));
    let mut call = options();
    call.context.progress = Some(progress);
    let arguments = json(r#"{"duration":1,"steps":3}"#);
    session.call_tool("trigger-long-running-operation", &arguments, call).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);
    handlers
        .wait_for_event(|it| matches!(it, ServerEvent::Progress { progress, .. } if progress.progress == 3.0))
        .await;

    let uri = "demo://resource/dynamic/text/1";
    session.subscribe_resource(uri).await.unwrap();
    text(&session, "toggle-subscriber-updates", "{}").await;
    handlers
        .wait_for_event(|it| matches!(it, ServerEvent::ResourceUpdated { uri: updated } if updated == uri))
        .await;
    session.unsubscribe_resource(uri).await.unwrap();
    session.close(Duration::from_secs(2)).await;
}

/// The demo server asks a user and a model; in the modern era its questions are results.
async fn check(endpoint: Endpoint, eras: Eras) {
    let handlers = Arc::new(RecordingHandlers::default());
    let session = connect(endpoint, eras, &handlers).await;
    let era = session.era();
    let said = text(&session, "ask", r#"{"question":"colour?"}"#).await;
    assert_eq!(said, "the user answers: green", "{era:?}");
    let said = text(&session, "ask", r#"{"question":"hm?","of":"model"}"#).await;
    assert_eq!(said, "the model test-model answers: at most 200 tokens", "{era:?}");
    let said = text(&session, "log", "{}").await;
    assert_eq!(said, "sent 8 of 8 log messages", "{era:?}");
    for level in LogLevel::ALL {
        handlers
            .wait_for_event(|it| matches!(it, ServerEvent::Log(message) if message.level == Some(level)))
            .await;
    }
    let summary = json(r#"{"text":"a long text"}"#);
    let prompt = session.get_prompt("summarise", &summary, options()).await.unwrap().value;
    assert!(prompt.messages[0].content.text().unwrap().ends_with("a long text"));
    let read = session.read_resource("demo://numbers/3", options()).await.unwrap();
    assert_eq!(read.contents[0].body, ResourceBody::Text("1\n2\n3\n".to_owned()));
    let missing = session.read_resource("demo://nothing", options()).await.unwrap_err();
    assert!(matches!(missing, CallError::ResourceNotFound(_)), "{era:?}: {missing}");
    assert_eq!(session.list_resource_templates().await.unwrap().items.len(), 1);
    text(&session, "change_tools", r#"{"name":"fresh"}"#).await;
    handlers.wait_for_event(|it| *it == ServerEvent::ToolsChanged).await;
    assert!(session.list_tools().await.unwrap().items.iter().any(|item| &*item.name == "fresh"));
    session.close(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn the_demo_server_sends_requests_in_both_eras_over_stdio() {
    check(demo(), Eras::Legacy).await;
    check(demo(), Eras::Modern).await;
}

#[tokio::test]
async fn the_demo_server_sends_requests_in_both_eras_over_http() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let mut server =
        Run::new(folder.path(), folder.path(), &["demo-server", "--http", "127.0.0.1:0"]).start();
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let url: &str = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    check(Endpoint::Http(UrlEndpoint::new(url.parse().unwrap())), Eras::Legacy).await;
    check(Endpoint::Http(UrlEndpoint::new(url.parse().unwrap())), Eras::Modern).await;
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test]
async fn an_unhandled_request_is_named_in_the_error() {
    let dial = dialer(&demo(), &DialOptions::default()).unwrap();
    let mut options = SessionOptions::default();
    options.eras = Eras::Modern;
    let session = Session::connect(dial, options).await.unwrap();
    let error = session.call_tool("ask", &json(r#"{"question":"?"}"#), self::options()).await.unwrap_err();
    let help = error.help().unwrap();
    assert!(help.starts_with("the server needs elicitation from its client"), "{error}: {help}");
    session.close(Duration::from_secs(2)).await;
}
