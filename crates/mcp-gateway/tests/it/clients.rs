//! All features through the gateway, with our own client, in both eras.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mcp_host_model::{Era, RawJson, RpcError};
use mcp_host_transport::{
    CallOptions, CompletionArgument, CompletionReference, ElicitMode, ElicitRequest, ElicitResult,
    Elicitation, Eras, Handlers, Listener, ServerEvent, SessionOptions,
};

use crate::support::TestGateway;

/// The handlers of a client: it answers each form with `blue` and records the events.
struct FormClient(Mutex<Vec<ServerEvent>>);

#[async_trait]
impl Elicitation for FormClient {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        assert!(!request.message.is_empty());
        let answer = RawJson::parse(r#"{"answer":"blue"}"#.into()).unwrap();
        Ok(ElicitResult::Accept(Some(answer)))
    }
}

#[async_trait]
impl Listener for FormClient {
    async fn on_event(&self, event: ServerEvent) {
        self.0.lock().unwrap().push(event);
    }
}

fn json(text: &'static str) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}

/// Uses every feature as a client of these eras, which negotiates `era`.
async fn check(eras: Eras, era: Era) {
    let fixture = TestGateway::new().await;
    let form_client = Arc::new(FormClient(Mutex::default()));
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(Arc::clone(&form_client) as _);
    handlers.listener = Some(Arc::clone(&form_client) as _);
    let session = fixture
        .client("/mcp", eras, {
            let mut options = SessionOptions::default();
            options.handlers = handlers;
            options
        })
        .await;
    assert_eq!(session.era(), era);
    assert_eq!(session.server().name, "mcp-host");

    let tools = session.list_tools().await.unwrap().items;
    let names: Vec<&str> = tools.iter().map(|item| &*item.name).collect();
    assert!(names.contains(&"demo__echo") && names.contains(&"own__echo"), "{names:?}");
    let call =
        async |name: &str, arguments, options| session.call_tool(name, &json(arguments), options).await;
    let echo = call("demo__echo", r#"{"text":"hé\n"}"#, CallOptions::default()).await.unwrap();
    assert_eq!(echo.value.text(), "hé\n");
    let sum = call("demo__add", r#"{"a":2,"b":3}"#, CallOptions::default()).await.unwrap();
    assert_eq!(sum.value.structured.unwrap().as_str(), r#"{"sum":5}"#);
    let mixed = call("demo__mixed", "{}", CallOptions::default()).await.unwrap();
    assert_eq!(mixed.value.content.len(), 5);
    let failed = call("demo__fail", r#"{"message":"no"}"#, CallOptions::default()).await.unwrap();
    assert!(failed.value.is_error);

    let reported = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&reported);
    let progress: mcp_host_transport::OnProgress =
        Arc::new(move |it| reports.lock().unwrap().push(it.progress));
    let mut options = CallOptions::default();
    options.context.progress = Some(progress);
    call("demo__sleep", r#"{"ms":20,"steps":2}"#, options).await.unwrap();
    assert!(!reported.lock().unwrap().is_empty());

    let wrong = call("demo__add", r#"{"a":"x"}"#, CallOptions::default()).await.unwrap();
    assert!(wrong.value.is_error && wrong.value.text().contains("/a"), "{}", wrong.value.text());
    let unknown = call("demo__ecko", "{}", CallOptions::default()).await.unwrap_err();
    assert!(unknown.to_string().contains("did you mean 'demo__echo'?"), "{unknown}");

    let asked = call("demo__ask", r#"{"question":"colour?"}"#, CallOptions::default()).await.unwrap();
    assert!(asked.value.text().contains("blue"), "{}", asked.value.text());

    let prompts = session.list_prompts().await.unwrap().items;
    let prompt = prompts.iter().find(|item| item.name.starts_with("demo__") && item.arguments().len() == 1);
    let prompt = prompt.unwrap_or(&prompts[0]);
    let arguments: serde_json::Map<_, _> =
        prompt.arguments().into_iter().map(|item| (item.name, "x".into())).collect();
    let arguments = RawJson::from_value(&arguments).unwrap();
    assert!(
        !session
            .get_prompt(&prompt.name, &arguments, CallOptions::default())
            .await
            .unwrap()
            .value
            .messages
            .is_empty()
    );

    let resources = session.list_resources().await.unwrap().items;
    assert_eq!(resources.iter().filter(|item| &*item.uri == "demo://greeting").count(), 1);
    let read = session.read_resource("demo://numbers/3", CallOptions::default()).await.unwrap();
    assert_eq!(read.contents.len(), 1);
    session.read_resource("demo://nowhere", CallOptions::default()).await.unwrap_err();
    let templates = session.list_resource_templates().await.unwrap().items;
    let reference = CompletionReference::ResourceTemplate(templates[0].uri_template.to_string());
    let argument = CompletionArgument::new("count", String::new());
    // Only the request matters; the demo server decides about completion.
    drop(session.complete(&reference, &argument, CallOptions::default()).await);

    call("demo__log", "{}", CallOptions::default()).await.unwrap();
    call("demo__change_tools", r#"{"name":"later"}"#, CallOptions::default()).await.unwrap();
    let mut changes = session.list_changes();
    changes.wait_for(|it| it.tools > 0).await.unwrap();
    let tools = session.list_tools().await.unwrap().items;
    assert!(tools.iter().any(|item| &*item.name == "demo__later"));

    session.close(std::time::Duration::from_secs(5)).await;
    fixture.end().await;
}

#[tokio::test]
async fn all_features_work_with_sessions() {
    check(Eras::Legacy, Era::Legacy).await;
}

#[tokio::test]
async fn all_features_work_without_sessions() {
    check(Eras::Modern, Era::Modern).await;
}
