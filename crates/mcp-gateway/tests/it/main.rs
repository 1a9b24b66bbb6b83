//! The gateway before the bundled demo server, seen by real clients and by hostile ones.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod bounds;
mod clients;
mod connections;
mod dialogs;
mod forged;
mod forger;
mod raw;
mod reloading;
mod resuming;
mod scopes;
mod stdio;
mod tls;
mod world;
