//! The tool that needs the client to answer: the user by elicitation, the model by sampling.
//!
//! A legacy client gets a request while the call runs. A sessionless one gets the question as the result and calls
//! again with the reply, so nothing is kept here in between.

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

use super::{Call, Fault, text};
use crate::server::Era;

/// Names the one question, and the one field of its form.
const ANSWER: &str = "answer";
/// What the client hands back with the reply; it holds no secret and is only compared.
const ASKED: &str = "asked";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// The question
    question: String,
    /// Who is to answer, the user unless given
    #[serde(default)]
    of: Asked,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Asked {
    #[default]
    User,
    Model,
}

pub(super) async fn ask(call: &Call<'_>, arguments: Ask) -> Result<CallToolResponse, Fault> {
    let Ask { question, of } = arguments;
    let offered = call.context.client_capabilities().unwrap_or_default();
    let (able, needed, capability) = match of {
        Asked::User => (
            offered.elicitation.is_some(),
            ClientCapabilities::builder().enable_elicitation().build(),
            "elicitation",
        ),
        Asked::Model => {
            (offered.sampling.is_some(), ClientCapabilities::builder().enable_sampling().build(), "sampling")
        }
    };
    match call.era {
        Era::Legacy if !able => Err(Fault::tool(format!("the client does not offer {capability}"))),
        Era::Legacy => ask_now(call, question, of).await,
        Era::Sessionless if !able => Err(ErrorData::missing_required_client_capability(needed).into()),
        Era::Sessionless => ask_by_result(call, question, of),
    }
}

async fn ask_now(call: &Call<'_>, question: String, of: Asked) -> Result<CallToolResponse, Fault> {
    let request = match of {
        Asked::User => ServerRequest::ElicitRequest(ElicitRequest::new(form(question)?)),
        Asked::Model => ServerRequest::CreateMessageRequest(CreateMessageRequest::new(prompt(question))),
    };
    let reply = tokio::select! {
        biased;
        () = call.context.ct.cancelled() => return Err(Fault::tool("the call was cancelled")),
        () = call.life.over() => return Err(Fault::tool("the client is gone")),
        reply = call.context.peer.send_request(request) => reply,
    };
    match reply.map_err(|error| Fault::tool(format!("the client did not answer: {error}")))? {
        ClientResult::ElicitResult(reply) => Ok(text(of_user(&reply))),
        ClientResult::CreateMessageResult(reply) => Ok(text(of_model(&reply))),
        _ => Err(Fault::tool("the client answered something else")),
    }
}

fn ask_by_result(call: &Call<'_>, question: String, of: Asked) -> Result<CallToolResponse, Fault> {
    let Some(replies) = &call.request.input_responses else {
        let request = match of {
            Asked::User => InputRequest::Elicitation(ElicitRequest::new(form(question)?)),
            Asked::Model => InputRequest::CreateMessage(CreateMessageRequest::new(prompt(question))),
        };
        let requests = InputRequests::from([(ANSWER.to_owned(), request)]);
        return Ok(InputRequiredResult::new(Some(requests), Some(ASKED.to_owned())).into());
    };
    if call.request.request_state.as_deref() != Some(ASKED) {
        return Err(ErrorData::invalid_params("`requestState` is not the one that was given", None).into());
    }
    let Some(reply) = replies.get(ANSWER) else {
        return Err(ErrorData::invalid_params("`inputResponses` lacks `answer`", None).into());
    };
    Ok(text(match of {
        Asked::User => of_user(&read::<ElicitResult>(reply)?),
        Asked::Model => of_model(&read::<CreateMessageResult>(reply)?),
    }))
}

fn read<T: DeserializeOwned>(reply: &Value) -> Result<T, ErrorData> {
    T::deserialize(reply)
        .map_err(|error| ErrorData::invalid_params(format!("the reply is malformed: {error}"), None))
}

fn form(question: String) -> Result<ElicitRequestParams, Fault> {
    let requested_schema =
        ElicitationSchema::builder().required_string(ANSWER).build().map_err(Fault::tool)?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message: question, requested_schema })
}

fn prompt(question: String) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(question)], 200)
}

fn of_user(reply: &ElicitResult) -> String {
    match reply.action {
        ElicitationAction::Accept => {
            let answer = reply.content.as_ref().and_then(|it| it.get(ANSWER)).and_then(Value::as_str);
            format!("the user answers: {}", answer.unwrap_or(""))
        }
        ElicitationAction::Decline => "the user declines".to_owned(),
        _ => "the user does not answer".to_owned(),
    }
}

fn of_model(reply: &CreateMessageResult) -> String {
    let words = reply.message.content.iter().filter_map(|it| it.as_text()).map(|it| it.text.as_str());
    format!("the model {} answers: {}", reply.model, words.collect::<Vec<_>>().join(" "))
}
