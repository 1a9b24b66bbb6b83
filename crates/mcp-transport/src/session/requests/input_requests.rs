//! Input requests in results (2026-07-28): handlers provide the input, and the request is sent again.
//!
//! Each round is a request with a new id; it carries the input and the server's state unchanged. The number of rounds
//! is bounded. All rounds together share the timeout of the caller's one call.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{MethodName, RawJson, ResultKind};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::CallError;
use crate::error::Expiry;
use crate::rpc::deadline::time_after;
use crate::rpc::frame;
use crate::rpc::object_members::{MemberName, ObjectMembers};
use crate::rpc::request_owner::MessageOwner;
use crate::session::options::{CallOptions, InputHandling};
use crate::session::requests::request::OutboundRequest;
use crate::session::requests::request_params;
use crate::session::requests::response::{ParsedResponse, RawResponse, ResultForm};
use crate::session::state::Session;

/// Maximum number of times that a request is sent again with input.
const MAX_ROUNDS: usize = 10;

/// Maximum number of input requests in one result.
const MAX_INPUT_REQUESTS: usize = 32;

/// A result that requires input.
#[derive(Deserialize)]
struct InputRequiredResult<'a> {
    #[serde(borrow, rename = "inputRequests")]
    requests: Option<ObjectMembers<'a>>,
    /// Kept as JSON text, so that the server receives exactly what it sent.
    #[serde(borrow, rename = "requestState")]
    state: Option<&'a RawValue>,
}

/// One input request.
#[derive(Deserialize)]
struct InputRequest<'a> {
    method: MethodName,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The deadline for waiting on the side of the client: for the input of handlers, or for the end of a task.
#[derive(Clone, Copy)]
pub(crate) struct WaitDeadline {
    pub(crate) at: Instant,
    /// The time limit of the call, for the error message.
    pub(crate) limit: Duration,
}

impl WaitDeadline {
    /// This deadline, later by `pause`.
    pub(crate) fn extended_by(self, pause: Duration) -> WaitDeadline {
        WaitDeadline { at: time_after(self.at, pause), ..self }
    }
}

impl Session {
    /// Sends a request, and sends it again with the required input until the result is final.
    pub(crate) async fn request_with_input<T: ResultForm + Send>(
        &self,
        request: &OutboundRequest<'_>,
    ) -> Result<ParsedResponse<T>, CallError> {
        let response = T::read(self.request(request).await?, self.dial.as_ref());
        if request.options.context.input == InputHandling::ReturnToCaller
            || response.info.kind != ResultKind::InputRequired
        {
            return Ok(response);
        }
        // Boxed: it is rare, and would enlarge the future of every call.
        Box::pin(async move {
            let mut response = response;
            let mut request = request.clone();
            let mut max_pause = request.options.context.max_deadline_pause();
            // The caller's own input and state are for the first request only.
            let other_params =
                request_params::without_members(request.extra_params, &["inputResponses", "requestState"]);
            for _ in 0..MAX_ROUNDS {
                let wait_started_at = Instant::now();
                let input_params = self.run_input_handlers(&request, &response.raw, max_pause).await?;
                // The time that the caller's handlers needed does not count against the server.
                let waited = wait_started_at.elapsed().min(max_pause);
                max_pause -= waited;
                request.started_at += waited;
                let parts = [&*other_params, &*input_params];
                let extra_params =
                    parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(",");
                let request = OutboundRequest { extra_params: &extra_params, ..request.clone() };
                response = T::read(self.request(&request).await?, self.dial.as_ref());
                if response.info.kind != ResultKind::InputRequired {
                    return Ok(response);
                }
            }
            let message = format!("the server requested input {MAX_ROUNDS} times without a final result");
            Err(CallError::InputRequired(message))
        })
        .await
    }

    /// Runs the handlers for the input that `response` requires. Returns the input and the server's state as members of
    /// the parameters of the next request.
    async fn run_input_handlers(
        &self,
        request: &OutboundRequest<'_>,
        response: &RawResponse,
        max_pause: Duration,
    ) -> Result<String, CallError> {
        let InputRequiredResult { requests, state } = response.read()?;
        let mut extra_params = Vec::new();
        if let Some(ObjectMembers(requests)) = requests {
            let limit = request.options.timeout.unwrap_or(self.limits().request);
            let at = time_after(request.started_at, limit);
            let deadline = WaitDeadline { at, limit }.extended_by(max_pause);
            let input = self.provide_input(request.options, requests, deadline).await?;
            extra_params.push(format!("\"inputResponses\":{{{input}}}"));
        } else if state.is_none() {
            let message = "the server requires input but does not say which".to_owned();
            return Err(CallError::InputRequired(message));
        }
        if let Some(state) = state {
            extra_params.push(format!("\"requestState\":{}", state.get()));
        }
        Ok(extra_params.join(","))
    }

    /// Runs the handlers of these input requests, and returns their results as JSON members. They run one after
    /// another, because most of them ask the same person.
    pub(crate) async fn provide_input(
        &self,
        options: &CallOptions,
        requests: Vec<(MemberName<'_>, &RawValue)>,
        deadline: WaitDeadline,
    ) -> Result<String, CallError> {
        if requests.len() > MAX_INPUT_REQUESTS {
            let message = format!("the server requests {} inputs at once", requests.len());
            return Err(CallError::InputRequired(message));
        }
        let mut requests_to_answer = Vec::with_capacity(requests.len());
        for (MemberName(key), input_request) in requests {
            let input_request: InputRequest<'_> = serde_json::from_str(input_request.get())
                .map_err(|it| CallError::InvalidResponse(format!("an input request: {it}")))?;
            requests_to_answer.push((key, input_request));
        }
        let owner = match &options.context.caller {
            Some(caller) => MessageOwner::Caller(Arc::clone(caller)),
            None => MessageOwner::Session,
        };
        let unhandled =
            requests_to_answer.iter().filter(|(_, it)| !self.responder.can_handle(&owner, &it.method));
        let unhandled: Vec<String> =
            unhandled.map(|(key, it)| self.describe_input_request(&it.method, key)).collect();
        if !unhandled.is_empty() {
            let message = format!(
                "the server requires input ({}), and no handler is configured for it",
                unhandled.join(", ")
            );
            return Err(CallError::InputRequired(message));
        }
        let mut members = Vec::with_capacity(requests_to_answer.len());
        for (key, InputRequest { method, params }) in requests_to_answer {
            let input = async {
                let _permit = self.responder.acquire_permit().await;
                self.responder.handle(&owner, &method, params.map(RawJson::copy_of)).await
            };
            let input = match tokio::time::timeout_at(deadline.at, input).await {
                Ok(input) => input,
                Err(_) => return Err(CallError::TimedOut(Expiry::Absolute(deadline.limit))),
            };
            let input = input.map_err(|error| {
                let message = format!(
                    "the server requires input ({}), and it was refused: {error}",
                    self.describe_input_request(&method, &key)
                );
                CallError::InputRequired(message)
            })?;
            members.push(format!("{}:{}", frame::json_string(&key), input.as_str()));
        }
        Ok(members.join(","))
    }

    /// An input request as text for an error message: redacted and shortened, because it comes from the server.
    fn describe_input_request(&self, method: &MethodName, key: &str) -> String {
        let short: String = self.dial.redact(key).chars().take(40).collect();
        let method: String = self.dial.redact(method.as_str()).chars().take(40).collect();
        format!("{method} as `{short}`")
    }
}
