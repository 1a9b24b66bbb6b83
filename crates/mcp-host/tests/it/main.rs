//! A host with servers in memory, on a clock that only moves when everybody waits.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod calls;
mod connecting;
mod demo;
mod failing;
mod following;
mod listing;
mod loading;
mod peer;
mod reloading;
mod stopping;
mod world;
