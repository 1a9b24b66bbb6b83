//! Severity levels of log messages.

use std::str::FromStr;

use serde::Serialize;

/// A log level of the protocol, as in syslog, least severe first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the levels of RFC 5424")]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
    /// `alert`
    Alert,
    /// `emergency`
    Emergency,
}

/// The error for an unknown level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a log level: debug, info, notice, warning, error, critical, alert or emergency")]
#[non_exhaustive]
pub struct UnknownLogLevel;

impl LogLevel {
    /// All levels, least severe first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// Returns the name that the protocol uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(text: &str) -> Result<LogLevel, UnknownLogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.as_str() == text).ok_or(UnknownLogLevel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_levels_are_parsed_and_ordered() {
        for level in LogLevel::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert!(LogLevel::ALL.is_sorted());
        assert_eq!("warn".parse::<LogLevel>(), Err(UnknownLogLevel));
    }
}
