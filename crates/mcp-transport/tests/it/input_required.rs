//! Results that require input.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_transport::{CallOptions, ElicitMode, Handlers, SessionOptions};
use serde_json::{Value, json};

use crate::handlers::{Model, OneRoot, User};
use crate::in_memory::{Reply, Server, answer};

fn required(message: &Value, requests: Value, state: Option<&str>) -> Vec<Reply> {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    answer(message, result)
}

fn question(text: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": text, "requestedSchema": {"type": "object"}}})
}

fn done(message: &Value) -> Vec<Reply> {
    answer(message, json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}))
}

fn everything() -> Handlers {
    let mut handlers = Handlers::default();
    handlers.sampling = Some(Arc::new(Model::default()));
    handlers.elicitation = Some(Arc::new(User(&[ElicitMode::Form])));
    handlers.roots = Some(Arc::new(OneRoot));
    handlers
}

/// The outcome of a call to a server with these responses, and the calls that the server received.
async fn call(
    handlers: Handlers,
    rest: impl Fn(&Value) -> Vec<Reply> + Send + Sync + 'static,
) -> (String, Vec<Value>) {
    let server = Server::modern(json!({"tools": {}, "prompts": {}, "resources": {}}), rest);
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.handlers = handlers;
            options
        })
        .await;
    let arguments = RawJson::parse(r#"{"a":1}"#.into()).unwrap();
    let options = CallOptions::with_timeout(Duration::from_secs(30));
    let said = match session.call_tool("t", &arguments, options).await {
        Ok(answer) => answer.value.text(),
        Err(error) => error.to_string(),
    };
    (said, server.received().into_iter().filter(|message| message["method"] == "tools/call").collect())
}

#[tokio::test(start_paused = true)]
async fn input_is_sent_with_a_new_id_and_the_request_state() {
    let state = "opaque \"é\\u0000\" state";
    let (said, calls) = call(everything(), move |message| match message["params"].get("inputResponses") {
        None => {
            let sampling = json!({"method": "sampling/createMessage", "params": {"messages": []}});
            let requests =
                json!({"who": question("who?"), "model": sampling, "where": {"method": "roots/list"}});
            required(message, requests, Some(state))
        }
        Some(_) => done(message),
    })
    .await;
    assert_eq!((said.as_str(), calls.len()), ("done", 2));
    let again = &calls[1]["params"];
    assert_eq!(again["requestState"], state);
    assert_eq!(again["inputResponses"]["who"], json!({"action": "accept", "content": {"said": "who?"}}));
    assert_eq!(again["inputResponses"]["model"]["role"], "assistant");
    assert_eq!(again["inputResponses"]["where"]["roots"][0]["uri"], "file:///work");
    assert_eq!((&again["name"], &again["arguments"]), (&calls[0]["params"]["name"], &json!({"a": 1})));
    assert!(again["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string());
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(calls[0]["params"].get("requestState"), None);
}

#[tokio::test(start_paused = true)]
async fn server_may_require_input_again_without_state() {
    let (said, calls) = call(everything(), |message| {
        let params = &message["params"];
        match (params.get("inputResponses"), params.get("requestState")) {
            (None, None) => required(message, json!({"first": question("1")}), Some("s")),
            (Some(it), Some(_)) if it.get("first").is_some() => {
                required(message, json!({"second": question("2")}), None)
            }
            (Some(it), None) if it.get("second").is_some() => {
                let mut result = json!({"resultType": "input_required", "requestState": "only"});
                result["_meta"] = json!({});
                answer(message, result)
            }
            (None, Some(it)) if it == "only" => done(message),
            other => panic!("{other:?}"),
        }
    })
    .await;
    assert_eq!((said.as_str(), calls.len()), ("done", 4));
}

#[tokio::test(start_paused = true)]
async fn error_without_a_handler_names_the_required_input() {
    let asks = |message: &Value| {
        required(message, json!({"who": question("who?"), "x": {"method": "tasks/list"}}), None)
    };
    let (said, calls) = call(Handlers::default(), asks).await;
    assert_eq!(
        said,
        "the server requires input (elicitation/create as `who`, tasks/list as `x`), and no handler is configured \
        for it"
    );
    assert_eq!(calls.len(), 1);
    let (said, _) = call(everything(), |message| {
        let params = json!({"messages": [], "systemPrompt": "refuse"});
        required(message, json!({"m": {"method": "sampling/createMessage", "params": params}}), None)
    })
    .await;
    assert_eq!(
        said,
        "the server requires input (sampling/createMessage as `m`), and it was refused: Sampling \
         denied by policy. (code -1)"
    );
}

#[tokio::test(start_paused = true)]
async fn rounds_requests_and_time_are_bounded() {
    let (said, calls) =
        call(everything(), |message| required(message, json!({"a": question("?")}), None)).await;
    assert_eq!(said, "the server requested input 10 times without a final result");
    assert_eq!(calls.len(), 11);

    let (said, _) = call(everything(), |message| {
        let requests: serde_json::Map<String, Value> =
            (0..33).map(|it| (it.to_string(), question("?"))).collect();
        required(message, Value::Object(requests), None)
    })
    .await;
    assert_eq!(said, "the server requests 33 inputs at once");

    let begun = tokio::time::Instant::now();
    let (said, _) = call(everything(), |message| {
        let params = json!({"messages": [], "systemPrompt": "wait"});
        required(message, json!({"m": {"method": "sampling/createMessage", "params": params}}), None)
    })
    .await;
    assert_eq!((said.as_str(), begun.elapsed()), ("no response within 30 s", Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn result_without_type_is_complete_and_unknown_type_is_an_error() {
    let (said, _) = call(everything(), |message| {
        answer(message, json!({"content": [{"type": "text", "text": "\"input_required\""}]}))
    })
    .await;
    assert_eq!(said, "\"input_required\"");
    let (said, _) =
        call(everything(), |message| answer(message, json!({"resultType": "task", "taskId": "7"}))).await;
    assert!(said.starts_with("the server's response is invalid: the created task: missing field"), "{said}");
    let (said, _) =
        call(everything(), |message| answer(message, json!({"resultType": "input_required"}))).await;
    assert_eq!(said, "the server requires input but does not say which");
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_may_require_input_and_raw_requests_are_unchanged() {
    let server = Server::modern(json!({"prompts": {}, "resources": {}}), |message| {
        match (message["method"].as_str(), message["params"].get("inputResponses")) {
            (_, None) => required(message, json!({"a": question("?")}), None),
            (Some("prompts/get"), Some(_)) => answer(message, json!({"messages": []})),
            (_, Some(_)) => answer(message, json!({"contents": []})),
        }
    });
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.handlers = everything();
            options
        })
        .await;
    let empty = RawJson::empty_object();
    session.get_prompt("p", &empty, CallOptions::default()).await.unwrap();
    session.read_resource("a:b", CallOptions::default()).await.unwrap();
    let params = RawJson::parse(r#"{"name":"t"}"#.into()).unwrap();
    let raw = session.request_raw("tools/call", Some("t"), &params, CallOptions::default()).await.unwrap();
    assert!(raw.value.as_str().contains("input_required"));
}
