//! What a session's servers ask of its agent: who answers is the agent's to say, for each session on its own (X-25).

use std::sync::Arc;

use async_trait::async_trait;
use mcp_host_acp_agent::{ConnectOptions, SessionMcp};
use mcp_host_model::{RawJson, RpcError};
use mcp_host_transport::{
    ElicitMode, ElicitRequest, ElicitResult, Elicitation, Handlers, Sampling, SamplingRequest, SamplingResult,
};
use serde_json::json;

use crate::sessions::{entries, options, text_or_error, tool_call, validated};

/// A user, and a model, with one word.
struct Says(&'static str);

#[async_trait]
impl Elicitation for Says {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        let answer = json!({ "answer": format!("{} {}", request.message, self.0) });
        Ok(ElicitResult::Accept(Some(RawJson::from_value(&answer).unwrap())))
    }
}

#[async_trait]
impl Sampling for Says {
    async fn sample(&self, _: SamplingRequest) -> Result<SamplingResult, RpcError> {
        Ok(SamplingResult::text("parrot", self.0))
    }
}

/// What a server hears that asks the user, and the model.
async fn heard(handlers: Handlers) -> [String; 2] {
    let mut options: ConnectOptions = options();
    options.host.server_requests.handlers = handlers;
    let session = SessionMcp::connect(validated(&entries(&["a"])), options).await.unwrap();
    let user = session.call(tool_call("a__ask", r#"{"question":"why?"}"#)).await;
    let model = session.call(tool_call("a__ask", r#"{"question":"why?","of":"model"}"#)).await;
    [text_or_error(&user), text_or_error(&model)]
}

pub(crate) fn says(word: &'static str) -> Handlers {
    let says = Arc::new(Says(word));
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(says.clone());
    handlers.sampling = Some(says);
    handlers
}

#[tokio::test(start_paused = true)]
async fn x_25_server_requests_use_the_handlers_of_the_session() {
    let (red, blue) = tokio::join!(heard(says("red")), heard(says("blue")));
    assert_eq!(red, ["the user answers: why? red", "the model parrot answers: red"]);
    assert_eq!(blue, ["the user answers: why? blue", "the model parrot answers: blue"]);
}

#[tokio::test(start_paused = true)]
async fn sk_17_server_request_without_a_handler_is_refused() {
    let [user, model] = heard(Handlers::default()).await;
    insta::assert_snapshot!(format!("{user}\n{model}"), @r"
    MCPProtocolError: server 'a' (https://memory.example/mcp): the server responded with an error: Missing required client capability (code -32021) (the server needs elicitation from its client: configure a handler for it)
    MCPProtocolError: server 'a' (https://memory.example/mcp): the server responded with an error: Missing required client capability (code -32021) (the server needs sampling from its client: configure a handler for it)
    ");
}
