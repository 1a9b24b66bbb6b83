//! How far a call has come, as the server tells it.

use std::sync::Arc;

use serde::Deserialize;

use crate::transport::Dial;

/// One `notifications/progress`.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far; grows with each notification.
    pub progress: f64,
    /// How far it will be at the end, where known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

impl Progress {
    /// The same without what the server was given in confidence.
    pub(crate) fn cleaned(self, dial: &dyn Dial) -> Progress {
        let message = self.message.map(|it| dial.redact(&it));
        Progress { message, ..self }
    }
}

/// Called with each progress of a call, on the task that reads the wire: it must not wait.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Reads the `params` of a progress notification: the token, which is the id of the call, and the progress.
pub(crate) fn read(params: &[u8]) -> Option<(u64, Progress)> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "progressToken")]
        token: u64,
        #[serde(default)]
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let wire = Wire::deserialize(&mut serde_json::Deserializer::from_slice(params)).ok()?;
    Some((wire.token, Progress { progress: wire.progress, total: wire.total, message: wire.message }))
}
