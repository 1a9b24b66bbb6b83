//! Tasks: tool calls whose result is fetched later, in both forms.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_host_model::{RawJson, TaskStatus};
use mcp_host_transport::{
    CallError, CallOptions, DEFAULT_TASK_TIMEOUT, ElicitMode, Handlers, Session, SessionOptions, StartedCall,
    TaskRequest,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::handlers::User;
use crate::in_memory::{Reply, Server, answer, refuse};

/// A server of tasks. `states` are the states that `tasks/get` returns one after another; the last one stays.
fn server(is_modern: bool, states: Vec<Value>) -> Server {
    let polls = AtomicUsize::new(0);
    let rest = move |message: &Value| -> Vec<Reply> {
        match message["method"].as_str() {
            Some("tools/call") if is_modern => {
                let mut result = json!({"taskId": "id 1", "status": "working", "ttlMs": 60000});
                result["resultType"] = json!("task");
                answer(message, result)
            }
            Some("tools/call") if message["params"]["task"].is_object() => {
                answer(message, json!({"task": {"taskId": "id 1", "status": "working", "ttl": 60000}}))
            }
            Some("tools/call") => refuse(message, -32601, Value::Null),
            Some("tasks/get") => {
                let next = polls.fetch_add(1, Ordering::Relaxed).min(states.len() - 1);
                let mut result = states[next].clone();
                result["taskId"] = json!("id 1");
                answer(message, result)
            }
            Some("tasks/result") => {
                let mut result = json!({"content": [{"type": "text", "text": "late"}]});
                result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "id 1"}});
                answer(message, result)
            }
            Some("tasks/cancel") => {
                answer(message, json!({"resultType": "complete", "taskId": "id 1", "status": "cancelled"}))
            }
            Some("tasks/update") => answer(message, json!({"resultType": "complete"})),
            _ => Vec::new(),
        }
    };
    match is_modern {
        true => {
            Server::modern(json!({"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}), rest)
        }
        false => {
            let tasks = json!({"requests": {"tools": {"call": {}}}, "cancel": {}});
            Server::legacy(json!({"tools": {}, "tasks": tasks}), rest)
        }
    }
}

fn working(message: &str) -> Value {
    json!({"status": "working", "statusMessage": message})
}

/// The end of a task, in the form of an era.
fn completed(is_modern: bool) -> Value {
    match is_modern {
        true => json!({"status": "completed", "result": {"content": [{"type": "text", "text": "late"}]}}),
        false => json!({"status": "completed"}),
    }
}

fn requests_task() -> CallOptions {
    let mut options = CallOptions::default();
    options.task = Some(TaskRequest::default());
    options
}

async fn call(session: &Session, options: CallOptions) -> Result<String, CallError> {
    let arguments = RawJson::empty_object();
    session.call_tool("t", &arguments, options).await.map(|it| it.value.text())
}

#[tokio::test(start_paused = true)]
async fn call_that_becomes_a_task_is_followed_to_its_result() {
    for is_modern in [false, true] {
        let server = server(
            is_modern,
            vec![working("half"), working("half"), working("almost"), completed(is_modern)],
        );
        let session = server.connect(SessionOptions::default()).await;
        assert!(session.supports_tasks());
        let messages = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&messages);
        let mut options = requests_task();
        options.context.progress = Some(Arc::new(move |it| record.lock().extend(it.message)));
        // The timeout of the call does not limit the task.
        options.timeout = Some(Duration::from_millis(500));
        assert_eq!(call(&session, options).await.unwrap(), "late");
        assert_eq!(*messages.lock(), ["half", "almost"]);
        let methods = server.summary();
        let end = if is_modern { "tasks/get" } else { "tasks/get tasks/result" };
        assert!(methods.ends_with(&format!("tools/call tasks/get tasks/get tasks/get {end}")), "{methods}");
    }
}

#[tokio::test(start_paused = true)]
async fn legacy_server_makes_a_task_only_on_request() {
    let server = server(false, vec![completed(false)]);
    let session = server.connect(SessionOptions::default()).await;
    assert!(matches!(call(&session, CallOptions::default()).await, Err(CallError::Rpc(_))));
    let ttl = Some(Duration::from_secs(7));
    let mut options = CallOptions::default();
    options.task = Some({
        let mut request = TaskRequest::default();
        request.ttl = ttl;
        request
    });
    assert_eq!(call(&session, options).await.unwrap(), "late");
    let received = server.received();
    let requests: Vec<&Value> =
        received.iter().filter(|it| it["method"] == "tools/call").map(|it| &it["params"]["task"]).collect();
    assert_eq!(requests, [&Value::Null, &json!({"ttl": 7000})]);
}

#[tokio::test(start_paused = true)]
async fn started_task_can_be_read_awaited_and_cancelled() {
    for is_modern in [false, true] {
        let server = server(is_modern, vec![working("x"), completed(is_modern)]);
        let session = server.connect(SessionOptions::default()).await;
        let started = session.start_tool_call("t", &RawJson::empty_object(), requests_task()).await.unwrap();
        let StartedCall::Task(task) = started.value else { panic!("{started:?}") };
        assert_eq!((task.id.as_str(), task.ttl), ("id 1", Some(Duration::from_secs(60))));
        let options = CallOptions::default();
        let state = session.get_task(&task.id, &options).await.unwrap();
        assert_eq!((state.status, state.message.as_deref()), (TaskStatus::Working, Some("x")));
        // Waiting that is given up leaves the task alone.
        let waiting = session.task_result(&task, &options);
        tokio::time::timeout(Duration::from_millis(1), waiting).await.unwrap_err();
        assert_eq!(session.task_result(&task, &options).await.unwrap().value.text(), "late");
        assert!(!server.summary().contains("cancel"));
        session.cancel_task(&task.id, &options).await.unwrap();
        assert!(server.summary().ends_with("tasks/cancel"));
    }
}

#[tokio::test(start_paused = true)]
async fn task_is_cancelled_with_its_caller_and_at_its_deadline() {
    for is_modern in [false, true] {
        let server = server(is_modern, vec![working("x")]);
        let session = server.connect(SessionOptions::default()).await;
        let waiting = call(&session, requests_task());
        tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_err();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(server.summary().ends_with("tasks/get tasks/cancel"), "{}", server.summary());

        let error = call(&session, requests_task()).await.unwrap_err();
        let limit = DEFAULT_TASK_TIMEOUT.as_secs();
        assert_eq!(error.to_string(), format!("no response within {limit} s"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(server.summary().matches("tasks/cancel").count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_tasks_are_errors() {
    let error = json!({"code": -32000, "message": "quota"});
    let result = json!({"content": [], "isError": true});
    for (is_modern, state, want) in [
        (true, json!({"status": "failed", "error": error}), "the server responded with an error: quota"),
        (true, json!({"status": "completed"}), "a completed task without a result"),
        (true, json!({"status": "completed", "result": result}), ""),
        (true, json!({"status": "cancelled"}), "the task was cancelled"),
        (false, json!({"status": "cancelled", "statusMessage": "by a"}), "the task was cancelled: by a"),
        (true, json!({"status": "lost"}), "the server's response is invalid: unknown variant `lost`"),
    ] {
        let server = server(is_modern, vec![state.clone()]);
        let session = server.connect(SessionOptions::default()).await;
        let text = call(&session, requests_task()).await.unwrap_or_else(|it| it.to_string());
        assert!(text.contains(want), "{state}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_of_a_task_is_provided_once() {
    let question = |message: &str| {
        let params = json!({"message": message, "requestedSchema": {"type": "object"}});
        json!({"method": "elicitation/create", "params": params})
    };
    let first = json!({"status": "input_required", "inputRequests": {"a": question("1")}});
    let second =
        json!({"status": "input_required", "inputRequests": {"a": question("1"), "b": question("2")}});
    let server = server(true, vec![first.clone(), first, second, completed(true)]);
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(Arc::new(User(&[ElicitMode::Form])));
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.handlers = handlers;
            options
        })
        .await;
    assert_eq!(call(&session, CallOptions::default()).await.unwrap(), "late");
    let received = server.received();
    let updates = received.iter().filter(|it| it["method"] == "tasks/update");
    let updates: Vec<&Value> = updates.map(|it| &it["params"]["inputResponses"]).collect();
    let said = |text: &str| json!({"action": "accept", "content": {"said": text}});
    assert_eq!(updates, [&json!({"a": said("1")}), &json!({"b": said("2")})]);
    let declared = &received.iter().find(|it| it["method"] == "tools/call").unwrap()["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{declared}");
    assert!(declared["elicitation"].is_object(), "{declared}");
}

#[tokio::test(start_paused = true)]
async fn task_that_needs_unavailable_input_is_cancelled() {
    let requests = json!({"a": {"method": "roots/list"}});
    let server = server(true, vec![json!({"status": "input_required", "inputRequests": requests})]);
    let session = server.connect(SessionOptions::default()).await;
    let error = call(&session, CallOptions::default()).await.unwrap_err();
    assert!(matches!(error, CallError::InputRequired(_)), "{error}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(server.summary().ends_with("tasks/get tasks/cancel"), "{}", server.summary());
}

#[tokio::test(start_paused = true)]
async fn silent_server_does_not_extend_the_deadline_of_a_task() {
    for is_modern in [false, true] {
        let server = server(is_modern, vec![working("x")]);
        let session = server.connect(SessionOptions::default()).await;
        let started = session.start_tool_call("t", &RawJson::empty_object(), requests_task()).await.unwrap();
        let StartedCall::Task(task) = started.value else { panic!("{started:?}") };
        // This server answers no request about a task.
        let silent = match is_modern {
            true => {
                Server::modern(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}), |_| Vec::new())
            }
            false => Server::legacy(json!({}), |_| Vec::new()),
        };
        let session = silent.connect(SessionOptions::default()).await;
        let options = CallOptions::with_timeout(Duration::from_secs(2));
        let begun = tokio::time::Instant::now();
        let error = session.task_result(&task, &options).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut(_)), "{error}");
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }
}
