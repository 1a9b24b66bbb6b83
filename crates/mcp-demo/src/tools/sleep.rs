//! The tool `sleep`: sleeps, reports progress, and stops when the call is cancelled.

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{CallToolResponse, ProgressNotificationParam},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::call::{ToolCall, ToolError, text_result};

const MAX_MS: u64 = 600_000;
const MAX_STEPS: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sleep {
    /// How long to sleep in all, in milliseconds, at most 600000
    #[schemars(range(max = 600_000))]
    ms: u64,
    /// In how many steps, 1 to 1000, each of which is reported; 1 unless given
    #[serde(default = "default_steps")]
    #[schemars(range(min = 1, max = 1000))]
    steps: u32,
}

fn default_steps() -> u32 {
    1
}

/// Sleeps. Cancel-safe.
pub(super) async fn sleep(call: &ToolCall<'_>, arguments: Sleep) -> Result<CallToolResponse, ToolError> {
    let Sleep { ms, steps } = arguments;
    if ms > MAX_MS || !(1..=MAX_STEPS).contains(&steps) {
        return Err(ToolError::tool(format!("`ms` is at most {MAX_MS}, `steps` 1 to {MAX_STEPS}")));
    }
    tokio::select! {
        biased;
        () = call.context.ct.cancelled() => Err(cancelled()),
        () = call.lifetime.wait_for_end() => Err(cancelled()),
        () = sleep_in_steps(call, Duration::from_millis(ms) / steps, steps) => {
            Ok(text_result(format!("slept {ms} ms in {steps} {}", if steps == 1 { "step" } else { "steps" })))
        }
    }
}

/// Sleeps, and reports progress after each step.
async fn sleep_in_steps(call: &ToolCall<'_>, step: Duration, steps: u32) {
    for done in 1..=steps {
        tokio::time::sleep(step).await;
        let Some(token) = call.context.meta.get_progress_token() else { continue };
        let progress = ProgressNotificationParam::new(token, f64::from(done))
            .with_total(f64::from(steps))
            .with_message(format!("step {done} of {steps}"));
        // If the notification fails, the call still returns its result.
        drop(call.context.peer.notify_progress(progress).await);
    }
}

/// An error that is not sent: the request was cancelled, or the client disconnected.
fn cancelled() -> ToolError {
    ErrorData::internal_error("cancelled", None).into()
}
