//! Tests of a host with in-memory servers, on a paused Tokio clock that advances only when all tasks are idle.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod asking;
mod callers;
mod calls;
mod connecting;
mod demo;
mod example;
mod failing;
mod following;
mod lasting;
mod leasing;
mod listing;
mod loading;
mod observing;
mod oracles;
#[cfg(feature = "otel")]
mod otel;
mod peer;
mod pinning;
mod racing;
mod refusing;
mod reloading;
mod results;
mod stopping;
mod supervising;
mod world;
