//! Requests of servers are answered by the handlers of their session (X-25).

use std::sync::Arc;

use async_trait::async_trait;
use mcp_host_acp_agent::{ConnectOptions, SessionServers};
use mcp_host_model::{RawJson, RpcError};
use mcp_host_transport::{
    ElicitMode, ElicitRequest, ElicitResult, Elicitation, Handlers, Sampling, SamplingRequest, SamplingResult,
};
use serde_json::json;

use crate::sessions::{entries, options, text_or_error, tool_call, validated};

/// A user and a model whose answers contain this word.
struct FixedAnswers(&'static str);

#[async_trait]
impl Elicitation for FixedAnswers {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        let content = json!({ "answer": format!("{} {}", request.message, self.0) });
        Ok(ElicitResult::Accept(Some(RawJson::from_value(&content).unwrap())))
    }
}

#[async_trait]
impl Sampling for FixedAnswers {
    async fn sample(&self, _: SamplingRequest) -> Result<SamplingResult, RpcError> {
        Ok(SamplingResult::text("parrot", self.0))
    }
}

/// Lets a server ask the user and the model. Returns what it received.
async fn ask_user_and_model(handlers: Handlers) -> [String; 2] {
    let mut options: ConnectOptions = options();
    options.host.server_requests.handlers = handlers;
    let session = SessionServers::connect(validated(&entries(&["a"])), options).await.unwrap();
    let user = session.call(tool_call("a__ask", r#"{"question":"why?"}"#)).await;
    let model = session.call(tool_call("a__ask", r#"{"question":"why?","of":"model"}"#)).await;
    [text_or_error(&user), text_or_error(&model)]
}

/// Handlers for elicitation and sampling that answer with this word.
pub(crate) fn handlers_with_word(word: &'static str) -> Handlers {
    let answers = Arc::new(FixedAnswers(word));
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(answers.clone());
    handlers.sampling = Some(answers);
    handlers
}

#[tokio::test(start_paused = true)]
async fn x_25_server_requests_use_the_handlers_of_the_session() {
    let (red, blue) = tokio::join!(
        ask_user_and_model(handlers_with_word("red")),
        ask_user_and_model(handlers_with_word("blue"))
    );
    assert_eq!(red, ["the user answers: why? red", "the model parrot answers: red"]);
    assert_eq!(blue, ["the user answers: why? blue", "the model parrot answers: blue"]);
}

#[tokio::test(start_paused = true)]
async fn sk_17_server_request_without_a_handler_is_refused() {
    let [user, model] = ask_user_and_model(Handlers::default()).await;
    insta::assert_snapshot!(format!("{user}\n{model}"), @r"
    MCPProtocolError: server 'a' (https://memory.example/mcp): the server responded with an error: Missing required client capability (code -32021) (the server needs elicitation from its client: configure a handler for it)
    MCPProtocolError: server 'a' (https://memory.example/mcp): the server responded with an error: Missing required client capability (code -32021) (the server needs sampling from its client: configure a handler for it)
    ");
}
