//! Tests of the public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod comparison;
mod example;
mod locations;
mod mutations;
mod property;
mod releases;
mod rendering;
