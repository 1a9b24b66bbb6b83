//! The tool `ask`: asks the user by elicitation, or the client's model by sampling.
//!
//! A legacy client receives a request while the call runs. A modern client receives the question as the
//! result and calls again with the reply, so the server stores nothing in between.

#![expect(deprecated, reason = "sampling is deprecated in the protocol, and clients still offer it")]

use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams,
        CreateMessageResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, SamplingMessage, ServerRequest,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::call::{ToolCall, ToolError, text_result};
use crate::state::Era;

/// The key of the question, and of the field in its form.
const ANSWER: &str = "answer";
/// The request state that the client returns with the reply.
const REQUEST_STATE: &str = "asked";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// The question
    question: String,
    /// Who is to answer, the user unless given
    #[serde(default)]
    of: Party,
}

// The party that replies. Not a doc comment: that would become a part of the schema.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Party {
    #[default]
    User,
    Model,
}

pub(super) async fn ask(call: &ToolCall<'_>, arguments: Ask) -> Result<CallToolResponse, ToolError> {
    let Ask { question, of } = arguments;
    let capabilities = call.context.client_capabilities().unwrap_or_default();
    let (is_supported, needed, capability) = match of {
        Party::User => (
            capabilities.elicitation.is_some(),
            ClientCapabilities::builder().enable_elicitation().build(),
            "elicitation",
        ),
        Party::Model => (
            capabilities.sampling.is_some(),
            ClientCapabilities::builder().enable_sampling().build(),
            "sampling",
        ),
    };
    match call.era {
        Era::Legacy if !is_supported => {
            Err(ToolError::tool(format!("the client does not offer {capability}")))
        }
        Era::Legacy => ask_by_request(call, question, of).await,
        Era::Modern if !is_supported => Err(ErrorData::missing_required_client_capability(needed).into()),
        Era::Modern => ask_by_result(call, question, of),
    }
}

/// Sends the question to a legacy client during the call.
async fn ask_by_request(
    call: &ToolCall<'_>,
    question: String,
    of: Party,
) -> Result<CallToolResponse, ToolError> {
    let request = match of {
        Party::User => ServerRequest::ElicitRequest(ElicitRequest::new(elicitation_form(question)?)),
        Party::Model => {
            ServerRequest::CreateMessageRequest(CreateMessageRequest::new(sampling_prompt(question)))
        }
    };
    let reply = tokio::select! {
        biased;
        () = call.context.ct.cancelled() => return Err(ToolError::tool("the call was cancelled")),
        () = call.lifetime.wait_for_end() => return Err(ToolError::tool("the client has disconnected")),
        reply = call.context.peer.send_request(request) => reply,
    };
    match reply.map_err(|error| ToolError::tool(format!("the client did not answer: {error}")))? {
        ClientResult::ElicitResult(reply) => Ok(text_result(user_reply_text(&reply))),
        ClientResult::CreateMessageResult(reply) => Ok(text_result(model_reply_text(&reply))),
        _ => Err(ToolError::tool("the client answered something else")),
    }
}

/// Returns the question to a modern client as the result, or handles its reply.
fn ask_by_result(call: &ToolCall<'_>, question: String, of: Party) -> Result<CallToolResponse, ToolError> {
    let Some(replies) = &call.request.input_responses else {
        let request = match of {
            Party::User => InputRequest::Elicitation(ElicitRequest::new(elicitation_form(question)?)),
            Party::Model => InputRequest::CreateMessage(CreateMessageRequest::new(sampling_prompt(question))),
        };
        let requests = InputRequests::from([(ANSWER.to_owned(), request)]);
        return Ok(InputRequiredResult::new(Some(requests), Some(REQUEST_STATE.to_owned())).into());
    };
    if call.request.request_state.as_deref() != Some(REQUEST_STATE) {
        return Err(ErrorData::invalid_params("`requestState` is not the one that was given", None).into());
    }
    let Some(reply) = replies.get(ANSWER) else {
        return Err(ErrorData::invalid_params("`inputResponses` lacks `answer`", None).into());
    };
    Ok(text_result(match of {
        Party::User => user_reply_text(&parse_reply::<ElicitResult>(reply)?),
        Party::Model => model_reply_text(&parse_reply::<CreateMessageResult>(reply)?),
    }))
}

fn parse_reply<T: DeserializeOwned>(reply: &Value) -> Result<T, ErrorData> {
    T::deserialize(reply)
        .map_err(|error| ErrorData::invalid_params(format!("the reply is malformed: {error}"), None))
}

fn elicitation_form(question: String) -> Result<ElicitRequestParams, ToolError> {
    let requested_schema =
        ElicitationSchema::builder().required_string(ANSWER).build().map_err(ToolError::tool)?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message: question, requested_schema })
}

fn sampling_prompt(question: String) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(question)], 200)
}

fn user_reply_text(reply: &ElicitResult) -> String {
    match reply.action {
        ElicitationAction::Accept => {
            let answer =
                reply.content.as_ref().and_then(|content| content.get(ANSWER)).and_then(Value::as_str);
            format!("the user answers: {}", answer.unwrap_or(""))
        }
        ElicitationAction::Decline => "the user declines".to_owned(),
        _ => "the user does not answer".to_owned(),
    }
}

fn model_reply_text(reply: &CreateMessageResult) -> String {
    let texts =
        reply.message.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str());
    format!("the model {} answers: {}", reply.model, texts.collect::<Vec<_>>().join(" "))
}
