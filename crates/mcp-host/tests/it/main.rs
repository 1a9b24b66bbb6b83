//! A host with servers in memory, on a clock that only moves when everybody waits.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod calls;
mod connecting;
mod demo;
mod failing;
mod following;
mod leasing;
mod listing;
mod loading;
mod oracles;
mod peer;
mod pinning;
mod racing;
mod reloading;
mod stopping;
mod supervising;
mod world;
