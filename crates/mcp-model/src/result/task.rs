//! Tasks: requests that a server continues after its response. Their results are fetched later.
//!
//! Two forms exist: the experimental one of 2025-11-25, and the extension `io.modelcontextprotocol/tasks` of
//! 2026-07-28.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The name of the extension for tasks of 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A task of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// The server's id of the task.
    pub id: String,
    /// The status.
    pub status: TaskStatus,
    /// The server's description of the status.
    pub message: Option<String>,
    /// The time of its creation in ISO 8601, as the server sent it.
    pub created_at: Option<String>,
    /// The time to live from its creation. `None`: unlimited or unknown.
    pub ttl: Option<Duration>,
    /// The requested pause between two polls.
    pub poll_interval: Option<Duration>,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-transport waits by status; a wildcard would wait for ever or not at all"
)]
pub enum TaskStatus {
    /// The server works on it.
    Working,
    /// The server waits for input.
    InputRequired,
    /// It has a result, which may be a failure of the tool (`isError`).
    Completed,
    /// It failed with a JSON-RPC error. In 2025-11-25 also: the tool failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns whether the task has ended: its status does not change again.
    pub fn is_final(self) -> bool {
        match self {
            TaskStatus::Working | TaskStatus::InputRequired => false,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled => true,
        }
    }

    /// Returns the name in the protocol.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A task in either form.
#[derive(Deserialize)]
struct TaskJson<'a> {
    #[serde(borrow, rename = "taskId")]
    id: Cow<'a, str>,
    status: TaskStatus,
    #[serde(borrow, default, rename = "statusMessage")]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "createdAt")]
    created_at: Option<Cow<'a, str>>,
    #[serde(default, alias = "ttlMs")]
    ttl: Option<f64>,
    #[serde(default, rename = "pollInterval", alias = "pollIntervalMs")]
    poll_interval: Option<f64>,
}

impl<'de> Deserialize<'de> for Task {
    /// Reads the result of `tasks/get` in both forms. Fails without an id and a known status.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Task, D::Error> {
        let json = TaskJson::deserialize(deserializer)?;
        if json.id.is_empty() {
            return Err(serde::de::Error::custom("the id of the task is empty"));
        }
        Ok(Task {
            id: json.id.into_owned(),
            status: json.status,
            message: json.message.map(Cow::into_owned).filter(|it| !it.is_empty()),
            created_at: json.created_at.map(Cow::into_owned),
            ttl: json.ttl.and_then(from_milliseconds),
            poll_interval: json.poll_interval.and_then(from_milliseconds),
        })
    }
}

/// Converts a number of milliseconds. Negative and huge numbers count as missing.
fn from_milliseconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number / 1000.0).ok()
}

/// Reads the task in a result of the kind [`ResultKind::Task`](crate::ResultKind::Task). What follows the result is
/// ignored.
pub fn read_created_task(result: &[u8]) -> Result<Task, serde_json::Error> {
    #[derive(Deserialize)]
    struct CreatedTaskJson<'a> {
        #[serde(borrow, rename = "resultType")]
        result_type: Option<&'a RawValue>,
        /// The task of 2025-11-25.
        #[serde(borrow)]
        task: Option<&'a RawValue>,
    }
    match CreatedTaskJson::deserialize(&mut serde_json::Deserializer::from_slice(result))? {
        CreatedTaskJson { result_type: None, task: Some(task) } => serde_json::from_str(task.get()),
        CreatedTaskJson { .. } => Task::deserialize(&mut serde_json::Deserializer::from_slice(result)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, want: &str) {
        let got = match read_created_task(format!("{result},\"id\":1}}").as_bytes()) {
            Ok(it) => format!("{} {} {:?} {:?}", it.id, it.status.as_str(), it.ttl, it.poll_interval),
            Err(error) => error.to_string().split(" at line").next().unwrap_or_default().to_owned(),
        };
        assert_eq!(got, want, "{result}");
    }

    #[test]
    fn created_tasks_of_both_forms_are_read() {
        check(
            r#"{"task":{"taskId":"a","status":"working","ttl":30000,"pollInterval":500,"createdAt":"2026"}}"#,
            "a working Some(30s) Some(500ms)",
        );
        check(
            r#"{"resultType":"task","taskId":"b","status":"input_required","ttlMs":null,"pollIntervalMs":0}"#,
            "b input_required None Some(0ns)",
        );
        check(
            r#"{"resultType":"task","taskId":"b","status":"completed","ttlMs":-1,"pollIntervalMs":1e300}"#,
            "b completed None None",
        );
        check(r#"{"task":{"taskId":"b"}}"#, "missing field `status`");
        check(r#"{"resultType":"task","taskId":"","status":"working"}"#, "the id of the task is empty");
        check(r#"{"resultType":"task","status":"working"}"#, "missing field `taskId`");
        check(
            r#"{"resultType":"task","taskId":"b","status":"asleep"}"#,
            "unknown variant `asleep`, expected one of `working`, `input_required`, `completed`, `failed`, \
            `cancelled`",
        );
    }

    #[test]
    fn only_ended_tasks_are_final() {
        use TaskStatus::{Cancelled, Completed, Failed, InputRequired, Working};
        let all = [Working, InputRequired, Completed, Failed, Cancelled];
        assert_eq!(all.map(TaskStatus::is_final), [false, false, true, true, true]);
    }
}
