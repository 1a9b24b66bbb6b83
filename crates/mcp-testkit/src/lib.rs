//! Helpers that the tests of several crates share. Not published.
//!
//! - [`collector`]: an OpenTelemetry collector
//! - [`process`]: processes of the system by id: whether they run, their children, their resources
//! - [`wait`]: waiting for a condition, with a time limit
//! - [`random`]: deterministic pseudo-random numbers
//! - [`seeds`]: runs a property on the seeds of a fuzz target and on mutations of them
//! - [`servers`] (feature `servers`): in-memory servers, and servers as shell scripts
//! - [`properties`] (feature `properties`): the properties of the fuzz targets in `fuzz/`

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test helper panics on errors")]
#![expect(clippy::print_stderr, reason = "a skipped test prints why")]

pub mod collector;
pub mod isolation;
pub mod process;
pub mod program;
#[cfg(feature = "properties")]
pub mod properties;
pub mod random;
pub mod seeds;
#[cfg(feature = "servers")]
pub mod servers;
pub mod wait;
