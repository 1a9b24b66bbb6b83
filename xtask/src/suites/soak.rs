//! `cargo xtask soak [SECONDS [SEED]]`: runs the soak test for a given time.
//!
//! The test suite runs the same test for seconds. From ten minutes on it has its full size.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cargo::{cargo, run as run_command};
use crate::error::Error;

/// The default time: an hour.
const DEFAULT_SECONDS: u64 = 3600;

/// The time from which the soak has its full size, in seconds.
const FULL_SIZE_SECONDS: u64 = 600;

/// The Cargo profile of a soak in full size.
const FULL_SIZE_PROFILE: &str = "soak";

/// Runs the soak. Without a seed, it takes the current time and prints the command that repeats the run.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let Some((seconds, seed)) = parse_arguments(arguments) else {
        return Err(Error::message("usage: cargo xtask soak [SECONDS [SEED]]"));
    };
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = seed.unwrap_or_else(now);
    println!("soak of {seconds} s; to repeat: cargo xtask soak {seconds} {seed}");
    let profile = if seconds < FULL_SIZE_SECONDS { "dev" } else { FULL_SIZE_PROFILE };
    let mut command = cargo();
    command
        .args(["test", "--profile", profile, "-p", "mcp-tests", "--test", "it"])
        .args(["soak::", "--", "--nocapture"])
        .env("MCP_TEST_PROFILE", profile)
        .env("MCP_TEST_SOAK_SECONDS", seconds.to_string())
        .env("MCP_TEST_SOAK_SEED", seed.to_string())
        .env_remove("MCP_TEST_ALONE");
    run_command(&mut command)
}

/// Parses the arguments of `soak`.
fn parse_arguments(arguments: &[&str]) -> Option<(u64, Option<u64>)> {
    match arguments {
        [] => Some((DEFAULT_SECONDS, None)),
        [seconds] => Some((seconds.parse().ok()?, None)),
        [seconds, seed] => Some((seconds.parse().ok()?, Some(seed.parse().ok()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        assert_eq!(parse_arguments(&[]), Some((DEFAULT_SECONDS, None)));
        assert_eq!(parse_arguments(&["60"]), Some((60, None)));
        assert_eq!(parse_arguments(&["60", "7"]), Some((60, Some(7))));
        assert_eq!(parse_arguments(&["an", "hour"]), None);
        assert_eq!(parse_arguments(&["1", "2", "3"]), None);
    }
}
