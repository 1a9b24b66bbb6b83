//! Converts configured seconds to durations, and detects values that are probably milliseconds.

use std::time::Duration;

/// The longest configured duration: 30 years. A longer one could overflow when added to a clock.
const MAX_DURATION: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A number of seconds as a duration of at most [`MAX_DURATION`]; `None` unless it is finite and greater than
/// zero.
pub(crate) fn duration_from_secs(value: f64) -> Option<Duration> {
    if !value.is_finite() || value <= 0.0 {
        return None;
    }
    let duration = Duration::try_from_secs_f64(value).unwrap_or(MAX_DURATION).min(MAX_DURATION);
    // Less than a nanosecond rounds to zero, which is not a valid timeout.
    (!duration.is_zero()).then_some(duration)
}

/// Returns whether a number of seconds looks like milliseconds: a multiple of 1000, or more than an hour.
pub(crate) fn looks_like_milliseconds(value: f64) -> bool {
    value > 3600.0 || (value >= 1000.0 && value % 1000.0 == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_025_hd_032_durations_are_finite_and_greater_than_zero() {
        assert_eq!(duration_from_secs(0.5), Some(Duration::from_millis(500)));
        assert_eq!(duration_from_secs(1e300), Some(MAX_DURATION));
        for value in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e-30] {
            assert_eq!(duration_from_secs(value), None, "{value}");
        }
    }

    #[test]
    fn milliseconds_are_recognised() {
        for value in [1000.0, 5000.0, 30_000.0, 3601.0] {
            assert!(looks_like_milliseconds(value), "{value}");
        }
        for value in [0.5, 60.0, 900.0, 1200.0, 3600.0] {
            assert!(!looks_like_milliseconds(value), "{value}");
        }
    }
}
