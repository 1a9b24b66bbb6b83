//! Calls of clients without sessions that wait for input: a server of the older eras has asked something while a call
//! ran, and the call goes on when its client comes back with the answer.
//!
//! The state that a client is handed is a name that nobody guesses, and works once, for him alone. How many calls wait
//! is bounded, and so is how long each does: one whose client does not come back is taken back at its server.

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
use crate::session::elicitation::LaidDown;

/// What every state of ours begins with.
const MARK: &str = "mcp-host:";

/// How many questions one call may have open.
pub(crate) const MOST_QUESTIONS: usize = 32;

/// What a call comes to.
type Outcome = Result<Bytes, RpcError>;

/// The calls that wait.
#[derive(Debug)]
pub(crate) struct Parked {
    table: Mutex<HashMap<String, Waiting>>,
    most: usize,
    most_of_one: usize,
}

/// One of them.
#[derive(Debug)]
struct Waiting {
    principal: Principal,
    until: Instant,
    call: Call,
}

/// A call under way in a task of its own.
#[derive(Debug)]
pub(crate) struct Call {
    outcome: oneshot::Receiver<Outcome>,
    desk: mpsc::Receiver<LaidDown>,
    open: Vec<(String, LaidDown)>,
    asked: usize,
    _task: Ending,
}

/// Takes the call back when it is dropped.
#[derive(Debug)]
struct Ending(JoinHandle<()>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Call {
    /// Begins a call, which lays its questions down at `desk`.
    pub(crate) fn begin(
        work: impl Future<Output = Outcome> + Send + 'static,
        desk: mpsc::Receiver<LaidDown>,
    ) -> Call {
        let (done, outcome) = oneshot::channel();
        let task = tokio::spawn(async move {
            // Nobody waits any more: the call was taken back.
            let _ = done.send(work.await);
        });
        Call { outcome, desk, open: Vec::new(), asked: 0, _task: Ending(task) }
    }
}

impl Parked {
    /// No calls, of as many as the bounds allow.
    pub(crate) fn new(bounds: &Bounds) -> Parked {
        Parked { table: Mutex::default(), most: bounds.requests, most_of_one: bounds.parked_of_one }
    }

    /// Is it a state that stands for a call here?
    pub(crate) fn is_ours(state: &str) -> bool {
        state.starts_with(MARK)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Drops those whose clients did not come back in time: they are taken back at their servers.
    pub(crate) fn drop_expired(&self, now: Instant) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, it| it.until > now);
    }

    /// Drops all those of a client.
    pub(crate) fn drop_of(&self, principal: &Principal) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, it| it.principal != *principal);
    }

    /// Drops all of them.
    pub(crate) fn drop_all(&self) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Goes on with the call of `state`, with what the client answers.
    pub(crate) fn take(
        &self,
        state: &str,
        principal: &Principal,
        responses: Option<&RawJson>,
        now: Instant,
    ) -> Result<Call, RpcError> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let found = table.get(state).filter(|it| it.principal == *principal && it.until > now);
        found.ok_or_else(unknown)?;
        let Waiting { mut call, .. } = table.remove(state).ok_or_else(unknown)?;
        let given = responses.map(json_splice::members).unwrap_or_default();
        for (key, answer) in given {
            // Answers to what nobody asked are none.
            if let Some(at) = call.open.iter().position(|(open, _)| *open == key) {
                let (_, laid_down) = call.open.remove(at);
                // The server may have taken its question back.
                let _ = laid_down.answer.send(answer);
            }
        }
        Ok(call)
    }

    /// Waits for the call's end, or for its next question: then gives the result that asks for input.
    pub(crate) async fn go_on(&self, mut call: Call, principal: &Principal, wait: Duration) -> Outcome {
        // A question that was not answered is asked again at once.
        if call.open.is_empty() {
            tokio::select! {
                biased;
                outcome = &mut call.outcome => return outcome.unwrap_or_else(|_| Err(lost())),
                Some(laid_down) = call.desk.recv() => call.lay_down(laid_down),
            }
        }
        while let Ok(laid_down) = call.desk.try_recv() {
            call.lay_down(laid_down);
        }
        let state = format!("{MARK}{}", secret_id());
        let result = asks(&state, &call.open);
        let now = Instant::now();
        let until = now + wait;
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|_, it| it.until > now);
        let own = table.values().filter(|it| it.principal == *principal).count();
        if table.len() >= self.most || own >= self.most_of_one {
            // The call is taken back as it is dropped, and its questions with it.
            return Err(RpcError::new(
                code::SERVER_ERROR,
                "too many calls wait for input: answer some first",
            ));
        }
        table.insert(state, Waiting { principal: principal.clone(), until, call });
        Ok(result)
    }
}

impl Call {
    fn lay_down(&mut self, laid_down: LaidDown) {
        self.asked += 1;
        self.open.push((format!("input-{}", self.asked), laid_down));
    }
}

/// The result that asks for input.
fn asks(state: &str, open: &[(String, LaidDown)]) -> Bytes {
    let requests: Vec<String> = open
        .iter()
        .map(|(key, LaidDown { question: RawServerRequest { method, params }, .. })| {
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

/// Nothing was given out under this state, to this client.
pub(crate) fn unknown() -> RpcError {
    let message = "`requestState` stands for no call that waits: it was used, is too old, or was changed";
    RpcError::new(code::INVALID_PARAMS, message)
}

fn lost() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "the call was lost")
}

/// Where a call lays its questions down.
pub(crate) fn desk() -> (mpsc::Sender<LaidDown>, mpsc::Receiver<LaidDown>) {
    mpsc::channel(MOST_QUESTIONS)
}

#[cfg(test)]
mod tests {
    use mcp_transport::RawRequestHandler;

    use super::*;
    use crate::session::elicitation::{Answers, AskedByResult};

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    /// A call that asks for one root list and answers with what it got.
    fn call() -> Call {
        let (sender, receiver) = desk();
        let answers = Answers::of(&json(r#"{"roots":{}}"#));
        let asked = AskedByResult { answers, desk: sender, limit: Duration::from_secs(60) };
        let question = RawServerRequest { method: "roots/list".to_owned(), params: RawJson::empty_object() };
        Call::begin(async move { asked.handle(question).await.map(RawJson::into_bytes) }, receiver)
    }

    fn state(result: &Bytes) -> String {
        let value: serde_json::Value = serde_json::from_slice(result).unwrap();
        assert_eq!(value["inputRequests"]["input-1"]["method"], "roots/list");
        value["requestState"].as_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_goes_on_for_its_client_alone_and_once() {
        let parked = Parked::new(&Bounds::default());
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let wait = Duration::from_secs(60);
        let first = parked.go_on(call(), &ann, wait).await.unwrap();
        let state_of_it = state(&first);
        let answers = json(r#"{"input-1":{"roots":[]},"other":1}"#);
        let take = |state: &str, who: &Principal, answers| parked.take(state, who, answers, Instant::now());
        assert!(take(&state_of_it, &bob, Some(&answers)).is_err());
        assert!(take(&format!("{state_of_it}0"), &ann, Some(&answers)).is_err());

        // Without the answer the question is asked again, under another state.
        let nothing = json("{}");
        let again = take(&state_of_it, &ann, Some(&nothing)).unwrap();
        let second = state(&parked.go_on(again, &ann, wait).await.unwrap());
        assert_ne!(state_of_it, second);
        let answered = take(&second, &ann, Some(&answers)).unwrap();
        assert_eq!(parked.go_on(answered, &ann, wait).await.unwrap(), r#"{"roots":[]}"#);
        assert!(take(&second, &ann, Some(&answers)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_come_back_is_not_waited_for() {
        let parked = Parked::new(&Bounds { requests: 1, ..Bounds::default() });
        let ann = Principal::named("ann");
        let wait = Duration::from_secs(60);
        let old = state(&parked.go_on(call(), &ann, wait).await.unwrap());
        assert_eq!(parked.go_on(call(), &ann, wait).await.unwrap_err().code, code::SERVER_ERROR);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(parked.take(&old, &ann, None, Instant::now()).is_err());
        assert!(parked.go_on(call(), &ann, wait).await.is_ok());
        assert_eq!(parked.len(), 1);
        parked.drop_expired(Instant::now());
        assert_eq!(parked.len(), 1);
        tokio::time::advance(Duration::from_secs(61)).await;
        parked.drop_expired(Instant::now());
        assert_eq!(parked.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_calls_of_one_leave_room_for_those_of_others() {
        let parked = Parked::new(&Bounds { parked_of_one: 2, ..Bounds::default() });
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let wait = Duration::from_secs(60);
        for _ in 0..2 {
            assert!(parked.go_on(call(), &ann, wait).await.is_ok());
        }
        assert_eq!(parked.go_on(call(), &ann, wait).await.unwrap_err().code, code::SERVER_ERROR);
        assert!(parked.go_on(call(), &bob, wait).await.is_ok());
        parked.drop_of(&ann);
        assert_eq!(parked.len(), 1);
        assert!(parked.go_on(call(), &ann, wait).await.is_ok());
        parked.drop_all();
        assert_eq!(parked.len(), 0);
    }
}
