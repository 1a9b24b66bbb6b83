//! Options whose value is a limit.

/// Parses a limit, which is at least 1.
pub(super) fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "a limit is a number from 1".to_owned())
}
