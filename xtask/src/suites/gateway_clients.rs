//! `cargo xtask users [REQUESTS]` and `cargo xtask reloads [COUNT]`: tests of the gateway with clients of other
//! projects, in full size.
//!
//! The test suite runs the same tests in a smaller size.

use crate::cargo::{cargo, run as run_command};
use crate::error::Error;
use crate::suites::test_run;

/// A test with a size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizedTest {
    filter: &'static str,
    /// The environment variable with the size.
    variable: &'static str,
    full_size: u32,
}

/// Two users send interleaved requests.
pub(crate) const USERS: SizedTest =
    SizedTest { filter: "gateway_clients::users::", variable: "MCP_TEST_USERS_REQUESTS", full_size: 10_000 };

/// The configuration is reloaded during long calls.
pub(crate) const RELOADS: SizedTest =
    SizedTest { filter: "gateway_clients::reloads::", variable: "MCP_TEST_RELOADS", full_size: 50 };

/// Installs the test packages and runs the test in this size, or in its full size.
pub(crate) fn run(test: SizedTest, size: Option<&str>) -> Result<(), Error> {
    let size = size.map_or(Ok(test.full_size), str::parse);
    let size = size.map_err(|_| Error::message("the size must be a number"))?;
    let mut command = cargo();
    command
        .args(["test", "-p", "mcp-tests", "--test", "it", test.filter, "--", "--nocapture"])
        .envs(test_run::install_packages()?)
        .env(test.variable, size.to_string());
    run_command(&mut command)
}
