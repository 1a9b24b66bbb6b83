//! Progress notifications.

use std::sync::Arc;

use serde::Deserialize;

use crate::transport::Dial;

/// A `notifications/progress`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The progress so far; increases with each notification.
    pub progress: f64,
    /// The value at completion, if known.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

impl Progress {
    /// Redacts secrets in the message.
    pub(crate) fn redact(self, dial: &dyn Dial) -> Progress {
        let message = self.message.map(|it| dial.redact(&it));
        Progress { message, ..self }
    }
}

/// Callback for the progress of a call. Runs on the task that reads the connection and must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Reads the `params` of a progress notification: the token, which is the id of the call, and the progress.
pub(crate) fn parse(params: &[u8]) -> Option<(u64, Progress)> {
    #[derive(Deserialize)]
    struct ProgressJson {
        #[serde(rename = "progressToken")]
        token: u64,
        #[serde(default)]
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let params = ProgressJson::deserialize(&mut serde_json::Deserializer::from_slice(params)).ok()?;
    Some((params.token, Progress { progress: params.progress, total: params.total, message: params.message }))
}
