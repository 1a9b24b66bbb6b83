//! The tool `log`: sends a log message at each of the eight levels that the client requested.
//!
//! A legacy client sets a level for its session; by default it receives all messages. A modern request names
//! its level; by default it receives none.

#![expect(deprecated, reason = "logging is deprecated in the protocol, and servers still do it")]

use rmcp::model::{CallToolResponse, LoggingLevel, LoggingMessageNotificationParam};

use super::call::{NoArguments, ToolCall, ToolError, text_result};
use crate::state::Era;

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

/// The severity of a level, from 0.
pub(crate) fn rank(level: LoggingLevel) -> u8 {
    let rank = LEVELS.iter().position(|(known, _)| *known == level).unwrap_or_default();
    u8::try_from(rank).unwrap_or(u8::MAX)
}

pub(super) async fn log(call: &ToolCall<'_>, _arguments: NoArguments) -> Result<CallToolResponse, ToolError> {
    let threshold = match call.era {
        Era::Legacy => Some(call.state.threshold()),
        Era::Modern => call.context.meta.log_level().map(rank),
    };
    let requested =
        LEVELS.into_iter().filter(|(level, _)| threshold.is_some_and(|threshold| rank(*level) >= threshold));
    let mut sent = 0;
    for (level, name) in requested {
        let message =
            LoggingMessageNotificationParam::new(level, format!("a message at level {name}").into());
        if call.context.peer.notify_logging_message(message.with_logger("demo")).await.is_ok() {
            sent += 1;
        }
    }
    Ok(text_result(format!("sent {sent} of {} log messages", LEVELS.len())))
}
