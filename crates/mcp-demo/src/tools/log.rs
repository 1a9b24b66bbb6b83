//! The tool that logs at all eight levels, as far as the client wants to hear.
//!
//! A legacy client sets a threshold for its session, and hears everything until it does. A sessionless request names
//! its level itself, and hears nothing when it does not.

#![expect(deprecated, reason = "logging is deprecated in the protocol, and servers still do it")]

use rmcp::model::{CallToolResponse, LoggingLevel, LoggingMessageNotificationParam};

use super::{Call, Fault, Nothing, text};
use crate::server::Era;

const LEVELS: [(LoggingLevel, &str); 8] = [
    (LoggingLevel::Debug, "debug"),
    (LoggingLevel::Info, "info"),
    (LoggingLevel::Notice, "notice"),
    (LoggingLevel::Warning, "warning"),
    (LoggingLevel::Error, "error"),
    (LoggingLevel::Critical, "critical"),
    (LoggingLevel::Alert, "alert"),
    (LoggingLevel::Emergency, "emergency"),
];

/// How grave a level is, from 0.
pub(crate) fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

pub(super) async fn log(call: &Call<'_>, _arguments: Nothing) -> Result<CallToolResponse, Fault> {
    let threshold = match call.era {
        Era::Legacy => Some(call.state.threshold()),
        Era::Sessionless => call.context.meta.log_level().map(rank),
    };
    let wanted = LEVELS.into_iter().filter(|(level, _)| threshold.is_some_and(|least| rank(*level) >= least));
    let mut sent = 0;
    for (level, word) in wanted {
        let message =
            LoggingMessageNotificationParam::new(level, format!("a message at level {word}").into());
        if call.context.peer.notify_logging_message(message.with_logger("demo")).await.is_ok() {
            sent += 1;
        }
    }
    Ok(text(format!("sent {sent} of {} log messages", LEVELS.len())))
}
