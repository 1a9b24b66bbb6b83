//! Calls of clients without sessions that wait for input, because a legacy server sent a request during the call.
//!
//! The client receives a `requestState` that is unguessable, usable once, and usable by this client alone. The number
//! of waiting calls and their time are bounded. A call whose client does not answer in time is cancelled.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use mcp_host_model::{RawJson, RpcError, code};
use mcp_host_transport::RawServerRequest;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::access::principal::Principal;
use crate::access::secret_id::new_secret_id;
use crate::limits::bounds::Bounds;
use crate::protocol::json_splice;
use crate::protocol::message_writer::json_string;
use crate::protocol::result_body::{HandlerResult, ResultBody};
use crate::session::request_handlers::{InputReply, InputRequest};

/// The prefix of every state.
const STATE_PREFIX: &str = "mcp-host:";

/// Maximum number of open server requests of a call.
pub(crate) const MAX_INPUT_REQUESTS: usize = 32;

/// The calls that wait for input.
#[derive(Debug)]
pub(crate) struct PendingInputs {
    table: Mutex<HashMap<String, PendingCall>>,
    max_calls: usize,
    max_per_client: usize,
}

/// A call that waits for its client.
#[derive(Debug)]
struct PendingCall {
    principal: Principal,
    /// When the call is cancelled, unless its client answers before.
    deadline: Instant,
    call: RunningCall,
}

/// A call that runs in a task of its own. Dropping it cancels the task.
#[derive(Debug)]
pub(crate) struct RunningCall {
    task: AbortOnDropHandle<HandlerResult>,
    requests: mpsc::Receiver<InputRequest>,
    /// The requests without a response, each with its key in `inputRequests`.
    open_requests: Vec<(String, InputRequest)>,
    /// The number of its server requests so far, from which the keys are made.
    request_count: usize,
}

impl RunningCall {
    /// Starts a call. `work` gets the sender for its server requests.
    pub(crate) fn start<F>(work: impl FnOnce(mpsc::Sender<InputRequest>) -> F) -> RunningCall
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let (sender, requests) = mpsc::channel(MAX_INPUT_REQUESTS);
        let task = AbortOnDropHandle::new(tokio::spawn(work(sender)));
        RunningCall { task, requests, open_requests: Vec::new(), request_count: 0 }
    }

    /// Adds a server request to those without a response.
    fn add_request(&mut self, request: InputRequest) {
        self.request_count += 1;
        self.open_requests.push((format!("input-{}", self.request_count), request));
    }
}

impl Drop for RunningCall {
    /// Reports the requests that the client has not received as undelivered.
    fn drop(&mut self) {
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            // The server may have cancelled its request.
            let _ = request.response.send(InputReply::Undelivered);
        }
    }
}

impl PendingInputs {
    /// An empty table with these limits.
    pub(crate) fn new(bounds: &Bounds) -> PendingInputs {
        PendingInputs {
            table: Mutex::default(),
            max_calls: bounds.requests,
            max_per_client: bounds.pending_inputs_per_client,
        }
    }

    /// Whether a `requestState` has the form of those that are created here. Any other was created by a server.
    pub(crate) fn is_own_state(state: &str) -> bool {
        state.starts_with(STATE_PREFIX)
    }

    /// The number of pending calls.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().len()
    }

    /// Cancels the calls whose clients did not answer in time.
    pub(crate) fn drop_expired(&self, now: Instant) {
        self.table.lock().retain(|_, pending| pending.deadline > now);
    }

    /// Cancels all calls of a client.
    pub(crate) fn drop_client(&self, principal: &Principal) {
        self.table.lock().retain(|_, pending| pending.principal != *principal);
    }

    /// Cancels all calls.
    pub(crate) fn drop_all(&self) {
        self.table.lock().clear();
    }

    /// Removes the call of `state`, passes the client's responses to it, and returns it.
    pub(crate) fn take(
        &self,
        state: &str,
        principal: &Principal,
        responses: Option<&RawJson>,
        now: Instant,
    ) -> Result<RunningCall, RpcError> {
        let mut table = self.table.lock();
        let found = table.get(state);
        found
            .filter(|pending| pending.principal == *principal && pending.deadline > now)
            .ok_or_else(unknown_state_error)?;
        let PendingCall { mut call, .. } = table.remove(state).ok_or_else(unknown_state_error)?;
        for (key, response) in responses.map(json_splice::members).unwrap_or_default() {
            // Responses with unknown keys are ignored.
            if let Some(at) = call.open_requests.iter().position(|(open, _)| *open == key) {
                let (_, request) = call.open_requests.remove(at);
                // The server may have cancelled its request.
                let _ = request.response.send(InputReply::Response(response));
            }
        }
        Ok(call)
    }

    /// Waits until a call ends or a server sends a request during it, and returns the call's result. After a server
    /// request the result is `input_required`, and the call is stored until the client answers, for at most `timeout`.
    pub(crate) async fn advance(
        &self,
        mut call: RunningCall,
        principal: &Principal,
        timeout: Duration,
    ) -> HandlerResult {
        // A request without a response is returned again at once.
        if call.open_requests.is_empty() {
            tokio::select! {
                biased;
                outcome = &mut call.task => return outcome.unwrap_or_else(|_| Err(lost_call_error().into())),
                Some(request) = call.requests.recv() => call.add_request(request),
            }
        }
        while let Ok(request) = call.requests.try_recv() {
            call.add_request(request);
        }
        let state = format!("{STATE_PREFIX}{}", new_secret_id());
        let result = input_required_result(&state, &call.open_requests);
        let now = Instant::now();
        let mut table = self.table.lock();
        table.retain(|_, pending| pending.deadline > now);
        let own = table.values().filter(|pending| pending.principal == *principal).count();
        if table.len() >= self.max_calls || own >= self.max_per_client {
            // Dropping the call cancels it.
            let message = "too many calls wait for input: answer some of them first";
            return Err(RpcError::new(code::SERVER_ERROR, message).into());
        }
        table.insert(state, PendingCall { principal: principal.clone(), deadline: now + timeout, call });
        Ok(result)
    }
}

/// The `input_required` result that has these server requests.
fn input_required_result(state: &str, open_requests: &[(String, InputRequest)]) -> ResultBody {
    let requests: Vec<String> = open_requests
        .iter()
        .map(|(key, InputRequest { request: RawServerRequest { method, params, .. }, .. })| {
            format!(r#""{key}":{{"method":{},"params":{}}}"#, json_string(method.as_str()), params.as_str())
        })
        .collect();
    let (requests, state) = (requests.join(","), json_string(state));
    let result =
        format!(r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":{state}}}"#);
    Bytes::from(result).into()
}

/// The error for a state that was not given to this client.
pub(crate) fn unknown_state_error() -> RpcError {
    let message = "`requestState` belongs to no pending call: it was used, is too old, or was changed";
    RpcError::new(code::INVALID_PARAMS, message)
}

/// The error for a call whose task has panicked.
fn lost_call_error() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "the gateway failed while it handled this call")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host_transport::RawRequestHandler;
    use tokio::sync::oneshot;

    use super::*;
    use crate::session::request_handlers::{InputRequestHandler, OpenCalls};
    use crate::session::supported_requests::SupportedRequests;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    /// Requests a list of roots by a call of `calls`.
    async fn request_roots(requests: mpsc::Sender<InputRequest>, calls: Arc<OpenCalls>) -> HandlerResult {
        let supported = SupportedRequests::of(&json(r#"{"roots":{}}"#));
        let handler = InputRequestHandler { supported, requests, calls, timeout: Duration::from_secs(60) };
        let request = RawServerRequest::new(mcp_host_model::Method::ListRoots, RawJson::empty_object());
        Ok(handler.handle(request).await?.into())
    }

    /// A call that requests one list of roots and returns it.
    fn call() -> RunningCall {
        RunningCall::start(|requests| request_roots(requests, Arc::default()))
    }

    fn state(result: &ResultBody) -> String {
        let value: serde_json::Value = serde_json::from_slice(&result.object).unwrap();
        assert_eq!(value["inputRequests"]["input-1"]["method"], "roots/list");
        value["requestState"].as_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn pending_call_resumes_once_and_only_for_its_client() {
        let pending_inputs = PendingInputs::new(&Bounds::default());
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let wait = Duration::from_secs(60);
        let first = pending_inputs.advance(call(), &ann, wait).await.unwrap();
        let first_state = state(&first);
        let responses = json(r#"{"input-1":{"roots":[]},"other":1}"#);
        let take = |state: &str, client: &Principal, responses| {
            pending_inputs.take(state, client, responses, Instant::now())
        };
        assert!(take(&first_state, &bob, Some(&responses)).is_err());
        assert!(take(&format!("{first_state}0"), &ann, Some(&responses)).is_err());

        // Without a response the request is returned again, under another state.
        let no_responses = json("{}");
        let resumed = take(&first_state, &ann, Some(&no_responses)).unwrap();
        let second = state(&pending_inputs.advance(resumed, &ann, wait).await.unwrap());
        assert_ne!(first_state, second);
        let completed = take(&second, &ann, Some(&responses)).unwrap();
        let completed = pending_inputs.advance(completed, &ann, wait).await.unwrap();
        assert_eq!(completed.object, r#"{"roots":[]}"#);
        assert!(take(&second, &ann, Some(&responses)).is_err());
    }

    /// The server requests something during two calls, and one of them ends before the client gets the request.
    #[tokio::test(start_paused = true)]
    async fn request_of_an_ended_call_is_returned_by_another_call() {
        let pending_inputs = PendingInputs::new(&Bounds::default());
        let (ann, wait) = (Principal::named("ann"), Duration::from_secs(60));
        let calls = Arc::new(OpenCalls::default());
        let (end_short, short_ends) = oneshot::channel::<()>();
        let (short_started, short_call) = oneshot::channel();
        let short = RunningCall::start(async |requests| {
            short_started.send(requests).unwrap();
            short_ends.await.unwrap();
            Ok(Bytes::from_static(b"{}").into())
        });
        let short_call = short_call.await.unwrap();
        let long = RunningCall::start({
            let calls = Arc::clone(&calls);
            async move |requests| {
                calls.add(&requests);
                calls.add(&short_call);
                let both = tokio::join!(request_roots(short_call.clone(), Arc::clone(&calls)), async {
                    end_short.send(()).unwrap()
                });
                both.0
            }
        });
        // The short call has ended before its request is read.
        while !short.task.is_finished() {
            tokio::task::yield_now().await;
        }
        assert_eq!(pending_inputs.advance(short, &ann, wait).await.unwrap().object, "{}");
        let returned = state(&pending_inputs.advance(long, &ann, wait).await.unwrap());
        let responses = json(r#"{"input-1":{"roots":[]}}"#);
        let resumed = pending_inputs.take(&returned, &ann, Some(&responses), Instant::now()).unwrap();
        let resumed = pending_inputs.advance(resumed, &ann, wait).await.unwrap();
        assert_eq!(resumed.object, r#"{"roots":[]}"#);
        assert!(calls.latest().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn pending_call_expires() {
        let pending_inputs = PendingInputs::new(&Bounds { requests: 1, ..Bounds::default() });
        let ann = Principal::named("ann");
        let wait = Duration::from_secs(60);
        let old = state(&pending_inputs.advance(call(), &ann, wait).await.unwrap());
        assert_eq!(
            pending_inputs.advance(call(), &ann, wait).await.unwrap_err().error.code,
            code::SERVER_ERROR
        );
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(pending_inputs.take(&old, &ann, None, Instant::now()).is_err());
        assert!(pending_inputs.advance(call(), &ann, wait).await.is_ok());
        assert_eq!(pending_inputs.len(), 1);
        pending_inputs.drop_expired(Instant::now());
        assert_eq!(pending_inputs.len(), 1);
        tokio::time::advance(Duration::from_secs(61)).await;
        pending_inputs.drop_expired(Instant::now());
        assert_eq!(pending_inputs.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn pending_calls_are_bounded_by_client() {
        let pending_inputs =
            PendingInputs::new(&Bounds { pending_inputs_per_client: 2, ..Bounds::default() });
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let wait = Duration::from_secs(60);
        for _ in 0..2 {
            assert!(pending_inputs.advance(call(), &ann, wait).await.is_ok());
        }
        assert_eq!(
            pending_inputs.advance(call(), &ann, wait).await.unwrap_err().error.code,
            code::SERVER_ERROR
        );
        assert!(pending_inputs.advance(call(), &bob, wait).await.is_ok());
        pending_inputs.drop_client(&ann);
        assert_eq!(pending_inputs.len(), 1);
        assert!(pending_inputs.advance(call(), &ann, wait).await.is_ok());
        pending_inputs.drop_all();
        assert_eq!(pending_inputs.len(), 0);
    }
}
