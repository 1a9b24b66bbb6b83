//! Watches the tasks of a `subscriptions/listen` request by polling, so that it works with every server.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use mcp_host_model::{Method, RawJson, RpcError, Task, code};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::gateway::GatewayInner;
use crate::methods::context::RequestContext;
use crate::protocol::frame::ClientRequest;
use crate::protocol::params::MessageParams;
use crate::session::request_client::RequestClient;

/// How long the first poll of a task may take.
const FIRST_POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two polls, if the server requests none.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The minimum pause that a server can request.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum pause that a server can request.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// The pause after a poll that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The tasks of one stream. Dropping it ends the polls and leaves the tasks alone.
pub(crate) struct TaskWatch {
    poller: Arc<TaskPoller>,
    polls: FuturesUnordered<Pin<Box<dyn Future<Output = TaskPoll> + Send>>>,
}

/// Polls tasks for a client.
struct TaskPoller {
    gateway: Arc<GatewayInner>,
    client: RequestClient,
}

/// The result of a poll of a task.
struct TaskPoll {
    /// The `tasks/get` request, with the client's id of the task.
    request: ClientRequest,
    /// The last state that the client was notified of.
    notified: Option<RawJson>,
    outcome: Result<RawJson, RpcError>,
}

impl TaskWatch {
    /// Starts to watch the tasks with these sealed ids. Returns the ids of those that exist, with their states.
    pub(crate) async fn start(
        gateway: &Arc<GatewayInner>,
        client: &RequestClient,
        ids: &[String],
    ) -> (TaskWatch, Vec<(String, RawJson)>) {
        let poller = Arc::new(TaskPoller { gateway: Arc::clone(gateway), client: client.clone() });
        let polls = ids.iter().map(async |id| {
            let poll = poller.poll(task_get_request(id), None, Duration::ZERO);
            let poll = timeout(FIRST_POLL_TIMEOUT, poll).await.ok()?;
            poll.outcome.is_ok().then_some((id, poll))
        });
        let mut watch = TaskWatch { poller: Arc::clone(&poller), polls: FuturesUnordered::new() };
        let mut accepted = Vec::new();
        for (id, poll) in join_all(polls).await.into_iter().flatten() {
            accepted.extend(watch.schedule(poll).map(|task| (id.clone(), task)));
        }
        (watch, accepted)
    }

    /// The next changed state of a task. Never resolves once all tasks have ended. Cancel-safe.
    pub(crate) async fn next(&mut self) -> RawJson {
        loop {
            let Some(poll) = self.polls.next().await else { std::future::pending().await };
            if let Some(changed) = self.schedule(poll) {
                return changed;
            }
        }
    }

    /// Schedules the next poll of a task, unless it has ended. Returns its state if that has changed.
    fn schedule(&mut self, poll: TaskPoll) -> Option<RawJson> {
        let TaskPoll { request, notified, outcome } = poll;
        let (pause, state, changed) = match outcome {
            Ok(state) => {
                let task = state.read::<Task>().ok();
                let changed = Some(&state).filter(|it| Some(*it) != notified.as_ref()).cloned();
                // A state that cannot be read is the last one.
                let Some(task) = task.filter(|it| !it.status.is_final()) else { return changed };
                let pause = task.poll_interval.unwrap_or(POLL_INTERVAL);
                (pause.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL), Some(state), changed)
            }
            // The server has forgotten the task.
            Err(error) if error.code == code::INVALID_PARAMS => return None,
            Err(_) => (RETRY_INTERVAL, notified, None),
        };
        let poller = Arc::clone(&self.poller);
        self.polls.push(Box::pin(async move { poller.poll(request, state, pause).await }));
        changed
    }
}

impl TaskPoller {
    /// Requests the state of a task, after a pause.
    async fn poll(&self, request: ClientRequest, notified: Option<RawJson>, pause: Duration) -> TaskPoll {
        sleep(pause).await;
        let context = RequestContext::new(&self.gateway, &self.client, &request);
        let outcome = context.handle_task_request(Method::GetTask).await.map(|it| it.object);
        TaskPoll { request, notified, outcome }
    }
}

/// A request for the state of a task.
fn task_get_request(id: &str) -> ClientRequest {
    let params = RawJson::from_value(&json!({"taskId": id})).expect("its keys are strings");
    let params = MessageParams::parse(params).expect("it is an object");
    // The id of the request is not sent to the server.
    ClientRequest::new(RawJson::empty_object(), Method::GetTask.into(), params)
}
