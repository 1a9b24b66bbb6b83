//! Calls of clients without sessions that wait for input, because a legacy server sent a request during the call.
//!
//! The client gets a state that is unguessable, valid once, and valid for it alone. The number of waiting calls and
//! their time are bounded. A call whose client does not answer is cancelled.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcp_model::{RawJson, RpcError, code};
use mcp_transport::RawServerRequest;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::access::secret_id::secret_id;
use crate::limits::bounds::Bounds;
use crate::protocol::{json_splice, response};
use crate::session::elicitation::InputRequest;

/// The prefix of every state.
const STATE_PREFIX: &str = "mcp-host:";

/// Maximum number of open server requests of a call.
pub(crate) const MAX_INPUT_REQUESTS: usize = 32;

type CallOutcome = Result<Bytes, RpcError>;

/// The calls that wait for input.
#[derive(Debug)]
pub(crate) struct PendingInputs {
    table: Mutex<HashMap<String, PendingCall>>,
    most: usize,
    max_per_client: usize,
}

#[derive(Debug)]
struct PendingCall {
    principal: Principal,
    until: Instant,
    call: RunningCall,
}

/// A call that runs in a task of its own.
#[derive(Debug)]
pub(crate) struct RunningCall {
    outcome: oneshot::Receiver<CallOutcome>,
    requests: mpsc::Receiver<InputRequest>,
    open: Vec<(String, InputRequest)>,
    request_count: usize,
    _task: AbortOnDrop,
}

/// Cancels the task when it is dropped.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RunningCall {
    /// Starts a call whose server requests arrive at `requests`.
    pub(crate) fn start(
        work: impl Future<Output = CallOutcome> + Send + 'static,
        requests: mpsc::Receiver<InputRequest>,
    ) -> RunningCall {
        let (done, outcome) = oneshot::channel();
        let task = tokio::spawn(async move {
            // The receiver is gone only if the call was cancelled.
            let _ = done.send(work.await);
        });
        RunningCall { outcome, requests, open: Vec::new(), request_count: 0, _task: AbortOnDrop(task) }
    }
}

impl PendingInputs {
    /// An empty table with these limits.
    pub(crate) fn new(bounds: &Bounds) -> PendingInputs {
        PendingInputs {
            table: Mutex::default(),
            most: bounds.requests,
            max_per_client: bounds.pending_inputs_per_client,
        }
    }

    /// Whether a state belongs to a pending call.
    pub(crate) fn is_ours(state: &str) -> bool {
        state.starts_with(STATE_PREFIX)
    }

    /// The number of pending calls.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Cancels the calls whose clients did not answer in time.
    pub(crate) fn drop_expired(&self, now: Instant) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, it| it.until > now);
    }

    /// Cancels all calls of a client.
    pub(crate) fn drop_client(&self, principal: &Principal) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, it| it.principal != *principal);
    }

    /// Cancels all calls.
    pub(crate) fn drop_all(&self) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Removes the call of `state`, and passes the client's answers to it.
    pub(crate) fn take(
        &self,
        state: &str,
        principal: &Principal,
        responses: Option<&RawJson>,
        now: Instant,
    ) -> Result<RunningCall, RpcError> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let found = table.get(state).filter(|it| it.principal == *principal && it.until > now);
        found.ok_or_else(unknown_state)?;
        let PendingCall { mut call, .. } = table.remove(state).ok_or_else(unknown_state)?;
        let given = responses.map(json_splice::members).unwrap_or_default();
        for (key, answer) in given {
            // Answers to unknown keys are ignored.
            if let Some(at) = call.open.iter().position(|(open, _)| *open == key) {
                let (_, request) = call.open.remove(at);
                // The server may have cancelled its request.
                let _ = request.answer.send(answer);
            }
        }
        Ok(call)
    }

    /// Waits for the call's result, or for a server request. The result is then that the call needs input.
    pub(crate) async fn advance(
        &self,
        mut call: RunningCall,
        principal: &Principal,
        wait: Duration,
    ) -> CallOutcome {
        // A request without an answer is returned again at once.
        if call.open.is_empty() {
            tokio::select! {
                biased;
                outcome = &mut call.outcome => return outcome.unwrap_or_else(|_| Err(lost())),
                Some(request) = call.requests.recv() => call.add_request(request),
            }
        }
        while let Ok(request) = call.requests.try_recv() {
            call.add_request(request);
        }
        let state = format!("{STATE_PREFIX}{}", secret_id());
        let result = input_required_result(&state, &call.open);
        let now = Instant::now();
        let until = now + wait;
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|_, it| it.until > now);
        let own = table.values().filter(|it| it.principal == *principal).count();
        if table.len() >= self.most || own >= self.max_per_client {
            // Dropping the call cancels it.
            return Err(RpcError::new(
                code::SERVER_ERROR,
                "too many calls wait for input: answer some first",
            ));
        }
        table.insert(state, PendingCall { principal: principal.clone(), until, call });
        Ok(result)
    }
}

impl RunningCall {
    fn add_request(&mut self, request: InputRequest) {
        self.request_count += 1;
        self.open.push((format!("input-{}", self.request_count), request));
    }
}

/// The result that requests input.
fn input_required_result(state: &str, open: &[(String, InputRequest)]) -> Bytes {
    let requests: Vec<String> = open
        .iter()
        .map(|(key, InputRequest { question: RawServerRequest { method, params }, .. })| {
            format!(
                "{}:{{\"method\":{},\"params\":{}}}",
                response::text(key),
                response::text(method),
                params.as_str()
            )
        })
        .collect();
    let requests = requests.join(",");
    let state = response::text(state);
    format!(r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":{state}}}"#)
        .into()
}

/// The error for a state that was not given to this client.
pub(crate) fn unknown_state() -> RpcError {
    let message = "`requestState` belongs to no pending call: it was used, is too old, or was changed";
    RpcError::new(code::INVALID_PARAMS, message)
}

fn lost() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "the call was lost")
}

/// A channel for the server requests of a call.
pub(crate) fn input_channel() -> (mpsc::Sender<InputRequest>, mpsc::Receiver<InputRequest>) {
    mpsc::channel(MAX_INPUT_REQUESTS)
}

#[cfg(test)]
mod tests {
    use mcp_transport::RawRequestHandler;

    use super::*;
    use crate::session::elicitation::{InputRequestHandler, SupportedRequests};

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    /// A call that requests one list of roots and returns it.
    fn call() -> RunningCall {
        let (sender, receiver) = input_channel();
        let answers = SupportedRequests::of(&json(r#"{"roots":{}}"#));
        let request_count =
            InputRequestHandler { supported: answers, requests: sender, limit: Duration::from_secs(60) };
        let question = RawServerRequest { method: "roots/list".to_owned(), params: RawJson::empty_object() };
        RunningCall::start(
            async move { request_count.handle(question).await.map(RawJson::into_bytes) },
            receiver,
        )
    }

    fn state(result: &Bytes) -> String {
        let value: serde_json::Value = serde_json::from_slice(result).unwrap();
        assert_eq!(value["inputRequests"]["input-1"]["method"], "roots/list");
        value["requestState"].as_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn pending_call_resumes_once_and_only_for_its_client() {
        let pending_inputs = PendingInputs::new(&Bounds::default());
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let wait = Duration::from_secs(60);
        let first = pending_inputs.advance(call(), &ann, wait).await.unwrap();
        let state_of_it = state(&first);
        let answers = json(r#"{"input-1":{"roots":[]},"other":1}"#);
        let take = |state: &str, client: &Principal, answers| {
            pending_inputs.take(state, client, answers, Instant::now())
        };
        assert!(take(&state_of_it, &bob, Some(&answers)).is_err());
        assert!(take(&format!("{state_of_it}0"), &ann, Some(&answers)).is_err());

        // Without an answer the request is repeated, under another state.
        let nothing = json("{}");
        let again = take(&state_of_it, &ann, Some(&nothing)).unwrap();
        let second = state(&pending_inputs.advance(again, &ann, wait).await.unwrap());
        assert_ne!(state_of_it, second);
        let answered = take(&second, &ann, Some(&answers)).unwrap();
        assert_eq!(pending_inputs.advance(answered, &ann, wait).await.unwrap(), r#"{"roots":[]}"#);
        assert!(take(&second, &ann, Some(&answers)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn pending_call_expires() {
        let pending_inputs = PendingInputs::new(&Bounds { requests: 1, ..Bounds::default() });
        let ann = Principal::named("ann");
        let wait = Duration::from_secs(60);
        let old = state(&pending_inputs.advance(call(), &ann, wait).await.unwrap());
        assert_eq!(pending_inputs.advance(call(), &ann, wait).await.unwrap_err().code, code::SERVER_ERROR);
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
        assert_eq!(pending_inputs.advance(call(), &ann, wait).await.unwrap_err().code, code::SERVER_ERROR);
        assert!(pending_inputs.advance(call(), &bob, wait).await.is_ok());
        pending_inputs.drop_client(&ann);
        assert_eq!(pending_inputs.len(), 1);
        assert!(pending_inputs.advance(call(), &ann, wait).await.is_ok());
        pending_inputs.drop_all();
        assert_eq!(pending_inputs.len(), 0);
    }
}
