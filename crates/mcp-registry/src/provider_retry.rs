//! Retry decisions for failed requests to a model provider (DM-066, DM-067).
//!
//! Only transient failures are retried. All others stop the dialog until a user has changed something, because the
//! same request would fail again. Pure: the caller waits.

use std::time::Duration;

use mcp_host_model::Severity;

use crate::name::display::{escape_name, truncate};
use crate::problem::{Problem, ProblemKind};

/// A failed request to a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProviderFailure {
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The network failure, if there was no response.
    pub network: Option<NetworkFailure>,
    /// The wait that the provider requests.
    pub retry_after: Option<Duration>,
}

/// A network failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkFailure {
    /// The connection failed or was lost.
    Connection,
    /// The response timed out.
    Timeout,
}

/// The decision whether to retry a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-host acts on each decision; a wildcard would neither stop nor retry"
)]
pub enum RetryDecision {
    /// Stop the dialog until a user has changed something, or requests another attempt.
    Stop,
    /// Send the same request again.
    Retry {
        /// The wait before the next attempt.
        after: Duration,
    },
}

/// The maximum number of retries.
const MAX_RETRIES: u32 = 5;
/// The wait before the first retry; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The maximum wait. A dialog does not wait longer.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Decides whether to retry after the failed attempt number `attempt`, counted from 1.
///
/// Network failures, 408, 429 and 5xx are retried, at most five times. The wait is 1, 2, 4, 8 and 16 seconds, or the
/// wait that the provider requests if that is longer. The decision is to stop if the provider requests more than a
/// minute, or if the cause is unknown.
pub fn decide_retry(failure: &ProviderFailure, attempt: u32) -> RetryDecision {
    let ProviderFailure { status, network, retry_after } = *failure;
    let is_transient = match (status, network) {
        (Some(status), _) => matches!(status, 408 | 429 | 500..=599),
        (None, Some(NetworkFailure::Connection | NetworkFailure::Timeout)) => true,
        (None, None) => false,
    };
    let requested_wait = retry_after.unwrap_or_default();
    if !is_transient || attempt > MAX_RETRIES || requested_wait > MAX_WAIT {
        return RetryDecision::Stop;
    }
    RetryDecision::Retry { after: requested_wait.max(FIRST_WAIT * (1 << attempt.saturating_sub(1))) }
}

/// A request that a model provider refused, as the input of [`Problem::provider_rejected`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderRejection<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The stopped dialog.
    pub dialog: &'a str,
    /// The exposed name of the tool that caused it, if known.
    pub tool: Option<&'a str>,
    /// The provider's message.
    pub text: &'a str,
}

impl<'a> ProviderRejection<'a> {
    /// A rejection that names no tool.
    pub fn new(provider: &'a str, dialog: &'a str, text: &'a str) -> ProviderRejection<'a> {
        ProviderRejection { provider, dialog, tool: None, text }
    }
}

impl Problem {
    /// The problem of a request that a provider refused, so that the dialog stopped (DM-062, DM-066). The text is cut
    /// to 2,000 bytes.
    pub fn provider_rejected(rejection: &ProviderRejection<'_>) -> Problem {
        let ProviderRejection { provider, dialog, tool, text } = *rejection;
        let (provider, dialog) = (escape_name(provider), escape_name(dialog));
        let cause = tool.map(|it| format!(" because of tool `{}`", escape_name(it))).unwrap_or_default();
        let text = truncate(text.to_owned(), 2_000);
        let id = format!("llm/{provider}/provider_rejected/{dialog}");
        let message = format!("provider `{provider}` refused a request of dialog `{dialog}`{cause}: {text}");
        let warning = Problem::warning(id, ProblemKind::ProviderRejected, None, tool, message);
        Problem { severity: Severity::Error, ..warning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the retries of a failure. `cause` is a status, `lost`, `late` or `?`; `want` has the seconds to wait
    /// after each attempt.
    #[track_caller]
    fn check(cause: &str, requested_wait: Option<u64>, want: &str) {
        let network = match cause {
            "lost" => Some(NetworkFailure::Connection),
            "late" => Some(NetworkFailure::Timeout),
            _ => None,
        };
        let retry_after = requested_wait.map(Duration::from_secs);
        let rejection = ProviderFailure { status: cause.parse().ok(), network, retry_after };
        let mut got = Vec::new();
        while let RetryDecision::Retry { after } = decide_retry(&rejection, got.len() as u32 + 1) {
            got.push(after.as_secs().to_string());
        }
        assert_eq!(got.join(" "), want, "{cause}");
        assert_eq!(decide_retry(&rejection, u32::MAX), RetryDecision::Stop);
    }

    #[test]
    fn dm_066_permanent_failures_are_not_retried() {
        for status in ["400", "401", "403", "404", "413", "422", "200", "301", "?"] {
            check(status, None, "");
            check(status, Some(1), "");
        }
    }

    #[test]
    fn dm_067_transient_failures_are_retried_at_most_five_times() {
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
