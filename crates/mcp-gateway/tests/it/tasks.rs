//! Tasks of servers, through the gateway, in each pair of eras.

use std::sync::Arc;

use mcp_host_gateway::{GatewayOptions, HttpOptions, TaskKey, Tokens};
use mcp_host_model::{Endpoint, RawJson, Secret, Task, TaskStatus, UrlEndpoint, code};
use mcp_host_transport::{
    CallError, CallOptions, DialOptions, Eras, Session, SessionOptions, StartedCall, TaskRequest, dialer,
};
use serde_json::{Value, json};

use crate::scripted_server::SLOW_POLLS;
use crate::stream_resumption::Stream;
use crate::support::{Reply, TestGateway, modern, server};

const ANN: &str = "ann-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

/// The results with which the scripted servers `old` and `new` create a task.
const LEGACY_TASK: &str = r#"{"task":{"taskId":"t 1","status":"working","pollInterval":1}}"#;
const MODERN_TASK: &str = r#"{"resultType":"task","taskId":"t 1","status":"working","pollIntervalMs":1}"#;

async fn gateway(task_key: &TaskKey) -> TestGateway {
    let tokens = Tokens::read(&Secret::new(format!("{ANN} name=ann\n{BOB} name=bob"))).unwrap();
    let mut options = GatewayOptions::default();
    options.task_key = task_key.clone();
    let servers = ["demo", "old", "new"].map(server).to_vec();
    TestGateway::with_servers(servers, options, {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await
}

async fn client(gateway: &TestGateway, token: &str, eras: Eras) -> Session {
    let mut endpoint = UrlEndpoint::new(format!("http://{}/mcp", gateway.address).parse().unwrap());
    endpoint.headers.push(("Authorization".to_owned(), format!("Bearer {token}").as_str().into()));
    let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
    Session::connect(dial, {
        let mut options = SessionOptions::default();
        options.eras = eras;
        options
    })
    .await
    .unwrap()
}

async fn start_call(client: &Session, tool: &str, result: &str, requests_task: bool) -> StartedCall<String> {
    let arguments = RawJson::from_value(&json!({"result": result})).unwrap();
    let mut options = CallOptions::default();
    options.task = requests_task.then(TaskRequest::default);
    match client.start_tool_call(tool, &arguments, options).await.unwrap().value {
        StartedCall::Complete(result) => StartedCall::Complete(result.text()),
        StartedCall::Task(task) => StartedCall::Task(task),
    }
}

async fn start_task(client: &Session, tool: &str, result: &str) -> Task {
    match start_call(client, tool, result, true).await {
        StartedCall::Task(task) => task,
        StartedCall::Complete(text) => panic!("{text}"),
    }
}

#[tokio::test]
async fn client_of_the_servers_era_handles_the_task_itself() {
    let key = TaskKey::random();
    let gateway = gateway(&key).await;
    let options = CallOptions::default();
    for (eras, tool, result) in
        [(Eras::Legacy, "old__say", LEGACY_TASK), (Eras::Modern, "new__say", MODERN_TASK)]
    {
        let ann = client(&gateway, ANN, eras).await;
        assert!(ann.supports_tasks());
        let task = start_task(&ann, tool, result).await;
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
    for (eras, tool, result, requests_task) in [
        (Eras::Modern, "old__work", LEGACY_TASK, false),
        (Eras::Legacy, "old__work", LEGACY_TASK, false),
        (Eras::Legacy, "new__say", MODERN_TASK, false),
    ] {
        let ann = client(&gateway, ANN, eras).await;
        assert_eq!(start_call(&ann, tool, result, requests_task).await, late, "{eras:?} {tool}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn only_a_client_with_tasks_of_the_servers_era_receives_a_task() {
    let gateway = gateway(&TaskKey::random()).await;
    let token = format!("Bearer {ANN}");
    for has_tasks in [false, true] {
        let session = gateway.initialize(&[("authorization", &token)]).await;
        for (tool, argument, text) in [
            ("old__work", LEGACY_TASK, "late"),
            ("new__work", MODERN_TASK, "late"),
            ("demo__echo", "plain", "plain"),
        ] {
            let mut arguments = json!({"result": argument});
            if tool == "demo__echo" {
                arguments = json!({"text": argument});
            }
            let mut legacy = json!({"name": tool, "arguments": arguments});
            if has_tasks {
                legacy["task"] = json!({});
            }
            let body =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": legacy}).to_string();
            let headers = [("authorization", token.as_str()), ("mcp-session-id", &session)];
            let old_client = gateway.post(&headers, &body).await.json();

            let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
            let (mut headers, mut body) = modern("tools/call", Some(tool), &params);
            headers.push(("authorization", token.clone()));
            if has_tasks {
                let declared = r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#;
                body = body.replace("clientCapabilities\":{", &format!("clientCapabilities\":{{{declared}"));
            }
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
            let new_client = gateway.post(&headers, &body).await.json();

            for (reply, server) in [(old_client, "old__work"), (new_client, "new__work")] {
                let result = &reply["result"];
                let is_task = result["task"]["taskId"].is_string() || result["taskId"].is_string();
                assert_eq!(is_task, has_tasks && tool == server, "{tool} {has_tasks}: {reply}");
                assert_eq!(result["content"][0]["text"] == text, !is_task, "{tool} {has_tasks}: {reply}");
            }
        }
    }
    // The tools must run as tasks. A server of 2025-11-25 receives this as a parameter.
    let calls = gateway.servers.scripted_calls.lock().unwrap().clone();
    let calls: Vec<_> = calls.iter().filter(|it| it["name"] == "work").collect();
    assert_eq!(calls.len(), 8);
    for call in calls {
        let is_old = call["arguments"]["result"] == LEGACY_TASK;
        assert_eq!(call["task"].is_object(), is_old, "{call}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn status_of_a_task_is_sent_to_the_session_that_knows_it() {
    let gateway = gateway(&TaskKey::random()).await;
    let token = format!("Bearer {ANN}");
    let mut sessions = Vec::new();
    for task in ["t 1", "t 2"] {
        let session = gateway.initialize(&[("authorization", &token)]).await;
        let mut stream = Stream::open(&gateway, &session, &[("authorization", &token)]).await;
        stream.read_until("id: 1-0").await;
        let created = json!({"task": {"taskId": task, "status": "working"}}).to_string();
        let reply = call_old(&gateway, &token, &session, json!({"result": created})).await;
        let id = reply.json()["result"]["task"]["taskId"].as_str().unwrap().to_owned();
        sessions.push((session, stream, id));
    }
    // The order shows that what a session did not receive was not delayed.
    let notify: Vec<_> = [("t 3", "one"), ("t 2", "two"), ("t 1", "three"), ("t 2", "four")]
        .into_iter()
        .map(|(task, message)| json!({"taskId": task, "status": "working", "statusMessage": message}))
        .collect();
    let reply = call_old(&gateway, &token, &sessions[0].0, json!({"notify": notify})).await;
    assert!(!reply.body.contains("tasks/status"), "{reply:?}");
    for ((_, stream, id), messages) in sessions.iter_mut().zip([&["three"][..], &["two", "four"]]) {
        stream.read_until(messages.last().unwrap()).await;
        let texts = stream.text.lines().filter_map(|line| line.strip_prefix("data: {"));
        let received: Vec<Value> =
            texts.map(|text| serde_json::from_str(&format!("{{{text}")).unwrap()).collect();
        let expected: Vec<Value> = messages
            .iter()
            .map(|message| {
                let params = json!({"taskId": id, "status": "working", "statusMessage": message});
                json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params})
            })
            .collect();
        assert_eq!(received, expected);
    }
    drop(sessions);
    gateway.end().await;
}

/// A `subscriptions/listen` request for tasks: its headers and body.
fn listen(token: &str, declares_tasks: bool, ids: &[&str]) -> (Vec<(&'static str, String)>, String) {
    let params = format!(r#""notifications":{}"#, json!({"taskIds": ids, "toolsListChanged": true}));
    let (mut headers, body) = modern("subscriptions/listen", None, &params);
    headers.push(("authorization", token.to_owned()));
    let declared = r#"clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}"#;
    (headers, if declares_tasks { body.replace("clientCapabilities\":{", declared) } else { body })
}

/// The messages of a stream.
fn messages(stream: &Stream) -> Vec<Value> {
    let lines = stream.text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[tokio::test]
async fn listening_client_gets_each_state_of_its_own_tasks() {
    let gateway = gateway(&TaskKey::random()).await;
    let (ann, bob) = (client(&gateway, ANN, Eras::Modern).await, client(&gateway, BOB, Eras::Modern).await);
    let slow = MODERN_TASK.replace("t 1", "t slow");
    let slow = start_task(&ann, "new__say", &slow).await.id;
    let other = start_task(&bob, "new__say", MODERN_TASK).await.id;
    let old = start_task(&client(&gateway, ANN, Eras::Legacy).await, "old__say", LEGACY_TASK).await.id;

    let token = format!("Bearer {ANN}");
    let ids = [&*slow, &other, &old, "t slow", "t 1", &slow];
    let (headers, body) = listen(&token, true, &ids);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let mut stream = Stream::from_post(&gateway, &headers, &body).await;
    stream.read_until("completed").await;
    let expected = [
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": 1},
            "notifications": {"toolsListChanged": true, "taskIds": [slow]},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": 1},
            "taskId": slow, "status": "working", "pollIntervalMs": 1,
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": 1},
            "taskId": slow, "status": "completed", "pollIntervalMs": 1,
            "result": {"content": [{"type": "text", "text": "late"}]},
        }}),
    ];
    assert_eq!(messages(&stream), expected);
    let calls = gateway.servers.scripted_calls.lock().unwrap().clone();
    let polled = |id: &str| calls.iter().filter(|it| it["taskId"] == id).count();
    assert_eq!((polled("t slow"), polled("t 1")), (SLOW_POLLS + 1, 0));

    let (headers, body) = listen(&token, false, &[&slow]);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let refused = gateway.post(&headers, &body).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], code::MISSING_CLIENT_CAPABILITY, "{refused:?}");
    drop(stream);
    gateway.end().await;
}

/// Calls `old__say` as a task in a session.
async fn call_old(gateway: &TestGateway, token: &str, session: &str, arguments: Value) -> Reply {
    let params = json!({"name": "old__say", "arguments": arguments, "task": {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    gateway.post(&[("authorization", token), ("mcp-session-id", session)], &body).await
}

#[tokio::test]
async fn deeply_nested_result_of_a_task_is_forwarded() {
    let gateway = gateway(&TaskKey::random()).await;
    let (nested, closed) = (r#"{"task":"#.repeat(5_000), "}".repeat(5_000));
    let result = format!(r#"{{"content":[{{"type":"text","text":"deep"}}],"_meta":{nested}0{closed}}}"#);
    let ann = client(&gateway, ANN, Eras::Legacy).await;
    assert_eq!(start_call(&ann, "old__say", &result, true).await, StartedCall::Complete("deep".to_owned()));
    gateway.end().await;
}

#[tokio::test]
async fn task_is_available_to_its_client_only_and_after_a_restart() {
    let key = TaskKey::random();
    let options = CallOptions::default();
    let first = gateway(&key).await;
    let mut tasks = Vec::new();
    for (eras, tool, result) in
        [(Eras::Legacy, "old__say", LEGACY_TASK), (Eras::Modern, "new__say", MODERN_TASK)]
    {
        let ann = client(&first, ANN, eras).await;
        tasks.push((eras, start_task(&ann, tool, result).await));
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
