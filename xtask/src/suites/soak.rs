//! `cargo xtask soak [SECONDS [SEED]]`: the soak of the tests, as long as one likes.
//!
//! It is the same program that runs for a short while among the tests; from ten minutes on it has its full size.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cargo::{cargo, exit_code};
use crate::error::Error;

/// An hour.
const SECONDS: u64 = 3600;

/// From when on it has its full size, for which everything is built as Cargo.toml's profile of this name says.
const FULL: (u64, &str) = (600, "soak");

/// Runs it for so many seconds (an hour), from this seed; without one from that of the moment, which is said.
pub(crate) fn run(words: &[&str]) -> Result<(), Error> {
    let Some((seconds, seed)) = read(words) else {
        return Err(Error::message("a soak is told seconds, and then a seed"));
    };
    let of_the_moment = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |it| it.as_secs());
    let seed = seed.unwrap_or_else(of_the_moment);
    println!("a soak of {seconds} s; again with: cargo xtask soak {seconds} {seed}");
    let profile = if seconds < FULL.0 { "dev" } else { FULL.1 };
    let status = cargo()
        .args(["test", "--profile", profile, "-p", "mcp-tests", "--test", "it"])
        .args(["soak::", "--", "--nocapture"])
        .env("MCP_TEST_PROFILE", profile)
        .env("MCP_TEST_SOAK_SECONDS", seconds.to_string())
        .env("MCP_TEST_SOAK_SEED", seed.to_string())
        .env_remove("MCP_TEST_ALONE")
        .status()
        .map_err(|error| Error::message(format!("could not start cargo: {error}")))?;
    if status.success() { Ok(()) } else { Err(Error::Exit(exit_code(status.code()))) }
}

/// Reads the words behind `soak`; `None` where they are none of these.
fn read(words: &[&str]) -> Option<(u64, Option<u64>)> {
    match words {
        [] => Some((SECONDS, None)),
        [seconds] => Some((seconds.parse().ok()?, None)),
        [seconds, seed] => Some((seconds.parse().ok()?, Some(seed.parse().ok()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_is_told_how_long_and_from_where() {
        assert_eq!(read(&[]), Some((SECONDS, None)));
        assert_eq!(read(&["60"]), Some((60, None)));
        assert_eq!(read(&["60", "7"]), Some((60, Some(7))));
        assert_eq!(read(&["an", "hour"]), None);
        assert_eq!(read(&["1", "2", "3"]), None);
    }
}
