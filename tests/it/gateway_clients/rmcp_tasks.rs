//! Tasks of a server on rmcp, through `call` and `serve`.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mcp_host_model::{Endpoint, ErrorKind, RawJson, RpcError, Task, TaskStatus, UrlEndpoint};
use mcp_host_transport::{
    CallError, CallOptions, DialOptions, ElicitMode, ElicitRequest, ElicitResult, Elicitation, Eras,
    Handlers, Session, SessionOptions, StartedCall, dialer,
};
use mcp_testkit::program::{Run, build_binary};
use serde_json::json;

use super::Gateway;

/// A configuration with the server `rmcp`.
fn configuration(folder: &Path) -> String {
    let server = build_binary("mcp-tests", "rmcp_tasks");
    let path = folder.join("mcp.json");
    std::fs::write(&path, json!({"mcpServers": {"rmcp": {"command": server}}}).to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn call_waits_for_a_task_of_rmcp() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path());
    let call = |arguments: &[&str]| {
        Run::new(folder.path(), folder.path(), &[&["call", &file], arguments].concat()).finish()
    };
    let sum = call(&["rmcp__sum", "a=40", "b=2"]);
    assert_eq!((sum.code, sum.stdout.as_str()), (Some(0), "42\n"), "{sum:?}");
    let failed = call(&["rmcp__fail"]);
    assert!(failed.code != Some(0) && failed.stderr.contains("the task has no luck"), "{failed:?}");
    // Without a handler for its request the call cannot end otherwise.
    let unanswered = call(&["rmcp__ask"]);
    assert!(unanswered.code != Some(0) && unanswered.stdout.is_empty(), "{unanswered:?}");
}

/// Answers with a number.
struct Answer;

#[async_trait]
impl Elicitation for Answer {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, _: ElicitRequest) -> Result<ElicitResult, RpcError> {
        Ok(ElicitResult::Accept(Some(RawJson::from_value(&json!({"number": 7})).unwrap())))
    }
}

async fn client(gateway: &Gateway, eras: Eras) -> Session {
    let endpoint = UrlEndpoint::new(gateway.url().parse().unwrap());
    let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(Arc::new(Answer));
    Session::connect(dial, {
        let mut options = SessionOptions::default();
        options.eras = eras;
        options.handlers = handlers;
        options
    })
    .await
    .unwrap()
}

async fn start(client: &Session, tool: &str) -> Task {
    let arguments = RawJson::from_value(&json!({"a": 40, "b": 2})).unwrap();
    match client.start_tool_call(tool, &arguments, CallOptions::default()).await.unwrap().value {
        StartedCall::Task(task) => task,
        StartedCall::Complete(result) => panic!("{}", result.text()),
    }
}

#[tokio::test]
async fn clients_of_serve_use_tasks_of_rmcp() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), &configuration(folder.path()), &[]);
    let options = CallOptions::default();
    let modern = client(&gateway, Eras::Modern).await;

    for (tool, text) in [("rmcp__sum", "42"), ("rmcp__ask", "7")] {
        let task = start(&modern, tool).await;
        assert_eq!(modern.task_result(&task, &options).await.unwrap().value.text(), text);
        assert_eq!(modern.get_task(&task.id, &options).await.unwrap().status, TaskStatus::Completed);
    }
    let failed = start(&modern, "rmcp__fail").await;
    let error = modern.task_result(&failed, &options).await.unwrap_err();
    assert!(matches!(&error, CallError::Rpc(it) if it.message.contains("no luck")), "{error}");
    let held = start(&modern, "rmcp__hold").await;
    assert_eq!(modern.get_task(&held.id, &options).await.unwrap().status, TaskStatus::Working);
    modern.cancel_task(&held.id, &options).await.unwrap();
    let cancelled = modern.task_result(&held, &options).await.unwrap_err();
    assert!(matches!(cancelled, CallError::TaskCancelled(_)), "{cancelled}");
    let unknown = modern.get_task(&held.id[1..], &options).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Protocol, "{unknown}");

    // A client of the other era has no tasks of this server, and receives the result.
    let legacy = client(&gateway, Eras::Legacy).await;
    let arguments = RawJson::from_value(&json!({"a": 1, "b": 2})).unwrap();
    let sum = legacy.call_tool("rmcp__sum", &arguments, options).await.unwrap().value;
    assert_eq!(sum.text(), "3");
}
