//! Tasks: tool calls that a server continues after its response. The session polls until the task has ended.
//!
//! Tasks have two forms. In 2025-11-25 the caller requests a task; `tasks/result` returns its result, and the server
//! sends its requests for input on that response stream. With the extension of 2026-07-28 the server decides whether a
//! call becomes a task, and `tasks/get` returns its result and its requests for input.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{
    Era, Method, RawJson, ResultKind, RpcError, Task, TaskStatus, ToolResult, code, read_created_task,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::{CallError, Expiry};
use crate::rpc::deadline::time_after;
use crate::rpc::frame;
use crate::rpc::object_members::ObjectMembers;
use crate::rpc::progress::Progress;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::input_requests::WaitDeadline;
use crate::session::requests::request::{OutboundRequest, RequestParams, ServerRequestPermission};
use crate::session::requests::response::{CallResponse, ParsedResponse, RawResponse};
use crate::session::state::Session;
use crate::session::subscriptions::background_requests::BackgroundRequester;

/// How long a task may take if the caller sets no timeout.
pub const DEFAULT_TASK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The longest pause between polls if the server states none. The first pauses are shorter.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The first and shortest pause between polls.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest pause between polls that a server can request.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of inputs of one task.
const MAX_INPUTS: usize = 100;

/// The outcome of a tool call that may become a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-host returns or follows each; a wildcard would lose a result"
)]
pub enum StartedCall<T> {
    /// The call is complete.
    Complete(T),
    /// The server continues the call as this task.
    Task(Task),
}

/// Cancels a task at the server when it is dropped.
struct CancelTaskGuard<'a> {
    session: &'a Session,
    id: &'a str,
    /// Whether the task needs no cancellation.
    is_disarmed: bool,
}

impl Drop for CancelTaskGuard<'_> {
    fn drop(&mut self) {
        if !self.is_disarmed {
            self.session.send_cancel_task(self.id);
        }
    }
}

impl Session {
    /// Whether the server supports tasks for tool calls, in the form of its era.
    pub fn supports_tasks(&self) -> bool {
        let negotiated = self.negotiated();
        negotiated.server.capabilities.tasks.call
    }

    /// Calls a tool like [`Session::call_tool`], but returns as soon as the server has made a task of the call.
    /// Dropping the future before that cancels the call. After that the caller is responsible for the task: see
    /// [`Session::follow_task`] and [`Session::cancel_task`].
    pub async fn start_tool_call(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<StartedCall<ToolResult>>, CallError> {
        let options = options.with_handled_input();
        let response = self.call(name, arguments, &options).await?;
        self.convert_started_call(response, &options)
    }

    /// Calls a tool like [`Session::start_tool_call`], and returns a complete result byte for byte.
    pub async fn start_tool_call_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<StartedCall<RawJson>>, CallError> {
        let response = self.call(name, arguments, &options).await?;
        self.convert_started_call(response, &options)
    }

    /// Converts the response to a tool call.
    fn convert_started_call<T>(
        &self,
        response: ParsedResponse<T>,
        options: &CallOptions,
    ) -> Result<CallResponse<StartedCall<T>>, CallError> {
        match self.created_task(&response, options)? {
            Some(task) => Ok(response.with_value(StartedCall::Task(task))),
            None => Ok(response.into_response()?.map(StartedCall::Complete)),
        }
    }

    /// Requests the state of a task (`tasks/get`).
    pub async fn get_task(&self, id: &str, options: &CallOptions) -> Result<Task, CallError> {
        let response =
            self.send_task_request(Method::GetTask, id, "", ServerRequestPermission::Denied, options).await?;
        Ok(self.redact_task(response.read()?))
    }

    /// Waits for the result of a task, byte for byte. `options.timeout` is the time that it may take from now; the
    /// default is [`DEFAULT_TASK_TIMEOUT`]. The server's status messages are reported as progress. Neither an error nor
    /// dropping the future cancels the task.
    pub async fn task_result_raw(
        &self,
        task: &Task,
        options: &CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let timeout = options.timeout.unwrap_or(DEFAULT_TASK_TIMEOUT);
        let deadline = time_after(Instant::now(), timeout);
        let deadline = WaitDeadline { at: deadline, limit: timeout };
        let options = CallOptions { timeout: None, retry: RetryPolicy::Once, ..options.clone() };
        let response = match self.era() {
            Era::Legacy => self.poll_legacy_task(task, &options, deadline).await?,
            Era::Modern => self.poll_modern_task(task, &options, deadline).await?,
        };
        response.into_response(self.dial.as_ref())
    }

    /// Waits for the result of a task, like [`Session::task_result_raw`].
    pub async fn task_result(
        &self,
        task: &Task,
        options: &CallOptions,
    ) -> Result<CallResponse<ToolResult>, CallError> {
        self.task_result_raw(task, options).await?.try_map(|it| it.read())
    }

    /// Waits for the result of a task, like [`Session::task_result_raw`]. Cancels the task if the future is dropped,
    /// the time is over, or required input cannot be provided.
    pub async fn follow_task(
        &self,
        task: &Task,
        options: &CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let mut guard = CancelTaskGuard { session: self, id: &task.id, is_disarmed: false };
        let result = self.task_result_raw(task, options).await;
        guard.is_disarmed = !matches!(
            result,
            Err(CallError::TimedOut(_) | CallError::TimedOutUnmatched { .. } | CallError::InputRequired(_))
        );
        result
    }

    /// Cancels a task. Fails if the task has ended or does not exist.
    pub async fn cancel_task(&self, id: &str, options: &CallOptions) -> Result<(), CallError> {
        self.send_task_request(Method::CancelTask, id, "", ServerRequestPermission::Denied, options)
            .await
            .map(drop)
    }

    /// The task that the response to a tool call created. A legacy server creates one on request only.
    pub(crate) fn created_task<T>(
        &self,
        response: &ParsedResponse<T>,
        options: &CallOptions,
    ) -> Result<Option<Task>, CallError> {
        let may_be_task = options.task.is_some() || response.raw.era == Era::Modern;
        if !may_be_task || response.info.kind != ResultKind::Task {
            return Ok(None);
        }
        let task = read_created_task(response.raw.payload());
        let task = task.map_err(|it| CallError::InvalidResponse(format!("the created task: {it}")))?;
        Ok(Some(self.redact_task(task)))
    }

    fn redact_task(&self, mut task: Task) -> Task {
        task.message = task.message.map(|it| self.dial.redact(&it));
        task
    }

    /// Polls a task of 2025-11-25 while it works, then requests its result.
    async fn poll_legacy_task(
        &self,
        task: &Task,
        options: &CallOptions,
        deadline: WaitDeadline,
    ) -> Result<RawResponse, CallError> {
        let mut polls = PollSchedule::new(options);
        let mut task = task.clone();
        // A task that requires input is not polled: the server sends its requests while `tasks/result` waits.
        while task.status == TaskStatus::Working {
            polls.wait(&task, deadline).await?;
            task = self.get_task(&task.id, &self.options_within(options, deadline)).await?;
        }
        if task.status == TaskStatus::Cancelled {
            return Err(cancelled_error(&task));
        }
        let timeout = Some(deadline.at.saturating_duration_since(Instant::now()));
        let options = CallOptions { timeout, ..options.clone() };
        self.send_task_request(
            Method::GetTaskResult,
            &task.id,
            "",
            ServerRequestPermission::Granted,
            &options,
        )
        .await
    }

    /// Polls a task of 2026-07-28 and provides its input until it has ended.
    async fn poll_modern_task(
        &self,
        task: &Task,
        options: &CallOptions,
        mut deadline: WaitDeadline,
    ) -> Result<RawResponse, CallError> {
        #[derive(Deserialize)]
        struct TaskPayload<'a> {
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            error: Option<RpcError>,
            #[serde(borrow, rename = "inputRequests")]
            input_requests: Option<ObjectMembers<'a>>,
        }
        let mut polls = PollSchedule::new(options);
        let mut provided_keys = HashSet::new();
        let mut max_pause = options.context.max_deadline_pause();
        let mut task = task.clone();
        loop {
            if !task.status.is_final() {
                polls.wait(&task, deadline).await?;
            }
            let response = self
                .send_task_request(
                    Method::GetTask,
                    &task.id,
                    "",
                    ServerRequestPermission::Granted,
                    &self.options_within(options, deadline),
                )
                .await?;
            let payload: TaskPayload<'_> = response.read()?;
            task = self.redact_task(response.read()?);
            match task.status {
                TaskStatus::Working => {}
                TaskStatus::Completed => {
                    let missing =
                        || CallError::InvalidResponse("a completed task without a result".to_owned());
                    return Ok(response.with_payload(payload.result.ok_or_else(missing)?));
                }
                TaskStatus::Failed => {
                    let unknown = || RpcError::new(code::INTERNAL_ERROR, "the task failed without an error");
                    return Err(self.redact_rpc_error(payload.error.unwrap_or_else(unknown)));
                }
                TaskStatus::Cancelled => return Err(cancelled_error(&task)),
                TaskStatus::InputRequired => {
                    let ObjectMembers(mut requests) =
                        payload.input_requests.unwrap_or(ObjectMembers(Vec::new()));
                    requests.retain(|(key, _)| provided_keys.insert(key.0.to_string()));
                    if provided_keys.len() > MAX_INPUTS {
                        let message = format!("the task requests more than {MAX_INPUTS} inputs");
                        return Err(CallError::InputRequired(message));
                    }
                    if requests.is_empty() {
                        continue;
                    }
                    let wait_started_at = Instant::now();
                    let input =
                        self.provide_input(options, requests, deadline.extended_by(max_pause)).await?;
                    // The time that the caller's handlers needed does not count against the server.
                    let waited = wait_started_at.elapsed().min(max_pause);
                    max_pause -= waited;
                    deadline = deadline.extended_by(waited);
                    let input = format!(",\"inputResponses\":{{{input}}}");
                    self.send_task_request(
                        Method::UpdateTask,
                        &task.id,
                        &input,
                        ServerRequestPermission::Granted,
                        &self.options_within(options, deadline),
                    )
                    .await?;
                }
            }
        }
    }

    /// The options of one request about a task, with a timeout that ends no later than `deadline`.
    fn options_within(&self, options: &CallOptions, deadline: WaitDeadline) -> CallOptions {
        let remaining = deadline.at.saturating_duration_since(Instant::now());
        CallOptions { timeout: Some(remaining.min(self.limits().request)), ..options.clone() }
    }

    /// Sends a request about a task. `more_params` are JSON members, each after a comma.
    async fn send_task_request(
        &self,
        method: Method,
        id: &str,
        more_params: &str,
        server_requests: ServerRequestPermission,
        options: &CallOptions,
    ) -> Result<RawResponse, CallError> {
        let text = format!("\"taskId\":{}{more_params}", frame::json_string(id));
        let params = RequestParams::Members { text: &text, name: Some(id) };
        // The status messages are reported as progress, so the single requests report none.
        let mut options = options.clone();
        options.context.progress = None;
        let request = OutboundRequest { server_requests, ..OutboundRequest::new(method, params, &options) };
        Ok(self.request(&request).await?.without_unpaired_surrogates())
    }

    /// Sends `tasks/cancel` without waiting for the response.
    fn send_cancel_task(&self, id: &str) {
        let negotiated = Arc::clone(&self.negotiated());
        if !negotiated.server.capabilities.tasks.cancel {
            return;
        }
        let params = format!("\"taskId\":{}", frame::json_string(id));
        let (epoch, timeout) = (self.epoch(), self.limits().request);
        let name = (negotiated.version.era() == Era::Modern).then(|| id.to_owned());
        let engine = Arc::clone(&self.connection.engine);
        self.connection.spawn(async move {
            let requester = BackgroundRequester { engine, negotiated, epoch, timeout };
            if let Err(why) = requester.send(Method::CancelTask, name.as_deref(), &params).await {
                tracing::debug!("the task was not cancelled: {why}");
            }
        });
    }
}

fn cancelled_error(task: &Task) -> CallError {
    CallError::TaskCancelled(task.message.clone())
}

/// Schedules the polls of a task, and reports its status messages as progress.
struct PollSchedule<'a> {
    options: &'a CallOptions,
    /// The next pause, if the server states none.
    next_pause: Duration,
    /// The number of pauses so far.
    count: u32,
    /// The last reported message.
    last_message: Option<String>,
}

impl<'a> PollSchedule<'a> {
    fn new(options: &'a CallOptions) -> PollSchedule<'a> {
        PollSchedule { options, next_pause: FIRST_POLL_INTERVAL, count: 0, last_message: None }
    }

    /// Reports a new status message of the task, and waits until the next poll. Fails at the deadline.
    async fn wait(&mut self, task: &Task, deadline: WaitDeadline) -> Result<(), CallError> {
        self.count += 1;
        if let Some(on_progress) = &self.options.context.progress
            && task.message.is_some()
            && task.message != self.last_message
        {
            self.last_message.clone_from(&task.message);
            on_progress(Progress {
                progress: f64::from(self.count),
                total: None,
                message: task.message.clone(),
            });
        }
        let pause = match task.poll_interval {
            Some(interval) => interval.clamp(FIRST_POLL_INTERVAL, MAX_POLL_INTERVAL),
            None => self.next_pause,
        };
        self.next_pause = (self.next_pause * 2).min(DEFAULT_POLL_INTERVAL);
        let next_poll = Instant::now() + pause;
        if next_poll >= deadline.at {
            tokio::time::sleep_until(deadline.at).await;
            return Err(CallError::TimedOut(Expiry::Absolute(deadline.limit)));
        }
        tokio::time::sleep_until(next_poll).await;
        Ok(())
    }
}
