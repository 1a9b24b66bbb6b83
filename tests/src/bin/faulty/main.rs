//! A server that follows a script, on every transport: the peer of the fault matrix.
//!
//! `faulty stdio <script>` uses the standard streams. `faulty listen` prints a JSON line with its ports and serves
//! until standard input ends. The path of a connection selects the script,
//! `/<key>/<script>/<sse|messages|ws|mcp|json>`, so one process is as many servers as there are keys. It uses none of
//! our crates.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test server that cannot continue may panic")]

mod act;
mod connection;
mod framing;
mod http;
mod listeners;
mod message;
mod process;
mod secure;
mod websocket;

use mcp_tests::faults::Script;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stdio", script] => process::run(Script::parse(script).unwrap()).await,
        ["listen"] => listeners::listen().await,
        other => panic!("not a way to run it: {other:?}"),
    }
}
