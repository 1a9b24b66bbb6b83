//! Tasks of servers, through the gateway, in each pair of eras.

use std::sync::Arc;

use mcp_gateway::{GatewayOptions, HttpOptions, TaskKey, Tokens};
use mcp_model::{Endpoint, RawJson, Secret, Task, TaskStatus, UrlEndpoint};
use mcp_transport::{
    CallError, CallOptions, DialOptions, Eras, Session, SessionOptions, StartedCall, TaskRequest, dialer,
};
use serde_json::json;

use crate::support::{TestGateway, server};

const ANN: &str = "ann-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

/// The results of the scripted servers that create a task, by their era.
const OF_OLD: &str = r#"{"task":{"taskId":"t 1","status":"working","pollInterval":1}}"#;
const OF_NEW: &str = r#"{"resultType":"task","taskId":"t 1","status":"working","pollIntervalMs":1}"#;

async fn gateway(task_key: &TaskKey) -> TestGateway {
    let tokens = Tokens::read(&Secret::new(format!("{ANN} name=ann\n{BOB} name=bob"))).unwrap();
    let options = GatewayOptions { task_key: task_key.clone(), ..GatewayOptions::default() };
    let servers = ["demo", "old", "new"].map(server).to_vec();
    TestGateway::with_servers(servers, options, HttpOptions { tokens, ..HttpOptions::default() }).await
}

async fn client(gateway: &TestGateway, token: &str, eras: Eras) -> Session {
    let mut endpoint = UrlEndpoint::new(format!("http://{}/mcp", gateway.address).parse().unwrap());
    endpoint.headers.push(("Authorization".to_owned(), format!("Bearer {token}").as_str().into()));
    let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
    Session::connect(dial, SessionOptions { eras, ..SessionOptions::default() }).await.unwrap()
}

async fn start(client: &Session, tool: &str, result: &str, asks: bool) -> StartedCall<String> {
    let arguments = RawJson::from_value(&json!({"result": result})).unwrap();
    let options = CallOptions { task: asks.then(TaskRequest::default), ..CallOptions::default() };
    match client.start_tool_call(tool, &arguments, options).await.unwrap().value {
        StartedCall::Complete(result) => StartedCall::Complete(result.text()),
        StartedCall::Task(task) => StartedCall::Task(task),
    }
}

async fn started_task(client: &Session, tool: &str, result: &str) -> Task {
    match start(client, tool, result, true).await {
        StartedCall::Task(task) => task,
        StartedCall::Complete(text) => panic!("{text}"),
    }
}

#[tokio::test]
async fn client_of_the_servers_era_handles_the_task_itself() {
    let key = TaskKey::random();
    let gateway = gateway(&key).await;
    let options = CallOptions::default();
    for (eras, tool, result) in [(Eras::Legacy, "old__say", OF_OLD), (Eras::Modern, "new__say", OF_NEW)] {
        let ann = client(&gateway, ANN, eras).await;
        assert!(ann.supports_tasks());
        let task = started_task(&ann, tool, result).await;
        assert!(!task.id.contains("t 1"), "{}", task.id);
        let state = ann.get_task(&task.id, &options).await.unwrap();
        assert_eq!((state.status, &state.id), (TaskStatus::Completed, &task.id));
        let result = ann.task_result_raw(&task, &options).await.unwrap().value;
        assert!(result.as_str().contains("late") && !result.as_str().contains("t 1"), "{result:?}");
        ann.cancel_task(&task.id, &options).await.unwrap();
        let last = gateway.servers.scripted_calls.lock().unwrap().last().unwrap().clone();
        assert_eq!(last["taskId"], "t 1");
    }
    gateway.end().await;
}

#[tokio::test]
async fn client_of_the_other_era_or_without_tasks_receives_the_result() {
    let key = TaskKey::random();
    let gateway = gateway(&key).await;
    let late = StartedCall::Complete("late".to_owned());
    for (eras, tool, result, asks) in [
        (Eras::Modern, "old__work", OF_OLD, false),
        (Eras::Legacy, "old__work", OF_OLD, false),
        (Eras::Legacy, "new__say", OF_NEW, false),
    ] {
        let ann = client(&gateway, ANN, eras).await;
        assert_eq!(start(&ann, tool, result, asks).await, late, "{eras:?} {tool}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn deeply_nested_result_of_a_task_is_forwarded() {
    let gateway = gateway(&TaskKey::random()).await;
    let (nested, closed) = (r#"{"task":"#.repeat(5_000), "}".repeat(5_000));
    let result = format!(r#"{{"content":[{{"type":"text","text":"deep"}}],"_meta":{nested}0{closed}}}"#);
    let ann = client(&gateway, ANN, Eras::Legacy).await;
    assert_eq!(start(&ann, "old__say", &result, true).await, StartedCall::Complete("deep".to_owned()));
    gateway.end().await;
}

#[tokio::test]
async fn task_is_available_to_its_client_only_and_after_a_restart() {
    let key = TaskKey::random();
    let options = CallOptions::default();
    let first = gateway(&key).await;
    let mut tasks = Vec::new();
    for (eras, tool, result) in [(Eras::Legacy, "old__say", OF_OLD), (Eras::Modern, "new__say", OF_NEW)] {
        let ann = client(&first, ANN, eras).await;
        tasks.push((eras, started_task(&ann, tool, result).await));
    }
    first.end().await;

    let second = gateway(&key).await;
    let other_key = gateway(&TaskKey::random()).await;
    for (eras, task) in &tasks {
        let ann = client(&second, ANN, *eras).await;
        assert!(ann.task_result_raw(task, &options).await.unwrap().value.as_str().contains("late"));
        let bob = client(&second, BOB, *eras).await;
        let elsewhere = client(&other_key, ANN, *eras).await;
        let other_era = if *eras == Eras::Legacy { Eras::Modern } else { Eras::Legacy };
        let other_era = client(&second, ANN, other_era).await;
        let before = second.servers.scripted_calls.lock().unwrap().len();
        for session in [&bob, &elsewhere, &other_era] {
            let outcomes = [
                session.get_task(&task.id, &options).await.map(drop),
                session.cancel_task(&task.id, &options).await,
            ];
            for outcome in outcomes {
                let error = outcome.unwrap_err();
                assert!(matches!(&error, CallError::Rpc(it) if it.code == -32602), "{error}");
            }
        }
        assert_eq!(second.servers.scripted_calls.lock().unwrap().len(), before);
    }
    let ann = Arc::new(client(&second, ANN, Eras::Modern).await);
    assert!(ann.get_task("t 1", &options).await.is_err());
    drop(ann);
    second.end().await;
    other_key.end().await;
}
