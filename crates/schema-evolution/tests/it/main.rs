//! Tests of the public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod comparison;
mod example;
mod mutations;
mod places;
mod property;
mod releases;
mod rendering;
