//! The tool that takes its time, tells how far it is, and stops when nobody waits any more.

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{CallToolResponse, ProgressNotificationParam},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Fault, text};

const LONGEST: u64 = 600_000;
const MOST_STEPS: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sleep {
    /// How long to sleep in all, in milliseconds, at most 600000
    #[schemars(range(max = 600_000))]
    ms: u64,
    /// In how many steps, 1 to 1000, each of which is reported; 1 unless given
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    steps: u32,
}

fn one() -> u32 {
    1
}

/// Cancel-safe: between two steps nothing is held.
pub(super) async fn sleep(call: &Call<'_>, arguments: Sleep) -> Result<CallToolResponse, Fault> {
    let Sleep { ms, steps } = arguments;
    if ms > LONGEST || !(1..=MOST_STEPS).contains(&steps) {
        return Err(Fault::tool(format!("`ms` is at most {LONGEST}, `steps` 1 to {MOST_STEPS}")));
    }
    tokio::select! {
        biased;
        () = call.context.ct.cancelled() => Err(given_up()),
        () = call.life.over() => Err(given_up()),
        () = run(call, Duration::from_millis(ms) / steps, steps) => {
            Ok(text(format!("slept {ms} ms in {steps} {}", if steps == 1 { "step" } else { "steps" })))
        }
    }
}

async fn run(call: &Call<'_>, step: Duration, steps: u32) {
    for done in 1..=steps {
        tokio::time::sleep(step).await;
        let Some(token) = call.context.meta.get_progress_token() else { continue };
        let progress = ProgressNotificationParam::new(token, f64::from(done))
            .with_total(f64::from(steps))
            .with_message(format!("step {done} of {steps}"));
        // A client that does not hear of progress still gets the answer, or cancels.
        drop(call.context.peer.notify_progress(progress).await);
    }
}

/// Nobody reads this: the request is cancelled, or its client gone.
fn given_up() -> Fault {
    ErrorData::internal_error("given up", None).into()
}
