//! Tasks: tool calls that a server continues after its response. The session polls until the task has ended.
//!
//! The two forms differ: in 2025-11-25 the caller requests a task, and `tasks/result` returns its result and
//! carries the server's requests for input. With the extension of 2026-07-28 the server decides, and
//! `tasks/get` returns both.

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
use crate::session::requests::input_requests::InputDeadline;
use crate::session::requests::request::{Params, Request, ServerRequestPermission};
use crate::session::requests::response::{CallResponse, RawResponse, ReadResponse};
use crate::session::state::Session;
use crate::session::subscriptions::resubscribe::DetachedRequest;

/// How long a task may take if the caller sets no timeout.
pub const DEFAULT_TASK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The pause between polls if the server states none; the first ones are shorter.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The shortest and the longest pause between polls.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(100);
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
struct CancelOnDrop<'a> {
    session: &'a Session,
    id: &'a str,
    is_final: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.is_final {
            self.session.send_cancel(self.id);
        }
    }
}

impl Session {
    /// Whether the server can run tool calls as tasks, in its era's form.
    pub fn supports_tasks(&self) -> bool {
        let negotiated = self.negotiated();
        negotiated.server.capabilities.tasks.call
    }

    /// Calls a tool like [`Session::call_tool`], and returns as soon as the server has made a task of it. Dropping the
    /// future before cancels the call; the task is the caller's to follow or cancel.
    pub async fn start_tool_call(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<StartedCall<ToolResult>>, CallError> {
        let options = options.with_handled_input();
        let response = self.call(name, arguments, &options).await?;
        self.started_call(response, &options)
    }

    /// Calls a tool like [`Session::start_tool_call`], and returns a complete result byte for byte.
    pub async fn start_tool_call_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<StartedCall<RawJson>>, CallError> {
        let response = self.call(name, arguments, &options).await?;
        self.started_call(response, &options)
    }

    fn started_call<T>(
        &self,
        response: ReadResponse<T>,
        options: &CallOptions,
    ) -> Result<CallResponse<StartedCall<T>>, CallError> {
        match self.created_task(&response, options)? {
            Some(task) => Ok(response.with_value(StartedCall::Task(task))),
            None => Ok(response.into_response()?.map(StartedCall::Complete)),
        }
    }

    /// The state of a task (`tasks/get`).
    pub async fn get_task(&self, id: &str, options: &CallOptions) -> Result<Task, CallError> {
        let response =
            self.task_request(Method::GetTask, id, "", ServerRequestPermission::Denied, options).await?;
        Ok(self.redacted_task(response.read()?))
    }

    /// Waits for the result of a task, byte for byte. `options.timeout` is the time that it may take from now; the
    /// default is [`DEFAULT_TASK_TIMEOUT`]. The server's status messages are progress. Dropping the future,
    /// or an error, leaves the task alone.
    pub async fn task_result_raw(
        &self,
        task: &Task,
        options: &CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let timeout = options.timeout.unwrap_or(DEFAULT_TASK_TIMEOUT);
        let deadline = time_after(Instant::now(), timeout);
        let deadline = InputDeadline { at: deadline, limit: timeout };
        let options = CallOptions { timeout: None, retry: RetryPolicy::Once, ..options.clone() };
        let response = match self.era() {
            Era::Legacy => self.legacy_task_result(task, &options, deadline).await?,
            Era::Modern => self.modern_task_result(task, &options, deadline).await?,
        };
        response.into_response()
    }

    /// Waits for the result of a task, like [`Session::task_result_raw`].
    pub async fn task_result(
        &self,
        task: &Task,
        options: &CallOptions,
    ) -> Result<CallResponse<ToolResult>, CallError> {
        self.task_result_raw(task, options).await?.try_map(|it| it.read())
    }

    /// Waits for the result of a task, like [`Session::task_result_raw`], and cancels the task if the future is dropped
    /// or the time is over.
    pub async fn follow_task(
        &self,
        task: &Task,
        options: &CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        let mut guard = CancelOnDrop { session: self, id: &task.id, is_final: false };
        let result = self.task_result_raw(task, options).await;
        guard.is_final = !matches!(result, Err(CallError::TimedOut(_) | CallError::InputRequired(_)));
        result
    }

    /// Cancels a task. Fails if the task has ended or does not exist.
    pub async fn cancel_task(&self, id: &str, options: &CallOptions) -> Result<(), CallError> {
        self.task_request(Method::CancelTask, id, "", ServerRequestPermission::Denied, options)
            .await
            .map(drop)
    }

    /// The task that the response to a tool call created. A legacy server creates one on request only.
    pub(crate) fn created_task<T>(
        &self,
        response: &ReadResponse<T>,
        options: &CallOptions,
    ) -> Result<Option<Task>, CallError> {
        let may_be_task = options.task.is_some() || self.era() == Era::Modern;
        if !may_be_task || response.info.kind != ResultKind::Task {
            return Ok(None);
        }
        let task = read_created_task(response.raw.payload());
        let task = task.map_err(|it| CallError::InvalidResponse(format!("the created task: {it}")))?;
        Ok(Some(self.redacted_task(task)))
    }

    fn redacted_task(&self, mut task: Task) -> Task {
        task.message = task.message.map(|it| self.dial.redact(&it));
        task
    }

    async fn legacy_task_result(
        &self,
        task: &Task,
        options: &CallOptions,
        deadline: InputDeadline,
    ) -> Result<RawResponse, CallError> {
        let mut polls = Polls::new(options);
        let mut task = task.clone();
        // While the server waits for input, `tasks/result` carries its requests.
        while task.status == TaskStatus::Working {
            polls.pause(&task, deadline).await?;
            task = self.get_task(&task.id, &self.within(options, deadline)).await?;
        }
        if task.status == TaskStatus::Cancelled {
            return Err(cancelled(&task));
        }
        let timeout = Some(deadline.at.saturating_duration_since(Instant::now()));
        let options = CallOptions { timeout, ..options.clone() };
        self.task_request(Method::GetTaskResult, &task.id, "", ServerRequestPermission::Granted, &options)
            .await
    }

    async fn modern_task_result(
        &self,
        task: &Task,
        options: &CallOptions,
        mut deadline: InputDeadline,
    ) -> Result<RawResponse, CallError> {
        #[derive(Deserialize)]
        struct Payload<'a> {
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            error: Option<RpcError>,
            #[serde(borrow, rename = "inputRequests")]
            input_requests: Option<ObjectMembers<'a>>,
        }
        let mut polls = Polls::new(options);
        let mut provided = HashSet::new();
        let mut max_pause = options.context.max_deadline_pause();
        let mut task = task.clone();
        loop {
            if !task.status.is_final() {
                polls.pause(&task, deadline).await?;
            }
            let response = self
                .task_request(
                    Method::GetTask,
                    &task.id,
                    "",
                    ServerRequestPermission::Granted,
                    &self.within(options, deadline),
                )
                .await?;
            let payload: Payload<'_> = response.read()?;
            task = self.redacted_task(response.read()?);
            match task.status {
                TaskStatus::Working => {}
                TaskStatus::Completed => {
                    let missing =
                        || CallError::InvalidResponse("a completed task without a result".to_owned());
                    return Ok(response.part(payload.result.ok_or_else(missing)?));
                }
                TaskStatus::Failed => {
                    let unknown = || RpcError::new(code::INTERNAL_ERROR, "the task failed without an error");
                    return Err(self.redacted_rpc_error(payload.error.unwrap_or_else(unknown)));
                }
                TaskStatus::Cancelled => return Err(cancelled(&task)),
                TaskStatus::InputRequired => {
                    let ObjectMembers(mut requests) =
                        payload.input_requests.unwrap_or(ObjectMembers(Vec::new()));
                    requests.retain(|(key, _)| provided.insert(key.0.to_string()));
                    if provided.len() > MAX_INPUTS {
                        let message = format!("the task requests more than {MAX_INPUTS} inputs");
                        return Err(CallError::InputRequired(message));
                    }
                    if requests.is_empty() {
                        continue;
                    }
                    let since = Instant::now();
                    let input =
                        self.provide_inputs(options, requests, deadline.paused_for(max_pause)).await?;
                    // The time that the caller needed does not count against the server.
                    let waited = since.elapsed().min(max_pause);
                    max_pause -= waited;
                    deadline = deadline.paused_for(waited);
                    let input = format!(",\"inputResponses\":{{{input}}}");
                    self.task_request(
                        Method::UpdateTask,
                        &task.id,
                        &input,
                        ServerRequestPermission::Granted,
                        &self.within(options, deadline),
                    )
                    .await?;
                }
            }
        }
    }

    /// The options of one request about a task, which ends with the task's deadline at the latest.
    fn within(&self, options: &CallOptions, deadline: InputDeadline) -> CallOptions {
        let remaining = deadline.at.saturating_duration_since(Instant::now());
        CallOptions { timeout: Some(remaining.min(self.limits().request)), ..options.clone() }
    }

    /// Sends a request about a task. `more` has further parameters, each after a comma.
    async fn task_request(
        &self,
        method: Method,
        id: &str,
        more: &str,
        server_requests: ServerRequestPermission,
        options: &CallOptions,
    ) -> Result<RawResponse, CallError> {
        let text = format!("\"taskId\":{}{more}", frame::json_string(id));
        let params = Params::Members { text: &text, name: Some(id) };
        // Status messages are the progress of a task; its requests have none.
        let mut options = options.clone();
        options.context.progress = None;
        self.request(&Request { server_requests, ..Request::new(method, params, &options) }).await
    }

    /// Sends `tasks/cancel` without waiting for the response.
    fn send_cancel(&self, id: &str) {
        let negotiated = Arc::clone(&self.negotiated());
        if !negotiated.server.capabilities.tasks.cancel {
            return;
        }
        let params = format!("\"taskId\":{}", frame::json_string(id));
        let (epoch, limit) = (self.epoch(), self.limits().request);
        let name = (negotiated.version.era() == Era::Modern).then(|| id.to_owned());
        self.connection.send_detached(|engine| async move {
            let request = DetachedRequest { engine, negotiated, epoch, limit };
            if let Err(why) = request.send(Method::CancelTask, name.as_deref(), &params).await {
                tracing::debug!("the task was not cancelled: {why}");
            }
        });
    }
}

fn cancelled(task: &Task) -> CallError {
    CallError::TaskCancelled(task.message.clone())
}

/// The pauses between the polls of a task.
struct Polls<'a> {
    options: &'a CallOptions,
    next: Duration,
    count: u32,
    last_message: Option<String>,
}

impl<'a> Polls<'a> {
    fn new(options: &'a CallOptions) -> Polls<'a> {
        Polls { options, next: FIRST_POLL_INTERVAL, count: 0, last_message: None }
    }

    /// Reports the status message of a task that has not ended, and waits before the next poll. Fails at the deadline.
    async fn pause(&mut self, task: &Task, deadline: InputDeadline) -> Result<(), CallError> {
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
            None => self.next,
        };
        self.next = (self.next * 2).min(DEFAULT_POLL_INTERVAL);
        let next_poll = Instant::now() + pause;
        if next_poll >= deadline.at {
            tokio::time::sleep_until(deadline.at).await;
            return Err(CallError::TimedOut(Expiry::Absolute(deadline.limit)));
        }
        tokio::time::sleep_until(next_poll).await;
        Ok(())
    }
}
