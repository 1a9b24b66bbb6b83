//! What to do when a language model's provider refuses a request: stop, or try again a little later (DM-066, DM-067).
//!
//! Only what is clearly of the moment is tried again. Everything else stops the dialog until somebody has changed
//! something, for the same request would be refused the same way. Nothing here waits: the caller does.

use std::time::Duration;

use mcp_model::Severity;

use crate::name::display::{escape_name, truncate};
use crate::problem::{Problem, ProblemKind};

/// A request that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProviderFailure {
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What the network did, where there was none.
    pub network: Option<NetworkFailure>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

/// What came in the way of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkFailure {
    /// No connection, or one that was lost.
    Connection,
    /// No answer in time.
    Timeout,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryDecision {
    /// Stop the dialog; a user must change something first, or ask for another try.
    Stop,
    /// Send the same request again.
    Retry {
        /// After this time.
        after: Duration,
    },
}

/// The most times that one request is sent again.
const RETRIES: u32 = 5;
/// The wait before the second attempt; it doubles with each further one.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait. A provider that asks for a longer one is not worth a dialog that hangs.
const LONGEST: Duration = Duration::from_secs(60);

/// Decides after attempt number `attempt`, which counts from 1.
///
/// Tried again is what the network did, a 408, a 429 and any 5xx, five times at the most. The wait is 1, 2, 4, 8 and
/// 16 seconds, or what the provider asks for where that is longer; where it asks for more than a minute, or nothing
/// says what happened, the answer is to stop.
pub fn retry_decision(rejection: &ProviderFailure, attempt: u32) -> RetryDecision {
    let ProviderFailure { status, network, retry_after } = *rejection;
    let passing = match (status, network) {
        (Some(status), _) => matches!(status, 408 | 429 | 500..=599),
        (None, Some(NetworkFailure::Connection | NetworkFailure::Timeout)) => true,
        (None, None) => false,
    };
    let asked = retry_after.unwrap_or_default();
    if !passing || attempt > RETRIES || asked > LONGEST {
        return RetryDecision::Stop;
    }
    RetryDecision::Retry { after: asked.max(FIRST * (1 << attempt.saturating_sub(1))) }
}

/// A rejection as a user is told about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRejection<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The dialog that stopped.
    pub dialog: &'a str,
    /// The exposed name of the tool it is about, where that is known.
    pub tool: Option<&'a str>,
    /// What the provider said.
    pub text: &'a str,
}

impl Problem {
    /// A provider refused a request and the dialog stopped (DM-062, DM-066). The text is cut to 2,000 bytes.
    pub fn provider_rejected(rejection: &ProviderRejection<'_>) -> Problem {
        let ProviderRejection { provider, dialog, tool, text } = *rejection;
        let (provider, dialog) = (escape_name(provider), escape_name(dialog));
        let about = tool.map(|it| format!(" because of tool `{}`", escape_name(it))).unwrap_or_default();
        let text = truncate(text.to_owned(), 2_000);
        Problem {
            id: format!("llm/{provider}/provider_rejected/{dialog}"),
            kind: ProblemKind::ProviderRejected,
            severity: Severity::Error,
            server: None,
            tool: tool.map(str::to_owned),
            message: format!("provider `{provider}` refused a request of dialog `{dialog}`{about}: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cause` is a status, `lost`, `late` or `?`; `want` has the seconds to wait after each attempt.
    #[track_caller]
    fn check(cause: &str, asked: Option<u64>, want: &str) {
        let network = match cause {
            "lost" => Some(NetworkFailure::Connection),
            "late" => Some(NetworkFailure::Timeout),
            _ => None,
        };
        let retry_after = asked.map(Duration::from_secs);
        let rejection = ProviderFailure { status: cause.parse().ok(), network, retry_after };
        let mut got = Vec::new();
        while let RetryDecision::Retry { after } = retry_decision(&rejection, got.len() as u32 + 1) {
            got.push(after.as_secs().to_string());
        }
        assert_eq!(got.join(" "), want, "{cause}");
        assert_eq!(retry_decision(&rejection, u32::MAX), RetryDecision::Stop);
    }

    #[test]
    fn dm_066_a_request_that_is_wrong_is_not_sent_again() {
        for status in ["400", "401", "403", "404", "413", "422", "200", "301", "?"] {
            check(status, None, "");
            check(status, Some(1), "");
        }
    }

    #[test]
    fn dm_067_what_passes_is_tried_again_a_bounded_number_of_times() {
        for cause in ["408", "429", "500", "502", "503", "529", "lost", "late"] {
            check(cause, None, "1 2 4 8 16");
        }
        check("429", Some(0), "1 2 4 8 16");
        check("429", Some(5), "5 5 5 8 16");
        check("503", Some(60), "60 60 60 60 60");
        check("429", Some(61), "");
    }

    #[test]
    fn dm_062_dm_066_a_problem_names_provider_dialog_tool_and_text() {
        let rejection =
            ProviderRejection { provider: "codex", dialog: "d1", tool: Some("a_b"), text: "Invalid schema" };
        let problem = Problem::provider_rejected(&rejection);
        assert_eq!(
            problem.message,
            "provider `codex` refused a request of dialog `d1` because of tool `a_b`: Invalid schema"
        );
        assert_eq!(
            (problem.id.as_str(), problem.tool.as_deref()),
            ("llm/codex/provider_rejected/d1", Some("a_b"))
        );
        let long = "x".repeat(5_000);
        let problem = Problem::provider_rejected(&ProviderRejection { tool: None, text: &long, ..rejection });
        assert!(problem.message.len() < 2_100 && !problem.message.contains("tool"), "{}", problem.message);
    }
}
