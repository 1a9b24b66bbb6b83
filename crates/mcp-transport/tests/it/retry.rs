//! Which requests are sent again after a lost response.

use mcp_host_model::RawJson;
use mcp_host_transport::{
    CallError, CallOptions, CompletionArgument, CompletionReference, Epoch, RequestError, RetryPolicy,
    Session, SessionOptions, StreamError,
};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::in_memory::{Reply, Server, answer};

fn lost() -> StreamError {
    StreamError::Lost(RequestError::InvalidResponse { status: 502, problem: "gone".to_owned() })
}

/// A server whose first responses after the handshake fail like this. It responds to later requests.
fn server(ends: Vec<StreamError>) -> Server {
    let count = AtomicUsize::new(0);
    let capabilities = json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}});
    Server::legacy(capabilities, move |message| {
        let Some(id) = message["id"].as_u64() else { return vec![] };
        if let Some(end) = ends.get(count.fetch_add(1, Ordering::SeqCst)) {
            return vec![Reply::FailStream(id, end.clone())];
        }
        let result = match message["method"].as_str().unwrap() {
            "tools/list" => json!({"tools": []}),
            "prompts/get" => json!({"messages": []}),
            "resources/read" => json!({"contents": []}),
            "completion/complete" => json!({"completion": {"values": []}}),
            _ => json!({"content": []}),
        };
        answer(message, result)
    })
}

async fn call(session: &Session, replay: RetryPolicy) -> Result<(), CallError> {
    let mut options = CallOptions::default();
    options.retry = replay;
    session.call_tool("t", &RawJson::empty_object(), options).await.map(drop)
}

fn count(server: &Server, method: &str) -> usize {
    server.received().iter().filter(|message| message["method"] == method).count()
}

/// Checks how often a call is sent whose responses fail like this, and its outcome.
async fn check(ends: Vec<StreamError>, replay: RetryPolicy, want: (usize, &str)) {
    let server = server(ends);
    let session = server.connect(SessionOptions::default()).await;
    let outcome = match call(&session, replay).await {
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!((count(&server, "tools/call"), outcome.as_str()), want);
}

#[tokio::test(start_paused = true)]
async fn lost_response_of_an_idempotent_tool_is_retried_once() {
    let unknown = "the response was lost (gone), and it is not known whether the call ran";
    check(vec![], RetryPolicy::Never, (1, "done")).await;
    check(vec![lost()], RetryPolicy::Never, (1, unknown)).await;
    check(vec![lost()], RetryPolicy::Once, (2, "done")).await;
    check(vec![lost(), lost()], RetryPolicy::Once, (2, unknown)).await;
}

#[tokio::test(start_paused = true)]
async fn request_that_was_not_executed_is_retried() {
    let not_executed = |epoch| StreamError::NotExecuted(Epoch(epoch));
    check(vec![not_executed(0)], RetryPolicy::Never, (2, "done")).await;
    check(vec![not_executed(0), lost()], RetryPolicy::Once, (3, "done")).await;
    check(vec![lost(), not_executed(0)], RetryPolicy::Once, (3, "done")).await;
    let unknown = "the response was lost (gone), and it is not known whether the call ran";
    check(vec![not_executed(0), lost()], RetryPolicy::Never, (2, unknown)).await;
    let forgetful = "the server loses the session as soon as it is opened";
    check(vec![not_executed(0), not_executed(1)], RetryPolicy::Never, (2, forgetful)).await;
}

#[tokio::test(start_paused = true)]
async fn lists_and_reads_are_retried() {
    let argument = CompletionArgument::new("a", String::new());
    let of = CompletionReference::Prompt("p".to_owned());
    for method in ["tools/list", "prompts/get", "resources/read", "completion/complete", "ping"] {
        let server = server(vec![lost()]);
        let session = server.connect(SessionOptions::default()).await;
        let options = CallOptions::default();
        let outcome = match method {
            "tools/list" => session.list_tools().await.map(drop),
            "prompts/get" => session.get_prompt("p", &RawJson::empty_object(), options).await.map(drop),
            "resources/read" => session.read_resource("a:b", options).await.map(drop),
            "completion/complete" => session.complete(&of, &argument, options).await.map(drop),
            _ => session.ping(options).await,
        };
        assert!(outcome.is_ok(), "{method}: {outcome:?}");
        assert_eq!(count(&server, method), 2, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_is_reported_with_a_remedy() {
    let server = server(vec![lost()]);
    let session = server.connect(SessionOptions::default()).await;
    let error = call(&session, RetryPolicy::Never).await.unwrap_err();
    assert_eq!(error.kind().as_str(), "MCPOutcomeUnknownError");
    assert_eq!(error.help().as_deref(), Some("check whether the call took effect before repeating it"));
}

/// A request without side effects can be sent again.
#[tokio::test(start_paused = true)]
async fn lost_list_response_is_not_an_unknown_outcome() {
    let server = server(vec![lost(), lost()]);
    let session = server.connect(SessionOptions::default()).await;
    let error = session.list_tools().await.unwrap_err();
    assert_eq!(error.to_string(), "the response was lost (gone)");
    assert_eq!(error.kind().as_str(), "MCPConnectionError");
    let help = error.help().unwrap();
    assert!(help.contains("try again later"), "{help}");
    // The same for a forwarded request.
    let mut options = CallOptions::default();
    options.retry = RetryPolicy::Never;
    for (method, want) in [("resources/list", "MCPConnectionError"), ("custom/do", "MCPOutcomeUnknownError")]
    {
        let server = self::server(vec![lost()]);
        let session = server.connect(SessionOptions::default()).await;
        let nothing = RawJson::empty_object();
        let error = session.request_raw(method, None, &nothing, options.clone()).await.unwrap_err();
        assert_eq!(error.kind().as_str(), want, "{method}");
    }
}
