//! Timestamps as text: RFC 3339 in UTC with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Formats a time as `2026-07-28T12:34:56.789Z`. Times before 1970, or after the range of [`Timestamp`], are clamped.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let timestamp = Timestamp::try_from(time.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    format!("{timestamp:.3}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(milliseconds: u64, want: &str) {
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(milliseconds)), want);
    }

    #[test]
    fn times_are_formatted_in_utc() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_800_000, "2000-03-01T00:00:00.000Z");
        check(1_785_242_096_789, "2026-07-28T12:34:56.789Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
        check(253_402_300_799_000, "9999-12-30T22:00:00.999Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }
}
